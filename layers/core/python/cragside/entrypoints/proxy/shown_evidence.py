"""Adds the evidence to the end of an answer, for clients that ask for it with `X-RAG-Context`."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

from starlette.types import Message, Scope, Send

from cragside.domain.citations import MOST_MARKS, Mark, MarksOfPieces, marks_in
from cragside.domain.evidence import Document
from cragside.domain.outcome import RagContext
from cragside.entrypoints.proxy.exchanges import UNREADABLE
from cragside.entrypoints.proxy.messages import value_of
from cragside.entrypoints.proxy.routes import MESSAGES, OLLAMA_ROUTES, OPENAI_CHAT, RESPONSES

# A streamed response says each citation four times: in events, its text, its item and its end.
MOST_OF_AN_ANSWER = 4 * MOST_MARKS
# A name or an address, with a port.
_HOST = re.compile(r"[A-Za-z0-9._-]+(?::[0-9]+)?|\[[0-9A-Fa-f:.]+\](?::[0-9]+)?")
# What a URL may have; hosts put it into mark-up of their own.
_OF_URLS = "/:?#[]@!$&'()*+,;=%~"
_HEADING, _EVENT = b"event:", b"data:"
_ADDED = "response.output_text.annotation.added"
_MOST_HELD = 4 * 1024 * 1024  # bytes of an answer, or of one of its lines
_MOST_CHOICES = 128  # as OpenAI has them


@dataclass(frozen=True, slots=True)
class Passages:
    """The evidence of a request. `console` is the address of the console, in which each passage has a link."""

    context: RagContext
    console: str

    def as_dict(self) -> dict[str, Any]:
        """The contract's `rag_context`, with a `link` for each passage."""
        context = self.context.as_dict()
        shown = {"documents": self.context.documents, "closest": self.context.closest}
        for name in shown.keys() & context.keys():
            linked = zip(context[name], shown[name], strict=True)
            context[name] = [{**each, "link": self._link(document)} for each, document in linked]
        return context

    def annotations(self, marks: Iterable[Mark]) -> list[dict[str, Any]]:
        """A `url_citation` for each of the first thousand marks that names a passage. Positions count characters."""
        known = self.context.documents
        return [
            {
                "type": "url_citation",
                "start_index": each.start,
                "end_index": each.end,
                "url": self._url(each.number - 1),
                "title": known[each.number - 1].title,
            }
            for each in islice(marks, MOST_MARKS)
            if 0 < each.number <= len(known)
        ]

    def _url(self, index: int) -> str:
        document = self.context.documents[index]
        url = document.url or ""
        return quote(url, safe=_OF_URLS) if url.startswith(("https://", "http://")) else self._link(document)

    def _link(self, document: Document) -> str:
        opened = document.metadata.get("documentId")
        if not opened:
            return f"{self.console}#/documents"
        return f"{self.console}#/documents?open={quote(str(opened), safe='')}&passage={quote(document.id, safe='')}"


def passages_of(context: RagContext, scope: Scope, path_prefix: str = "") -> Passages:
    """Return the passages, with links to the console at the address that the client called, if it called one.

    `path_prefix` is RAG_PATH_PREFIX. The console is there, even if a reverse proxy has removed the prefix. Of the
    headers about the address only `Host` is used, as everywhere in the server.
    """
    host = (value_of(scope["headers"], b"host") or b"").decode("latin-1")
    at = f"{scope.get('scheme', 'http')}://{host}" if _HOST.fullmatch(host) else ""
    return Passages(context, f"{at}{path_prefix}/console/")


