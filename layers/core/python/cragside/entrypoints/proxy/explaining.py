"""Answers prompts that begin with `/rag?`: with the explanation of their evidence instead of a model's words."""

import json
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.types import Send
from typing_extensions import override

from cragside.domain.errors import CragsideError
from cragside.domain.explanation import Explanation, rest_of, step_line
from cragside.domain.outcome import Step
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.proxy.errors import code_of, error_body, failing_as
from cragside.entrypoints.proxy.messages import send_whole
from cragside.entrypoints.proxy.routes import COMPLETIONS, GENERATE, MESSAGES, OPENAI_CHAT, RESPONSES

_NO_TOKENS = {"input_tokens": 0, "output_tokens": 0}
_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
_TITLE = "**Why this evidence**\n\n"


class OwnAnswer(ABC):
    """Writes the pieces of a text as a route writes those of a model. It `streams` if the client asked for pieces."""

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
            **_NO_TOKENS,
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
            + _event({"type": "message_delta", "delta": delta, "usage": _NO_TOKENS})
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
        return {**head, "stop_reason": reason, "stop_sequence": None, "usage": _NO_TOKENS}


def own_answer(path: str, request: Mapping[str, Any]) -> OwnAnswer:
    """The answer to a request. Ollama reads the names of fields in any case."""
    fields = {name.lower(): value for name, value in request.items()}
    if path == RESPONSES:
        return ResponsesAnswer(fields)
    if path == MESSAGES:
        return MessagesAnswer(fields)
    return _OpenAIAnswer(path, fields) if path in (OPENAI_CHAT, COMPLETIONS) else _OllamaAnswer(path, fields)


class _OllamaAnswer(OwnAnswer):
    """An answer of Ollama's routes, which stream unless `stream` is false."""

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
    """An answer of OpenAI's chat or completions."""

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


async def send_explanation(send: Send, path: str, answer: OwnAnswer, items: AsyncIterator[Step | Explanation]) -> None:
    """Send each step when it ends, then the rest. Raises a `CragsideError` if nothing has been sent yet."""
    pieces = _pieces(items)
    # The run fails before its first step if the store is misconfigured. Then the answer has a status of its own.
    first = await anext(pieces)
    headers = [(b"content-type", answer.media_type), (b"cache-control", b"no-cache")]
    if not answer.streams:
        text = "".join([_TITLE, first, *[piece async for piece in pieces]])
        await send_whole(send, 200, headers, answer.whole(text))
        return
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await _send(send, answer.piece(_TITLE + first))
    try:
        async for piece in pieces:
            await _send(send, answer.piece(piece))
        end = answer.end()
    except CragsideError as error:
        shown = for_client(error)
        end = answer.failure(error_body(path, code_of(shown), shown.message))
    await _send(send, end, more=False)


async def _pieces(items: AsyncIterator[Step | Explanation]) -> AsyncIterator[str]:
    with failing_as("The request could not be explained."):
        async for item in items:
            for piece in [step_line(item)] if isinstance(item, Step) else rest_of(item):
                if piece:
                    yield piece


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
