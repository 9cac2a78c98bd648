"""Answers errors with the agent contract's envelope."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
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
from cragside.entrypoints.http.models import ErrorBody

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


def error_responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """A route's error responses for the OpenAPI document: these codes, or all."""
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
    error: CragsideError, identifier: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """The envelope with the status of its code."""
    status = STATUS[error.code]
    return _answer(
        error_envelope(error, identifier or request_id.get()), status, {**retry_headers(status), **(headers or {})}
    )


def retry_headers(status: int) -> dict[str, str]:
    """The header that tells a client when to try again after a 503; none for other statuses."""
    return {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == STATUS["service_unavailable"] else {}


def _answer(body: dict[str, Any], status: int, headers: Mapping[str, str] | None) -> Response:
    # ASCII, because messages and ids may quote input that UTF-8 cannot encode.
    return Response(json.dumps(body), status, headers, "application/json")


def for_client(error: CragsideError) -> CragsideError:
    """The error as a client may see it. Details of settings and paths go to the log instead."""
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


def complaint_of(error: Mapping[str, Any]) -> str:
    """FastAPI's complaint about a request, without quoting the request."""
    if error["type"] == "json_invalid":
        return "The body is not valid JSON"
    place, complaint = ".".join(str(step) for step in error["loc"]), error["msg"].removeprefix("Value error, ")
    return f"{place}: {complaint}" if place else complaint


def routing_headers(request: Request, error: HTTPException) -> Mapping[str, str] | None:
    """The headers for a request without a route: with 405, all methods of the path in `Allow`."""
    if error.status_code != 405:
        return error.headers
    allowed = [method for method in _METHODS if _has_route(request, method)]
    return {**(error.headers or {}), "Allow": ", ".join(allowed)}


def _has_route(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)


def raises(request: Request) -> bool:
    """Whether the application raises errors instead of answering them."""
    return CragsideError not in request.app.exception_handlers


def install_error_handlers(app: FastAPI, *, raises: bool = False) -> None:
    """Answer every error with the envelope. Unexpected errors are logged, and answered without their text.

    With `raises`, only requests without a route and invalid requests are answered. Other errors are raised.
    """

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, CragsideError)  # noqa: S101 (narrows the handler's type)
        return error_response(for_client(error), getattr(request.state, "identifier", None))

    async def routing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 (narrows the handler's type)
        if error.status_code == 404:
            return error_response(NotFound(f"There is no {request.url.path} here."))
        if error.status_code == 401:
            return error_response(Unauthorized(str(error.detail)), headers=error.headers)
        failure = ValidationError(f"{request.method} {request.url.path}: {error.detail}.")
        return _answer(error_envelope(failure, request_id.get()), error.status_code, routing_headers(request, error))

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 (narrows the handler's type)
        complaints = error.errors()
        place = complaints[0]["loc"][-1] if complaints and complaints[0]["loc"] else "body"
        return error_response(
            ValidationError("; ".join(complaint_of(each) for each in complaints[:3]) + ".", field=str(place))
        )

    async def gone(request: Request, _: Exception) -> Response:
        """Nobody reads this answer, and a client that leaves is not worth a line in the log."""
        return Response(status_code=400)

    async def unexpected(request: Request, error: Exception) -> Response:
        shown = hidden(error, request.method, request.url.path)
        return error_response(shown, getattr(request.state, "identifier", None))

    app.add_exception_handler(HTTPException, routing)
    app.add_exception_handler(RequestValidationError, invalid)
    if raises:
        return
    app.add_exception_handler(CragsideError, known)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(Exception, unexpected)
