"""Checks documents that are zip archives, and parses the XML in them, within limits."""

import io
import zipfile
import zlib
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

from cragside.adapters.documents.reading import Unreadable

MAX_ENTRIES = 5000
MAX_UNZIPPED = 300 * 1024 * 1024
MAX_RATIO = 200
_RATIO_MATTERS_FROM = 10 * 1024 * 1024
_PIECE = 1024 * 1024
_PAGES = (".xhtml", ".html", ".htm")
_DECLARES = "declares {what} in its XML, which such documents never do"
_BROKEN = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, zlib.error, KeyError)


def check_archive(content: bytes, needed: Set[str], what: str, *, types: bool = False) -> int:
    """The number of bytes that the archive unpacks to. `what` is "a Word document (.docx)".

    Raises `Unreadable` if the archive lacks a needed entry or is a zip bomb.

    The declared sizes are checked first. They may be false, so each entry is then unpacked piece by piece. XML with a
    document type is refused. With `types`, and in pages of HTML, only declared entities are refused.
    """
    with opened(content, what) as archive:
        entries = archive.infolist()
        names = {entry.filename for entry in entries}
        if not needed <= names:
            raise Unreadable(f"is an archive, but not {what}: unpack it and index its files")
        if len(entries) > MAX_ENTRIES:
            raise Unreadable(f"is an archive of {len(entries):,} entries, the limit is {MAX_ENTRIES:,}")
        if any(entry.flag_bits & 1 for entry in entries):
            raise Unreadable("is encrypted: save it without a password")
        _check_size(sum(entry.file_size for entry in entries), len(content))
        total = 0
        for entry in entries:
            refused = b"<!ENTITY" if types or entry.filename.lower().endswith(_PAGES) else b"<!DOCTYPE"
            total = _unpack(archive, entry, total, len(content), refused)
        return total


@contextmanager
def opened(content: bytes, what: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive. What is wrong with it or with its XML becomes `Unreadable`."""
    from lxml import etree

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield archive
    except (*_BROKEN, etree.XMLSyntaxError):
        raise Unreadable(f"is damaged, or not {what.partition(' (')[0]}") from None


def parsed(xml: bytes) -> Any:
    """The root of an XML text. No entity is resolved and nothing is fetched."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(xml, parser)
    types = root.getroottree().docinfo.internalDTD
    # Whoever unpacks the archive looks for them too, but knows not all encodings.
    if types is not None and next(types.iterentities(), None) is not None:
        raise Unreadable(_DECLARES.format(what="entities"))
    return root


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, total: int, packed: int, refused: bytes) -> int:
    before = b""
    with archive.open(entry) as stream:
        while piece := stream.read(_PIECE):
            total += len(piece)
            _check_size(total, packed)
            if entry.filename.lower().endswith((".xml", ".rels", ".opf", ".ncx", *_PAGES)):
                # Without the NULs, UTF-16 looks like ASCII.
                if refused in (before + piece).replace(b"\x00", b""):
                    what = "a document type" if refused == b"<!DOCTYPE" else "entities"
                    raise Unreadable(_DECLARES.format(what=what))
                before = piece[-32:]
    return total


def _check_size(unzipped: int, packed: int) -> None:
    if unzipped > MAX_UNZIPPED:
        raise Unreadable(f"unpacks to more than {MAX_UNZIPPED // 1024**2} MB, which is the limit")
    if unzipped > _RATIO_MATTERS_FROM and unzipped > MAX_RATIO * packed:
        raise Unreadable(f"unpacks to more than {MAX_RATIO} times its size, which is the limit: it may be a zip bomb")
