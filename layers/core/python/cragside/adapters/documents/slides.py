"""Reads PPTX: each slide is a page with its title as section, its text, tables and notes. Runs in a child process."""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from cragside.adapters.documents.inline_text import LEVEL, LOWERED, RAISED, address_behind, leveled
from cragside.adapters.documents.number_formats import stated_number, written
from cragside.adapters.documents.office_objects import CHARTS, M, charts, linear
from cragside.adapters.documents.packages import (
    RELATED,
    Relation,
    check_archive,
    opened,
    parsed,
    parts,
    properties,
    relations,
    transitional,
)
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable, label
from cragside.adapters.documents.tables import Merged, MergedRow, barred

NEEDED = frozenset({"[Content_Types].xml", "ppt/presentation.xml"})
_WHAT = "a PowerPoint presentation (.pptx)"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_FORMS = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
}
_SIGNS = {"Period": ("", "."), "ParenR": ("", ")"), "ParenBoth": ("(", ")"), "Plain": ("", "")}
# How far a run is raised or lowered, if it is.
_SHIFTED = re.compile(r"(-?)[1-9]")
_AUTOMATIC = re.compile(f"({'|'.join(_FORMS)})({'|'.join(_SIGNS)})")
# Slide numbers, dates and footers are the same on each slide.
_REPEATED = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the slides that are shown, in their order, with title, author and date."""
    check_archive(content, NEEDED, _WHAT)
    content = transitional(content, _WHAT)
    composer, title = Composer(), ""
    with opened(content, _WHAT) as archive:
        for number, path in enumerate(_slides(archive), 1):
            slide = parsed(archive.read(path))
            if slide.get("show") in ("0", "false"):
                continue
            heading = next((_text(shape) for shape in _shapes(slide) if _place(shape) in ("title", "ctrTitle")), "")
            title = title or label(heading)
            composer.mark(page=number, section=label(heading, 120))
            related = relations(archive, path)
            for block in (*_blocks(slide, related, charts(archive, related)), *_notes(archive, related)):
                composer.add(block)
        fields = properties(archive)
    if not composer.text.strip():
        raise Unreadable("is a presentation without text")
    return composer.reading(fields, title)


def _slides(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the paths of the slides, in the order in which they are shown."""
    targets = relations(archive, "ppt/presentation.xml")
    known = set(archive.namelist())
    for slide in parsed(archive.read("ppt/presentation.xml")).iter(f"{_P}sldId"):
        target = targets.get(slide.get(f"{RELATED}id", ""))
        if target is not None and target.target in known:
            yield target.target


def _notes(archive: zipfile.ZipFile, related: Mapping[str, Relation]) -> Iterator[str]:
    for target in parts(archive, related, "notesSlide"):
        notes = "\n".join(_blocks(parsed(archive.read(target)), relations(archive, target), lambda _: ""))
        if notes:
            yield f"Notes: {notes}"


def _shapes(slide: Any) -> Iterator[Any]:
    """Shapes, tables and charts that are shown, in their order, also those in groups."""
    for element in slide.iter(f"{_P}sp", f"{_A}tbl", f"{_P}cxnSp", *CHARTS):
        around = [element, *element.iterancestors()]
        if not any(each.tag == _FALLBACK or _is_hidden(each) for each in around):
            yield element


def _is_hidden(shape: Any) -> bool:
    """Tell if a shape, a group or the frame of a table is hidden."""
    return any(named.get("hidden") in ("1", "true") for named in shape.iterfind(f"*/{_P}cNvPr"))


def _blocks(slide: Any, related: Mapping[str, Relation], chart: Callable[[Any], str]) -> Iterator[str]:
    for shape in _shapes(slide):
        if shape.tag in CHARTS:
            if table := chart(shape):
                yield table
        elif shape.tag == f"{_A}tbl":
            yield "\n".join(barred(_rows(shape, related)))
        elif _place(shape) not in _REPEATED and (text := _text(shape, related)):
            yield text


