"""Answers errors with the agent contract's envelope, or in the form of the peer whose route it is.

rag-stack's failures have `error` and LightRAG's `detail`. `/query` belongs to both and has both. LightRAG's
`/query/data` has a form of its own. A failure is the last event of a stream.
"""

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.sse import ServerSentEvent, format_sse_event
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from cragside.application.contract import error_envelope
from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    NotFound,
    ProcessingError,
    ReadOnlyStore,
    ServiceUnavailable,
    Unauthorized,
    ValidationError,
)
from cragside.domain.hops import request_id
from cragside.entrypoints.http.models import ErrorBody, complaints_of, refusal_of
from cragside.entrypoints.http.request_bodies import BoundedRoute

# The compatibility routes are at these paths and below them.
PEER_PREFIXES = ("/ingest", "/query", "/enrichment", "/graph", "/documents")
_QUERY, _QUERY_DATA, _LIGHTRAG = "/query", "/query/data", "/documents"

STATUS = {
    "validation_error": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "processing_error": 500,
    "service_unavailable": 503,
    "timeout_error": 504,
}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# How long a client should wait after a 503 before it tries again.
RETRY_AFTER_SECONDS = 5
_log = logging.getLogger("cragside")

EVENTS = "text/event-stream"
# Proxies on the way should pass each event on when it comes.
_STREAMED = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
Events = AsyncGenerator[ServerSentEvent, None]


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
    """Tell if a path is below one of the compatibility routes' prefixes."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in PEER_PREFIXES)


def peer_failure(path: str, message: str) -> RagStackFailure | LightRagFailure:
    """Return the body of a failure at a compatibility route."""
    if path == _QUERY:
        return QueryFailure(error=message, detail=message)
    if path == _QUERY_DATA:
        return QueryDataFailure(message=message, detail=message)
    return LightRagFailure(detail=message) if path.startswith(_LIGHTRAG) else RagStackFailure(error=message)


def failure_responses(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Return the failures of a compatibility route for the OpenAPI document."""
    return {
        "4XX": {"model": model, "description": "The request is at fault; the message says what to do."},
        "5XX": {"model": model, "description": "It could not be done; 503 and 504 may be tried again."},
    }


def peer_router(tag: str, failure: type[BaseModel]) -> APIRouter:
    """Return a router for a peer's routes, which all fail in one form."""
    return APIRouter(tags=[tag], route_class=BoundedRoute, responses=failure_responses(failure))


def error_responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return a route's error responses for the OpenAPI document: these codes, or all."""
    named: dict[int | str, dict[str, Any]] = {
        STATUS[code]: {"model": ErrorBody, "description": code} for code in codes or STATUS
    }
    # Without this, FastAPI would document its own 422, which has another shape.
    return {**named, "4XX": {"model": ErrorBody, "description": "The request is at fault."}}


def json_error_responses() -> dict[int | str, dict[str, Any]]:
    """The error responses of a route that answers with another type. FastAPI would document them with that type."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    return {
        status: {"description": response["description"], "content": content}
        for status, response in error_responses().items()
    }


def error_response(
    error: CragsideError, request: Request | None = None, *, status: int = 0, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the error in the form of the request's route, with the status of its code unless one is given."""
    status = status or STATUS[error.code]
    headers = {**retry_headers(status), **(headers or {})}
    if request is not None and is_peer_path(request.url.path):
        return JSONResponse(peer_failure(request.url.path, error.message).model_dump(), status, headers)
    identifier = None if request is None else getattr(request.state, "identifier", None)
    # ASCII, because messages and ids may quote input that UTF-8 cannot encode.
    body = json.dumps(error_envelope(error, identifier or request_id.get()))
    return Response(body, status, headers, "application/json")


def retry_headers(status: int) -> dict[str, str]:
    """Return the header that tells a client when to try again after a 503; none for other statuses."""
    return {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == STATUS["service_unavailable"] else {}


def for_client(error: CragsideError) -> CragsideError:
    """Return the error as a client may see it. Details of settings and paths go to the log instead."""
    if not isinstance(error, ConfigurationError):
        if error.where:
            _log.warning("%s", error.message_with_place)
        return error
    if isinstance(error, ReadOnlyStore):
        return ValidationError("This knowledge base is read-only. Bring documents to one that is not baked.")
    _log.error("%s", error.message)
    return ServiceUnavailable("configuration", "The service is not set up to answer this; its log says why.")


def hidden(failure: Exception, method: str, path: str) -> ProcessingError:
    """Log a failure that nobody expected, and return what a client may know of it."""
    _log.error("%s %r failed", method, path, exc_info=failure)
    return ProcessingError("Something failed inside; the log has the details.")


def _has_route(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)


def install_error_handlers(app: FastAPI, *, raises: bool = False) -> None:
    """Answer every error. Unexpected errors are logged, and answered without their text.

    With `raises`, only requests without a route and invalid requests are answered. Other errors are raised.
    """
    app.add_exception_handler(HTTPException, _routing)
    app.add_exception_handler(RequestValidationError, _invalid)
    if raises:
        return
    app.add_exception_handler(CragsideError, _known)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


async def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, CragsideError)  # noqa: S101 (narrows the handler's type)
    return error_response(for_client(error), request)


async def _routing(request: Request, error: Exception) -> Response:
    """Answer a request without a route. With 405, `Allow` has all methods of the path."""
    assert isinstance(error, HTTPException)  # noqa: S101 (narrows the handler's type)
    path, status, headers = request.url.path, error.status_code, error.headers
    failure: CragsideError = ValidationError(f"{request.method} {path}: {error.detail}.")
    if status == 405:
        headers = {"Allow": ", ".join(method for method in _METHODS if _has_route(request, method))}
    elif not is_peer_path(path) and status == 404:
        failure = NotFound(f"There is no {path} here.")
    elif not is_peer_path(path) and status == 401:
        failure = Unauthorized(str(error.detail))
    return error_response(failure, request, status=status, headers=headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (narrows the handler's type)
    complaints = error.errors()
    if is_peer_path(request.url.path):
        return error_response(ValidationError(f"Validation failed: {complaints_of(complaints)}"), request)
    return error_response(refusal_of(complaints), request)


async def _gone(request: Request, _: Exception) -> Response:
    """Answer a client that has left: nobody reads this, and the log needs no line about it."""
    return Response(status_code=400)


async def _unexpected(request: Request, error: Exception) -> Response:
    return error_response(hidden(error, request.method, request.url.path), request)


async def with_failure(request: Request, events: Events) -> AsyncIterator[ServerSentEvent]:
    """Pass events on. If they fail, the last one is `failed` with what the client may know."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except CragsideError as error:
        shown = for_client(error)
    except Exception as error:
        shown = hidden(error, request.method, request.url.path)
    else:
        return
    envelope = error_envelope(shown, getattr(request.state, "identifier", None))
    yield ServerSentEvent(event="failed", data=envelope)


def event_stream(request: Request, events: Events) -> StreamingResponse:
    """Answer with events, of which a failure is the last."""

    async def encoded() -> AsyncIterator[bytes]:
        async for event in with_failure(request, events):
            # JSON in ASCII is one line, whatever texts are in it.
            yield format_sse_event(event=event.event, data_str=json.dumps(event.data))

    return StreamingResponse(encoded(), media_type=EVENTS, headers=_STREAMED)
