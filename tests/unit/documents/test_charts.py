"""The numbers of charts in presentations and Word documents."""

import pytest
from lxml import etree

from cragside.adapters.documents import slides, word
from cragside.adapters.documents.office_objects import chart_table
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import A, R, pptx_of, shape, strict, word_of

SPACE = f'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="{A}"'
CHARTEX = f'xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex" xmlns:a="{A}"'
PLACE = f'<c:chart {SPACE} xmlns:r="{R}" r:id="{{}}"/>'


def points(*values):
    return "".join(
        f'<c:pt idx="{place}"><c:v>{value}</c:v></c:pt>' for place, value in enumerate(values) if value is not None
    )


def numbers(*values, form="General"):
    return f"<c:numRef><c:numCache><c:formatCode>{form}</c:formatCode>{points(*values)}</c:numCache></c:numRef>"


def words(*values):
    return f"<c:strRef><c:f>Sheet1!$A$1</c:f><c:strCache>{points(*values)}</c:strCache></c:strRef>"


def series(name, values, categories="", kinds=("cat", "val")):
    named = f"<c:tx>{words(name)}</c:tx>" if name else ""
    first = f"<c:{kinds[0]}>{categories}</c:{kinds[0]}>" if categories else ""
    return f"<c:ser>{named}{first}<c:{kinds[1]}>{values}</c:{kinds[1]}></c:ser>"


def titled(text):
    return f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{text}</a:t></a:r></a:p></c:rich></c:tx></c:title>"


def chart(*several, title="", axis=""):
    title, axis = (titled(each) if each else "" for each in (title, axis))
    return (
        f"<c:chartSpace {SPACE}><c:chart>{title}<c:plotArea><c:barChart>{''.join(several)}</c:barChart>"
        f"<c:catAx>{axis}</c:catAx></c:plotArea></c:chart></c:chartSpace>"
    )


def lines(*several, **more):
    return chart_table(etree.fromstring(chart(*several, **more))).split("\n")


EELS = chart(
    series("Upstream", numbers(388, 517), words(2023, 2024)),
    series("Downstream", numbers(96, None), words(2023, 2024)),
    title="Eels",
    axis="Year",
)
TABLE = "Eels\nYear | Upstream | Downstream\n2023 | 388 | 96\n2024 | 517 | "


def read(reader, content):
    return reader.read(content, FileOrigin("a", "a")).text.strip()


def test_a_chart_of_a_slide_is_a_table():
    content = pptx_of(shape("Counts", place="title") + PLACE.format("r2") + shape("After"), charts=[EELS])
    assert read(slides, content) == f"Counts\n\n{TABLE}\n\nAfter"
    assert read(slides, strict(content)) == f"Counts\n\n{TABLE}\n\nAfter"


def test_a_slide_of_charts_alone_has_text():
    assert read(slides, pptx_of(PLACE.format("r2") * 2, charts=[EELS])) == TABLE.strip(), "each chart is read once"


def test_a_chart_of_a_word_document_stands_below_its_paragraph():
    body = f"<w:p><w:r><w:t>Counts:</w:t></w:r><w:r><w:drawing>{PLACE.format('h0')}</w:drawing></w:r></w:p>"
    assert read(word, word_of(body, charts=[EELS])) == f"Counts:\n{TABLE}".strip()


@pytest.mark.attack("hidden text")
def test_charts_that_are_hidden_are_left_out():
    frame = f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr hidden="1"/></p:nvGraphicFramePr>{PLACE.format("r2")}'
    assert read(slides, pptx_of(shape("seen") + f"{frame}</p:graphicFrame>", charts=[EELS])) == "seen"


def test_numbers_have_the_format_of_the_chart():
    shown = lines(series("Share", numbers(0.125, 1, form="0.0%"), numbers(45382, 45383, form="yyyy\\-mm\\-dd")))
    assert shown == [" | Share", "2024-03-31 | 12.5%", "2024-04-01 | 100.0%"]
    assert lines(series("a", numbers("0.30000000000000004", "12", "#N/A"))) == [
        " | a", "1 | 0.3", "2 | 12", "3 | #N/A",
    ]  # fmt: skip


def test_series_without_names_and_categories_are_counted():
    assert lines(series("", numbers(7, 8)), series("", numbers(9))) == [
        " | Series 1 | Series 2",
        "1 | 7 | 9",
        "2 | 8 | ",
    ]


def test_series_with_other_categories_have_tables_of_their_own():
    found = lines(
        series("a", numbers(1, 2), numbers(10, 20), kinds=("xVal", "yVal")),
        series("b", numbers(3), numbers(30), kinds=("xVal", "yVal")),
        series("a", numbers(4), numbers(30), kinds=("xVal", "yVal")),
    )
    assert found == [" | a", "10 | 1", "20 | 2", " | b | a", "30 | 3 | 4"]


def test_categories_of_several_levels_are_joined():
    levels = f"<c:lvl>{points('Q1', 'Q2', 'Q1')}</c:lvl><c:lvl>{points('2023', None, '2024')}</c:lvl>"
    named = f"<c:multiLvlStrRef><c:multiLvlStrCache>{levels}</c:multiLvlStrCache></c:multiLvlStrRef>"
    assert lines(series("a", numbers(1, 2, 3), named))[1:] == ["2023 Q1 | 1", "2023 Q2 | 2", "2024 Q1 | 3"]


def test_sizes_of_bubbles_are_a_column():
    bubble = series("a", numbers(1), numbers(5), kinds=("xVal", "yVal")).replace(
        "</c:ser>", f"<c:bubbleSize>{numbers(9)}</c:bubbleSize></c:ser>"
    )
    assert lines(bubble) == [" | a | a (size)", "5 | 1 | 9"]


def test_charts_of_later_versions_are_tables_too():
    waterfall = (
        f'<cx:chartSpace {CHARTEX}><cx:chartData><cx:data id="0"><cx:strDim type="cat"><cx:lvl><cx:pt idx="0">Rent'
        '</cx:pt><cx:pt idx="1">Oil</cx:pt></cx:lvl></cx:strDim><cx:numDim type="val"><cx:lvl formatCode="0.0"><cx:pt '
        'idx="0">40</cx:pt><cx:pt idx="1">-7</cx:pt></cx:lvl></cx:numDim></cx:data></cx:chartData><cx:chart><cx:title>'
        "<cx:tx><cx:txData><cx:v>Costs</cx:v></cx:txData></cx:tx></cx:title><cx:plotArea><cx:plotAreaRegion><cx:series>"
        '<cx:tx><cx:txData><cx:v>Crowns</cx:v></cx:txData></cx:tx><cx:dataId val="0"/></cx:series></cx:plotAreaRegion>'
        "</cx:plotArea></cx:chart></cx:chartSpace>"
    )
    assert chart_table(etree.fromstring(waterfall)) == "Costs\n | Crowns\nRent | 40.0\nOil | -7.0"


@pytest.mark.parametrize("empty", [chart(), chart(series("a", "")), f"<c:chartSpace {SPACE}/>", "<x/>"])
def test_a_chart_without_numbers_is_no_text(empty):
    assert chart_table(etree.fromstring(empty)) == ""


@pytest.mark.attack("hostile files")
def test_charts_of_endless_series_and_points_are_cut():
    many = "".join(f'<c:pt idx="{place * 9999}"><c:v>1</c:v></c:pt>' for place in range(9000))
    found = lines(*[series("x" * 9999, f"<c:numRef>{many}</c:numRef>")], *[series("b", numbers(1))] * 999)
    assert len(found) < 5000
    assert sum(map(len, found)) < 5_000_000
