"""Reads the prompt from the bytes of a request to Ollama, at next to no cost for requests without the command."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cragside.domain.command import asks_why, question_of
from cragside.domain.errors import ValidationError
from cragside.domain.prompt import user_text
from cragside.entrypoints.http.body_limit import bounded

CHAT, GENERATE, OPENAI_CHAT = "/api/chat", "/api/generate", "/v1/chat/completions"
ROUTES = frozenset({CHAT, GENERATE, OPENAI_CHAT})

_MOST_LOGPROBS = 20
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Prefixes that JSON and case folding leave unchanged. k and s have relatives outside ASCII (KELVIN SIGN, LONG S).
_PLAIN_PREFIX = re.compile(r"[0-9a-jl-rt-z!#$%&()*+,./:;=?@^_`{|}~-]+", re.IGNORECASE | re.ASCII)
# Open WebUI begins its own requests in the user's name with these texts: tasks (titles, tags, follow-up questions,
# search queries, completions), an emoji for a message, one answer from several models' answers.
_CLIENTS_OWN = (
    "### Task:",
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models to the latest user query",
)


@dataclass(frozen=True, slots=True)
class Commanded:
    """A request that begins with the command, and the question after it. `why`: it asks for an explanation."""

    request: dict[str, Any]
    question: str
    why: bool = False


class CommandFinder:
    """Finds the command in bodies. Parses a body only if it may have the command."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._needle = prefix.lower().encode() if _PLAIN_PREFIX.fullmatch(prefix) else None

    def commanded(self, path: str, body: bytes) -> Commanded | None:
        """The request, if its last user text begins with the command. None for all others, and for invalid ones.

        None also for a request that Ollama refuses: the client gets Ollama's own message. Raises `ValidationError` for
        a body that has the command and too many keys or values.
        """
        if not self._may_hold(body):
            return None
        try:
            bounded(body)
        except ValidationError:
            if self._needle is not None and self._needle in body.lower():
                raise
            return None
        request = _parsed(body)
        if request is None or _is_refused_by_ollama(path, request):
            return None
        try:
            text = user_text(prompt_fields(path, request))
        except ValidationError:  # Ollama reports fields of wrong types in its own words
            return None
        if text is None:
            return None
        if (question := question_of(text, self._prefix)) is not None:
            return Commanded(request, question)
        question = asks_why(text, self._prefix)
        return None if question is None else Commanded(request, question, why=True)

    def _may_hold(self, body: bytes) -> bool:
        # JSON may write any character as \uXXXX, and a slash as \/.
        return self._needle is None or self._needle in body.lower() or b"\\u" in body or b"\\/" in body


def user_prompt(path: str, body: bytes, prefix: str) -> str | None:
    """The user's last text without the command. None if no user wrote it, or if the request has none.

    A generation with a `suffix` completes code, and one without a prompt loads a model. Clients send requests of their
    own, such as for the title of a chat.
    """
    request = _parsed(body)
    if request is None or (path == GENERATE and request.get("suffix")):
        return None
    try:
        text = user_text(prompt_fields(path, request))
    except ValidationError:
        return None
    if not text or not text.strip() or text.lstrip().startswith(_CLIENTS_OWN):
        return None
    question = question_of(text, prefix)
    return text if question is None else question


def prompt_fields(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The request without the field that its route ignores: a chat's `prompt`, a generation's `messages`."""
    ignored = "messages" if path == GENERATE else "prompt"
    return {name: value for name, value in request.items() if name != ignored}


def _is_refused_by_ollama(path: str, request: Mapping[str, Any]) -> bool:
    """Whether Ollama refuses the request for its form, so that evidence would be wasted.

    Go reads field names in any case, and null as a missing field.
    """
    fields = [(name.lower(), value) for name, value in request.items() if value is not None]
    if not any(name == "model" and isinstance(value, str) and value.strip() for name, value in fields):
        return True
    types: dict[str, type] = {"model": str, "stream": bool, "top_logprobs": int}
    if path != OPENAI_CHAT:
        types["options"] = dict
    # The exact type: in Python, but not in Go, true is an integer.
    if any(type(value) is not types.get(name, type(value)) for name, value in fields):
        return True
    return any(name == "top_logprobs" and not 0 <= value <= _MOST_LOGPROBS for name, value in fields)


def _parsed(body: bytes) -> dict[str, Any] | None:
    """The body as Ollama reads it, if it is a JSON object."""
    try:
        text = body.decode()
        request = json.loads(text, parse_constant=_not_json, parse_float=_finite)
        if "\\ud" in text.lower():  # Go reads half a surrogate pair as U+FFFD
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
