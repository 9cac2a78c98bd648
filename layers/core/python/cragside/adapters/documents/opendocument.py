"""Reads ODT, ODP and ODS: headings or slides as sections and pages, sheets row by row. Runs in a child process."""

import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from cragside.adapters.documents.archives import check_archive, opened, parsed
from cragside.adapters.documents.cell_values import formula_shown, moment_shown, number_shown
from cragside.adapters.documents.links import end_link
from cragside.adapters.documents.merged_cells import Merged, spread
from cragside.adapters.documents.opendocument_numbering import numbers_of
from cragside.adapters.documents.reading import Composer, FileOrigin, Headings, Reading, Unreadable, label, present
from cragside.adapters.documents.tables import MAX_ROWS, Tables

NEEDED = frozenset({"mimetype", "content.xml"})
_WHAT = "an OpenDocument file (.odt, .ods, .odp)"
_SPACE = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _DRAW, _OFFICE, _PRESENTATION, _META = (
    _SPACE % name for name in ("text", "table", "drawing", "office", "presentation", "meta")
)
_DC = "{http://purl.org/dc/elements/1.1/}"
# Comments, deleted text, and notes, which stand below their paragraph.
_GONE = frozenset({f"{_OFFICE}annotation", f"{_TEXT}tracked-changes", f"{_TEXT}note", f"{_TEXT}hidden-text"})
_CHART = _SPACE % "chart"
_MATH = "{http://www.w3.org/1998/Math/MathML}"
_TARGET = "{http://www.w3.org/1999/xlink}href"
_STYLE = _SPACE % "style"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
# At most one point high.
_TINY = re.compile(r"(?:0(?:\.\d{1,4})?|1(?:\.0{1,4})?)pt")
_STYLES_FILE = f"{_OFFICE}document-styles"
_FAMILIES = {
    f"{_TEXT}span": "text",
    f"{_TEXT}p": "paragraph",
    f"{_TEXT}h": "paragraph",
    f"{_TABLE}table": "table",
    f"{_TABLE}table-cell": "table-cell",
}
# A number as a power of ten, or in a column that is too narrow for it.
_SHORTENED = re.compile(r"-?\d[\d.,]{0,20}E[+-]?\d{1,3}|#{1,300}", re.IGNORECASE)
_LASTING = re.compile(r"PT(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,8})(?:[.,]\d{1,20})?S)?")
_REFERENCE = re.compile(r"\[\.?([^\[\]]{1,200})\]")
_DEEPEST_STYLE = 20
# The family and name of a style; whether it hides text and whether it makes it tiny, None where it says nothing.
_StyleKey = tuple[str, str]
_Look = tuple[bool | None, bool | None]
_MOST_REPEATED = 1000
_MOST_SPACES = 100


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Text, title, author and date. Raises `Unreadable` for damaged and encrypted files."""
    size = check_archive(content, NEEDED, _WHAT, types=True)
    composer = Composer()
    with opened(content, _WHAT) as archive:
        manifest = archive.read("META-INF/manifest.xml") if "META-INF/manifest.xml" in archive.namelist() else b""
        if b"encryption-data" in manifest:
            raise Unreadable("is encrypted: save it without a password")
        whole = parsed(archive.read("content.xml"))
        body = whole.find(f"{_OFFICE}body")
        styles = [whole, *(parsed(archive.read(name)) for name in archive.namelist() if name == "styles.xml")]
        stated = parsed(archive.read("meta.xml")) if "meta.xml" in archive.namelist() else None
        if body is None:
            raise Unreadable("is damaged, or not an OpenDocument file")
        _empty_unseen(body, _looks(styles))
        sheets = body.find(f"{_OFFICE}spreadsheet")
        # A chart stands in the cell that it is anchored to, but is no value of that cell.
        if sheets is None:
            _embed_objects(body, archive)
    title = ""
    if sheets is not None:
        tables = Tables(size)
        for sheet in sheets.iterchildren(f"{_TABLE}table"):
            tables.add(sheet.get(f"{_TABLE}name", ""), spread(_rows(sheet)))
        tables.compose(composer)
    elif (slides := body.find(f"{_OFFICE}presentation")) is not None:
        title = _slides(slides, composer)
    else:
        title = _document(body, numbers_of(body, styles), composer)
    fields = _properties(stated)
    return Reading(composer.text, title=fields.get("title") or title, marks=composer.marks, tier1=fields)


def _embed_objects(body: Any, archive: zipfile.ZipFile) -> None:
    """Put title and numbers of charts, and the text of formulas, where the document shows them, each once."""
    left = set(archive.namelist())
    for place in list(body.iter(f"{_DRAW}object")):
        path = posixpath.normpath(place.get(_TARGET, "")) + "/content.xml"
        if path not in left:
            continue
        left.remove(path)
        embedded = parsed(archive.read(path))
        place.text = embedded.findtext(f".//{_MATH}annotation")
        if (chart := embedded.find(f".//{_CHART}chart")) is not None:
            place.extend(chart.findall(f"{_CHART}title/{_TEXT}p") + chart.findall(f"{_TABLE}table"))


def _looks(styles: Iterable[Any]) -> dict[_StyleKey, _Look]:
    """What each style says about hiding and size, by family and name. Styles inherit."""
    own, parents = dict[_StyleKey, _Look](), dict[_StyleKey, str]()
    for style in chain.from_iterable(each.iter(f"{_STYLE}style") for each in styles):
        # Headers and footers have automatic styles of their own, with the same names.
        if style.getparent().tag == f"{_OFFICE}automatic-styles" and style.getroottree().getroot().tag == _STYLES_FILE:
            continue
        key = (style.get(f"{_STYLE}family", ""), style.get(f"{_STYLE}name", ""))
        parents[key] = style.get(f"{_STYLE}parent-style-name", "")
        hidden = tiny = None
        for stated in style:
            display = stated.get(f"{_TEXT}display") or stated.get(f"{_TABLE}display")
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
    for mark in list(body.iter(f"{_TEXT}hidden-paragraph")):
        if mark.get(f"{_TEXT}is-hidden") == "true" and mark.getparent() is not None:
            mark.getparent().clear(keep_tail=True)
    stack: list[tuple[Any, bool, bool]] = [(body, False, False)]
    while stack:
        element, hidden, tiny = stack.pop()
        name = element.get(f"{_TEXT}style-name") or element.get(f"{_TABLE}style-name") or ""
        own = looks.get((_FAMILIES.get(element.tag, ""), name), (None, None))
        if element.tag == f"{_DRAW}text-box":
            # The size of the paragraph around it does not count.
            tiny = False
        hidden, tiny = hidden if own[0] is None else own[0], tiny if own[1] is None else own[1]
        section = element.tag == f"{_TEXT}section" and element.get(f"{_TEXT}display") == "none"
        if section or (hidden and element.tag == f"{_TABLE}table"):
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
    for block in _blocks(body):
        if block.tag == f"{_TABLE}table":
            composer.add(_barred(block))
        elif text := _words(block):
            numbered = f"{numbers.get(block, '')} {text}".lstrip()
            if block.tag == f"{_TEXT}h":
                level = block.get(f"{_TEXT}outline-level", "1")
                composer.mark(section=headings.enter(int(level) if level in tuple("123456789") else 1, numbered))
                title = title or label(text)
            composer.add("\n".join([numbered, *_notes(block)]))
        # Charts and text boxes are anchored in paragraphs.
        for table in block.iterdescendants(f"{_TABLE}table"):
            if next(table.iterancestors(f"{_TABLE}table", f"{_TEXT}note"), None) is None:
                composer.add(_barred(table))
    return title


def _barred(table: Any) -> str:
    """The rows of a table that are not empty, cells separated by bars."""
    return "\n".join(" | ".join(cells) for _, cells, _ in _rows(table) if any(cells))


def _notes(block: Any) -> Iterator[str]:
    """The footnotes and endnotes of a paragraph."""
    for note in block.iter(f"{_TEXT}note"):
        kind = "Endnote" if note.get(f"{_TEXT}note-class") == "endnote" else "Footnote"
        number = " ".join((note.findtext(f"{_TEXT}note-citation") or "")[:20].split())
        body = note.find(f"{_TEXT}note-body")
        words = " ".join(" ".join(map(_words, _blocks(body))).split()) if body is not None else ""
        if words:
            yield f"{kind} {number}: {words}"


def _slides(slides: Any, composer: Composer) -> str:
    """Write the slides as pages. Return the first slide's title."""
    first = ""
    for number, slide in enumerate(slides.iterchildren(f"{_DRAW}page"), 1):
        frames = slide.iterchildren(f"{_DRAW}frame")
        titled = next((frame for frame in frames if frame.get(f"{_PRESENTATION}class") == "title"), None)
        title = label(" ".join(map(_words, _blocks(titled))), 120) if titled is not None else ""
        first = first or title
        composer.mark(page=number, section=title)
        for part in slide:
            begin = "Notes: " if part.tag == f"{_PRESENTATION}notes" else ""
            for block in _blocks(part):
                if block.tag == f"{_TABLE}table":
                    composer.add(_barred(block))
                elif text := _words(block):
                    composer.add(begin + text)
    return first


