"""Reads pages that a browser or Office saved in one file (MHTML): a message whose parts are pages and pictures."""

from itertools import islice

from cragside.adapters.documents import emails, html
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable, contained
from cragside.domain.document import Mark

_MOST_PARTS = 1000
_EMPTY = "has no page with text"


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The pages. Of a workbook, each sheet is one. Raises `Unreadable` if none has text."""
    message = emails.parsed(content)
    readings, reason = list[Reading](), _EMPTY
    for part in islice(message.walk(), _MOST_PARTS):
        page = part.get_payload(decode=True) if part.get_content_type() == "text/html" else None
        if not isinstance(page, bytes):
            continue
        address = str(part.get("Content-Location", ""))
        try:
            with contained():
                readings.append(html.read(page, FileOrigin(address, "html", part.get_content_charset())))
        except Unreadable as error:  # such as the frame around the sheets
            reason = error.reason
    if not readings:
        raise Unreadable(reason)
    composer = Composer()
    for reading in readings:
        composer.extend(_apart(reading.marks) if len(readings) > 1 else reading.marks, composer.length)
        composer.add(reading.text.strip("\n"))
    first = readings[0]
    return Reading(composer.text, "article", first.title or emails.title_of(message), composer.marks, first.tier1)


def _apart(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The marks of a page, which no passage shares with the page before it."""
    first = marks[0].section if marks and marks[0].start == 0 else ""
    return (Mark(0, section=first, apart=True), *(mark for mark in marks if mark.start))
