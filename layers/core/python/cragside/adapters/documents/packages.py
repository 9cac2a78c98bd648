"""Opens documents that are zip archives within limits, and follows the relations between their parts."""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cragside.adapters.documents.reading import Unreadable, facts_of

MAX_ENTRIES = 5000
MAX_UNZIPPED = 300 * 1024 * 1024
MAX_RATIO = 200
_RATIO_MATTERS_FROM = 10 * 1024 * 1024
_PIECE = 1024 * 1024
_PAGES = (".xhtml", ".html", ".htm")
_DECLARES = "declares {what} in its XML, which such documents never do"
_BROKEN = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, zlib.error, KeyError)


def check_archive(content: bytes, needed: Set[str], what: str, *, types: bool = False) -> int:
    """Return the number of bytes that the archive unpacks to. `what` is "a Word document (.docx)".

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
    """Return the root of an XML text. No entity is resolved and nothing is fetched."""
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


RELATED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"


# Of "Strict Open XML" documents, for example http://purl.oclc.org/ooxml/wordprocessingml/main.
_STRICT = re.compile(rb"""(=["']http://)purl\.oclc\.org/ooxml/(\w{1,40})/""")


def transitional(content: bytes, what: str) -> bytes:
    """Return the document with the names of elements that most documents have, if it is "Strict Open XML"."""
    with opened(content, what) as archive:
        if "_rels/.rels" not in archive.namelist() or not _STRICT.search(archive.read("_rels/.rels")):
            return content
        rewritten = io.BytesIO()
        with zipfile.ZipFile(rewritten, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as kept:
            for name in dict.fromkeys(archive.namelist()):
                entry = archive.read(name)
                if name.endswith((".xml", ".rels")):
                    entry = _STRICT.sub(rb"\1schemas.openxmlformats.org/\2/2006/", entry)
                kept.writestr(name, entry)
    return rewritten.getvalue()


@dataclass(frozen=True, slots=True)
class Relation:
    """A part or an address that a part refers to. `kind` is the last word of its type, such as `styles`.

    `target` is the path of a part, or an address if `external`.
    """

    kind: str
    target: str
    external: bool = False


def relations(archive: zipfile.ZipFile, path: str) -> dict[str, Relation]:
    """Return the relations of the part at `path` by their ids. The path "" means those of the package."""
    folder, name = posixpath.split(path)
    listed = posixpath.join(folder, f"_rels/{name}.rels")
    if listed not in archive.namelist():
        return {}
    found = dict[str, Relation]()
    for each in parsed(archive.read(listed)):
        kind, target = each.get("Type", "").rpartition("/")[2], each.get("Target", "")
        external = each.get("TargetMode") == "External"
        if not external:
            target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        found[each.get("Id", "")] = Relation(kind, target, external)
    return found


def parts(archive: zipfile.ZipFile, related: Mapping[str, Relation], kind: str) -> Iterator[str]:
    """Yield the paths in the archive to which relations of this kind lead."""
    known = set(archive.namelist())
    for each in related.values():
        if each.kind == kind and not each.external and each.target in known:
            yield each.target


def part(archive: zipfile.ZipFile, related: Mapping[str, Relation], kind: str) -> Any:
    """Return the root of the first related part of a kind, None if there is none."""
    path = next(parts(archive, related, kind), None)
    return parsed(archive.read(path)) if path is not None else None


def content_type(archive: zipfile.ZipFile, path: str) -> str:
    """Return the content type that the package states for a part, "" if it states none."""
    by_name, by_ending = "", ""
    for each in parsed(archive.read("[Content_Types].xml")):
        if each.get("PartName", "").lstrip("/") == path:
            by_name = each.get("ContentType", "")
        elif each.get("Extension") and path.lower().endswith(f".{each.get('Extension', '').lower()}"):
            by_ending = each.get("ContentType", "")
    return by_name or by_ending


def properties(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Title, author and date of the document."""
    stated = part(archive, relations(archive, ""), "core-properties")
    if stated is None:
        return {}
    created = stated.findtext(f"{_TERMS}created")
    with suppress(ValueError):
        created = datetime.fromisoformat((created or "").strip()).isoformat()
    return facts_of(stated.findtext(f"{_DC}title"), stated.findtext(f"{_DC}creator"), created)