def _blocks(container: Any) -> Iterator[Any]:
    """Headings, paragraphs and tables in their order, however deep they stand."""
    stack = list(reversed(container))
    while stack:
        element = stack.pop()
        if element.tag in (f"{_TEXT}h", f"{_TEXT}p", f"{_TABLE}table"):
            yield element
        elif element.tag not in _GONE:
            stack.extend(reversed(element))


def _rows(table: Any) -> Iterator[tuple[int, list[str], list[Merged]]]:
    """The rows as people see them, with the merged cells. A row or cell is repeated at most 1,000 times."""
    number = 0
    for row in table.iter(f"{_TABLE}table-row"):
        if next(row.iterancestors(f"{_TABLE}table")) is not table:
            continue
        cells, merged = list[str](), list[Merged]()
        for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            columns, rows = _times(cell, "columns-spanned"), _times(cell, "rows-spanned")
            if columns > 1 or rows > 1:
                merged.append((len(cells) + 1, len(cells) + columns, number + rows))
            cells += [_shown(cell)] * min(_times(cell, "columns-repeated"), _MOST_REPEATED)
        times = _times(row, "rows-repeated")
        for _ in range(min(times, _MOST_REPEATED) if any(cells) else 0):
            number += 1
            yield number, list(cells), merged
        number = min(number + (times - min(times, _MOST_REPEATED) if any(cells) else times), MAX_ROWS)


