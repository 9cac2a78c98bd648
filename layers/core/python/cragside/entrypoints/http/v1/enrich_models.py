"""The models of `/v1/enrich`, the agent contract."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cragside.domain.verdict import Verdict
from cragside.entrypoints.http.models import Citation, Degraded, Recalled


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
    """What a run found: evidence with a verdict, or what was nearest to it."""

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
