"""The routes that add evidence to a prompt, and that explain how a prompt gets it."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.sse import ServerSentEvent
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import ClientDisconnect

from cragside.application.contract import enhanced_request
from cragside.application.enricher import Enriched
from cragside.domain.errors import ProcessingError
from cragside.domain.explanation import Explanation
from cragside.domain.outcome import Dropped, Step, Watch
from cragside.domain.preferences import EvidenceMode
from cragside.domain.prompt import any_question_in, question_in
from cragside.domain.verdict import Verdict
from cragside.entrypoints.http.errors import EVENTS, Events, error_responses, event_stream
from cragside.entrypoints.http.models import Citation, Degraded, Recalled
from cragside.entrypoints.http.request_access import choose_workspace, container_of, seconds_of
from cragside.entrypoints.http.request_bodies import json_object
from cragside.entrypoints.request_headers import end_user_of, memory_asked, wish_of
from cragside.entrypoints.runs import ClientGone, first_of, followed, while_connected

_HEADER = {
    "in": "header",
    "name": "X-RAG",
    "description": "`always`: the prompt needs no command. `never`: the request is returned unchanged.",
    "schema": {"type": "string", "enum": ["always", "never"]},
}
_EVENTS_DESCRIPTION = (
    "With `Accept: text/event-stream`: server-sent events. `step` with a StepBody whenever a step ends, then `done` "
    "with the ExplanationBody, or `failed` with an ErrorBody."
)


class EnrichRequest(BaseModel):
    """A request with a `prompt` or `messages`. Unknown fields are returned unchanged."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"prompt": "/rag Who lights the harbour lamp?", "model": "llama3.2"}]},
    )

    prompt: str | None = Field(None, description="The user's prompt; enriched if it begins with the command.")
    messages: list[dict[str, Any]] | None = Field(None, description="Chat messages in Ollama's or OpenAI's form.")
    id: str | None = Field(None, description="Request id; generated if missing.")
    timestamp: str | None = Field(None, description="ISO 8601; generated if missing.")
    stream: bool | None = Field(None, description="Whether the response should be streamed; passed on.")
    user_id: str | None = Field(None, description="The user, whose exchanges alone memory adds; passed on.")
    model: str | None = Field(None, description="Ollama model of the request; it may also grade the evidence.")
    workspace: str | None = Field(None, description="The knowledge base to ask.")
    persona: str | None = Field(None, description="Template of the system prompt, such as `witness-de`.")
    compress: bool | None = Field(None, description="Whether to insert only the relevant strips of passages.")
    memory: bool | None = Field(
        None,
        description="Whether to add earlier exchanges after the evidence. Default: `X-RAG-Memory`, else the settings.",
    )
    tell_none: bool | None = Field(
        None,
        description="Whether a sentence in the place of the evidence tells the model where there is none. Default: "
        "false; `RAG_TELL_NONE` for `/v1/explain`.",
    )
    metadata: dict[str, Any] | None = Field(None, description="Passed on; `rag_context` is added to it.")


class EvidenceFound(BaseModel):
    """The evidence of a run with its verdict, or the passages that were nearest to it."""

    closest: list[Citation] | None = Field(
        None,
        description="With the verdict `none` only: up to three nearest passages. They did not pass and are not in the "
        "prompt.",
    )
    search_performed: bool = Field(description="Whether the web was searched.")
    verdict: Verdict = Field(description="Where the evidence comes from and how good it is.")
    degraded: list[Degraded] = Field(description="Components that failed. The run continued without them.")
    memory: list[Recalled] | None = Field(None, description="Earlier exchanges, if the request asked for memory.")


class RagContextBody(EvidenceFound):
    """The injected evidence, and how it was found."""

    query: str = Field(description="The question.")
    standalone_question: str | None = Field(
        None, description="What was searched for, if the question was completed from the conversation."
    )
    documents: list[Citation] = Field(description="The evidence, in the order of its numbers in the prompt.")
    processing_time_ms: int = Field(description="Milliseconds of the whole request.")
    threshold: float = Field(description="A passage with a higher score was accepted.")
    mode: Literal["similarity", "off"] | None = Field(
        None, description="How the workspace gets its evidence, unless it is `corrective`."
    )
    grader: str | None = Field(None, description="Who graded: `embedded` or `rerank`; null if there was nothing.")
    judge: str | None = Field(None, description="The chat model that was asked for a second opinion; null if none was.")
    asked: int = Field(0, description="How many passages it was asked about.")
    timings_ms: dict[str, float] = Field(description="Milliseconds of each step.")


class EnrichedMetadata(BaseModel):
    """The request's metadata with the evidence."""

    model_config = ConfigDict(extra="allow")

    rag_context: RagContextBody = Field(description="The injected evidence.")


class EnrichedRequestBody(EnrichRequest):
    """A request that began with the command, with evidence before its question."""

    model_config = ConfigDict(json_schema_extra={})

    metadata: EnrichedMetadata = Field(description="The request's own metadata and `rag_context`.")  # type: ignore[assignment]


class UnchangedRequest(BaseModel):
    """A request without the command, as it was sent."""

    model_config = ConfigDict(extra="allow")


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
    """Words of the question for which the documents use other words."""

    asked: str = Field(description="As the question writes it.")
    read: str = Field(description="As the documents do.")


