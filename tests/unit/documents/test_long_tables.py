"""Long tables among text: each passage with rows of a table carries its header."""

import pytest

from cragside.adapters.documents import html, opendocument, rich_text, slides, word
from cragside.adapters.documents.page_archives import read_book
from cragside.adapters.documents.reading import FileOrigin
from cragside.adapters.documents.texts import read_markdown
from cragside.domain.document import SourceText
from cragside.domain.indexing import Passage, place_of
from cragside.store.chunking import chunker, cut
from tests.unit.documents.archives import epub_of, opendocument_of, pptx_of

NAMES = ["Member", "Craft", "Dues paid", "Dues owed"]
ROWS = [[f"Member {number}", "Tiler", str(number % 7), str(number % 11)] for number in range(120)]
SIZE = 100


def count(text):
    return len(text.split())


def passages_of(reading, size=SIZE, overlap=10, **options):
    return cut(reading.text, reading.marks, chunker(count, size, overlap), count, **options)


def rows_in(begin, cell, end):
    return "".join(begin + "".join(cell.format(value) for value in row) + end for row in [NAMES, *ROWS])


def docx(docx_of):
    rows = rows_in("<w:tr>", "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>", "</w:tr>")
    return word.read(docx_of(f"<w:tbl>{rows}</w:tbl>"), FileOrigin("a.docx", "docx"))


def odt(_):
    rows = rows_in(
        "<table:table-row>", "<table:table-cell><text:p>{}</text:p></table:table-cell>", "</table:table-row>"
    )
    return opendocument.read(opendocument_of("text", f"<table:table>{rows}</table:table>"), FileOrigin("a.odt", "odt"))


def pptx(_):
    rows = rows_in("<a:tr>", "<a:tc><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:tc>", "</a:tr>")
    return slides.read(pptx_of(f"<p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame>"), FileOrigin("a.pptx", "pptx"))


def rtf(_):
    rows = rows_in("\\trowd\\cellx9 ", "\\pard\\intbl {}\\cell ", "\\row ")
    return rich_text.read(f"{{\\rtf1\\ansi {rows}}}".encode(), FileOrigin("a.rtf", "rtf"))


def book(_):
    rows = rows_in("<tr>", "<td><p>{}</p></td>", "</tr>")
    return read_book(epub_of(f"<table>{rows}</table>"), FileOrigin("a.epub", "epub"))


def page(_):
    rows = rows_in("<tr>", "<td>{}</td>", "</tr>").replace("td>", "th>", 8)
    content = f"<html><body><article><h1>Guild</h1><p>Its register.</p><table>{rows}</table></article></body></html>"
    return html.read(content.encode(), FileOrigin("a.html", "html"))


def md(_, rule="|---|:---|---:|-|", begin="| "):
    lines = [begin + " | ".join(row) + begin.rstrip() for row in [NAMES, *ROWS]]
    text = "\n".join(["# Guild", "", lines[0], rule, *lines[1:], "", "End."])
    return read_markdown(text.encode(), FileOrigin("a.md", "md"))


def bare_md(_):
    return md(_, rule="--- | --- | --- | ---", begin="")


def org(_):
    return md(_, rule="|---+---+---+---|")


def grid(_):
    lines = [f"| {' | '.join(row)} |\n+---+---+---+---+" for row in [NAMES, *ROWS]]
    return SourceText("a.rst", "\n".join(["+---+---+---+---+", *lines]))


@pytest.mark.parametrize(
    "make", [org, grid, docx, odt, pptx, rtf, book, page, md, bare_md], ids=lambda make: make.__name__
)
def test_each_passage_of_a_long_table_has_its_header(make, docx_of):
    reading = make(docx_of)
    pieces = [piece for piece in passages_of(reading) if "Tiler" in piece.text]
    assert len(pieces) > 2
    assert all(all(name in piece.text for name in NAMES) for piece in pieces)
    assert all(piece.text.count("Dues owed") == 1 for piece in pieces)
    assert all(piece.tokens <= SIZE for piece in pieces)
    for row in ROWS:
        assert any(all(f"{value}" in line for value in row) for piece in pieces for line in piece.text.split("\n"))


def test_a_passage_with_a_header_has_the_place_of_its_rows():
    reading = md(None)
    found = [Passage(f"p{at}", "d", 0, at, piece.text) for at, piece in enumerate(passages_of(reading))]
    source = SourceText("a.md", reading.text)
    places = [place_of(each, found, source) for each in found]
    assert [start for start, _ in places] == sorted({start for start, _ in places})
    assert all(each.text.endswith(reading.text[start:end]) for each, (start, end) in zip(found, places, strict=True))
    assert all(reading.text[start:end].startswith("| Member ") for start, end in places[2:-1])


