"""Reads ODT, ODP and ODS: headings or slides as sections and pages, sheets row by row. Runs in a child process."""

import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from cragside.adapters.documents.inline_text import LEVEL, LOWERED, RAISED, end_link, leveled
from cragside.adapters.documents.number_formats import formula_shown, moment_shown, number_shown, stated_number, written
from cragside.adapters.documents.packages import check_archive, opened, parsed
from cragside.adapters.documents.reading import Composer, FileOrigin, Headings, Reading, Unreadable, facts_of, label
from cragside.adapters.documents.tables import MAX_ROWS, Merged, MergedRow, Tables, barred, spread

SPACE = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
TEXT, TABLE, DRAW, OFFICE, STYLE = (SPACE % name for name in ("text", "table", "drawing", "office", "style"))
TARGET = "{http://www.w3.org/1999/xlink}href"
# Comments, deleted text, and notes, which stand below their paragraph.
_GONE = frozenset({f"{OFFICE}annotation", f"{TEXT}tracked-changes", f"{TEXT}note", f"{TEXT}hidden-text"})
_MOST_SPACES = 100
# `super 58%`, `-20% 60%`: how far text is raised or lowered, and its size.
_SHIFTED = re.compile(r"(?:(super|[1-9])|sub|-[1-9])")


def blocks(container: Any) -> Iterator[Any]:
    """Headings, paragraphs and tables in their order, however deep they stand."""
    stack = list(reversed(container))
    while stack:
        element = stack.pop()
        if element.tag in (f"{TEXT}h", f"{TEXT}p", f"{TABLE}table"):
            yield element
        elif element.tag not in _GONE:
            stack.extend(reversed(element))


def words(block: Any) -> str:
    """Return the text of a paragraph with the addresses of links, without comments."""
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
        if element.tag in _GONE or element.tag == f"{TABLE}table" or not isinstance(element.tag, str):
            continue
        if element.tag in (f"{TEXT}p", f"{TEXT}h") and element is not block:
            # In a text box.
            pieces.append("\n")
            stack.append("\n")
        if element.tag == f"{TEXT}a":
            stack += [element.get(TARGET, ""), len(pieces)]
        if element.tag == f"{TEXT}s":
            pieces.append(" " * min(stated_number(element.get(f"{TEXT}c", ""), 1), _MOST_SPACES))
        elif element.tag == f"{TEXT}tab":
            pieces.append("\t")
        elif element.tag == f"{TEXT}line-break":
            pieces.append("\n")
        stack.extend(reversed(element))
        if element.text:
            stack.append(element.text)
    return leveled("".join(pieces)).strip()


def mark_shifted(body: Any, styles: Sequence[Any]) -> None:
    """Mark, in place, the text that its style raises or lowers."""
    marks = dict[str, str]()
    # The styles of the content come first. They replace those of the same names for headers.
    for style in (each for root in reversed(styles) for each in root.iter(f"{STYLE}style")):
        stated = style.find(f"{STYLE}text-properties")
        shifted = _SHIFTED.match(stated.get(f"{STYLE}text-position", "")) if stated is not None else None
        marks[style.get(f"{STYLE}name", "")] = "" if shifted is None else RAISED if shifted[1] else LOWERED
    for span in body.iter(f"{TEXT}span"):
        if mark := marks.get(span.get(f"{TEXT}style-name", "")):
            span.text = mark + (span.text or "") + ("" if len(span) else LEVEL)
            if len(span):
                span[-1].tail = (span[-1].tail or "") + LEVEL


# A number as a power of ten, or in a column that is too narrow for it.
_SHORTENED = re.compile(r"-?\d[\d.,]{0,20}E[+-]?\d{1,3}|#{1,300}", re.IGNORECASE)
_LASTING = re.compile(r"PT(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,8})(?:[.,]\d{1,20})?S)?")
_REFERENCE = re.compile(r"\[\.?([^\[\]]{1,200})\]")
_MOST_REPEATED = 1000


