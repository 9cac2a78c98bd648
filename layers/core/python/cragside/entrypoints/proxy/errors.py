"""Errors in the form of the called API: Ollama's, OpenAI's, Anthropic's, or our own."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import Send

from cragside.application.contract import error_envelope
from cragside.domain.errors import CragsideError, ProcessingError
from cragside.entrypoints.http.errors import STATUS, is_peer_path, peer_failure, retry_headers
from cragside.entrypoints.proxy.messages import send_whole
from cragside.entrypoints.proxy.routes import is_own

_STATUS = {**STATUS, "request_timeout": 408, "headers_too_large": 431, "bad_gateway": 502, "loop_detected": 508}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_ANTHROPIC_TYPES = {**_OPENAI_TYPES, 413: "request_too_large"}

logger = logging.getLogger(__name__)


def code_of(error: CragsideError) -> str:
    """The error's code; `bad_gateway` if Ollama did not answer."""
    return "bad_gateway" if error.details.get("component") == "ollama" else error.code


def status_of(code: str) -> int:
    """The HTTP status of an error code."""
    return _STATUS.get(code, 500)


def error_body(path: str, code: str, message: str, *, error: CragsideError | None = None) -> dict[str, Any]:
    """The JSON body of an error at `path`."""
    status = status_of(code)
    if is_own(path):
        if is_peer_path(path):
            return peer_failure(path, message).model_dump()
        body = error_envelope(error or CragsideError(message))
        return {**body, "error": {**body["error"], "type": code}}
    fallback = "invalid_request_error" if status < 500 else "api_error"
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": _ANTHROPIC_TYPES.get(status, fallback), "message": message}}
    if path.startswith("/v1/"):
        kind = _OPENAI_TYPES.get(status, fallback)
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return {"error": message}


@contextmanager
def failing_as(message: str) -> Iterator[None]:
    """Raise a failure that nobody expected as a `ProcessingError` with this message. The log has the details."""
    try:
        yield
    except CragsideError:
        raise
    except Exception as error:
        logger.exception("%s", message)
        raise ProcessingError(message) from error


async def send_error(
    send: Send, path: str, code: str, message: str, *, error: CragsideError | None = None, closing: bool = False
) -> None:
    """Send an error as the whole response. `closing` asks the client to close the connection."""
    content = error_body(path, code, message, error=error)
    status = status_of(code)
    headers = [(b"content-type", b"application/json; charset=utf-8")]
    headers += [(name.lower().encode(), value.encode()) for name, value in retry_headers(status).items()]
    if closing:
        headers.append((b"connection", b"close"))
    await send_whole(send, status, headers, json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))
