"""Reads pages that are kept together in one file: books (EPUB) and saved pages (MHTML). Runs in a child process."""

import posixpath
import zipfile
from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from itertools import islice
from typing import Any
from urllib.parse import unquote, urljoin

from cragside.adapters.documents import emails, html
from cragside.adapters.documents.html import tree_of, whole
from cragside.adapters.documents.packages import check_archive, opened, parsed
from cragside.adapters.documents.reading import (
    EMPTY,
    Composer,
    FileOrigin,
    Reading,
    Unreadable,
    contained,
    facts_of,
    label,
)
from cragside.domain.document import Mark

NEEDED = frozenset({"META-INF/container.xml"})
_WHAT = "a book (.epub)"
_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_CHAPTERS = ("application/xhtml+xml", "text/html")


def read_book(content: bytes, origin: FileOrigin) -> Reading:
    """Return the text of the chapters, with title, author and date.

    Raises `Unreadable` for books with copy protection.
    """
    check_archive(content, NEEDED, _WHAT, types=True)
    composer = Composer()
    with opened(content, _WHAT) as archive:
        root = parsed(archive.read("META-INF/container.xml")).find(f".//{_CONTAINER}rootfile")
        path = root.get("full-path", "") if root is not None else ""
        package = parsed(archive.read(path))
        for chapter in _chapters(archive, package, posixpath.dirname(path)):
            _add(composer, archive, chapter)
    if not composer.text.strip():
        raise Unreadable("is a book without text")
    return composer.reading(facts_of(*(package.findtext(f".//{_DC}{name}") for name in ("title", "creator", "date"))))


def _chapters(archive: zipfile.ZipFile, package: Any, folder: str) -> Iterator[str]:
    """Yield the paths of the chapters in the order of the spine, each once. The table of contents is left out."""
    items = {each.get("id", ""): each for each in package.iter(f"{_OPF}item")}
    known, seen = set(archive.namelist()), set[str]()
    for reference in package.iter(f"{_OPF}itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None or item.get("media-type") not in _CHAPTERS or "nav" in item.get("properties", "").split():
            continue
        path = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        if path in known and path not in seen:
            seen.add(path)
            yield path


def _add(composer: Composer, archive: zipfile.ZipFile, path: str) -> None:
    """Add a chapter. Its title is its section, if it has no headings."""
    known = set(archive.namelist())
    protected = "META-INF/encryption.xml" in known

    def sheet_at(address: str) -> bytes:
        sheet = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(address)))
        return archive.read(sheet) if sheet in known else b""

    try:
        tree = tree_of(archive.read(path), None, sheet_at)
    except Unreadable as error:
        if error.reason == EMPTY:
            return
        raise Unreadable("has copy protection, so it cannot be read") from None if protected else error
    chapter = whole(tree)
    if not chapter.text.strip():
        return
    stated = tree.find(".//title")
    begin, marks = composer.length, chapter.marks
    if not marks or marks[0].start > 0:
        composer.mark(section="" if stated is None or marks else label(stated.text or "", 120))
    composer.extend(marks, begin)
    composer.add(chapter.text)


_MOST_PARTS = 1000
_EMPTY = "has no page with text"


def read_saved_page(content: bytes, origin: FileOrigin) -> Reading:
    """Return the pages. Of a workbook, each sheet is one. Raises `Unreadable` if none has text."""
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
    """Yield the style sheets of the archive by their addresses."""
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
    """Return the marks of a page, which no passage shares with the page before it."""
    first = marks[0].section if marks and marks[0].start == 0 else ""
    return (Mark(0, section=first, apart=True), *(mark for mark in marks if mark.start))