def rows(table: Any) -> Iterator[MergedRow]:
    """Yield the rows as people see them, with the merged cells. A row or cell is repeated at most 1,000 times."""
    number = 0
    for row in table.iter(f"{TABLE}table-row"):
        if next(row.iterancestors(f"{TABLE}table")) is not table:
            continue
        cells, merged = list[str](), list[Merged]()
        for cell in row.iterchildren(f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
            columns, lines = _times(cell, "columns-spanned"), _times(cell, "rows-spanned")
            if columns > 1 or lines > 1:
                merged.append((len(cells) + 1, len(cells) + columns, number + lines))
            # A cell below a merged one may still have a text, which nobody sees.
            shown = "" if cell.tag == f"{TABLE}covered-table-cell" else _cell_shown(cell)
            cells += [shown] * min(_times(cell, "columns-repeated"), _MOST_REPEATED)
        times = _times(row, "rows-repeated")
        for _ in range(min(times, _MOST_REPEATED) if any(cells) else 0):
            number += 1
            yield number, list(cells), merged
        number = min(number + (times - min(times, _MOST_REPEATED) if any(cells) else times), MAX_ROWS)


def _cell_shown(cell: Any) -> str:
    """Return the text of a cell. Dates are written as 2024-03-31, and numbers are not shortened."""
    text = _cell_words(cell)
    with suppress(ValueError):  # what a damaged file says of its values
        if dated := cell.get(f"{OFFICE}date-value"):
            return moment_shown(datetime.fromisoformat(dated), "hh:mm:ss yyyy" if text.count(":") > 1 else "hh:mm yyyy")
        value = cell.get(f"{OFFICE}value", "")
        if value and (text in ("", value) or _SHORTENED.fullmatch(text)):
            is_share = cell.get(f"{OFFICE}value-type") == "percentage"
            return number_shown(float(value), "0.##%" if is_share else "General")
    if not text and (lasting := _LASTING.fullmatch(cell.get(f"{OFFICE}time-value", ""))):
        hours, minutes, seconds = (int(each or 0) for each in lasting.groups())
        return moment_shown(timedelta(hours=hours, minutes=minutes, seconds=seconds), "[h]:mm:ss")
    formula = cell.get(f"{TABLE}formula")
    # A string may be empty. Other values have a text.
    if formula and not text and cell.get(f"{OFFICE}value-type") != "string":
        # of:=SUM([.B2:.B4]) is =SUM(B2:B4).
        return formula_shown(_REFERENCE.sub(lambda each: each[1].replace(":.", ":"), formula[formula.find("=") :]))
    return text


def _cell_words(cell: Any) -> str:
    """Return the text of a cell in a line, also that of lists and tables in it. Cells in these count once."""
    texts = list[str]()
    for block in blocks(cell):
        if block.tag == f"{TABLE}table":
            inner = block.iter(f"{TABLE}table-cell")
            texts += [_cell_words(each) for each in inner if next(each.iterancestors(f"{TABLE}table")) is block]
        else:
            texts.append(words(block))
    return " ".join(filter(None, texts))


def _times(element: Any, what: str) -> int:
    return max(stated_number(element.get(f"{TABLE}number-{what}", ""), 1), 1)


_ID = "{http://www.w3.org/XML/1998/namespace}id"
_EXTENDED = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}"
_BLOCKS = frozenset({f"{TEXT}p", f"{TEXT}h"})
_NOT_COUNTED = frozenset({f"{OFFICE}annotation", f"{TEXT}tracked-changes", f"{TEXT}note"})
_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_PLACE = re.compile(r"%(\d{1,2})%")
_OUTLINE = "\n"  # no list has this name
_MOST_LEVELS = 10
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class _Level:
    """A level of a list. `shown` is the number of levels whose numbers it shows; `pattern` is such as "%1%.%2%."."""

    form: str = ""
    before: str = ""
    after: str = ""
    shown: int = 1
    start: int = 1
    pattern: str = ""


_Levels = Mapping[int, _Level]


@dataclass(slots=True)
class _Count:
    """The numbers of the levels of a list so far, None for a level that was left out."""

    numbers: list[int | None] = field(default_factory=list)

    def next(self, level: int, levels: _Levels, own: int) -> str:
        """Count an item of a level, which may begin at a number of its `own`. Return its number."""
        self.numbers += [None] * (level - len(self.numbers))
        last = self.numbers[level - 1]
        self.numbers[level - 1] = own if own >= 0 else levels[level].start if last is None else last + 1
        del self.numbers[level:]
        details = levels[level]
        if not details.form:
            return ""
        values = [_number_shown(number, levels.get(at, _Level())) for at, number in enumerate(self.numbers, 1)]
        if details.pattern:
            number = _PLACE.sub(lambda place: "".join(values[int(place[1]) - 1 : int(place[1])]), details.pattern)
        else:
            number = f"{details.before}{'.'.join(filter(None, values[-details.shown :]))}{details.after}"
        return " ".join(number[:_LONGEST].split())


@dataclass(frozen=True, slots=True)
class _Place:
    """The list that elements stand in: the name of its style, its depth and its count. `item` has no number yet."""

    name: str
    depth: int
    count: _Count
    item: list[Any]


