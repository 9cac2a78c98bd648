"""Copies conversations through the proxy into memory, in the background. Clients never wait for it."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.types import Message, Send

from cragside.application.memory import Memory
from cragside.domain.errors import CragsideError
from cragside.domain.exchange import LONGEST_TEXT, Exchange
from cragside.entrypoints.proxy.messages import Header, coding_of, decoded, is_readable, parsed
from cragside.entrypoints.proxy.prompts import user_prompt
from cragside.entrypoints.proxy.routes import COMPLETIONS, GENERATE, MESSAGES, OLLAMA_ROUTES, OPENAI_CHAT, RESPONSES
from cragside.entrypoints.request_headers import end_user_of

# What the reading of an answer that is none raises.
UNREADABLE = (ValueError, RecursionError, TypeError, AttributeError, LookupError)
_EVENT = b"data:"
# A streamed token takes 100 to 300 bytes: room for an answer of some 10,000 tokens, and for 16 of these at once.
_LONGEST_ANSWER = 2 * 1024 * 1024
_MOST_HELD = 16 * _LONGEST_ANSWER
_MOST_WAITING = 256
_LAST_MOMENTS = 5.0  # seconds that a stopping server waits for them
logger = logging.getLogger(__name__)


def answered_text(path: str, body: bytes) -> str | None:
    """The assistant's whole text, streamed or not. None if the answer is incomplete or has an error."""
    try:
        if path in OLLAMA_ROUTES:
            return _ollama(path, body)
        of_whole, of_events = _READERS[path]
        if not body.lstrip().startswith(b"{"):
            return of_events(line[len(_EVENT) :].strip() for line in body.splitlines() if line.startswith(_EVENT))
        answer = json.loads(body)
        return None if answer.get("error") else of_whole(answer)
    except UNREADABLE:
        return None


def _ollama(path: str, body: bytes) -> str | None:
    """Return the text in NDJSON. An answer that is not streamed is one line of NDJSON, or indented JSON."""
    try:
        parts = [json.loads(body)]
    except ValueError:
        parts = [json.loads(line) for line in body.splitlines() if line.strip()]
    texts: list[str] = []
    done = False
    for part in parts:
        if done or "error" in part:
            return None
        texts.append((part.get("response") if path == GENERATE else part.get("message", {}).get("content")) or "")
        done = part.get("done") is True
    return "".join(texts) if done else None


def _of_choices(text_of: Callable[[Mapping[str, Any]], Any], events: Iterable[bytes]) -> str | None:
    texts: list[str] = []
    for data in events:
        if data == b"[DONE]":
            return "".join(texts)
        part = json.loads(data)
        if "error" in part:
            return None
        # The last event may have usage figures and no choices. If there are several answers, the first one counts.
        texts += [text_of(choice) or "" for choice in part["choices"] if not choice.get("index")]
    return None


def _of_responses(events: Iterable[bytes]) -> str | None:
    parts = map(json.loads, events)
    return next((_output(part["response"]) for part in parts if part["type"] == "response.completed"), None)


def _output(response: Mapping[str, Any]) -> str | None:
    if response["status"] != "completed" or response.get("error"):
        return None
    contents = (item["content"] for item in response["output"] if item["type"] == "message")
    return "".join(part["text"] for content in contents for part in content if part["type"] == "output_text")


def _blocks(answer: Mapping[str, Any]) -> str | None:
    return "".join(block["text"] for block in answer["content"] if block["type"] == "text") or None


def _of_messages(events: Iterable[bytes]) -> str | None:
    texts: list[str] = []
    for part in map(json.loads, events):
        if part["type"] == "message_stop":
            return "".join(texts)
        if part["type"] == "error":
            return None
        if part["type"] == "content_block_delta":
            texts.append(part["delta"].get("text", ""))
    return None


# What reads an answer that comes whole, and what reads the events of one that is streamed.
_READERS: Mapping[str, tuple[Callable[[Mapping[str, Any]], str | None], Callable[[Iterable[bytes]], str | None]]] = {
    OPENAI_CHAT: (
        lambda answer: answer["choices"][0]["message"].get("content"),
        partial(_of_choices, lambda choice: choice.get("delta", {}).get("content")),
    ),
    COMPLETIONS: (
        lambda answer: answer["choices"][0].get("text"),
        partial(_of_choices, lambda choice: choice.get("text")),
    ),
    RESPONSES: (_output, _of_responses),
    MESSAGES: (_blocks, _of_messages),
}