def _rows(table: Any, related: Mapping[str, Relation]) -> Iterator[MergedRow]:
    """Yield the rows of a table with the merged cells that begin in them. The cells below these are empty."""
    for number, row in enumerate(table.iter(f"{_A}tr"), 1):
        cells, merged = list[str](), list[Merged]()
        for column, cell in enumerate(row.iter(f"{_A}tc"), 1):
            wide, high = (max(stated_number(cell.get(name, ""), 1), 1) for name in ("gridSpan", "rowSpan"))
            if wide * high > 1:
                merged.append((column, column + wide - 1, number + high - 1))
            covered = any(cell.get(name) in ("1", "true") for name in ("hMerge", "vMerge"))
            cells.append("" if covered else _text(cell, related))
        yield number, cells, merged


def _place(shape: Any) -> str:
    """Return the placeholder of a shape, such as `title`."""
    found = shape.find(f".//{_P}nvPr/{_P}ph")
    return found.get("type", "body") if found is not None else ""


def _text(shape: Any, related: Mapping[str, Relation] | None = None) -> str:
    """Return the lines of a shape, with the addresses of links that are `related` to its slide."""
    lines, counts = [], dict[int, tuple[str, int]]()
    for paragraph in shape.iter(f"{_A}p"):
        runs = paragraph.iter(f"{_A}t", f"{_A}br", f"{M}oMath")
        pieces = []
        for target, linked in groupby(runs, lambda run: _target(_holder(run), related or {})):
            text = "".join(map(_written, linked))
            pieces.append(text + address_behind(text, target))
        if line := leveled("".join(pieces)).strip():
            lines.append(f"{_number(paragraph, counts)} {line}".lstrip())
    text = "\n".join(lines)
    # A click anywhere on a shape follows its own link.
    named = shape.find(f"*/{_P}cNvPr")
    return text + address_behind(text, _target(named, related or {}))


def _number(paragraph: Any, counts: dict[int, tuple[str, int]]) -> str:
    """Return the number of a paragraph, such as "2." or "(b)".

    "" without one. `counts` has form and number of each level.
    """
    properties = paragraph.find(f"{_A}pPr")
    level = properties.get("lvl", "0") if properties is not None else "0"
    at = int(level) if level in tuple("012345678") else 0
    for deeper in [each for each in counts if each > at]:
        del counts[deeper]
    stated = properties.find(f"{_A}buAutoNum") if properties is not None else None
    known = _AUTOMATIC.fullmatch(stated.get("type", "")) if stated is not None else None
    if stated is None or known is None:
        counts.pop(at, None)
        return ""
    form, last = counts.get(at, ("", 0))
    counts[at] = known[0], last + 1 if form == known[0] else stated_number(stated.get("startAt", ""), 1)
    before, after = _SIGNS[known[2]]
    return f"{before}{written(counts[at][1], _FORMS[known[1]])}{after}"


def _holder(run: Any) -> Any:
    """Return the element that has a run's link."""
    return run.getparent() if run.tag == f"{_A}t" else run


def _written(run: Any) -> str:
    if run.tag == f"{M}oMath":
        return linear(run, lambda _: False)
    if run.tag == f"{_A}br":
        return "\n"
    properties = run.getparent().find(f"{_A}rPr")
    raised = _SHIFTED.match(properties.get("baseline", "")) if properties is not None else None
    return f"{LOWERED if raised[1] else RAISED}{run.text or ''}{LEVEL}" if raised else run.text or ""


def _target(holder: Any, related: Mapping[str, Relation]) -> str:
    """Return the address that a run or a shape links to."""
    link = next(holder.iter(f"{_A}hlinkClick"), None) if holder is not None else None
    relation = related.get(link.get(f"{RELATED}id", "")) if link is not None else None
    return relation.target if relation is not None and relation.external else ""