def numbers_of(body: Any, styles: Iterable[Any]) -> dict[Any, str]:
    """Return the numbers of headings and of list items. The first paragraph of an item stands for it."""
    styles = list(styles)
    levels, unnumbered = _all_levels(styles), _unnumbered(styles)
    outline, last, known = _Count(), dict[str, _Count](), dict[str, _Count]()
    found = dict[Any, str]()
    stack: list[tuple[Any, _Place | None]] = [(body, None)]
    while stack:
        element, place = stack.pop()
        if element.tag in _NOT_COUNTED:
            continue
        if element.tag == f"{TEXT}list":
            place = _entered(element, place, last, known)
        elif element.tag == f"{TEXT}list-item" and place is not None:
            place = _Place(place.name, place.depth, place.count, [element])
        elif element.tag == f"{TEXT}list-header" and place is not None:
            place = _Place(place.name, place.depth, place.count, [])
        elif element.tag in _BLOCKS and place is not None:
            if place.item and place.depth in levels.get(place.name, {}):
                own = stated_number(place.item.pop().get(f"{TEXT}start-value", ""), -1)
                found[element] = place.count.next(place.depth, levels[place.name], own)
        elif element.tag == f"{TEXT}h" and element.get(f"{TEXT}is-list-header") != "true":
            level = stated_number(element.get(f"{TEXT}outline-level", ""), 1)
            if level in levels[_OUTLINE] and element.get(f"{TEXT}style-name") not in unnumbered:
                own = stated_number(element.get(f"{TEXT}start-value", ""), -1)
                found[element] = outline.next(level, levels[_OUTLINE], own)
        stack.extend((child, place) for child in reversed(element))
    return found


def _entered(element: Any, around: _Place | None, last: dict[str, _Count], known: dict[str, _Count]) -> _Place:
    """Return the place in a list that begins here."""
    name = element.get(f"{TEXT}style-name") or (around.name if around is not None else "")
    if around is not None:
        # Behind a paragraph of its item, a list begins. Without one, it is only there to reach its depth.
        if not around.item:
            del around.count.numbers[around.depth :]
        return _Place(name, around.depth + 1, around.count, [])
    count = known.get(element.get(f"{TEXT}continue-list", ""))
    if count is None and element.get(f"{TEXT}continue-numbering") == "true":
        count = last.get(name)
    count = count or _Count()
    last[name] = known[element.get(_ID, "")] = count
    return _Place(name, 1, count, [])


def _number_shown(number: int | None, level: _Level) -> str:
    return written(level.start if number is None else number, level.form) if level.form else ""


def _all_levels(styles: list[Any]) -> dict[str, dict[int, _Level]]:
    """Return the levels of each style of lists by their numbers from 1, and those of headings."""
    found: dict[str, dict[int, _Level]] = {_OUTLINE: {}}
    for style in chain.from_iterable(each.iter(f"{TEXT}list-style", f"{TEXT}outline-style") for each in styles):
        name = _OUTLINE if style.tag == f"{TEXT}outline-style" else style.get(f"{STYLE}name", "")
        levels = found.setdefault(name, {})
        for level in style:
            at = stated_number(level.get(f"{TEXT}level", ""), 0)
            if 0 < at <= _MOST_LEVELS:
                levels[at] = _Level(
                    form=_FORMS.get(level.get(f"{STYLE}num-format", ""), ""),
                    before=level.get(f"{STYLE}num-prefix", ""),
                    after=level.get(f"{STYLE}num-suffix", ""),
                    shown=max(stated_number(level.get(f"{TEXT}display-levels", ""), 1), 1),
                    start=stated_number(level.get(f"{TEXT}start-value", ""), 1),
                    pattern=level.get(f"{STYLE}num-list-format") or level.get(f"{_EXTENDED}num-list-format", ""),
                )
    return found


def _unnumbered(styles: list[Any]) -> set[str]:
    """Return the styles of paragraphs that are in no list, not even in that of headings."""
    each = chain.from_iterable(root.iter(f"{STYLE}style") for root in styles)
    return {style.get(f"{STYLE}name", "") for style in each if style.get(f"{STYLE}list-style-name") == ""}


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
    """Return what each style says about hiding and size, by family and name. Styles inherit."""
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
    """Return the rows of a table that are not empty, cells separated by bars."""
    return "\n".join(barred(rows(table)))


def _notes(block: Any) -> Iterator[str]:
    """Yield the footnotes and endnotes of a paragraph."""
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
