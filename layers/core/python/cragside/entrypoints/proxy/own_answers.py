"""A text of ours in the form of an answer of the called API. No model has read or written a token of it."""

import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cragside.entrypoints.proxy.ollama_scopes import COMPLETIONS, GENERATE, MESSAGES, OPENAI_CHAT, RESPONSES
from cragside.entrypoints.proxy.own_events import MessagesAnswer, OwnAnswer, ResponsesAnswer

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def own_answer(path: str, request: Mapping[str, Any]) -> OwnAnswer:
    """The answer to a request. Ollama reads the names of fields in any case."""
    fields = {name.lower(): value for name, value in request.items()}
    if path == RESPONSES:
        return ResponsesAnswer(fields)
    if path == MESSAGES:
        return MessagesAnswer(fields)
    return _OpenAIAnswer(path, fields) if path in (OPENAI_CHAT, COMPLETIONS) else _OllamaAnswer(path, fields)


class _OllamaAnswer(OwnAnswer):
    """Ollama streams unless `stream` is false."""

    media_types = (b"application/json", b"application/x-ndjson")

    def __init__(self, path: str, fields: Mapping[str, Any]) -> None:
        super().__init__(fields, streams=fields.get("stream") is not False)
        self._path = path
        self._started = time.perf_counter()

    def _piece(self, text: str) -> bytes:
        return self._line(text, {"done": False})

    def end(self) -> bytes:
        return self.whole("")

    def failure(self, error: Mapping[str, Any]) -> bytes:
        return json.dumps(error).encode() + b"\n"

    def whole(self, text: str) -> bytes:
        nanoseconds = int((time.perf_counter() - self._started) * 1e9)
        return self._line(text, {"done": True, "done_reason": "stop", "total_duration": nanoseconds})

    def _line(self, text: str, state: Mapping[str, Any]) -> bytes:
        content = {"response": text} if self._path == GENERATE else {"message": {"role": "assistant", "content": text}}
        head = {"model": self._model, "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
        return json.dumps({**head, **content, **state}).encode() + b"\n"


class _OpenAIAnswer(OwnAnswer):
    """OpenAI's chat and completions."""

    def __init__(self, path: str, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self._chat = path == OPENAI_CHAT
        kind = "chat.completion" if self._chat else "text_completion"
        identifier = f"{'chatcmpl' if self._chat else 'cmpl'}-{secrets.token_hex(12)}"
        self._head = {"id": identifier, "object": kind, "created": int(time.time()), "model": self._model}
        options = fields.get("stream_options")
        self._usage = isinstance(options, dict) and options.get("include_usage") is True

    def _piece(self, text: str) -> bytes:
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
