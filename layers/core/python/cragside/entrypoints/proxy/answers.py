"""Reads the assistant's text from the bytes of a complete answer."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cragside.entrypoints.proxy.prompts import CHAT, GENERATE, OPENAI_CHAT

_EVENT = b"data:"


def answered_text(path: str, body: bytes) -> str | None:
    """The assistant's whole text, streamed or not. None if the answer is incomplete or has an error."""
    try:
        return _READERS[path](body)
    except (ValueError, RecursionError, TypeError, AttributeError, LookupError):
        return None


def _chat(body: bytes) -> str | None:
    return _ollama(body, lambda part: part.get("message", {}).get("content"))


def _generate(body: bytes) -> str | None:
    return _ollama(body, lambda part: part.get("response"))


def _ollama(body: bytes, text_of: Callable[[Mapping[str, Any]], Any]) -> str | None:
    """The text of NDJSON. An answer that is not streamed is a single line of NDJSON."""
    texts: list[str] = []
    done = False
    for line in body.splitlines():
        if not line.strip():
            continue
        part = json.loads(line)
        if done or "error" in part:
            return None
        texts.append(text_of(part) or "")
        done = part.get("done") is True
    return "".join(texts) if done else None


def _openai(body: bytes) -> str | None:
    if body.lstrip().startswith(b"{"):
        answer = json.loads(body)
        return None if "error" in answer else answer["choices"][0]["message"].get("content")
    texts: list[str] = []
    for data in _events(body):
        if data == b"[DONE]":
            return "".join(texts)
        part = json.loads(data)
        if "error" in part:
            return None
        # The last event may have usage figures and no choices. If there are several answers, the first one counts.
        texts += [choice.get("delta", {}).get("content") or "" for choice in part["choices"] if not choice.get("index")]
    return None


def _events(body: bytes) -> Iterator[bytes]:
    return (line[len(_EVENT) :].strip() for line in body.splitlines() if line.startswith(_EVENT))


_READERS: Mapping[str, Callable[[bytes], str | None]] = {CHAT: _chat, GENERATE: _generate, OPENAI_CHAT: _openai}
