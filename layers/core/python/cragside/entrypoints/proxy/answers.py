"""What was asked and what was answered, read from the bytes of an exchange that is over."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cragside.domain.command import question_of
from cragside.domain.errors import ValidationError
from cragside.domain.prompt import user_text
from cragside.entrypoints.proxy.commanded import CHAT, GENERATE, OPENAI_CHAT, asked, parsed

_EVENT = b"data:"
# How Open WebUI begins what it asks by itself, in the user's name: titles, tags, follow-up questions, search queries and
# completions (all of these are tasks), an emoji, one answer out of several models'.
_CLIENTS_OWN = (
    "### Task:",
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models to the latest user query",
)


def asked_text(path: str, body: bytes, prefix: str) -> str | None:
    """The last text the user wrote, without the command; None for what is no exchange.

    A generation with a `suffix` fills a gap in code, and one without a prompt loads a model. What a client asks by
    itself, such as a title for the chat, no user wrote.
    """
    request = parsed(body)
    if request is None or (path == GENERATE and request.get("suffix")):
        return None
    try:
        text = user_text(asked(path, request))
    except ValidationError:
        return None
    if not text or not text.strip() or text.lstrip().startswith(_CLIENTS_OWN):
        return None
    question = question_of(text, prefix)
    return text if question is None else question


def answered_text(path: str, body: bytes) -> str | None:
    """All of what the assistant said, streamed or not; None unless it came to its end without an error."""
    try:
        return _READERS[path](body)
    except (ValueError, RecursionError, TypeError, AttributeError, LookupError):
        return None


def _chat(body: bytes) -> str | None:
    return _ollama(body, lambda part: part.get("message", {}).get("content"))


def _generate(body: bytes) -> str | None:
    return _ollama(body, lambda part: part.get("response"))


def _ollama(body: bytes, text_of: Callable[[Mapping[str, Any]], Any]) -> str | None:
    """The text of NDJSON; an answer that is not streamed is NDJSON of one line."""
    said: list[str] = []
    done = False
    for line in body.splitlines():
        if not line.strip():
            continue
        part = json.loads(line)
        if done or "error" in part:
            return None
        said.append(text_of(part) or "")
        done = part.get("done") is True
    return "".join(said) if done else None


def _openai(body: bytes) -> str | None:
    if body.lstrip().startswith(b"{"):
        answer = json.loads(body)
        return None if "error" in answer else answer["choices"][0]["message"].get("content")
    said: list[str] = []
    for data in _events(body):
        if data == b"[DONE]":
            return "".join(said)
        part = json.loads(data)
        if "error" in part:
            return None
        # The last event may have no choices, only what was used; of several answers the first counts.
        said += [choice.get("delta", {}).get("content") or "" for choice in part["choices"] if not choice.get("index")]
    return None


def _events(body: bytes) -> Iterator[bytes]:
    return (line[len(_EVENT) :].strip() for line in body.splitlines() if line.startswith(_EVENT))


_READERS: Mapping[str, Callable[[bytes], str | None]] = {CHAT: _chat, GENERATE: _generate, OPENAI_CHAT: _openai}
