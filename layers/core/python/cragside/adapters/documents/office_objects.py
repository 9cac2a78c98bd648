"""Writes the charts and equations of Office documents as text."""

import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from cragside.adapters.documents.number_formats import number_shown, stated_number
from cragside.adapters.documents.packages import RELATED, Relation, parsed, parts

CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
# Where a chart stands. The second kind came with Office 2016.
CHARTS = (f"{CHART}chart", "{http://schemas.microsoft.com/office/drawing/2014/chartex}chart")
# Excel draws at most 255 series, and few charts have more points than this.
_MOST_SERIES = 255
_MOST_POINTS = 4000
_MOST_LEVELS = 8
_LONGEST = 300

_Points = dict[int, str]


@dataclass(frozen=True, slots=True)
class _Series:
    """The values of a series by their places, in one or two columns, and their categories."""

    categories: _Points
    columns: list[tuple[str, _Points]]


def charts(archive: zipfile.ZipFile, related: Mapping[str, Relation]) -> Callable[[Any], str]:
    """Return a function that writes the chart in a place, each once.

    `related` are the parts that the place refers to.
    """
    left = {name for kind in ("chart", "chartEx") for name in parts(archive, related, kind)}

    def table(place: Any) -> str:
        relation = related.get(place.get(f"{RELATED}id", ""))
        if relation is None or relation.target not in left:
            return ""
        left.remove(relation.target)
        return chart_table(parsed(archive.read(relation.target)))

    return table


def chart_table(chart: Any) -> str:
    """Title and table of a chart, cells separated by bars; "" for a chart without numbers."""
    found = _series(chart) if chart.tag == f"{CHART}chartSpace" else _extended_series(chart)
    axis = _words(chart.find(f".//{CHART}catAx/{CHART}title"))
    lines = [line for table in _tables(found) for line in _rows(axis, *table)]
    title = _words(chart.find("{*}chart/{*}title"))
    return "\n".join(filter(None, (title, *lines))) if lines else ""


def _tables(series: Iterable[_Series]) -> Iterator[tuple[_Points, list[tuple[str, _Points]]]]:
    """Yield the categories and columns of neighbouring series that have the same categories."""
    filled = (each for each in islice(series, _MOST_SERIES) if each.columns)
    for categories, alike in groupby(filled, key=lambda each: each.categories):
        yield categories, [column for each in alike for column in each.columns]


def _rows(axis: str, categories: _Points, columns: list[tuple[str, _Points]]) -> Iterator[str]:
    yield " | ".join([axis, *(name for name, _ in columns)])
    places = sorted(set[int]().union(*(points for _, points in columns)))
    for place in places[:_MOST_POINTS]:
        yield " | ".join([categories.get(place, str(place + 1)), *(points.get(place, "") for _, points in columns)])


def _series(chart: Any) -> Iterator[_Series]:
    for number, series in enumerate(chart.iterfind(f".//{CHART}plotArea//{CHART}ser"), 1):
        name = _cached(series.find(f"{CHART}tx")).get(0) or f"Series {number}"
        found = {kind: _cached(series.find(f"{CHART}{kind}")) for kind in ("cat", "xVal", "val", "yVal", "bubbleSize")}
        columns = [(name, found["val"] or found["yVal"]), (f"{name} (size)", found["bubbleSize"])]
        yield _Series(found["cat"] or found["xVal"], [column for column in columns if column[1]])


def _extended_series(chart: Any) -> Iterator[_Series]:
    """Yield the series of charts that came later, such as waterfalls and funnels."""
    named = {each.get("val", ""): each.getparent() for each in chart.iterfind(".//{*}series/{*}dataId")}
    for number, data in enumerate(chart.iterfind("{*}chartData/{*}data"), 1):
        series = named.get(data.get("id", ""))
        name = _line(series.findtext("{*}tx//{*}v") or "") if series is not None else ""
        categories = [_points(level) for level in islice(data.iterfind("{*}strDim/{*}lvl"), _MOST_LEVELS)]
        columns = [(name or f"Series {number}", _points(level)) for level in data.iterfind("{*}numDim/{*}lvl")]
        yield _Series(_joined(categories), [column for column in columns[:2] if column[1]])