def test_a_header_of_two_rows_with_merged_cells_is_carried(docx_of):
    cell = "<w:tc>{}<w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    merged = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>'
    first = cell.format("", "") + cell.format(merged, 2024) + cell.format(merged, 2025)
    rows = [["Region", "Q1", "Q2", "Q1", "Q2"], *([f"Region {number}", *"1234"] for number in range(60))]
    body = "".join(f"<w:tr>{''.join(cell.format('', value) for value in row)}</w:tr>" for row in rows)
    reading = word.read(docx_of(f"<w:tbl><w:tr>{first}</w:tr>{body}</w:tbl>"), FileOrigin("a.docx", "docx"))
    pieces = passages_of(reading)
    assert len(pieces) > 3
    assert all("Region | 2024 Q1 | 2024 Q2 | 2025 Q1 | 2025 Q2\n" in piece.text for piece in pieces)


def test_rows_without_a_header_text_behind_the_table_and_code_carry_none():
    rows = "\n".join(" | ".join(row) for row in ROWS)
    numbers = "\n".join(f"2025-01-01 10:{number:02} | {number} | {number * 7}" for number in range(60))
    assert all(piece.text in numbers for piece in passages_of(SourceText("a.txt", numbers)))
    fenced = f"```\nleft | right\n{rows}\n```\n"
    assert all(piece.text in fenced for piece in passages_of(SourceText("a.md", fenced)))
    code = "\n".join(f"value{number}: int | None" for number in range(60))
    assert all(piece.text in code for piece in passages_of(SourceText("a.py", code), 30, has_tables=False))
    behind = f"{' | '.join(NAMES)}\n{rows}\n\n" + "Prose goes on behind it. " * 60
    last = passages_of(SourceText("a.txt", behind))[-1]
    assert "Dues owed" not in last.text


def test_two_tables_each_have_their_own_header():
    first, second = ("\n".join([header, "|---|---|", *(f"| {name} {n} | {n} |" for n in range(60))])
                     for header, name in (("| Boat | Berth |", "Heron"), ("| Tool | Price |", "Adze")))  # fmt: skip
    for piece in passages_of(SourceText("a.md", f"{first}\n\n{second}\n"), overlap=0):
        assert ("Heron" in piece.text) <= ("Boat" in piece.text)
        assert ("Adze" in piece.text) <= ("Tool" in piece.text)


def test_a_table_that_fits_stays_as_it_is():
    text = "Before.\n\na | b\n1 | 2\n3 | 4\n\nBehind."
    assert [piece.text for piece in passages_of(SourceText("a.txt", text))] == [text]


@pytest.mark.attack("exhausted resources")
def test_a_long_header_is_not_repeated():
    header = " | ".join(f"Name {number}" for number in range(400))
    rows = "\n".join(" | ".join(["7"] * 400) for _ in range(20))
    pieces = passages_of(SourceText("a.txt", f"{header}\n{rows}\n"), 1000)
    assert len(pieces) > 5
    assert sum("Name 7 " in piece.text for piece in pieces) == 1


def test_an_empty_corner_of_a_table_stays_a_column():
    page = b"<table><tr><td></td><td>2023</td><td>2024</td></tr><tr><td>North</td><td>1</td><td>2</td></tr></table>"
    assert html.whole(html.tree_of(page, None)).text == "| 2023 | 2024\nNorth | 1 | 2\n"


def test_paragraphs_in_a_cell_are_one_value_and_those_of_a_layout_are_apart():
    def text(cells):
        page = f"<table><tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr></table><p>End"
        return html.whole(html.tree_of(page.encode(), None)).text

    assert text(["<p>a</p>", "<div>b<br>c</div><ul><li>d</ul>", "e"]) == "a | b c d | e\nEnd\n"
    assert text(["<p>One.</p><p>Two.</p>"]) == "One.\nTwo.\nEnd\n"
    assert text(["<h2>One</h2><p>Two.</p>", "<p>Menu"]) == "One\nTwo.\nMenu\nEnd\n"
    assert text(["<p>Long.</p>" * 300, "b"]).startswith("Long.\nLong.\n")


def test_rows_without_text_are_left_out(docx_of):
    row = "<w:tr>{}</w:tr>".format("<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>" * 2)
    body = f"<w:tbl>{row.format('a', 'b')}{row.format('', '')}{row.format('', 'd')}</w:tbl>"
    assert word.read(docx_of(body), FileOrigin("a.docx", "docx")).text == "a | b\n | d\n\n"
