"""Answers failures of the compatibility routes in the form of the service whose clients they serve.

rag-stack's failures have `error` and LightRAG's `detail`. `/query` belongs to both and has both. LightRAG's
`/query/data` has a form of its own.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from typing_extensions import override

from cragside.domain.errors import CragsideError, ValidationError
from cragside.entrypoints.http.body_limit import BoundedRoute
from cragside.entrypoints.http.errors import (
    STATUS,
    complaint_of,
    for_client,
    hidden,
    raises,
    retry_headers,
    routing_headers,
)

# The compatibility routes are at these paths and below them.
PEER_PREFIXES = ("/ingest", "/query", "/enrichment", "/graph", "/documents")
_QUERY, _QUERY_DATA, _LIGHTRAG = "/query", "/query/data", "/documents"

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


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


class PeerRoute(BoundedRoute):
    """A route that answers failures in the form of its path's peer."""

    @override
    def get_route_handler(self) -> _Handler:
        handle: _Handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except ClientDisconnect:
                raise
            except Exception as error:
                if raises(request) and not isinstance(error, RequestValidationError | HTTPException):
                    raise
                return _failed(request, _for_client(request, error))

        return answer


def peer_router(tag: str, failure: type[BaseModel], *, prefix: str = "") -> APIRouter:
    """A router for a peer's routes, which all fail in one form."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=PeerRoute, responses=failure_responses(failure))


def install_peer_handlers(app: FastAPI) -> None:
    """Answer requests without a route below the peers' prefixes in the peer's form."""
    usual: Any = app.exception_handlers[HTTPException]

    async def routing(request: Request, error: Exception) -> Response:
        path = request.url.path
        if not (isinstance(error, HTTPException) and is_peer_path(path)):
            answer: Response = await usual(request, error)
            return answer
        message = f"{request.method} {path}: {error.detail}."
        return JSONResponse(
            peer_failure(path, message).model_dump(), error.status_code, routing_headers(request, error)
        )

    app.add_exception_handler(HTTPException, routing)


def _failed(request: Request, error: CragsideError) -> Response:
    status = STATUS[error.code]
    return JSONResponse(peer_failure(request.url.path, error.message).model_dump(), status, retry_headers(status))


def _for_client(request: Request, error: Exception) -> CragsideError:
    """The failure as a client may see it."""
    if isinstance(error, CragsideError):
        return for_client(error)
    if isinstance(error, RequestValidationError):
        return ValidationError(f"Validation failed: {'; '.join(complaint_of(each) for each in error.errors()[:3])}")
    if isinstance(error, HTTPException) and error.status_code < 500:
        return ValidationError(f"Validation failed: {error.detail}")
    return hidden(error, request.method, request.url.path)