class JudgementBody(BaseModel):
    """A chat model's second opinion on a passage, which it read beside no other."""

    model: str = Field(description="The chat model.")
    answers: float = Field(description="Its probability that the passage states the answer, 0..1.")
    grade: float = Field(description="The grade of the `grader` before, 0..1. The judgement may have raised it.")


class ReasonsBody(BaseModel):
    """The reasons for a candidate."""

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


class ExplanationBody(EvidenceFound):
    """A run of the graph on a question. Times are measured, and texts are as they were found."""

    id: str = Field(description="Id of the request; generated if missing.")
    question: str = Field(description="The question.")
    standalone_question: str | None = Field(
        description="What was searched for, if the question was completed from the conversation."
    )
    steps: list[StepBody] = Field(description="The steps that ran, in their order.")
    candidates: list[CandidateBody] = Field(description="Local passages, best first, then web results, best first.")
    mode: EvidenceMode = Field(description="How the workspace gets its evidence.")
    threshold: float = Field(description="A local passage with a higher score suffices.")
    processing_time_ms: int = Field(description="Milliseconds of the run, without its explanation.")
    prompt: str | None = Field(description="What the model would get for a `prompt`.")
    messages: list[dict[str, Any]] | None = Field(description="What the model would get for `messages`.")


_BODY = {"content": {"application/json": {"schema": EnrichRequest.model_json_schema()}}, "required": True}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": EnrichedRequestBody | UnchangedRequest,
        "description": "The request, enriched if it had the command.",
    }
}

router = APIRouter(tags=["enrich"], responses=error_responses())


@router.post("/v1/enrich", openapi_extra={"requestBody": _BODY, "parameters": [_HEADER]}, responses=_ANSWER)
async def enrich(request: Request) -> Response:
    """Add evidence to a request whose prompt begins with the command. Other requests are returned unchanged.

    With `X-RAG: always` a prompt gets evidence without the command, with `X-RAG: never` none does.
    """
    # No dependencies here: FastAPI takes time to resolve them, and this route is the busiest.
    container = container_of(request)
    body = await json_object(request)
    wish = wish_of(request.scope["headers"])
    read = any_question_in if wish == "always" else question_in
    question = None if wish == "never" else read(body, container.settings.command_prefix)
    if wish == "never":
        enriched = Enriched(body, None)
    elif question is None:  # its other fields are not checked
        enriched = await container.enricher.enrich(body)
    else:
        enriched = await container.enricher.enrich(
            body,
            question=question,
            workspace=choose_workspace(request, body.get("workspace")),
            memory=memory_asked(request.scope["headers"]),
            end_user=end_user_of(request.scope["headers"], body),
            timeout=seconds_of(request),
        )
    request.state.rag_context = enriched.rag_context
    # ASCII can express all input, even half a surrogate pair.
    return Response(json.dumps(enhanced_request(enriched)), media_type="application/json")


_EXPLAIN_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ExplanationBody,
        "description": "The run and its evidence.",
        "content": {EVENTS: {"schema": {"type": "string", "description": _EVENTS_DESCRIPTION}}},
    }
}


@router.post("/v1/explain", openapi_extra={"requestBody": _BODY}, responses=_EXPLAIN_ANSWER)
async def explain(request: Request) -> Response:
    """Explain which evidence a prompt would get: each step with its time, each candidate with its reasons.

    It takes what `/v1/enrich` takes and runs the same graph. The command before the question is optional. No model
    writes an answer. A client that leaves stops the run.
    """
    body = await json_object(request)
    workspace, memory = choose_workspace(request, body.get("workspace")), memory_asked(request.scope["headers"])
    container = container_of(request)

    async def run(watch: Watch) -> Explanation:
        explanation = await container.explainer.explain(
            body,
            watch=watch,
            workspace=workspace,
            memory=memory,
            end_user=end_user_of(request.scope["headers"], body),
            timeout=seconds_of(request),
        )
        request.state.rag_context = explanation.context
        return explanation

    items = followed(run)
    try:
        if not _wants_events(request):
            return _json(await while_connected(request.receive, _last(items)))
        # An error before the first step still has a status of its own.
        first = await while_connected(request.receive, first_of(items))
    except ClientGone:
        raise ClientDisconnect from None

    async def events() -> Events:
        yield _event(first)
        async for item in items:
            yield _event(item)

    return event_stream(request, events())


def _wants_events(request: Request) -> bool:
    accepted = ",".join(request.headers.getlist("accept")).lower().split(",")
    return any(each.partition(";")[0].strip() == EVENTS for each in accepted)


def _json(explanation: Explanation) -> Response:
    # ASCII can express all input, even half a surrogate pair.
    return Response(json.dumps(explanation.as_dict()), media_type="application/json")


async def _last(items: AsyncIterator[Step | Explanation]) -> Explanation:
    async for item in items:
        if isinstance(item, Explanation):
            return item
    raise ProcessingError("The run ended without an explanation.")


def _event(item: Step | Explanation) -> ServerSentEvent:
    return ServerSentEvent(event="step" if isinstance(item, Step) else "done", data=item.as_dict())
