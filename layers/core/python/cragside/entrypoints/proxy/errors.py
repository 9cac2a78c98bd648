"""Errors in the shape of the API that was called: Ollama's, OpenAI's, Anthropic's, or our own contract's."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from cragside.domain.errors import CragsideError
from cragside.entrypoints.proxy.asgi import Send

_STATUS = {
    "validation_error": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "payload_too_large": 413,
    "processing_error": 500,
    "bad_gateway": 502,
    "service_unavailable": 503,
    "timeout_error": 504,
}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_ANTHROPIC_TYPES = {**_OPENAI_TYPES, 413: "request_too_large"}


def code_of(error: CragsideError) -> str:
    """The error's code, `bad_gateway` for an Ollama that did not answer."""
    return "bad_gateway" if error.details.get("component") == "ollama" else error.code


def status_of(code: str) -> int:
    """The HTTP status of an error code."""
    return _STATUS.get(code, 500)


def error_body(path: str, code: str, message: str, *, own: bool = False) -> dict[str, Any]:
    """The JSON body that a client of `path` expects for an error. `own`: the route is cragside's, not a peer's."""
    status = status_of(code)
    if own:
        error = {"type": code, "message": message, "details": {}, "retryable": status in (503, 504)}
        timestamp = datetime.now(UTC).isoformat(timespec="seconds")
        return {"error": error, "id": str(uuid.uuid4()), "timestamp": timestamp}
    fallback = "invalid_request_error" if status < 500 else "api_error"
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": _ANTHROPIC_TYPES.get(status, fallback), "message": message}}
    if path.startswith("/v1/"):
        kind = _OPENAI_TYPES.get(status, fallback)
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return {"error": message}


async def answer(send: Send, path: str, code: str, message: str, *, own: bool = False) -> None:
    """Send an error as the whole response."""
    body = json.dumps(error_body(path, code, message, own=own), ensure_ascii=False).encode("utf-8", "replace")
    headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status_of(code), "headers": headers})
    await send({"type": "http.response.body", "body": body})
