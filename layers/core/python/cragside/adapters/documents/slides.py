"""Reads PPTX: each slide is a page with its title as section, its text, tables and notes. Runs in a child process."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from cragside.adapters.documents.archives import check_archive, opened, parsed
from cragside.adapters.documents.charts import CHARTS, charts
from cragside.adapters.documents.equations import M, linear
from cragside.adapters.documents.links import address_behind
from cragside.adapters.documents.packages import RELATED, Relation, parts, properties, relations, transitional
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable, label

NEEDED = frozenset({"[Content_Types].xml", "ppt/presentation.xml"})
_WHAT = "a PowerPoint presentation (.pptx)"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
# Slide numbers, dates and footers are the same on each slide.
_REPEATED = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The slides that are shown, in their order, with title, author and date."""
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
    return Reading(composer.text, title=fields.get("title") or title, marks=composer.marks, tier1=fields)


def _slides(archive: zipfile.ZipFile) -> Iterator[str]:
    """The paths of the slides, in the order in which they are shown."""
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
    """Whether a shape, a group or the frame of a table is hidden."""
    return any(named.get("hidden") in ("1", "true") for named in shape.iterfind(f"*/{_P}cNvPr"))


def _blocks(slide: Any, related: Mapping[str, Relation], chart: Callable[[Any], str]) -> Iterator[str]:
    for shape in _shapes(slide):
        if shape.tag in CHARTS:
            if table := chart(shape):
                yield table
        elif shape.tag == f"{_A}tbl":
            rows = [
                " | ".join(" ".join(_text(cell, related).split()) for cell in row.iter(f"{_A}tc"))
                for row in shape.iter(f"{_A}tr")
            ]
            yield "\n".join(rows)
        elif _place(shape) not in _REPEATED and (text := _text(shape, related)):
            yield text


def _place(shape: Any) -> str:
    """The placeholder of a shape, such as `title`."""
    found = shape.find(f".//{_P}nvPr/{_P}ph")
    return found.get("type", "body") if found is not None else ""


def _text(shape: Any, related: Mapping[str, Relation] | None = None) -> str:
    """The lines of a shape, with the addresses of links that are `related` to its slide."""
    lines = []
    for paragraph in shape.iter(f"{_A}p"):
        runs = paragraph.iter(f"{_A}t", f"{_A}br", f"{M}oMath")
        pieces = []
        for target, linked in groupby(runs, lambda run: _target(_holder(run), related or {})):
            text = "".join(map(_written, linked))
            pieces.append(text + address_behind(text, target))
        lines.append("".join(pieces).strip())
    text = "\n".join(filter(None, lines))
    # A click anywhere on a shape follows its own link.
    named = shape.find(f"*/{_P}cNvPr")
    return text + address_behind(text, _target(named, related or {}))


def _holder(run: Any) -> Any:
    """The element that says what a run links to."""
    return run.getparent() if run.tag == f"{_A}t" else run


def _written(run: Any) -> str:
    if run.tag == f"{M}oMath":
        return linear(run, lambda _: False)
    return "\n" if run.tag == f"{_A}br" else run.text or ""


def _target(holder: Any, related: Mapping[str, Relation]) -> str:
    """The address that a run or a shape links to."""
    link = next(holder.iter(f"{_A}hlinkClick"), None) if holder is not None else None
    relation = related.get(link.get(f"{RELATED}id", "")) if link is not None else None
    return relation.target if relation is not None and relation.external else ""
