"""The forms of the routes' answers, as Ollama writes them: whole, streamed, a call of a tool, an error."""

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

CALLED = {"city": "Bern"}
_STAMP = {"created_at": "2026-01-01T00:00:00Z"}
_COUNTS = {"total_duration": 1, "load_duration": 1, "prompt_eval_count": 1, "prompt_eval_duration": 1, "eval_count": 1}
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_TOKENS = {"input_tokens": 1, "output_tokens": 1}


def streams(path: str, body: dict[str, Any]) -> bool:
    """Return True if a request is answered in pieces. Ollama's own routes stream by default."""
    return body.get("stream", path.startswith("/api/")) is True


def media_type(path: str) -> str:
    """The type of a streamed answer."""
    return "application/x-ndjson" if path.startswith("/api/") else "text/event-stream"


def missing(path: str) -> dict[str, Any]:
    """Return the error for a model that is missing."""
    told = {"type": "not_found_error", "message": "model 'missing' not found"}
    if path == "/v1/messages":
        return {"type": "error", "error": told}
    return {"error": told["message"] if path.startswith("/api/") else {**told, "param": None, "code": None}}


def whole(path: str, body: dict[str, Any], said: Sequence[str]) -> dict[str, Any]:
    """An answer in one piece."""
    text, calls = "".join(said), _calls(body)
    if path.startswith("/api/"):
        done = {"model": body["model"], **_STAMP, "done": True, "done_reason": "stop", **_COUNTS}
        return {**done, **_ollama(path, "" if calls else text, calls)}
    if path == "/v1/messages":
        content = [{"type": "tool_use", "id": "c1", "name": "weather", "input": CALLED}] if calls else [_text(text)]
        return _message(body, content, "tool_use" if calls else "end_turn")
    if path == "/v1/responses":
        return _response(body, text, "completed", calls)
    if path == "/v1/completions":
        choice = {"index": 0, "text": text, "finish_reason": "stop"}
    else:
        message = {
            "role": "assistant",
            "content": "" if calls else text,
            **({"tool_calls": [_call()]} if calls else {}),
        }
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {**_head(path, body), "choices": [choice], "usage": _USAGE}


def streamed(path: str, body: dict[str, Any], said: Sequence[str], *, endless: bool) -> Iterator[bytes]:
    """An answer in pieces. An endless one goes on until nobody reads it."""
    pieces = _slowly(said) if endless else iter(() if _calls(body) else said)
    if path.startswith("/api/"):
        yield from _ndjson(path, body, pieces)
    elif path == "/v1/messages":
        yield from _events(_message_events(body, pieces))
    elif path == "/v1/responses":
        yield from _events(_response_events(body, pieces, "".join(said)))
    else:
        for part in _chunks(path, body, pieces):
            yield b"data: %b\n\n" % json.dumps(part).encode()
        yield b"data: [DONE]\n\n"


def _slowly(said: Sequence[str]) -> Iterator[str]:
    for piece in itertools.cycle(said):
        yield piece
        time.sleep(0.02)


def _calls(body: dict[str, Any]) -> bool:
    """Return True if the tool is to be called: it is offered, and has not answered yet."""
    return '"weather"' in json.dumps(body.get("tools")) and '"18 degrees"' not in json.dumps(body)


def _call() -> dict[str, Any]:
    return {
        "id": "c1",
        "index": 0,
        "type": "function",
        "function": {"name": "weather", "arguments": json.dumps(CALLED)},
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _ollama(path: str, text: str, calls: bool = False) -> dict[str, Any]:
    if path == "/api/generate":
        return {"response": text}
    called = {"tool_calls": [{"function": {"name": "weather", "arguments": CALLED}}]} if calls else {}
    return {"message": {"role": "assistant", "content": text, **called}}


def _ndjson(path: str, body: dict[str, Any], pieces: Iterator[str]) -> Iterator[bytes]:
    head = {"model": body["model"], **_STAMP}
    if _calls(body):
        yield json.dumps({**head, **_ollama(path, "", calls=True), "done": False}).encode() + b"\n"
    for piece in pieces:
        yield json.dumps({**head, **_ollama(path, piece), "done": False}).encode() + b"\n"
    yield json.dumps({**head, **_ollama(path, ""), "done": True, "done_reason": "stop", **_COUNTS}).encode() + b"\n"


def _head(path: str, body: dict[str, Any], kind: str = "") -> dict[str, Any]:
    named = "text_completion" if path == "/v1/completions" else f"chat.completion{kind}"
    return {"id": "chatcmpl-1", "object": named, "created": 1, "model": body["model"]}


def _chunks(path: str, body: dict[str, Any], pieces: Iterator[str]) -> Iterator[dict[str, Any]]:
    head, chat = _head(path, body, ".chunk"), path == "/v1/chat/completions"
    if _calls(body):
        delta = {"role": "assistant", "content": "", "tool_calls": [_call()]}
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    for piece in pieces:
        said = {"delta": {"role": "assistant", "content": piece}} if chat else {"text": piece}
        yield {**head, "choices": [{"index": 0, **said, "finish_reason": None}]}
    reason = "tool_calls" if _calls(body) else "stop"
    ended = {"delta": {"role": "assistant", "content": ""}} if chat else {"text": ""}
    yield {**head, "choices": [{"index": 0, **ended, "finish_reason": reason}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _USAGE}


def _events(events: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for number, event in enumerate(events):
        data = json.dumps({"sequence_number": number, **event})
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def _message(body: dict[str, Any], content: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content}
    return {**head, "stop_reason": reason, "stop_sequence": None, "usage": _TOKENS}


def _message_events(body: dict[str, Any], pieces: Iterator[str]) -> Iterator[dict[str, Any]]:
    calls = _calls(body)
    block = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}} if calls else _text("")
    yield {"type": "message_start", "message": _message(body, [], None)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    if calls:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(CALLED)}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    for piece in pieces:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": _TOKENS}
    yield {"type": "message_stop"}


def _item(text: str, calls: bool, status: str = "completed") -> dict[str, Any]:
    if calls:
        called = {"name": "weather", "arguments": json.dumps(CALLED), "call_id": "c1"}
        return {"id": "fc_1", "type": "function_call", "status": status, **called}
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": [part]}


def _response(body: dict[str, Any], text: str, status: str, calls: bool = False) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    done = status == "completed"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": body["model"],
        "output": [_item(text, calls)] if done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {**_TOKENS, "total_tokens": 2, **details} if done else None,
    }


def _response_events(body: dict[str, Any], pieces: Iterator[str], text: str) -> Iterator[dict[str, Any]]:
    calls = _calls(body)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield {"type": "response.created", "response": _response(body, "", "in_progress")}
    yield {"type": "response.output_item.added", "output_index": 0, "item": _item("", calls, "in_progress")}
    if not calls:
        yield {"type": "response.content_part.added", **place, "part": _item("", calls)["content"][0]}
    for piece in pieces:
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    if not calls:
        yield {"type": "response.output_text.done", **place, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **place, "part": _item(text, calls)["content"][0]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": _item(text, calls)}
    yield {"type": "response.completed", "response": _response(body, text, "completed", calls)}
