"""The compatibility routes answer failures in the shape of the service whose clients they serve.

rag-stack says `{"error": ...}`, LightRAG `{"detail": ...}`; `/query` belongs to both and says both, and LightRAG's
`/query/data` has an answer of its own for failures.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from cragside.domain.errors import CragsideError, ProcessingError, ValidationError
from cragside.entrypoints.http.body_limit import bounded_route
from cragside.entrypoints.http.errors import STATUS, complaint_of, for_client, raises, retry_headers, routing_headers

# Where the compatibility routes are: these paths and all below them.
PREFIXES = ("/ingest", "/query", "/enrichment", "/graph", "/documents")
_QUERY, _QUERY_DATA, _LIGHTRAG = "/query", "/query/data", "/documents"

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]
_log = logging.getLogger("cragside")


class RagStackFailure(BaseModel):
    """A failure as rag-stack tells it."""

    error: str


class LightRagFailure(BaseModel):
    """A failure as LightRAG tells it."""

    detail: str


class QueryFailure(RagStackFailure, LightRagFailure):
    """A failure as both tell it."""


class QueryDataFailure(LightRagFailure):
    """A failure as LightRAG's `/query/data` tells it."""

    status: Literal["failure"] = "failure"
    message: str
    data: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


def serves(path: str) -> bool:
    """Whether a compatibility route is there, or could be."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in PREFIXES)


def failure_of(path: str, message: str) -> RagStackFailure | LightRagFailure:
    """What the client of a compatibility route is told."""
    if path == _QUERY:
        return QueryFailure(error=message, detail=message)
    if path == _QUERY_DATA:
        return QueryDataFailure(message=message, detail=message)
    return LightRagFailure(detail=message) if path.startswith(_LIGHTRAG) else RagStackFailure(error=message)


def failures(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Every failure of a compatibility route, for the OpenAPI document."""
    return {
        "4XX": {"model": model, "description": "The request is at fault; the message says what to do."},
        "5XX": {"model": model, "description": "It could not be done; 503 and 504 may be tried again."},
    }


def peer_router(tag: str, failure: type[BaseModel], *, limit: int, prefix: str = "") -> APIRouter:
    """A router for the routes of a peer, all of which fail in one shape; bodies have at most `limit` bytes."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=route_class(limit),
        responses=failures(failure),
    )


def route_class(limit: int) -> type[APIRoute]:
    """Routes that read bodies of at most `limit` bytes and answer failures in the shape of their path's peer."""

    class PeerRoute(bounded_route(limit)):  # type: ignore[misc]
        """A compatibility route."""

        def get_route_handler(self) -> _Handler:
            """The handler, with failures translated."""
            handle: _Handler = super().get_route_handler()

            async def answer(request: Request) -> Response:
                try:
                    return await handle(request)
                except ClientDisconnect:
                    raise
                except Exception as error:
                    if raises(request) and not isinstance(error, RequestValidationError | HTTPException):
                        raise
                    return _failed(request, _told(request, error))

            return answer

    return PeerRoute


def install(app: FastAPI) -> None:
    """Answer what no route takes, at a path where a compatibility route is or could be, in its peer's shape as well."""
    usual: Any = app.exception_handlers[HTTPException]

    async def routing(request: Request, error: Exception) -> Response:
        path = request.url.path
        if not (isinstance(error, HTTPException) and serves(path)):
            answer: Response = await usual(request, error)
            return answer
        message = f"{request.method} {path}: {error.detail}."
        return JSONResponse(failure_of(path, message).model_dump(), error.status_code, routing_headers(request, error))

    app.add_exception_handler(HTTPException, routing)


def _failed(request: Request, error: CragsideError) -> Response:
    status = STATUS[error.code]
    return JSONResponse(failure_of(request.url.path, error.message).model_dump(), status, retry_headers(status))


def _told(request: Request, error: Exception) -> CragsideError:
    """The failure as a client may know it."""
    if isinstance(error, CragsideError):
        return for_client(error)
    if isinstance(error, RequestValidationError):
        return ValidationError(f"Validation failed: {'; '.join(complaint_of(each) for each in error.errors()[:3])}")
    if isinstance(error, HTTPException) and error.status_code < 500:
        return ValidationError(f"Validation failed: {error.detail}")
    _log.error("%s %r failed", request.method, request.url.path, exc_info=error)
    return ProcessingError("Something failed inside; the log has the details.")
