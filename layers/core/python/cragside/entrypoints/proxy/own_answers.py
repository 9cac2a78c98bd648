"""A text of ours in the form of an answer of the called API. No model has read or written a token of it."""

import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from cragside.entrypoints.proxy.own_events import MessagesAnswer, ResponsesAnswer
from cragside.entrypoints.proxy.shapes import COMPLETIONS, GENERATE, MESSAGES, OPENAI_CHAT, RESPONSES

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class OwnAnswer(Protocol):
    """Frames the pieces of a text as a route frames those of a model. `streams`: the client asked for pieces."""

    streams: bool

    @property
    def media_type(self) -> bytes:
        """The type of the answer."""

    def piece(self, text: str) -> bytes:
        """A piece of a streamed answer."""

    def end(self) -> bytes:
        """The end of a streamed answer."""

    def failure(self, error: Mapping[str, Any]) -> bytes:
        """An error within a streamed answer, which ends it."""

    def whole(self, text: str) -> bytes:
        """An answer that is not streamed."""


def own_answer(path: str, request: Mapping[str, Any]) -> OwnAnswer:
    """The answer to a request. Ollama reads the names of fields in any case."""
    fields = {name.lower(): value for name, value in request.items()}
    if path == RESPONSES:
        return ResponsesAnswer(fields)
    if path == MESSAGES:
        return MessagesAnswer(fields)
    return _OpenAIAnswer(path, fields) if path in (OPENAI_CHAT, COMPLETIONS) else _OllamaAnswer(path, fields)


class _OllamaAnswer:
    """Ollama streams unless `stream` is false."""

    def __init__(self, path: str, fields: Mapping[str, Any]) -> None:
        self._path = path
        self._model = str(fields.get("model"))
        self._started = time.perf_counter()
        self.streams = fields.get("stream") is not False
        self.media_type = b"application/x-ndjson" if self.streams else b"application/json"

    def piece(self, text: str) -> bytes:
        return self._line(text, {"done": False})

    def end(self) -> bytes:
        return self._line("", self._done())

    def failure(self, error: Mapping[str, Any]) -> bytes:
        return json.dumps(error).encode() + b"\n"

    def whole(self, text: str) -> bytes:
        return self._line(text, self._done())

    def _line(self, text: str, state: Mapping[str, Any]) -> bytes:
        content = {"response": text} if self._path == GENERATE else {"message": {"role": "assistant", "content": text}}
        head = {"model": self._model, "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
        return json.dumps({**head, **content, **state}).encode() + b"\n"

    def _done(self) -> dict[str, Any]:
        nanoseconds = int((time.perf_counter() - self._started) * 1e9)
        return {"done": True, "done_reason": "stop", "total_duration": nanoseconds}


class _OpenAIAnswer:
    """OpenAI's chat and completions stream only if `stream` is true."""

    def __init__(self, path: str, fields: Mapping[str, Any]) -> None:
        self._chat = path == OPENAI_CHAT
        kind = "chat.completion" if self._chat else "text_completion"
        identifier = f"{'chatcmpl' if self._chat else 'cmpl'}-{secrets.token_hex(12)}"
        self._head = {"id": identifier, "object": kind, "created": int(time.time()), "model": str(fields.get("model"))}
        options = fields.get("stream_options")
        self._usage = isinstance(options, dict) and options.get("include_usage") is True
        self.streams = fields.get("stream") is True
        self.media_type = b"text/event-stream" if self.streams else b"application/json"

    def piece(self, text: str) -> bytes:
        return self._event([self._choice("delta", {"role": "assistant", "content": text}, text, None)])

    def end(self) -> bytes:
        usage = self._event([], usage=_NO_USAGE) if self._usage else b""
        return self._event([self._choice("delta", {}, "", "stop")]) + usage + b"data: [DONE]\n\n"

    def failure(self, error: Mapping[str, Any]) -> bytes:
        return b"data: %b\n\n" % json.dumps(error).encode()

    def whole(self, text: str) -> bytes:
        choice = self._choice("message", {"role": "assistant", "content": text}, text, "stop")
        return json.dumps({**self._head, "choices": [choice], "usage": _NO_USAGE}).encode()

    def _choice(self, name: str, message: Mapping[str, str], text: str, reason: str | None) -> dict[str, Any]:
        return {"index": 0, **({name: message} if self._chat else {"text": text}), "finish_reason": reason}

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        kind = {"object": "chat.completion.chunk"} if self._chat else {}
        return b"data: %b\n\n" % json.dumps({**self._head, **kind, "choices": choices, **more}).encode()
