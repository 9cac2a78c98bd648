"""Annotates what OpenAI's Responses cite, in whole answers and in streams."""

import json
from itertools import islice
from typing import Any

from cragside.domain.citations import MOST_MARKS, marks_in
from cragside.entrypoints.proxy.answers import UNREADABLE
from cragside.entrypoints.proxy.passages import MOST_OF_AN_ANSWER, Passages

_HEADING, _DATA = b"event:", b"data:"
_ADDED = "response.output_text.annotation.added"


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
        if not line.startswith(_DATA):
            return heading + line
        ending = line[len(line.rstrip(b"\r\n")) :]
        try:
            part = json.loads(line.removeprefix(_DATA))
            moved = self._moved(part)
            events = self._events(part, ending) if part.get("type") == "response.output_text.done" else []
            if not (self._add(part) or moved or events):
                return heading + line
            changed = json.dumps(part, allow_nan=False).encode()
        except UNREADABLE:
            return heading + line
        self._added += len(events)
        return b"".join(events) + heading + _DATA + b" " + changed + ending

    def rest(self) -> bytes:
        """What is still held, at the end of a stream."""
        heading, self._heading = self._heading, b""
        return heading

    def add(self, part: dict[str, Any]) -> bool:
        """Whether the whole response, or the event, was changed."""
        if part.get("error"):
            return False
        response = part.get("response", part)
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

    def _add(self, part: dict[str, Any]) -> bool:
        """As `add`. An event without what it should have keeps its new place in the sequence."""
        try:
            return self.add(part)
        except UNREADABLE:
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
