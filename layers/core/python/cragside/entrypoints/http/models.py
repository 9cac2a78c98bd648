"""The shapes of `/v1/enrich` for the OpenAPI document. Unknown fields are welcome and come back untouched."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class EnrichRequest(BaseModel):
    """The agent contract's request; `messages` may stand in for `prompt`."""

    model_config = ConfigDict(extra="allow")

    prompt: str | None = Field(None, description="The user's prompt; enriched if it begins with the command.")
    messages: list[dict[str, Any]] | None = Field(None, description="Chat messages in Ollama's or OpenAI's form.")
    id: str | None = Field(None, description="Request id; made up when missing.")
    timestamp: str | None = Field(None, description="ISO 8601; made up when missing.")
    stream: bool | None = Field(None, description="Whether the response should be streamed; passed on.")
    user_id: str | None = Field(None, description="Whoever asks; passed on.")
    model: str | None = Field(None, description="Ollama model that the request is meant for; it may grade as well.")
    workspace: str | None = Field(None, description="The knowledge base to ask.")
    persona: str | None = Field(None, description="Who answers: a template of the system prompt, such as `witness-de`.")
    compress: bool | None = Field(None, description="Whether to inject only the strips of passages that are relevant.")
    memory: bool | None = Field(
        None,
        description="Whether to add earlier exchanges behind the evidence, as no evidence; else as `X-RAG-Memory` or "
        "the settings say.",
    )
    metadata: dict[str, Any] | None = Field(None, description="Passed on; `rag_context` is added to it.")


class Citation(BaseModel):
    """One document of evidence, in the order of its number in the prompt."""

    id: str
    title: str
    content: str
    source: str = Field(description="`local` or `web`.")
    score: float | None = Field(description="Probability of relevance, 0..1.")
    url: str | None = None
    metadata: dict[str, Any] | None = None


class Degraded(BaseModel):
    """A component that did not do its part."""

    component: str
    reason: str


class Recalled(BaseModel):
    """An exchange that was recalled, and when it took place (ISO 8601 in UTC)."""

    id: str
    at: str | None


class ErrorBody(BaseModel):
    """The error envelope."""

    class Error(BaseModel):
        """What went wrong."""

        type: str
        message: str
        details: dict[str, Any]
        retryable: bool

    error: Error
    id: str
    timestamp: str
