"""A prompt with its question, what the user typed in it, and whether Ollama will take it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cragside.domain.command import question_of
from cragside.entrypoints.proxy.ollama_scopes import COMPLETIONS, GENERATE, MESSAGES, OLLAMA_ROUTES
from cragside.entrypoints.proxy.shapes import Place, in_one_form, place_in

_MOST_LOGPROBS = 20


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


def user_prompt(path: str, request: Mapping[str, Any], prefix: str) -> str | None:
    """What the user typed last, without the command. None if no user typed it, or if the request has none.

    A generation with a `suffix` completes code, a `raw` one brings its own template, and one without a prompt loads a
    model. Clients send requests of their own, such as for the title of a chat.
    """
    if is_no_users(path, request):
        return None
    place = place_in(path, in_one_form(path, request), prefix)
    if place is None or not place.typed.text.strip():
        return None
    question = question_of(place.typed.text, prefix)
    return place.typed.text if question is None else question


def is_no_users(path: str, request: Mapping[str, Any]) -> bool:
    """Whether a program wrote the prompt: code to complete, or a text in a template of its own."""
    return path in (GENERATE, COMPLETIONS) and bool(request.get("suffix") or request.get("raw"))


def is_refused_by_ollama(path: str, request: Mapping[str, Any]) -> bool:
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
