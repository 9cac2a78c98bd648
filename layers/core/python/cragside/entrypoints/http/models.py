"""Models that several routes share."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

WORKSPACE = "The workspace; the default without it."


class Shape(BaseModel):
    """A part of an answer. Any object with its fields as attributes can be turned into it."""

    model_config = ConfigDict(from_attributes=True)


class WorkspaceRequest(BaseModel):
    """A body that may name a workspace. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    workspace: str | None = Field(None, description=WORKSPACE)


class Citation(Shape):
    """One document of evidence, in the order of its number in the prompt."""

    id: str = Field(description="Id of the passage or of the web result.")
    title: str = Field(description="Title of the document.")
    content: str = Field(description="The text that was injected.")
    source: str = Field(description="`local` or `web`.")
    score: float | None = Field(description="Probability of relevance, 0..1; null in the mode `similarity`.")
    similarity: float | None = Field(None, description="Cosine to the question, 0..1, in the mode `similarity` only.")
    url: str | None = Field(None, description="Address of the page, if it has one.")
    metadata: dict[str, Any] | None = Field(None, description="The document's metadata, such as page and section.")


class Degraded(Shape):
    """A component that failed, and why."""

    component: str = Field(description="What failed, such as `grader` or `search`.")
    reason: str = Field(description="Why.")


class Recalled(BaseModel):
    """An exchange that was recalled, and when it took place (ISO 8601 in UTC)."""

    id: str = Field(description="Id of the exchange in memory.")
    at: str | None = Field(description="When it took place, ISO 8601 in UTC.")


class ErrorBody(BaseModel):
    """The error envelope."""

    class Error(BaseModel):
        """What went wrong."""

        type: str = Field(description="Code of the error, such as `validation_error`.")
        message: str = Field(description="What is wrong, and what to do.")
        details: dict[str, Any] = Field(description="Facts for programs, such as the field.")
        retryable: bool = Field(description="Whether the same request may succeed later.")

    error: Error = Field(description="The error.")
    id: str = Field(description="Id of the request.")
    timestamp: str = Field(description="Time of the error, ISO 8601 in UTC.")