def _shown(cell: Any) -> str:
    """The text of a cell. Dates are written as 2024-03-31, and numbers are not shortened."""
    text = _cell_words(cell)
    with suppress(ValueError):  # what a damaged file says of its values
        if dated := cell.get(f"{_OFFICE}date-value"):
            return moment_shown(datetime.fromisoformat(dated), "hh:mm:ss yyyy" if text.count(":") > 1 else "hh:mm yyyy")
        value = cell.get(f"{_OFFICE}value", "")
        if value and (text in ("", value) or _SHORTENED.fullmatch(text)):
            is_share = cell.get(f"{_OFFICE}value-type") == "percentage"
            return number_shown(float(value), "0.##%" if is_share else "General")
    if not text and (lasting := _LASTING.fullmatch(cell.get(f"{_OFFICE}time-value", ""))):
        hours, minutes, seconds = (int(each or 0) for each in lasting.groups())
        return moment_shown(timedelta(hours=hours, minutes=minutes, seconds=seconds), "[h]:mm:ss")
    formula = cell.get(f"{_TABLE}formula")
    # A string may be empty. Other values have a text.
    if formula and not text and cell.get(f"{_OFFICE}value-type") != "string":
        # of:=SUM([.B2:.B4]) is =SUM(B2:B4).
        return formula_shown(_REFERENCE.sub(lambda each: each[1].replace(":.", ":"), formula[formula.find("=") :]))
    return text


def _cell_words(cell: Any) -> str:
    """The text of a cell in a line, also that of lists and tables in it. Cells in these count once."""
    texts = list[str]()
    for block in _blocks(cell):
        if block.tag == f"{_TABLE}table":
            inner = block.iter(f"{_TABLE}table-cell")
            texts += [_cell_words(each) for each in inner if next(each.iterancestors(f"{_TABLE}table")) is block]
        else:
            texts.append(_words(block))
    return " ".join(filter(None, texts))


def _times(element: Any, what: str) -> int:
    written = element.get(f"{_TABLE}number-{what}", "1")
    return max(int(written), 1) if written.isdecimal() and len(written) < 9 else 1


def _words(block: Any) -> str:
    """The text of a paragraph with the addresses of links, without comments."""
    pieces: list[str] = []
    # A number is that of the piece with which a link begins, in front of its target.
    stack: list[Any] = [block]
    while stack:
        element = stack.pop()
        if isinstance(element, str):
            pieces.append(element)
            continue
        if isinstance(element, int):
            end_link(pieces, element, stack.pop())
            continue
        if element is not block and element.tail:
            stack.append(element.tail)
        if element.tag in _GONE or element.tag == f"{_TABLE}table" or not isinstance(element.tag, str):
            continue
        if element.tag in (f"{_TEXT}p", f"{_TEXT}h") and element is not block:
            # In a text box.
            pieces.append("\n")
            stack.append("\n")
        if element.tag == f"{_TEXT}a":
            stack += [element.get(_TARGET, ""), len(pieces)]
        if element.tag == f"{_TEXT}s":
            written = element.get(f"{_TEXT}c", "1")
            pieces.append(" " * min(int(written) if written.isdecimal() and len(written) < 5 else 1, _MOST_SPACES))
        elif element.tag == f"{_TEXT}tab":
            pieces.append("\t")
        elif element.tag == f"{_TEXT}line-break":
            pieces.append("\n")
        stack.extend(reversed(element))
        if element.text:
            stack.append(element.text)
    return "".join(pieces).strip()


def _properties(stated: Any) -> dict[str, Any]:
    if stated is None:
        return {}
    return present(
        {
            "title": stated.findtext(f".//{_DC}title"),
            "author": stated.findtext(f".//{_META}initial-creator") or stated.findtext(f".//{_DC}creator"),
            "createdDate": stated.findtext(f".//{_META}creation-date"),
        }
    )