def _cached(data: Any) -> _Points:
    """Return the values that were last shown, by their places."""
    if data is None:
        return {}
    if levels := list(islice(data.iter(f"{CHART}lvl"), _MOST_LEVELS)):
        return _joined([_points(level) for level in levels])
    plain = data.findtext(f"{CHART}v")
    return {0: _line(plain)} if plain else _points(data)


def _points(holder: Any) -> _Points:
    form = holder.findtext(".//{*}formatCode") or holder.get("formatCode") or ""
    found = _Points()
    for point in islice(holder.iter("{*}pt"), _MOST_POINTS):
        place, value = point.get("idx", ""), _line(point.findtext("{*}v") or point.text or "")
        if value and (at := stated_number(place, -1)) >= 0:
            own = point.get("formatCode") or form
            found[at] = _shown(value, own) if own else value
    return found


def _joined(levels: list[_Points]) -> _Points:
    """Join the names of levels, innermost first. A name of an outer level counts until the next one."""
    inner = levels[0] if levels else {}
    for outer in levels[1:]:
        names, last = _Points(), ""
        for place in sorted(inner):
            last = outer.get(place, last)
            names[place] = f"{last} {inner[place]}".strip()
        inner = names
    return inner


def _shown(value: str, form: str) -> str:
    """Return a number in its format, a date as 2024-03-31."""
    try:
        number = float(value)
        if form != "General" and (day := _day(number, form)):
            return day
        return number_shown(int(number) if number.is_integer() else number, form[:_LONGEST])
    except (ValueError, TypeError, OverflowError, AttributeError):
        return value


def _day(number: float, form: str) -> str:
    """Return the date that a number stands for, "" if the format is none of dates."""
    from openpyxl.styles.numbers import is_date_format
    from openpyxl.utils.datetime import from_excel

    return from_excel(number).isoformat()[:10] if is_date_format(form) else ""


def _words(title: Any) -> str:
    """Return the text of a title."""
    if title is None:
        return ""
    lines = ["".join(text.text or "" for text in line.iter("{*}t")) for line in title.iter("{*}p")]
    return _line(" ".join(lines) or title.findtext(".//{*}v") or "")


def _line(text: str) -> str:
    return " ".join(text[:_LONGEST].split())


