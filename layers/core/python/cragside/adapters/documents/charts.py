"""Writes the numbers of a chart in an Office document as a table: its categories, and the values of each series."""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from cragside.adapters.documents.archives import parsed
from cragside.adapters.documents.cell_values import number_shown
from cragside.adapters.documents.number_formats import stated_number
from cragside.adapters.documents.packages import RELATED, Relation, parts

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
    """A function that writes the chart in a place, each once. `related` are the parts that the place refers to."""
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
    """The categories and columns of neighbouring series that have the same categories."""
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
    """The series of charts that came later, such as waterfalls and funnels."""
    named = {each.get("val", ""): each.getparent() for each in chart.iterfind(".//{*}series/{*}dataId")}
    for number, data in enumerate(chart.iterfind("{*}chartData/{*}data"), 1):
        series = named.get(data.get("id", ""))
        name = _line(series.findtext("{*}tx//{*}v") or "") if series is not None else ""
        categories = [_points(level) for level in islice(data.iterfind("{*}strDim/{*}lvl"), _MOST_LEVELS)]
        columns = [(name or f"Series {number}", _points(level)) for level in data.iterfind("{*}numDim/{*}lvl")]
        yield _Series(_joined(categories), [column for column in columns[:2] if column[1]])


def _cached(data: Any) -> _Points:
    """The values that were last shown, by their places."""
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
    """The names of levels, which come from the inmost one. An outer name holds until the next one."""
    inner = levels[0] if levels else {}
    for outer in levels[1:]:
        names, last = _Points(), ""
        for place in sorted(inner):
            last = outer.get(place, last)
            names[place] = f"{last} {inner[place]}".strip()
        inner = names
    return inner


def _shown(value: str, form: str) -> str:
    """A number in its format, a date as 2024-03-31."""
    try:
        number = float(value)
        if form != "General" and (day := _day(number, form)):
            return day
        return number_shown(int(number) if number.is_integer() else number, form[:_LONGEST])
    except (ValueError, TypeError, OverflowError, AttributeError):
        return value


def _day(number: float, form: str) -> str:
    """The date that a number stands for, "" if the format is none of dates."""
    from openpyxl.styles.numbers import is_date_format
    from openpyxl.utils.datetime import from_excel

    return from_excel(number).isoformat()[:10] if is_date_format(form) else ""


def _words(title: Any) -> str:
    """The text of a title."""
    if title is None:
        return ""
    lines = ["".join(text.text or "" for text in line.iter("{*}t")) for line in title.iter("{*}p")]
    return _line(" ".join(lines) or title.findtext(".//{*}v") or "")


def _line(text: str) -> str:
    return " ".join(text[:_LONGEST].split())
