"""The models of `/v1/explain`."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from cragside.domain.outcome import Dropped
from cragside.domain.preferences import EvidenceMode
from cragside.domain.verdict import Verdict
from cragside.entrypoints.http.models import Citation, Degraded, Recalled


class StepBody(BaseModel):
    """A step that ran. It has the further fields of its name only."""

    name: Literal["complete", "retrieve", "grade", "decide", "rewrite", "search", "inject", "recall"] = Field(
        description="The step, in the order in which the graph runs them."
    )
    ms: float = Field(description="Its measured milliseconds.")
    question: str = Field("", description="`complete`: the question that stands alone.")
    passages: int = Field(0, description="`retrieve`, `search`, `inject`: how many passages it found or kept.")
    grader: str | None = Field(None, description="`grade`: `embedded` or `rerank`; null if there was nothing to grade.")
    asked: int = Field(0, description="`grade`: how many passages a chat model was asked about.")
    next: Literal["inject", "rewrite"] = Field("inject", description="`decide`: the next step.")
    query: str = Field("", description="`rewrite`: what the web is searched for.")
    searched: bool = Field(False, description="`search`: whether a search engine was asked.")
    exchanges: int = Field(0, description="`recall`: how many earlier exchanges it found.")


class StripBody(BaseModel):
    """The run of whole sentences in a passage with the best score."""

    text: str = Field(description="The strip, `content` from `start` to `end`.")
    start: int = Field(description="Its first character, in Unicode code points from 0.")
    end: int = Field(description="The character after its last one.")
    score: float = Field(description="Probability of relevance of the strip alone, 0..1.")
    grader: str = Field(description="Who gave this score: always `embedded`.")


class ReadWordBody(BaseModel):
    """Words that the question writes otherwise than the documents."""

    asked: str = Field(description="As the question writes it.")
    read: str = Field(description="As the documents do.")


class JudgementBody(BaseModel):
    """A chat model's second opinion on a passage, which it read beside no other."""

    model: str = Field(description="The chat model.")
    answers: float = Field(description="Its probability that the passage states the answer, 0..1.")
    grade: float = Field(description="The grade of the `grader` before, 0..1. The judgement may have raised it.")


class ReasonsBody(BaseModel):
    """What spoke for a candidate."""

    words: list[str] = Field(description="The question's content words that it or its title has, in any inflection.")
    read: list[ReadWordBody] = Field(
        description="Which of them the question writes otherwise: misspelt or abbreviated."
    )
    strip: StripBody | None = Field(description="The strip that carries its score; null if the time was over.")
    grader: str | None = Field(description="Who gave its `score`: `embedded` or `rerank`.")
    judgement: JudgementBody | None = Field(description="The judgement that moved its `score`, if a model was asked.")


class CandidateBody(BaseModel):
    """A passage or web result that was considered as evidence."""

    id: str = Field(description="Id of the passage or of the web result.")
    title: str = Field(description="Title of the document.")
    source: Literal["local", "web"] = Field(description="The knowledge base or the web.")
    content: str = Field(description="The whole passage.")
    url: str | None = Field(description="Address of the page, if it has one.")
    filename: str | None = Field(description="Name of the document; null for the web.")
    document: str | None = Field(description="Id of the document; null for the web.")
    page: int | None = Field(description="Its page, where known.")
    section: str | None = Field(description="Its section, where known.")
    date: str | None = Field(description="The date of what it quotes, as exactly as it is known.")
    earlier_than: int | None = Field(description="The number of a later passage in the prompt that answers as well.")
    score: float | None = Field(description="Probability of relevance, 0..1; null if nobody graded it.")
    similarity: float | None = Field(
        description="Cosine to the question, 0..1, in the mode `similarity`; null in the mode `corrective`."
    )
    needed: float | None = Field(
        description="It was only kept with a score above this; null in the mode `similarity`, which grades nothing."
    )
    kept: bool = Field(description="Whether it is in the prompt.")
    number: int | None = Field(description="Its number in the prompt.")
    dropped: Dropped | None = Field(
        description="Why it is not in the prompt: its `score`, the `limit` of documents, no `room` for its tokens."
    )
    reasons: ReasonsBody = Field(description="What spoke for it.")


class ExplanationBody(BaseModel):
    """A run of the graph on a question. Times are measured, and texts are as they were found."""

    id: str = Field(description="Id of the request; generated if missing.")
    question: str = Field(description="The question.")
    standalone_question: str | None = Field(
        description="What was searched for, if the question was completed from the conversation."
    )
    steps: list[StepBody] = Field(description="The steps that ran, in their order.")
    candidates: list[CandidateBody] = Field(description="Local passages, best first, then web results, best first.")
    closest: list[Citation] | None = Field(
        None,
        description="With the verdict `none` only: up to three nearest passages. They did not pass and are not in the "
        "prompt.",
    )
    mode: EvidenceMode = Field(description="How the workspace gets its evidence.")
    threshold: float = Field(description="A local passage with a higher score suffices.")
    verdict: Verdict = Field(description="Where the evidence comes from and how good it is.")
    search_performed: bool = Field(description="Whether the web was searched.")
    degraded: list[Degraded] = Field(description="Components that failed. The run continued without them.")
    processing_time_ms: int = Field(description="Milliseconds of the run, without its explanation.")
    memory: list[Recalled] | None = Field(None, description="Earlier exchanges, if the request asked for memory.")
    prompt: str | None = Field(description="What the model would get for a `prompt`.")
    messages: list[dict[str, Any]] | None = Field(description="What the model would get for `messages`.")