M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_GONE = frozenset({f"{_W}del", f"{_W}moveFrom", f"{_W}rPr"})
# What needs no brackets as part of a fraction or a power: a number or a word. Marks over letters belong to them.
_SINGLE = re.compile("[\\w.,'′∞°%\u0300-\u036f]{0,200}")
_BRACKETS = {"(": ")", "[": "]", "{": "}", "|": "|"}
# Whatever a letter or a figure behind them would join.
_INDEXED = frozenset(
    f"{M}{name}" for name in ("f", "sSup", "sSub", "sSubSup", "sPre", "rad", "limLow", "limUpp", "nary")
)
_RELATION = re.compile(r"\s{0,9}([=≈≡≠≤≥<>≔]{1,3})\s{0,9}")
# Letters in italics and the like, which readers see as these letters.
_STYLED = re.compile("[\U0001d400-\U0001d7ff\u210a-\u2131]")


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of an element by their names, such as the base and the power of `sSup`, written once."""

    element: Any
    texts: list[tuple[str, str]]

    def __getitem__(self, name: str) -> str:
        return next((text for each, text in self.texts if each == name), "")

    def stated(self, setting: str) -> str | None:
        """Return a setting of the element, such as the sign of a sum; None if it is not stated."""
        found = self.element.find(f"{self.element.tag}Pr/{M}{setting}")
        return found.get(f"{M}val", "") if found is not None else None


def linear(equation: Any, hidden: Callable[[Any], bool]) -> str:
    """Return an equation in a line. `hidden` tells whether a run is hidden."""
    text = _inner(equation, hidden)
    text = _STYLED.sub(lambda letter: unicodedata.normalize("NFKC", letter[0]), text)
    return " ".join(_RELATION.sub(r" \1 ", text).split())


def _inner(element: Any, hidden: Callable[[Any], bool]) -> str:
    pieces, before = list[str](), ""
    for child in element:
        text = _written(child, hidden)
        if before in _INDEXED and text[:1].isalnum():
            pieces.append(" ")
        pieces.append(text)
        before = child.tag if text else before
    return "".join(pieces)


def _written(element: Any, hidden: Callable[[Any], bool]) -> str:
    tag = element.tag
    if tag in _GONE or (tag in (f"{M}r", f"{_W}r") and hidden(element)):
        return ""
    if tag in (f"{M}t", f"{_W}t"):
        return element.text or ""
    name = tag.removeprefix(M)
    if name.endswith("Pr"):
        return ""
    if (write := _FORMS.get(name)) is None:
        return _inner(element, hidden)

    shown = [child for child in element if not child.tag.endswith("Pr")]
    texts = [(child.tag.removeprefix(M), _part(child, hidden)) for child in shown]
    return write(_Parts(element, texts))


def _part(part: Any, hidden: Callable[[Any], bool]) -> str:
    """Write a child of a formula. Commas separate the cells of a matrix row."""
    if part.tag == f"{M}mr":
        return ", ".join(_inner(cell, hidden).strip() for cell in part)
    return _inner(part, hidden).strip()


def _fraction(parts: _Parts) -> str:
    above, below = _one(parts["num"]), _one(parts["den"])
    return f"({above} over {below})" if parts.stated("type") == "noBar" else f"{above}/{below}"


def _scripts(parts: _Parts) -> str:
    return f"{_one(parts['e'])}{_indices(parts)}"


def _indices(parts: _Parts) -> str:
    below, above = parts["sub"], parts["sup"]
    return (f"_{_one(below)}" if below else "") + (f"^{_one(above)}" if above else "")


def _root(parts: _Parts) -> str:
    of, degree = parts["e"], parts["deg"]
    return f"{_one(of)}^(1/{_one(degree)})" if degree else f"√{of if of.startswith('(') else f'({of})'}"


def _sum(parts: _Parts) -> str:
    return f"{parts.stated('chr') or '∫'}{_indices(parts)} {parts['e']}"


def _brackets(parts: _Parts) -> str:
    begin, end, between = (parts.stated(name) for name in ("begChr", "endChr", "sepChr"))
    inside = (between or "|").join(text for _, text in parts.texts)
    return f"{'(' if begin is None else begin}{inside}{')' if end is None else end}"


def _function(parts: _Parts) -> str:
    return f"{parts['fName']} {parts['e']}" if not parts["e"].startswith("(") else f"{parts['fName']}{parts['e']}"


def _limit(parts: _Parts) -> str:
    return f"{parts['e']}{'_' if parts.element.tag == f'{M}limLow' else '^'}{_one(parts['lim'])}"


def _accent(parts: _Parts) -> str:
    mark = parts.stated("chr") or "\u0302" if parts.element.tag == f"{M}acc" else "\u0305"
    of = parts["e"]
    return f"{of}{mark}" if len(of) == 1 else of


def _matrix(parts: _Parts) -> str:
    return "; ".join(text for _, text in parts.texts)


def _phantom(parts: _Parts) -> str:
    return "" if parts.stated("show") in ("0", "off", "false") else parts["e"]


_FORMS: dict[str, Callable[[_Parts], str]] = {
    "f": _fraction,
    "sSup": _scripts,
    "sSub": _scripts,
    "sSubSup": _scripts,
    "sPre": lambda parts: f"{_indices(parts)}{_one(parts['e'])}",
    "rad": _root,
    "nary": _sum,
    "d": _brackets,
    "func": _function,
    "limLow": _limit,
    "limUpp": _limit,
    "acc": _accent,
    "bar": _accent,
    "m": _matrix,
    "eqArr": _matrix,
    "phant": _phantom,
}


def _one(text: str) -> str:
    """Return the text with brackets around it where it is more than one thing."""
    return text if _SINGLE.fullmatch(text) or _is_in_brackets(text) else f"({text})"


def _is_in_brackets(text: str) -> bool:
    """Tell if the first bracket ends with the text."""
    begin, end = text[0], _BRACKETS.get(text[0])
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == begin) - (sign == end) if begin != end else sign == begin
        if place and sign == end and depth == (0 if begin != end else 2):
            return place == len(text) - 1
    return False
