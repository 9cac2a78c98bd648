"""A text of ours in the form of an answer of Ollama or OpenAI. No model has read or written a token of it."""

import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cragside.entrypoints.proxy.prompts import GENERATE, OPENAI_CHAT

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class OwnAnswer:
    """Frames the pieces of a text as the route at `path` frames those of a model.

    Ollama streams unless `stream` is false, OpenAI's routes only if it is true. Ollama reads the names of fields in any
    case.
    """

    def __init__(self, path: str, request: Mapping[str, Any]) -> None:
        fields = {name.lower(): value for name, value in request.items()}
        self._path = path
        self._model = str(fields.get("model"))
        self._started = time.perf_counter()
        self._identity = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time())}
        options = fields.get("stream_options")
        self._usage = isinstance(options, dict) and options.get("include_usage") is True
        self.openai = path == OPENAI_CHAT
        self.streams = fields.get("stream") is True if self.openai else fields.get("stream") is not False

    @property
    def media_type(self) -> bytes:
        """The type of the answer."""
        if not self.streams:
            return b"application/json"
        return b"text/event-stream" if self.openai else b"application/x-ndjson"

    def piece(self, text: str) -> bytes:
        """A piece of a streamed answer."""
        if self.openai:
            return self._event([_choice({"role": "assistant", "content": text}, None)])
        return self._line(text, {"done": False})

    def end(self) -> bytes:
        """The end of a streamed answer."""
        if not self.openai:
            return self._line("", self._done())
        usage = self._event([], usage=_NO_USAGE) if self._usage else b""
        return self._event([_choice({}, "stop")]) + usage + b"data: [DONE]\n\n"

    def failure(self, error: Mapping[str, Any]) -> bytes:
        """An error within a streamed answer, which ends it."""
        body = json.dumps(error).encode()
        return b"data: %b\n\n" % body if self.openai else body + b"\n"

    def whole(self, text: str) -> bytes:
        """An answer that is not streamed."""
        if not self.openai:
            return self._line(text, self._done())
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {**self._identity, "object": "chat.completion", "model": self._model}
        return json.dumps({**head, "choices": [choice], "usage": _NO_USAGE}).encode()

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        head = {**self._identity, "object": "chat.completion.chunk", "model": self._model}
        return b"data: %b\n\n" % json.dumps({**head, "choices": choices, **more}).encode()

    def _line(self, text: str, state: Mapping[str, Any]) -> bytes:
        told = {"response": text} if self._path == GENERATE else {"message": {"role": "assistant", "content": text}}
        head = {"model": self._model, "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
        return json.dumps({**head, **told, **state}).encode() + b"\n"

    def _done(self) -> dict[str, Any]:
        nanoseconds = int((time.perf_counter() - self._started) * 1e9)
        return {"done": True, "done_reason": "stop", "total_duration": nanoseconds}


def _choice(delta: dict[str, str], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason}
