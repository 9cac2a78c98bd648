"""Reads pages that a browser or Office saved in one file (MHTML): a message whose parts are pages and pictures."""

from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from itertools import islice
from urllib.parse import urljoin

from cragside.adapters.documents import emails, html
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable, contained
from cragside.domain.document import Mark

_MOST_PARTS = 1000
_EMPTY = "has no page with text"


def read_saved_page(content: bytes, origin: FileOrigin) -> Reading:
    """The pages. Of a workbook, each sheet is one. Raises `Unreadable` if none has text."""
    message = emails.parsed_message(content)
    readings, reason = list[Reading](), _EMPTY
    sheets = dict(_sheets(message))
    for part in islice(message.walk(), _MOST_PARTS):
        page = part.get_payload(decode=True) if part.get_content_type() == "text/html" else None
        if not isinstance(page, bytes):
            continue
        address = str(part.get("Content-Location", ""))
        try:
            with contained():
                origin_of_page = FileOrigin(address, "html", part.get_content_charset())
                readings.append(html.read(page, origin_of_page, _sheet_at(sheets, address)))
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


def _sheets(message: Message) -> Iterator[tuple[str, bytes]]:
    """The style sheets of the archive by their addresses."""
    for part in islice(message.walk(), _MOST_PARTS):
        sheet = part.get_payload(decode=True) if part.get_content_type() == "text/css" else None
        if isinstance(sheet, bytes):
            yield str(part.get("Content-Location", "")).strip(), sheet
            yield f"cid:{str(part.get('Content-ID', '')).strip(' <>')}", sheet


def _sheet_at(sheets: Mapping[str, bytes], page: str) -> Callable[[str], bytes]:
    def sheet_at(address: str) -> bytes:
        try:
            return sheets.get(address.strip()) or sheets.get(urljoin(page, address.strip()), b"")
        except ValueError:  # no address
            return b""

    return sheet_at


def _apart(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The marks of a page, which no passage shares with the page before it."""
    first = marks[0].section if marks and marks[0].start == 0 else ""
    return (Mark(0, section=first, apart=True), *(mark for mark in marks if mark.start))
