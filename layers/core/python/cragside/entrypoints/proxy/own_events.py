"""A text of ours as the named events of OpenAI's Responses and of Anthropic's Messages."""

import json
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


class OwnAnswer(ABC):
    """Frames the pieces of a text as a route frames those of a model. `streams`: the client asked for pieces."""

    media_types = (b"application/json", b"text/event-stream")
    # What begins a streamed answer precedes its first piece.
    _begun = False

    def __init__(self, fields: Mapping[str, Any], *, streams: bool | None = None) -> None:
        self._model = str(fields.get("model"))
        self.streams = fields.get("stream") is True if streams is None else streams

    @property
    def media_type(self) -> bytes:
        """The type of the answer."""
        return self.media_types[self.streams]

    def piece(self, text: str) -> bytes:
        """A piece of a streamed answer."""
        begun = b"" if self._begun else self._begin()
        self._begun = True
        return begun + self._piece(text)

    def _begin(self) -> bytes:
        return b""

    @abstractmethod
    def _piece(self, text: str) -> bytes: ...

    @abstractmethod
    def end(self) -> bytes:
        """The end of a streamed answer."""

    @abstractmethod
    def failure(self, error: Mapping[str, Any]) -> bytes:
        """An error within a streamed answer, which ends it."""

    @abstractmethod
    def whole(self, text: str) -> bytes:
        """An answer that is not streamed."""


def _event(data: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (data["type"].encode(), json.dumps(data).encode())


class ResponsesAnswer(OwnAnswer):
    """An answer of `/v1/responses`."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self._id, self._item = f"resp_{secrets.token_hex(12)}", f"msg_{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._pieces: list[str] = []
        self._number = 0

    def _begin(self) -> bytes:
        return b"".join(
            (
                self._numbered("response.created", response=self._response("in_progress")),
                self._numbered("response.in_progress", response=self._response("in_progress")),
                self._numbered("response.output_item.added", output_index=0, item=self._message("in_progress")),
                self._numbered("response.content_part.added", **self._place(), part=_part("")),
            )
        )

    def _piece(self, text: str) -> bytes:
        self._pieces.append(text)
        return self._numbered("response.output_text.delta", **self._place(), delta=text, logprobs=[])

    @override
    def end(self) -> bytes:
        text = "".join(self._pieces)
        return b"".join(
            (
                self._numbered("response.output_text.done", **self._place(), text=text, logprobs=[]),
                self._numbered("response.content_part.done", **self._place(), part=_part(text)),
                self._numbered("response.output_item.done", output_index=0, item=self._message("completed", text)),
                self._numbered("response.completed", response=self._response("completed", text)),
            )
        )

    @override
    def failure(self, error: Mapping[str, Any]) -> bytes:
        detail = error["error"]
        return self._numbered("error", code=detail["code"], message=detail["message"], param=None)

    @override
    def whole(self, text: str) -> bytes:
        return json.dumps(self._response("completed", text)).encode()

    def _numbered(self, kind: str, **fields: Any) -> bytes:
        event = _event({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return event

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item, "output_index": 0, "content_index": 0}

    def _message(self, status: str, text: str | None = None) -> dict[str, Any]:
        content = [] if text is None else [_part(text)]
        return {"id": self._item, "type": "message", "status": status, "role": "assistant", "content": content}

    def _response(self, status: str, text: str | None = None) -> dict[str, Any]:
        usage = {
            **_NO_USAGE,
            "total_tokens": 0,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self._model,
            "output": [] if text is None else [self._message(status, text)],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "temperature": 1.0,
            "top_p": 1.0,
            "usage": None if text is None else usage,
        }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class MessagesAnswer(OwnAnswer):
    """An answer of Anthropic's `/v1/messages`."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self._id = f"msg_{secrets.token_hex(12)}"

    def _begin(self) -> bytes:
        block = {"type": "text", "text": ""}
        return _event({"type": "message_start", "message": self._message([], None)}) + _event(
            {"type": "content_block_start", "index": 0, "content_block": block}
        )

    def _piece(self, text: str) -> bytes:
        return _event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})

    @override
    def end(self) -> bytes:
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        return (
            _event({"type": "content_block_stop", "index": 0})
            + _event({"type": "message_delta", "delta": delta, "usage": _NO_USAGE})
            + _event({"type": "message_stop"})
        )

    @override
    def failure(self, error: Mapping[str, Any]) -> bytes:
        return _event(error)

    @override
    def whole(self, text: str) -> bytes:
        return json.dumps(self._message([{"type": "text", "text": text}], "end_turn")).encode()

    def _message(self, content: list[dict[str, str]], reason: str | None) -> dict[str, Any]:
        head = {"id": self._id, "type": "message", "role": "assistant", "model": self._model, "content": content}
        return {**head, "stop_reason": reason, "stop_sequence": None, "usage": _NO_USAGE}
