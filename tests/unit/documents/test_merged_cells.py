"""Merged cells and headers in two rows, in the tables of Word, OpenDocument and PowerPoint."""

import pytest

from cragside.adapters.documents import opendocument, slides, word
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import opendocument_of, paragraph, pptx_of, word_of

REMARK = "The pier is closed in storms. " * 9
# Text, columns and rows of each cell. None is covered by the cell above or on the left.
TABLE = [
    [("Ferries of all piers", 5, 1), None, None, None, None],
    [("Pier", 1, 2), ("2024", 2, 1), None, ("2025", 2, 1), None],
    [None, ("Q1", 1, 1), ("Q2", 1, 1), ("Q1", 1, 1), ("Q2", 1, 1)],
    [("North", 1, 2), ("11", 1, 1), ("12", 1, 1), ("13", 1, 1), ("14", 1, 1)],
    [None, ("closed", 2, 1), None, ("23", 1, 1), ("24", 1, 1)],
    [("South", 1, 1), ("31", 1, 1), ("32", 1, 2), ("33", 1, 1), ("34", 1, 1)],
    [("East", 1, 1), ("41", 1, 1), None, ("43", 1, 1), ("44", 1, 1)],
    [("West", 1, 1), (REMARK, 4, 1), None, None, None],
]
WRITTEN = [
    "Ferries of all piers",
    "Pier | 2024 Q1 | 2024 Q2 | 2025 Q1 | 2025 Q2",
    "North | 11 | 12 | 13 | 14",
    "North | closed | closed | 23 | 24",
    "South | 31 | 32 | 33 | 34",
    "East | 41 | 32 | 43 | 44",
    f"West | {REMARK.strip()}",
]


def docx():
    rows = ""
    for above, row in zip([None, *TABLE], TABLE, strict=False):
        cells = ""
        for column, each in enumerate(row):
            if each:
                text, columns, lines = each
                down = '<w:vMerge w:val="restart"/>' if lines > 1 else ""
                cells += f'<w:tc><w:tcPr><w:gridSpan w:val="{columns}"/>{down}</w:tcPr>{paragraph(text)}</w:tc>'
            elif above and above[column] and above[column][2] > 1:
                cells += "<w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc>"
        rows += f"<w:tr>{cells}</w:tr>"
    return word.read(word_of(f"<w:tbl>{rows}</w:tbl>"), FileOrigin("a.docx", "docx"))


def odt():
    rows = ""
    for row in TABLE:
        cells = "".join(
            f'<table:table-cell table:number-columns-spanned="{each[1]}" table:number-rows-spanned="{each[2]}">'
            f"<text:p>{each[0]}</text:p></table:table-cell>"
            if each
            else "<table:covered-table-cell><text:p>unseen</text:p></table:covered-table-cell>"
            for each in row
        )
        rows += f"<table:table-row>{cells}</table:table-row>"
    return opendocument.read(opendocument_of("text", f"<table:table>{rows}</table:table>"), FileOrigin("a.odt", "odt"))


def pptx():
    rows = ""
    for row in TABLE:
        cells = "".join(
            f'<a:tc gridSpan="{each[1]}" rowSpan="{each[2]}"><a:p><a:r><a:t>{each[0]}</a:t></a:r></a:p></a:tc>'
            if each
            else '<a:tc hMerge="1"><a:p><a:r><a:t>unseen</a:t></a:r></a:p></a:tc>'
            for each in row
        )
        rows += f"<a:tr>{cells}</a:tr>"
    return slides.read(pptx_of(f"<p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame>"), FileOrigin("a.pptx", "pptx"))


@pytest.mark.parametrize("reading", [docx, odt, pptx])
def test_each_value_stands_below_the_names_of_its_column_in_all_formats(reading):
    lines = reading().text.strip().split("\n")
    assert [line.rstrip(" |") for line in lines if line] == WRITTEN


def test_a_word_row_that_begins_in_a_later_column_keeps_its_columns():
    def row(before, *texts):
        cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in texts)
        return f'<w:tr><w:trPr><w:gridBefore w:val="{before}"/></w:trPr>{cells}</w:tr>'

    body = f"<w:tbl>{row(0, 'Pier', 'Adult', 'Child')}{row(0, 'North', '12', '6')}{row(1, '13', '7')}</w:tbl>"
    text = word.read(word_of(body), FileOrigin("a.docx", "docx")).text.strip()
    assert text.splitlines() == ["Pier | Adult | Child", "North | 12 | 6", " | 13 | 7"]
