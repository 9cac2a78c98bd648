"""Reads DOCX: paragraphs and tables in order, with headings as sections. Runs in a child process.

The text is that of the printed document: with insertions, without deletions and hidden text.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from cragside.adapters.documents.archives import check_archive
from cragside.adapters.documents.reading import Composer, FileOrigin, Headings, Reading, Unreadable, present

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_GONE = frozenset({f"{_W}del", f"{_W}moveFrom", f"{_W}rPrChange", f"{_W}pPrChange", f"{_W}instrText", _FALLBACK})
_CORE_PROPERTIES = "application/vnd.openxmlformats-package.core-properties+xml"
_HEADING = re.compile(r"heading (\d)$", re.IGNORECASE)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Text, title, author and date. Raises `Unreadable` for damaged files, and for those too large when unpacked."""
    check_archive(content, {"[Content_Types].xml", "word/document.xml"}, "a Word document (.docx)")
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from lxml import etree

    try:
        document = docx.Document(io.BytesIO(content))
        body = document.element.body
        levels, titles = _heading_styles(document)
    except (PackageNotFoundError, etree.XMLSyntaxError, KeyError, ValueError, AttributeError, zipfile.BadZipFile):
        raise Unreadable("is damaged, or not a Word document") from None
    composer, headings = Composer(), Headings()
    title = ""
    for block in _blocks(body):
        if block.tag == f"{_W}tbl":
            composer.add("\n".join(_rows(block)))
            continue
        text = _text(block).strip()
        if not text:
            continue
        style = _style(block)
        level = _own_level(block) or levels.get(style)
        if style in titles:
            title = title or text
        elif level is not None:
            composer.mark(section=headings.enter(level, text))
            title = title or text
        composer.add(text)
    fields = _properties(document)
    return Reading(composer.text, "text", fields.get("title") or " ".join(title.split()), composer.marks, fields)


def _blocks(container: Any) -> Iterator[Any]:
    """Paragraphs and tables, also those in content controls and insertions."""
    for child in container:
        if child.tag in (f"{_W}p", f"{_W}tbl"):
            yield child
        elif child.tag == f"{_W}sdt":
            for content in child.iterchildren(f"{_W}sdtContent"):
                yield from _blocks(content)
        elif child.tag in (f"{_W}ins", f"{_W}moveTo", f"{_W}customXml"):
            yield from _blocks(child)


def _rows(table: Any) -> Iterator[str]:
    """A table's rows that are not empty, cells separated by bars."""
    for row in table.iter(f"{_W}tr"):
        if row.find(f"{_W}trPr/{_W}del") is not None or next(row.iterancestors(f"{_W}tbl")) is not table:
            continue
        cells = list[str]()
        for cell in row.iter(f"{_W}tc"):
            # A cell over several columns leaves the others their places.
            text = " ".join(" ".join(map(_text, cell.iter(f"{_W}p"))).split())
            cells += [text, *[""] * (_columns(cell) - 1)]
        if any(cells):
            yield " | ".join(cells)


def _columns(cell: Any) -> int:
    span = cell.find(f"{_W}tcPr/{_W}gridSpan")
    written = span.get(f"{_W}val", "") if span is not None else ""
    # Word has at most 63 columns.
    return int(written) if re.fullmatch(r"[1-9]|[1-5]\d|6[0-3]", written) else 1


def _text(paragraph: Any) -> str:
    """The text of a paragraph. Of shapes with two forms, the first counts."""
    pieces: list[str] = []
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        tag = element.tag
        if tag in _GONE or (tag == f"{_W}r" and _hidden(element)):
            continue
        if tag == f"{_W}t":
            pieces.append(element.text or "")
        elif tag in (f"{_W}tab", f"{_W}ptab") and element.getparent().tag == f"{_W}r":
            pieces.append("\t")
        elif tag in (f"{_W}br", f"{_W}cr"):
            pieces.append("\n")
        elif tag == f"{_W}noBreakHyphen":
            pieces.append("-")
        elif tag == f"{_W}p":
            pieces.append("\n")
            stack.extend(reversed(element))
        else:
            stack.extend(reversed(element))
    return "".join(pieces)


def _hidden(run: Any) -> bool:
    """Whether a run is hidden, at most a point high, or white without a known background colour."""
    properties = run.find(f"{_W}rPr")
    if properties is None:
        return False
    for name in ("vanish", "webHidden"):
        hidden = properties.find(f"{_W}{name}")
        if hidden is not None and hidden.get(f"{_W}val", "true") not in ("0", "false", "off"):
            return True
    size, colour = properties.find(f"{_W}sz"), properties.find(f"{_W}color")
    if size is not None and size.get(f"{_W}val", "") in ("0", "1", "2"):
        return True
    return colour is not None and colour.get(f"{_W}val", "").lower() == "ffffff" and not _on_colour(run, properties)


def _on_colour(run: Any, properties: Any) -> bool:
    """Whether a run may have a background colour: its own, its paragraph's, a table's or a shape's."""
    if any(properties.find(f"{_W}{name}") is not None for name in ("shd", "highlight")):
        return True
    for around in run.iterancestors(f"{_W}p", f"{_W}tbl", f"{_W}txbxContent", f"{_W}body"):
        if around.tag != f"{_W}p":
            return bool(around.tag != f"{_W}body")
        if around.find(f"{_W}pPr/{_W}shd") is not None or around.find(f"{_W}pPr/{_W}pStyle") is not None:
            return True
    return False


def _style(paragraph: Any) -> str:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    return style.get(f"{_W}val", "") if style is not None else ""


def _own_level(paragraph: Any) -> int | None:
    """The outline level of the paragraph itself, with which LibreOffice writes headings."""
    outline = paragraph.find(f"{_W}pPr/{_W}outlineLvl")
    return _level(outline) if outline is not None else None


def _level(outline: Any) -> int | None:
    written = outline.get(f"{_W}val", "")
    return int(written) + 1 if written in tuple("012345678") else None


def _heading_styles(document: Any) -> tuple[dict[str, int], set[str]]:
    """The levels of heading styles, and the title styles, by their ids. Styles inherit."""
    levels, titles, based = dict[str, int](), set[str](), dict[str, str]()
    for style in document.styles.element.iter(f"{_W}style"):
        identity = style.get(f"{_W}styleId", "")
        named = style.find(f"{_W}name")
        name = named.get(f"{_W}val", "") if named is not None else ""
        outline = style.find(f"{_W}pPr/{_W}outlineLvl")
        parent = style.find(f"{_W}basedOn")
        if parent is not None:
            based[identity] = parent.get(f"{_W}val", "")
        if heading := _HEADING.match(name):
            levels[identity] = int(heading[1])
        elif name.lower() == "title":
            titles.add(identity)
        elif outline is not None and (level := _level(outline)) is not None:
            levels[identity] = level
    for identity in based:
        ancestor = identity
        for _ in range(20):
            if ancestor in levels or ancestor in titles:
                break
            ancestor = based.get(ancestor, "")
        if ancestor in levels:
            levels.setdefault(identity, levels[ancestor])
    return levels, titles


def _properties(document: Any) -> dict[str, Any]:
    """Title, author and date; {} without core properties, for which python-docx would invent some."""
    try:
        # Found by content type, because LibreOffice names the relation differently.
        stated = [part for part in document.part.package.iter_parts() if part.content_type == _CORE_PROPERTIES]
        known = stated[0].core_properties
        created = known.created
        return present(
            {
                "title": known.title,
                "author": known.author,
                "createdDate": created.isoformat() if created is not None else None,
            }
        )
    except (LookupError, ValueError, AttributeError, TypeError):
        return {}
