"""Finding the command in a request's bytes, at next to no cost for the requests that hold none."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from cragside.domain.errors import ValidationError
from cragside.domain.prompt import question_in
from cragside.entrypoints.http.body_limit import bounded

CHAT, GENERATE, OPENAI_CHAT = "/api/chat", "/api/generate", "/v1/chat/completions"
ROUTES = frozenset({CHAT, GENERATE, OPENAI_CHAT})

_MOST_LOGPROBS = 20
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Prefixes that JSON and case folding leave as they are. k and s have relatives outside ASCII (KELVIN SIGN, LONG S).
_PLAIN_PREFIX = re.compile(r"[0-9a-jl-rt-z!#$%&()*+,./:;=?@^_`{|}~-]+", re.IGNORECASE | re.ASCII)


class CommandFinder:
    """Reads a body only if the command may be in it."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._needle = prefix.lower().encode() if _PLAIN_PREFIX.fullmatch(prefix) else None

    def commanded(self, path: str, body: bytes) -> dict[str, Any] | None:
        """The request, if its last user text begins with the command; None for all others, broken ones included.

        So is a request that Ollama refuses in any case: it is to say so in its own words. Raises `ValidationError` for
        one that has the command in it and more keys or values than are read.
        """
        if not self._may_hold(body):
            return None
        try:
            bounded(body)
        except ValidationError:
            if self._needle is not None and self._needle in body.lower():
                raise
            return None
        request = parsed(body)
        if request is None or _is_refused_by_ollama(path, request):
            return None
        try:
            return None if question_in(asked(path, request), self._prefix) is None else request
        except ValidationError:  # wrong types: Ollama says so in its own words
            return None

    def _may_hold(self, body: bytes) -> bool:
        # JSON may write any character as \uXXXX, and a slash as \/.
        return self._needle is None or self._needle in body.lower() or b"\\u" in body or b"\\/" in body


def _is_refused_by_ollama(path: str, request: Mapping[str, Any]) -> bool:
    """Whether Ollama is sure to refuse the request for its form, so that evidence for it would serve nobody.

    Ollama tells what is wrong when the request is passed on. Go takes field names in any case, and null for nothing.
    """
    fields = [(name.lower(), value) for name, value in request.items() if value is not None]
    if not any(name == "model" and isinstance(value, str) and value.strip() for name, value in fields):
        return True
    types: dict[str, type] = {"model": str, "stream": bool, "top_logprobs": int}
    if path != OPENAI_CHAT:
        types["options"] = dict
    # By the exact type: to Python, but not to Go, true is an integer.
    if any(type(value) is not types.get(name, type(value)) for name, value in fields):
        return True
    return any(name == "top_logprobs" and not 0 <= value <= _MOST_LOGPROBS for name, value in fields)


def asked(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The request without the field that its route ignores: a chat's `prompt`, a generation's `messages`."""
    ignored = "messages" if path == GENERATE else "prompt"
    return {name: value for name, value in request.items() if name != ignored}


def parsed(body: bytes) -> dict[str, Any] | None:
    """A body as Ollama would read it, if it is a JSON object."""
    try:
        text = body.decode()
        request = json.loads(text, parse_constant=_not_json, parse_float=_finite)
        if "\\ud" in text.lower():  # as Go reads them: half a surrogate pair becomes U+FFFD
            request = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(request, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) else None


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise ValueError(f"{literal} is beyond a 64-bit float")
    return value
