"""Models that several routes share."""

from typing import Any

from pydantic import BaseModel, Field


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
    """A component that failed, and why."""

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
