"""Reads ODT, ODP and ODS: headings or slides as sections and pages, sheets row by row. Runs in a child process."""

import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from cragside.adapters.documents.archives import check_archive, opened, parsed
from cragside.adapters.documents.merged_cells import spread
from cragside.adapters.documents.opendocument_cells import rows
from cragside.adapters.documents.opendocument_numbering import numbers_of
from cragside.adapters.documents.opendocument_text import (
    DRAW,
    OFFICE,
    SPACE,
    STYLE,
    TABLE,
    TARGET,
    TEXT,
    blocks,
    mark_shifted,
    words,
)
from cragside.adapters.documents.reading import Composer, FileOrigin, Headings, Reading, Unreadable, facts_of, label
from cragside.adapters.documents.tables import Tables
from cragside.adapters.documents.text_rows import barred

NEEDED = frozenset({"mimetype", "content.xml"})
_WHAT = "an OpenDocument file (.odt, .ods, .odp)"
_CHART, _PRESENTATION, _META = (SPACE % each for each in ("chart", "presentation", "meta"))
_DC = "{http://purl.org/dc/elements/1.1/}"
_MATH = "{http://www.w3.org/1998/Math/MathML}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
# At most one point high.
_TINY = re.compile(r"(?:0(?:\.\d{1,4})?|1(?:\.0{1,4})?)pt")
_STYLES_FILE = f"{OFFICE}document-styles"
_FAMILIES = {
    f"{TEXT}span": "text",
    f"{TEXT}p": "paragraph",
    f"{TEXT}h": "paragraph",
    f"{TABLE}table": "table",
    f"{TABLE}table-cell": "table-cell",
}
_DEEPEST_STYLE = 20
# The family and name of a style; whether it hides text and whether it makes it tiny, None where it says nothing.
_StyleKey = tuple[str, str]
_Look = tuple[bool | None, bool | None]


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Text, title, author and date. Raises `Unreadable` for damaged and encrypted files."""
    size = check_archive(content, NEEDED, _WHAT, types=True)
    composer = Composer()
    with opened(content, _WHAT) as archive:
        manifest = archive.read("META-INF/manifest.xml") if "META-INF/manifest.xml" in archive.namelist() else b""
        if b"encryption-data" in manifest:
            raise Unreadable("is encrypted: save it without a password")
        whole = parsed(archive.read("content.xml"))
        body = whole.find(f"{OFFICE}body")
        styles = [whole, *(parsed(archive.read(name)) for name in archive.namelist() if name == "styles.xml")]
        stated = parsed(archive.read("meta.xml")) if "meta.xml" in archive.namelist() else None
        if body is None:
            raise Unreadable("is damaged, or not an OpenDocument file")
        _empty_unseen(body, _looks(styles))
        mark_shifted(body, styles)
        sheets = body.find(f"{OFFICE}spreadsheet")
        # A chart stands in the cell that it is anchored to, but is no value of that cell.
        if sheets is None:
            _embed_objects(body, archive)
    if sheets is not None:
        tables = Tables(size)
        for sheet in sheets.iterchildren(f"{TABLE}table"):
            tables.add(sheet.get(f"{TABLE}name", ""), spread(rows(sheet)))
        return tables.reading(_facts(stated))
    if (slides := body.find(f"{OFFICE}presentation")) is not None:
        title = _slides(slides, composer)
    else:
        title = _document(body, numbers_of(body, styles), composer)
    return composer.reading(_facts(stated), title)


def _embed_objects(body: Any, archive: zipfile.ZipFile) -> None:
    """Put title and numbers of charts, and the text of formulas, where the document shows them, each once."""
    left = set(archive.namelist())
    for place in list(body.iter(f"{DRAW}object")):
        path = posixpath.normpath(place.get(TARGET, "")) + "/content.xml"
        if path not in left:
            continue
        left.remove(path)
        embedded = parsed(archive.read(path))
        place.text = embedded.findtext(f".//{_MATH}annotation")
        if (chart := embedded.find(f".//{_CHART}chart")) is not None:
            place.extend(chart.findall(f"{_CHART}title/{TEXT}p") + chart.findall(f"{TABLE}table"))


def _looks(styles: Iterable[Any]) -> dict[_StyleKey, _Look]:
    """What each style says about hiding and size, by family and name. Styles inherit."""
    own, parents = dict[_StyleKey, _Look](), dict[_StyleKey, str]()
    for style in chain.from_iterable(each.iter(f"{STYLE}style") for each in styles):
        # Headers and footers have automatic styles of their own, with the same names.
        if style.getparent().tag == f"{OFFICE}automatic-styles" and style.getroottree().getroot().tag == _STYLES_FILE:
            continue
        key = (style.get(f"{STYLE}family", ""), style.get(f"{STYLE}name", ""))
        parents[key] = style.get(f"{STYLE}parent-style-name", "")
        hidden = tiny = None
        for stated in style:
            display = stated.get(f"{TEXT}display") or stated.get(f"{TABLE}display")
            hidden = display in ("none", "false") if display else hidden
            size = stated.get(f"{_FO}font-size", "%")
            tiny = tiny if size.endswith("%") else bool(_TINY.fullmatch(size))
        own[key] = hidden, tiny
    return {key: _inherited(key, own, parents) for key in own}


def _inherited(key: _StyleKey, own: dict[_StyleKey, _Look], parents: dict[_StyleKey, str]) -> _Look:
    hidden, tiny = own[key]
    for _ in range(_DEEPEST_STYLE):
        key = (key[0], parents.get(key, ""))
        if key not in own:
            break
        above = own[key]
        hidden, tiny = above[0] if hidden is None else hidden, above[1] if tiny is None else tiny
    return hidden, tiny


def _empty_unseen(body: Any, looks: dict[_StyleKey, _Look]) -> None:
    """Take out what is hidden or at most one point high. Elements within may be shown again by their own styles."""
    for mark in list(body.iter(f"{TEXT}hidden-paragraph")):
        if mark.get(f"{TEXT}is-hidden") == "true" and mark.getparent() is not None:
            mark.getparent().clear(keep_tail=True)
    stack: list[tuple[Any, bool, bool]] = [(body, False, False)]
    while stack:
        element, hidden, tiny = stack.pop()
        name = element.get(f"{TEXT}style-name") or element.get(f"{TABLE}style-name") or ""
        own = looks.get((_FAMILIES.get(element.tag, ""), name), (None, None))
        if element.tag == f"{DRAW}text-box":
            # The size of the paragraph around it does not count.
            tiny = False
        hidden, tiny = hidden if own[0] is None else own[0], tiny if own[1] is None else own[1]
        section = element.tag == f"{TEXT}section" and element.get(f"{TEXT}display") == "none"
        if section or (hidden and element.tag == f"{TABLE}table"):
            element.clear(keep_tail=True)
            continue
        if hidden or tiny:
            element.text = None
            for child in element:
                child.tail = None
        stack.extend((child, hidden, tiny) for child in element)


def _document(body: Any, numbers: Mapping[Any, str], composer: Composer) -> str:
    """Write paragraphs and tables. Return the first heading."""
    headings, title = Headings(), ""
    for block in blocks(body):
        if block.tag == f"{TABLE}table":
            composer.add(_barred(block))
        elif text := words(block):
            numbered = f"{numbers.get(block, '')} {text}".lstrip()
            if block.tag == f"{TEXT}h":
                level = block.get(f"{TEXT}outline-level", "1")
                composer.mark(section=headings.enter(int(level) if level in tuple("123456789") else 1, numbered))
                title = title or label(text)
            composer.add("\n".join([numbered, *_notes(block)]))
        # Charts and text boxes are anchored in paragraphs.
        for table in block.iterdescendants(f"{TABLE}table"):
            if next(table.iterancestors(f"{TABLE}table", f"{TEXT}note"), None) is None:
                composer.add(_barred(table))
    return title


def _barred(table: Any) -> str:
    """The rows of a table that are not empty, cells separated by bars."""
    return "\n".join(barred(rows(table)))


def _notes(block: Any) -> Iterator[str]:
    """The footnotes and endnotes of a paragraph."""
    for note in block.iter(f"{TEXT}note"):
        kind = "Endnote" if note.get(f"{TEXT}note-class") == "endnote" else "Footnote"
        number = " ".join((note.findtext(f"{TEXT}note-citation") or "")[:20].split())
        body = note.find(f"{TEXT}note-body")
        said = " ".join(" ".join(map(words, blocks(body))).split()) if body is not None else ""
        if said:
            yield f"{kind} {number}: {said}"


def _slides(slides: Any, composer: Composer) -> str:
    """Write the slides as pages. Return the first slide's title."""
    first = ""
    for number, slide in enumerate(slides.iterchildren(f"{DRAW}page"), 1):
        frames = slide.iterchildren(f"{DRAW}frame")
        titled = next((frame for frame in frames if frame.get(f"{_PRESENTATION}class") == "title"), None)
        title = label(" ".join(map(words, blocks(titled))), 120) if titled is not None else ""
        first = first or title
        composer.mark(page=number, section=title)
        for part in slide:
            begin = "Notes: " if part.tag == f"{_PRESENTATION}notes" else ""
            for block in blocks(part):
                if block.tag == f"{TABLE}table":
                    composer.add(_barred(block))
                elif text := words(block):
                    composer.add(begin + text)
    return first


def _facts(stated: Any) -> dict[str, Any]:
    if stated is None:
        return {}
    author = stated.findtext(f".//{_META}initial-creator") or stated.findtext(f".//{_DC}creator")
    return facts_of(stated.findtext(f".//{_DC}title"), author, stated.findtext(f".//{_META}creation-date"))
