"""Reads EPUB: the chapters in their order, with their headings as sections. Runs in a child process."""

import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from cragside.adapters.documents.archives import check_archive, opened, parsed
from cragside.adapters.documents.html import tree_of, whole
from cragside.adapters.documents.reading import EMPTY, Composer, FileOrigin, Reading, Unreadable, facts_of, label

NEEDED = frozenset({"META-INF/container.xml"})
_WHAT = "a book (.epub)"
_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_CHAPTERS = ("application/xhtml+xml", "text/html")


def read_book(content: bytes, origin: FileOrigin) -> Reading:
    """The text of the chapters, with title, author and date. Raises `Unreadable` for books with copy protection."""
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
    """The paths of the chapters in the order of the spine, each once. The table of contents is left out."""
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
