"""The compatibility routes answer failures in the shape of the service whose clients they serve.

rag-stack says `{"error": ...}`, LightRAG `{"detail": ...}`; `/query` belongs to both and says both, and LightRAG's
`/query/data` has an answer of its own for failures.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from cragside.domain.errors import CragsideError, ProcessingError, ValidationError
from cragside.entrypoints.http.body import whole_body
from cragside.entrypoints.http.errors import STATUS, for_client

# The paths of the compatibility routes; one that ends in a slash stands for all below it.
RAG_STACK_PATHS = ("/ingest", "/enrichment/", "/graph/entity/")
LIGHTRAG_PATHS = ("/documents/",)
QUERY_PATH = "/query"
QUERY_DATA_PATH = "/query/data"
PEER_PATHS = (*RAG_STACK_PATHS, *LIGHTRAG_PATHS, QUERY_PATH, QUERY_DATA_PATH)

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


def covers(paths: tuple[str, ...], path: str) -> bool:
    """Whether the path is one of these, or below one that ends in a slash."""
    return any(path == known or (known.endswith("/") and path.startswith(known)) for known in paths)


def failure_of(path: str, message: str) -> BaseModel | None:
    """What a client of a compatibility route is told, None for other routes."""
    if path == QUERY_PATH:
        return QueryFailure(error=message, detail=message)
    if path == QUERY_DATA_PATH:
        return QueryDataFailure(message=message, detail=message)
    if covers(RAG_STACK_PATHS, path):
        return RagStackFailure(error=message)
    return LightRagFailure(detail=message) if covers(LIGHTRAG_PATHS, path) else None


def failures(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Every failure of a compatibility route, for the OpenAPI document."""
    return {
        "4XX": {"model": model, "description": "The request is at fault; the message says what to do."},
        "5XX": {"model": model, "description": "It could not be done; 503 and 504 may be tried again."},
    }


def route_class(limit: int) -> type[APIRoute]:
    """Routes that read bodies of at most `limit` bytes and answer failures in the shape of their path's peer."""

    class PeerRoute(APIRoute):
        """A compatibility route."""

        def get_route_handler(self) -> _Handler:
            """FastAPI's handler, with bodies that are limited and failures that are translated."""
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                try:
                    if self.body_field is not None:
                        request = _ReadRequest(request, await whole_body(request, limit))
                    return await handle(request)
                except Exception as error:
                    return _failed(request, _told(request, error))

            return answer

    return PeerRoute


class _ReadRequest(Request):
    """A request whose body has been read. Its JSON is what JSON allows: no NaN, no half of a surrogate pair."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body

    async def json(self) -> Any:
        """The body's value. Raises `json.JSONDecodeError`, which FastAPI expects."""
        return orjson.loads(self._body)


def _failed(request: Request, error: CragsideError) -> Response:
    body = failure_of(request.url.path, error.message) or LightRagFailure(detail=error.message)
    return JSONResponse(body.model_dump(), STATUS[error.code])


def _told(request: Request, error: Exception) -> CragsideError:
    """The failure as a client may know it."""
    if isinstance(error, CragsideError):
        return for_client(error)
    if isinstance(error, RequestValidationError):
        return ValidationError(f"Validation failed: {'; '.join(_complaint(each) for each in error.errors()[:3])}")
    if isinstance(error, HTTPException) and error.status_code < 500:
        return ValidationError(f"Validation failed: {error.detail}")
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return ProcessingError("Something failed inside; the log has the details.")


def _complaint(error: dict[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return "the body is not valid JSON"
    place = "/".join(str(step) for step in error["loc"])
    return f"{place}: {error['msg'].removeprefix('Value error, ')}"