@dataclass(slots=True)
class Recording:
    """Wraps `send`: each piece goes to the client, and a copy is kept while there is room.

    `remembered` is called with the exchange's id as `documents` once it is in memory. `recalled` are the texts that
    memory contributed to the request.
    """

    send: Send
    exchanges: "Exchanges"
    path: str
    headers: Sequence[Header]
    request: bytes
    workspace: str
    chunks: list[bytes] = field(default_factory=list)
    held: int = 0
    usable: bool = True
    ended: bool = False
    coding: bytes = b""
    remembered: Callable[..., None] | None = None
    recalled: tuple[str, ...] = ()

    async def __call__(self, message: Message) -> None:
        """ASGI's `send`."""
        await self.send(message)
        if not self.usable:
            return
        if message["type"] == "http.response.start":
            self.coding = coding_of(message["headers"])
            self.usable = message["status"] == 200 and is_readable(self.coding)
            return
        data: bytes = message.get("body", b"")
        self.ended = not message.get("more_body", False)
        self.exchanges.hold(self, len(data))
        if self.usable:
            self.chunks.append(data)

    def finish(self) -> None:
        """Put the exchange into memory if it is complete, else drop it."""
        if self.usable and self.ended:
            self.exchanges.put(self)
        else:
            self.exchanges.drop(self)


class Exchanges:
    """Puts complete exchanges into memory, in the background. Failures are logged without the texts."""

    def __init__(self, memory: Memory, prefix: str) -> None:
        self._memory = memory
        self._prefix = prefix
        self._held = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def record(self, send: Send, *, path: str, headers: Sequence[Header], request: bytes, workspace: str) -> Recording:
        """Return a `send` that keeps a copy. `request` is the client's decoded body. The caller calls `finish`."""
        recording = Recording(send, self, path, headers, request, workspace)
        self.hold(recording, len(request))
        return recording

    def hold(self, recording: Recording, more: int) -> None:
        """Count what is kept. If there is no room, drop the whole recording."""
        if recording.held + more > _LONGEST_ANSWER or self._held + more > _MOST_HELD:
            logger.info("An exchange is too long to be remembered")
            self.drop(recording)
            return
        recording.held += more
        self._held += more

    def drop(self, recording: Recording) -> None:
        """Free the copy."""
        self._held -= recording.held
        recording.held, recording.usable, recording.request = 0, False, b""
        recording.chunks.clear()

    def put(self, recording: Recording) -> None:
        """Start to put a complete exchange into memory."""
        if len(self._tasks) >= _MOST_WAITING:
            logger.warning("Too many exchanges wait to be remembered; one is left out")
            self.drop(recording)
            return
        task = asyncio.get_running_loop().create_task(self._remember(recording))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait for exchanges that are being put into memory, five seconds at most."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_MOMENTS)

    async def _remember(self, recording: Recording) -> None:
        try:
            # In a thread: a long answer takes a while to read, and other streams go on meanwhile.
            exchange = await asyncio.to_thread(self._read, recording)
            if exchange is not None:
                remembered = await self._memory.remember(
                    exchange, workspace=recording.workspace, recalled=recording.recalled
                )
                if recording.remembered is not None and remembered.indexed:
                    recording.remembered(documents=[each for each in (remembered.document_id,) if each is not None])
        except CragsideError as error:
            logger.warning("An exchange was not remembered (%s)", error.code)
        except Exception as error:
            logger.error("An exchange was not remembered (%s)", type(error).__name__)
        finally:
            self.drop(recording)

    def _read(self, recording: Recording) -> Exchange | None:
        request = parsed(recording.request)
        user = None if request is None else user_prompt(recording.path, request, self._prefix)
        answered = None if user is None else decoded(b"".join(recording.chunks), recording.coding, _LONGEST_ANSWER)
        answer = None if answered is None else answered_text(recording.path, answered)
        if user is None or answer is None or max(len(user), len(answer)) > LONGEST_TEXT:
            return None
        return Exchange(user, answer, end_user=end_user_of(recording.headers, request))
