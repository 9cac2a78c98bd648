"""Reads the prompt from the bytes of a request to Ollama, at next to no cost for requests without the command."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cragside.domain.errors import ValidationError
from cragside.domain.query import asks_why, question_of
from cragside.entrypoints.http.body_limit import bounded
from cragside.entrypoints.proxy.request_body import parsed
from cragside.entrypoints.proxy.shapes import (
    COMPLETIONS,
    GENERATE,
    MESSAGES,
    OLLAMA_ROUTES,
    Place,
    in_one_form,
    place_in,
)

_MOST_LOGPROBS = 20
# Prefixes that JSON and case folding leave unchanged. k and s have relatives outside ASCII (KELVIN SIGN, LONG S).
_PLAIN_PREFIX = re.compile(r"[0-9a-jl-rt-z!#$%&()*+,./:;=?@^_`{|}~-]+", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that gets evidence, its question and its place. `why`: it asks for an explanation instead.

    `commanded`: what its user typed begins with the command.
    """

    request: dict[str, Any]
    question: str
    place: Place
    why: bool = False
    commanded: bool = True


class CommandFinder:
    """Finds the command in bodies. Parses a body only if it may have the command."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._needle = prefix.lower().encode() if _PLAIN_PREFIX.fullmatch(prefix) else None

    def with_command(self, path: str, body: bytes) -> Asked | None:
        """The request, if what its user typed last begins with the command. None for all others, and for invalid ones.

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
        request = parsed(body)
        if request is None or _is_refused_by_ollama(path, request):
            return None
        place = place_in(path, in_one_form(path, request), self._prefix)
        if place is None:  # Ollama reports fields of wrong types in its own words
            return None
        text = place.typed.text
        if (question := question_of(text, self._prefix)) is not None:
            return Asked(request, question, place)
        question = asks_why(text, self._prefix)
        return None if question is None else Asked(request, question, place, why=True)

    def without_command(self, path: str, body: bytes, *, typed_last: bool = False) -> Asked | None:
        """The request with what a user typed last in it, for those who ask for evidence without the command.

        With `typed_last` nothing may follow that, such as the results of tools. None for what clients ask by
        themselves, for code to complete and prompts without a template, and for what cannot be told apart. Raises
        `ValidationError` for too many keys or values.
        """
        bounded(body)
        request = parsed(body)
        if request is None or _is_refused_by_ollama(path, request):
            return None
        if _is_no_users(path, request):
            return None
        place = place_in(path, in_one_form(path, request), self._prefix)
        question = "" if place is None or (typed_last and not place.last) else place.typed.text.strip()
        return Asked(request, question, place, commanded=False) if place is not None and question else None

    def _may_hold(self, body: bytes) -> bool:
        # JSON may write any character as \uXXXX, and a slash as \/.
        return self._needle is None or self._needle in body.lower() or b"\\u" in body or b"\\/" in body


def user_prompt(path: str, body: bytes, prefix: str) -> str | None:
    """What the user typed last, without the command. None if no user typed it, or if the request has none.

    A generation with a `suffix` completes code, a `raw` one brings its own template, and one without a prompt loads a
    model. Clients send requests of their own, such as for the title of a chat.
    """
    request = parsed(body)
    if request is None or _is_no_users(path, request):
        return None
    place = place_in(path, in_one_form(path, request), prefix)
    if place is None or not place.typed.text.strip():
        return None
    question = question_of(place.typed.text, prefix)
    return place.typed.text if question is None else question


def _is_no_users(path: str, request: Mapping[str, Any]) -> bool:
    """Whether a program wrote the prompt: code to complete, or a text in a template of its own."""
    return path in (GENERATE, COMPLETIONS) and bool(request.get("suffix") or request.get("raw"))


def _is_refused_by_ollama(path: str, request: Mapping[str, Any]) -> bool:
    """Whether Ollama refuses the request for its form, so that evidence would be wasted.

    Go reads field names in any case, and null as a missing field.
    """
    fields = [(name.lower(), value) for name, value in request.items() if value is not None]
    if not any(name == "model" and isinstance(value, str) and value.strip() for name, value in fields):
        return True
    types: dict[str, type] = {"model": str, "stream": bool, "top_logprobs": int}
    if path in OLLAMA_ROUTES:
        types["options"] = dict
    if path == MESSAGES:
        types["max_tokens"] = int
        if not any(name == "max_tokens" for name, _ in fields):
            return True
    # The exact type: in Python, but not in Go, true is an integer.
    if any(type(value) is not types.get(name, type(value)) for name, value in fields):
        return True
    return any(name == "top_logprobs" and not 0 <= value <= _MOST_LOGPROBS for name, value in fields)
