"""Follows the relations between the parts of Office documents (.docx, .pptx), and reads their properties."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cragside.adapters.documents.archives import opened, parsed
from cragside.adapters.documents.reading import facts_of

RELATED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"


# Of "Strict Open XML" documents, for example http://purl.oclc.org/ooxml/wordprocessingml/main.
_STRICT = re.compile(rb"""(=["']http://)purl\.oclc\.org/ooxml/(\w{1,40})/""")


def transitional(content: bytes, what: str) -> bytes:
    """The document with the names of elements that most documents have, if it is "Strict Open XML"."""
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
    """The relations of the part at `path` by their ids. The path "" means those of the package."""
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
    """The paths of related parts of a kind that the archive has."""
    known = set(archive.namelist())
    for each in related.values():
        if each.kind == kind and not each.external and each.target in known:
            yield each.target


def part(archive: zipfile.ZipFile, related: Mapping[str, Relation], kind: str) -> Any:
    """The root of the first related part of a kind, None if there is none."""
    path = next(parts(archive, related, kind), None)
    return parsed(archive.read(path)) if path is not None else None


def content_type(archive: zipfile.ZipFile, path: str) -> str:
    """The content type that the package states for a part, "" if it states none."""
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
