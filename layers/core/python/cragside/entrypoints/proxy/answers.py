"""Reads the assistant's text from the bytes of a complete answer."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from cragside.entrypoints.proxy.ollama_scopes import CHAT, COMPLETIONS, GENERATE, MESSAGES, OPENAI_CHAT, RESPONSES

# What the reading of an answer that is none raises.
UNREADABLE = (ValueError, RecursionError, TypeError, AttributeError, LookupError)
_EVENT = b"data:"


def answered_text(path: str, body: bytes) -> str | None:
    """The assistant's whole text, streamed or not. None if the answer is incomplete or has an error."""
    try:
        return _READERS[path](body)
    except UNREADABLE:
        return None


def _ollama(text_of: Callable[[Mapping[str, Any]], Any], body: bytes) -> str | None:
    """The text of NDJSON. An answer that is not streamed is a single line of NDJSON, or is indented."""
    try:
        parts = [json.loads(body)]
    except ValueError:
        parts = [json.loads(line) for line in body.splitlines() if line.strip()]
    texts: list[str] = []
    done = False
    for part in parts:
        if done or "error" in part:
            return None
        texts.append(text_of(part) or "")
        done = part.get("done") is True
    return "".join(texts) if done else None


def _choices(
    whole: Callable[[Mapping[str, Any]], Any], piece: Callable[[Mapping[str, Any]], Any], field: str, body: bytes
) -> str | None:
    if body.lstrip().startswith(b"{"):
        answer = json.loads(body)
        return None if "error" in answer else whole(answer["choices"][0]).get(field)
    texts: list[str] = []
    for data in _events(body):
        if data == b"[DONE]":
            return "".join(texts)
        part = json.loads(data)
        if "error" in part:
            return None
        # The last event may have usage figures and no choices. If there are several answers, the first one counts.
        texts += [piece(choice).get(field) or "" for choice in part["choices"] if not choice.get("index")]
    return None


def _responses(body: bytes) -> str | None:
    if body.lstrip().startswith(b"{"):
        return _output(json.loads(body))
    for data in _events(body):
        part = json.loads(data)
        if part["type"] == "response.completed":
            return _output(part["response"])
    return None


def _output(response: Mapping[str, Any]) -> str | None:
    if response.get("error") or response["status"] != "completed":
        return None
    contents = (item["content"] for item in response["output"] if item["type"] == "message")
    return "".join(part["text"] for content in contents for part in content if part["type"] == "output_text")


def _messages(body: bytes) -> str | None:
    if body.lstrip().startswith(b"{"):
        answer = json.loads(body)
        blocks = () if answer["type"] == "error" else answer["content"]
        return "".join(block["text"] for block in blocks if block["type"] == "text") or None
    texts: list[str] = []
    for data in _events(body):
        part = json.loads(data)
        if part["type"] == "message_stop":
            return "".join(texts)
        if part["type"] == "error":
            return None
        if part["type"] == "content_block_delta":
            texts.append(part["delta"].get("text", ""))
    return None


def _events(body: bytes) -> Iterator[bytes]:
    return (line[len(_EVENT) :].strip() for line in body.splitlines() if line.startswith(_EVENT))


_READERS: Mapping[str, Callable[[bytes], str | None]] = {
    CHAT: partial(_ollama, lambda part: part.get("message", {}).get("content")),
    GENERATE: partial(_ollama, lambda part: part.get("response")),
    OPENAI_CHAT: partial(_choices, lambda choice: choice["message"], lambda choice: choice.get("delta", {}), "content"),
    COMPLETIONS: partial(_choices, lambda choice: choice, lambda choice: choice, "text"),
    RESPONSES: _responses,
    MESSAGES: _messages,
}
