"""Checks if the passages that an answer cites support it."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.application.answerer import CitedPassage
from cragside.domain.errors import ValidationError
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.request_access import AppContainer, attributed_token
from cragside.entrypoints.http.request_bodies import BoundedRoute

_LONGEST_ANSWER = 50_000
_LONGEST_PASSAGE = 50_000
_MOST_PASSAGES = 50
_MOST_CHARACTERS = 200_000


class EvidencePassage(BaseModel):
    """A passage that the answer may cite."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=1, le=9999, description="Its number in the prompt.")
    content: str = Field(max_length=_LONGEST_PASSAGE, description="Its text.")
    title: str = Field("", max_length=1000, description="Title of its document.")


class CitedAnswer(BaseModel):
    """An answer with citations, and the passages that they may name."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "answer": "The keeper lights the lamp at dusk [1].",
                    "passages": [{"number": 1, "content": "At dusk the keeper lights the lamp.", "title": "Harbour"}],
                }
            ]
        },
    )

    answer: str = Field(max_length=_LONGEST_ANSWER, description="The answer of a model.")
    passages: list[EvidencePassage] = Field(max_length=_MOST_PASSAGES, description="The evidence in its prompt.")


class CitationBody(BaseModel):
    """A citation, and whether its passage supports what it stands for."""

    number: int = Field(description="The number that is cited.")
    start: int = Field(description="First character of the mark, such as `[1]`, in Unicode code points from 0.")
    end: int = Field(description="The character after its last one. In `[1, 2]` each number has its own place.")
    claim: str = Field(description="The sentence, or the part of a sentence, that the passage is to support.")
    score: float = Field(description="Share of the claim's content words that the passage has, 0..1, by their weight.")
    supported: bool = Field(description="Whether the passage has enough of it, and each number, date and name.")


class CitationsBody(BaseModel):
    """The citations of an answer."""

    citations: list[CitationBody] = Field(description="The citations in their order.")


router = APIRouter(tags=["enrich"], route_class=BoundedRoute, responses=error_responses())


@router.post("/v1/citations")
async def check_citations(request: Request, body: CitedAnswer, container: AppContainer) -> CitationsBody:
    """Check each `[n]` of an answer against passage n. Words, numbers and names are compared; no model is asked."""
    passages = {each.number: CitedPassage(each.content, each.title) for each in body.passages}
    if len(passages) < len(body.passages):
        raise ValidationError("Each passage needs a number of its own.", field="passages")
    if sum(len(each.content) for each in body.passages) > _MOST_CHARACTERS:
        raise ValidationError(f"The passages can have {_MOST_CHARACTERS:,} characters in all.", field="passages")
    checked = await container.citations.check(body.answer, passages, holder=attributed_token(request))
    return CitationsBody(
        citations=[
            CitationBody(
                number=each.cited.number,
                start=each.cited.start,
                end=each.cited.end,
                claim=each.cited.claim,
                score=round(each.support.score, 4),
                supported=each.support.supported,
            )
            for each in checked
        ]
    )
