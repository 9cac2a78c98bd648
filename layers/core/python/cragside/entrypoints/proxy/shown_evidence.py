"""Adds the evidence to the end of an answer, for clients that ask for it with `X-RAG-Context`."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from starlette.types import Message, Send

from cragside.domain.citations import MarksOfPieces
from cragside.entrypoints.proxy.answers import UNREADABLE
from cragside.entrypoints.proxy.headers import value_of
from cragside.entrypoints.proxy.passages import MOST_OF_AN_ANSWER, Passages
from cragside.entrypoints.proxy.response_annotations import ResponseAnnotations
from cragside.entrypoints.proxy.shapes import MESSAGES, OLLAMA_ROUTES, OPENAI_CHAT, RESPONSES

_EVENT = b"data:"
_MOST_HELD = 4 * 1024 * 1024  # bytes of an answer, or of one of its lines
_MOST_CHOICES = 128  # as OpenAI has them


class ShownEvidence:
    """Replaces `send`: adds `rag_context` to the last part of an answer, and annotations to what OpenAI's routes say.

    What cannot be read passes unchanged.
    """

    def __init__(self, send: Send, path: str, passages: Passages) -> None:
        self._send = send
        self._path = path
        self._passages = passages
        self._responses = ResponseAnnotations(passages)
        self._held = bytearray()  # bytes would be copied with each piece of a long line
        self._cited: dict[int, MarksOfPieces] = {}  # by choice
        self._left = MOST_OF_AN_ANSWER  # annotations
        self._passes = False
        self._streamed: bool | None = None  # unknown until enough of the answer is here
        self._opening = b""  # the first byte that is no white space

    async def __call__(self, message: Message) -> None:
        """ASGI's `send`."""
        if message["type"] == "http.response.start":
            await self._send(self._begun(message))
            return
        if self._passes:
            await self._send(message)
            return
        more = message.get("more_body", False)
        ready = self._ready(message.get("body", b""), more)
        if len(self._held) > _MOST_HELD:
            ready, self._passes = ready + self._responses.rest() + self._taken(None), True
        if ready or not more:
            await self._send({"type": "http.response.body", "body": ready, "more_body": more})

    def _begun(self, message: Message) -> Message:
        headers = message["headers"]
        self._passes = message["status"] != 200 or value_of(headers, b"content-encoding") is not None
        if self._passes:
            return message
        return {**message, "headers": [each for each in headers if each[0].lower() != b"content-length"]}

    def _ready(self, piece: bytes, more: bool) -> bytes:
        """The lines that have ended. The rest is held."""
        before = len(self._held)
        self._held += piece
        if self._streamed is None:
            self._streamed = self._comes_in_lines(piece)
        end = piece.rfind(b"\n") + 1 if self._streamed else 0
        if more:
            return self._changed(self._taken(before + end if end else 0))
        return self._changed(self._taken(None)) + self._responses.rest()

    def _comes_in_lines(self, piece: bytes) -> bool | None:
        """Tell lines from a whole answer by how it begins, as hosts give either any type. None: not known yet."""
        if not self._opening:
            piece = piece.lstrip()
            self._opening = piece[:1]
        if self._opening != b"{":
            return True if self._opening else None
        if self._path not in OLLAMA_ROUTES:
            return False
        if b"\n" not in piece:
            return None
        try:
            json.loads(self._held.lstrip().partition(b"\n")[0])
        except UNREADABLE:  # it is indented
            return False
        return True

    def _taken(self, size: int | None) -> bytes:
        """That many of the held bytes, which are held no longer; None means all."""
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _changed(self, data: bytes) -> bytes:
        if not self._streamed:
            return self._line(data)
        return b"".join(self._line(line) for line in data.splitlines(keepends=True))

    def _line(self, line: bytes) -> bytes:
        if self._streamed and self._path == RESPONSES:
            return self._responses.line(line)
        event = self._streamed and self._path not in OLLAMA_ROUTES
        if event and not line.startswith(_EVENT):
            return line
        if self._streamed and not event and not (b'"done"' in line and b"true" in line):
            return line
        text = line.removeprefix(_EVENT) if event else line
        try:
            part = json.loads(text)
            if not self._add(part):
                return line
            changed = json.dumps(part, allow_nan=False).encode()
        except UNREADABLE:
            return line
        ending = line[len(line.rstrip(b"\r\n")) :]
        return (b"data: " if event else b"") + changed + ending

    def _add(self, part: dict[str, Any]) -> bool:
        """Whether the part was changed."""
        if part.get("error"):
            return False
        if self._path in OLLAMA_ROUTES:
            ends = part.get("done") is True
        elif self._path == RESPONSES:
            return self._responses.add(part)
        elif self._path == MESSAGES:
            ends = part.get("type") in ("message_delta", "message")
        else:
            ends = self._add_to_choices(part["choices"])
        if ends:
            part["rag_context"] = self._passages.as_dict()
        return ends

    def _add_to_choices(self, choices: list[dict[str, Any]]) -> bool:
        ended = False
        for choice in choices:
            ends = choice.get("finish_reason") is not None
            if self._path == OPENAI_CHAT:
                self._annotate(choice, ends)
            ended = ended or ends
        return ended

    def _annotate(self, choice: dict[str, Any], ends: bool) -> None:
        """Read what the choice says, and annotate it at its end."""
        index, message = choice.get("index", 0), choice.get("delta") or choice.get("message") or {}
        if not self._left or (index not in self._cited and len(self._cited) == _MOST_CHOICES):
            return
        cited = self._cited.setdefault(index, MarksOfPieces())
        cited.read(message.get("content") or "")
        if not ends:
            return
        del self._cited[index]
        if found := self._passages.annotations(islice(cited.found, self._left)):
            self._left -= len(found)
            field = "message" if "message" in choice else "delta"
            choice[field] = {**message, "annotations": [_nested(each) for each in found]}


def _nested(annotation: Mapping[str, Any]) -> dict[str, Any]:
    """An annotation as chats have it, with its fields one level deeper than in responses."""
    fields = {name: value for name, value in annotation.items() if name != "type"}
    return {"type": annotation["type"], annotation["type"]: fields}
