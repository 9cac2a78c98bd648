"""The failures of the compatibility routes, in the form of the service whose clients they serve.

rag-stack's failures have `error` and LightRAG's `detail`. `/query` belongs to both and has both. LightRAG's
`/query/data` has a form of its own.
"""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from cragside.entrypoints.http.body_limit import BoundedRoute

# The compatibility routes are at these paths and below them.
PEER_PREFIXES = ("/ingest", "/query", "/enrichment", "/graph", "/documents")
_QUERY, _QUERY_DATA, _LIGHTRAG = "/query", "/query/data", "/documents"


class RagStackFailure(BaseModel):
    """A failure in rag-stack's form."""

    error: str = Field(description="What is wrong, and what to do.")


class LightRagFailure(BaseModel):
    """A failure in LightRAG's form."""

    detail: str = Field(description="What is wrong, and what to do.")


class QueryFailure(RagStackFailure, LightRagFailure):
    """A failure in the form of both."""


class QueryDataFailure(LightRagFailure):
    """A failure of LightRAG's `/query/data`."""

    status: Literal["failure"] = Field("failure", description="Always `failure`.")
    message: str = Field(description="What is wrong, and what to do.")
    data: dict[str, Any] = Field({}, description="Always empty.")
    metadata: dict[str, Any] = Field({}, description="Always empty.")


def is_peer_path(path: str) -> bool:
    """Whether a path is below one of the compatibility routes' prefixes."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in PEER_PREFIXES)


def peer_failure(path: str, message: str) -> RagStackFailure | LightRagFailure:
    """The body of a failure at a compatibility route."""
    if path == _QUERY:
        return QueryFailure(error=message, detail=message)
    if path == _QUERY_DATA:
        return QueryDataFailure(message=message, detail=message)
    return LightRagFailure(detail=message) if path.startswith(_LIGHTRAG) else RagStackFailure(error=message)


def failure_responses(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The failures of a compatibility route for the OpenAPI document."""
    return {
        "4XX": {"model": model, "description": "The request is at fault; the message says what to do."},
        "5XX": {"model": model, "description": "It could not be done; 503 and 504 may be tried again."},
    }


def peer_router(tag: str, failure: type[BaseModel], *, prefix: str = "") -> APIRouter:
    """A router for a peer's routes, which all fail in one form."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=BoundedRoute, responses=failure_responses(failure))