class ResponseAnnotations:
    """Adds annotations and `rag_context` to a response, and to a stream an event for each annotation.

    What cannot be read passes unchanged.
    """

    def __init__(self, passages: Passages) -> None:
        self._passages = passages
        self._heading = b""  # the line `event:`, until it is known whether other events come before it
        self._left = MOST_OF_AN_ANSWER  # marks to read
        self._added = 0  # events, by which all later ones move

    def line(self, line: bytes) -> bytes:
        """The lines of a stream that this one becomes."""
        heading = self.rest()
        if line.startswith(_HEADING):
            self._heading = line
            return heading
        if not line.startswith(_EVENT):
            return heading + line
        ending = line[len(line.rstrip(b"\r\n")) :]
        try:
            part = json.loads(line.removeprefix(_EVENT))
            moved = self._moved(part)
            events = self._events(part, ending) if part.get("type") == "response.output_text.done" else []
            if not (self.add(part) or moved or events):
                return heading + line
            changed = json.dumps(part, allow_nan=False).encode()
        except UNREADABLE:
            return heading + line
        self._added += len(events)
        return b"".join(events) + heading + _EVENT + b" " + changed + ending

    def rest(self) -> bytes:
        """Give what is still held, at the end of a stream."""
        heading, self._heading = self._heading, b""
        return heading

    def add(self, part: dict[str, Any]) -> bool:
        """Add to a whole response, or to an event. Tell if it was changed: not if it lacks what it should have."""
        with suppress(*UNREADABLE):
            response = part.get("response", part)
            if part.get("error"):
                return False
            if response.get("object") == "response":
                if response.get("status") != "completed":
                    return False
                for item in response["output"]:
                    self._annotate_item(item)
                response["rag_context"] = self._passages.as_dict()
                return True
            if part["type"] == "response.output_item.done":
                return self._annotate_item(part["item"])
            return part["type"] == "response.content_part.done" and self._annotate(part["part"])
        return False

    def _moved(self, part: dict[str, Any]) -> bool:
        if not self._added or not isinstance(part.get("sequence_number"), int):
            return False
        part["sequence_number"] += self._added
        return True

    def _events(self, done: dict[str, Any], ending: bytes) -> list[bytes]:
        """An event for each annotation of a text that ends, in whose places in the sequence it moves on."""
        place: dict[str, Any] = {
            name: done[name] for name in ("item_id", "output_index", "content_index") if name in done
        }
        numbered, events = isinstance(done.get("sequence_number"), int), []
        for index, annotation in enumerate(self._found(done["text"])):
            event = {"type": _ADDED, **place, "annotation_index": index, "annotation": annotation}
            if numbered:
                event["sequence_number"] = done["sequence_number"]
                done["sequence_number"] += 1
            data = json.dumps(event).encode()
            events.append(b"event: %b%bdata: %b%b%b" % (_ADDED.encode(), ending, data, ending, ending))
        return events

    def _annotate_item(self, item: dict[str, Any]) -> bool:
        annotated = [self._annotate(piece) for piece in item.get("content") or ()]
        return any(annotated)

    def _annotate(self, piece: dict[str, Any]) -> bool:
        if piece.get("type") != "output_text":
            return False
        piece["annotations"] = [*(piece.get("annotations") or ()), *self._found(piece["text"])]
        return True

    def _found(self, text: str) -> list[dict[str, Any]]:
        marks = list(islice(marks_in(text), min(MOST_MARKS, self._left)))
        self._left -= len(marks)
        return self._passages.annotations(marks)


class ShownEvidence:
    """Wraps `send`: `rag_context` is added to the last part of an answer, and annotations on OpenAI's routes.

    An answer that cannot be read passes unchanged.
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
            headers = message["headers"]
            self._passes = message["status"] != 200 or value_of(headers, b"content-encoding") is not None
            if not self._passes:
                message = {**message, "headers": [each for each in headers if each[0].lower() != b"content-length"]}
            await self._send(message)
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

    def _ready(self, piece: bytes, more: bool) -> bytes:
        """Return the lines that are complete. The rest is held back."""
        before = len(self._held)
        self._held += piece
        if self._streamed is None:
            self._streamed = self._comes_in_lines(piece)
        end = piece.rfind(b"\n") + 1 if self._streamed else 0
        if more:
            return self._changed(self._taken(before + end if end else 0))
        return self._changed(self._taken(None)) + self._responses.rest()

    def _comes_in_lines(self, piece: bytes) -> bool | None:
        """Tell by its beginning if an answer comes in lines: hosts give either type. None means not known yet."""
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
        """Take so many of the held bytes; None means all."""
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
        """Add to a part of an answer. Tell if it was changed."""
        if part.get("error"):
            return False
        if self._path in OLLAMA_ROUTES:
            ends = part.get("done") is True
        elif self._path == RESPONSES:
            return self._responses.add(part)
        elif self._path == MESSAGES:
            ends = part.get("type") in ("message_delta", "message")
        else:
            for choice in part["choices"] if self._path == OPENAI_CHAT else ():
                self._annotate(choice)
            ends = any(choice.get("finish_reason") is not None for choice in part["choices"])
        if ends:
            part["rag_context"] = self._passages.as_dict()
        return ends

    def _annotate(self, choice: dict[str, Any]) -> None:
        """Read what the choice says, and annotate it at its end."""
        index, message = choice.get("index", 0), choice.get("delta") or choice.get("message") or {}
        if not self._left or (index not in self._cited and len(self._cited) == _MOST_CHOICES):
            return
        cited = self._cited.setdefault(index, MarksOfPieces())
        cited.read(message.get("content") or "")
        if choice.get("finish_reason") is None:
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
