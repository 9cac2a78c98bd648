"""Slides, books, OpenDocument files, rich text and notebooks."""

import io
import json
import zipfile
from datetime import date

import pytest
from openpyxl import Workbook

from cragside.adapters.documents.kinds import kind_of
from cragside.adapters.documents.reading import FileOrigin, Unreadable
from tests.unit.documents.archives import OASIS, epub_of, opendocument_of, paragraph, pptx_of, shape, strict, word_of


def read(content, name):
    kind, file_type = kind_of(content, name, None)
    return kind.reader(content, FileOrigin(name, file_type))


def parts_of(reading):
    """Page, section and text of each part."""
    ends = [*(mark.start for mark in reading.marks[1:]), len(reading.text)]
    return [
        (mark.page, mark.section, reading.text[mark.start : end].strip())
        for mark, end in zip(reading.marks, ends, strict=True)
    ]


def test_slides_are_pages_with_titles_tables_and_notes_in_the_order_of_the_show():
    table = "<p:graphicFrame><a:tbl>{}</a:tbl></p:graphicFrame>".format(
        "".join(
            "<a:tr>" + "".join(f"<a:tc><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:tc>" for cell in row) + "</a:tr>"
            for row in (("Shed", "Tenant"), ("12", "Rowing club"))
        )
    )
    first = shape("Boats", place="ctrTitle") + shape("One line", "Another") + shape("3", place="sldNum")
    content = pptx_of(first, shape("secret"), shape("Sheds", place="title") + table, notes="Say hello", hidden={1})
    reading = read(content, "a.pptx")
    assert reading.title == "Boats"
    assert parts_of(reading) == [
        (1, "Boats", "Boats\n\nOne line\nAnother\n\nNotes: Say hello"),
        (3, "Sheds", "Sheds\n\nShed | Tenant\n12 | Rowing club"),
    ]


def test_chapters_of_a_book_are_sections_in_the_order_of_the_spine():
    head = '<?xml version="1.0"?><!DOCTYPE html>'
    reading = read(
        epub_of("<h1>Storm</h1><p>It&nbsp;blew.</p><h2>Night</h2><p>Dark.</p>", "<p>Calm.</p>", head=head), "a.epub"
    )
    assert (reading.title, reading.tier1) == ("The Keeper", {"title": "The Keeper", "author": "Ada Keeper"})
    assert parts_of(reading) == [
        (None, "Storm", "Storm\nIt blew."),
        (None, "Storm > Night", "Night\nDark."),
        (None, "Part 1", "Calm."),
    ]


def test_what_a_reader_of_a_book_cannot_see_is_left_out():
    assert read(epub_of('<p>Seen.</p><p style="display:none">Hidden.</p>'), "a.epub").text.strip() == "Seen."


def test_headings_tables_and_blanks_of_an_opendocument_text():
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">Weir</text:h>'
        '<text:p>One<text:s text:c="2"/>two<office:annotation><text:p>comment</text:p></office:annotation>'
        '<text:line-break/>three</text:p><text:section><text:h text:outline-level="2">Care</text:h></text:section>'
        "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
        "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
    )
    reading = read(opendocument_of("text", body), "a.odt")
    assert reading.title == "Weir"
    assert parts_of(reading) == [
        (None, "Weir", "Weir\n\nOne  two\nthree"),
        (None, "Weir > Care", "Care\n\na | b"),
    ]


def test_rows_of_an_opendocument_sheet_have_their_numbers():
    def row(*cells, times=1):
        return f'<table:table-row table:number-rows-repeated="{times}">' + "".join(
            f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells
        ) + '<table:table-cell table:number-columns-repeated="16000"/></table:table-row>'  # fmt: skip

    rows = row("Shed", "Rent") + row(times=3) + row("12", "5,00 €", times=2) + row(times=1_048_000)
    reading = read(opendocument_of("spreadsheet", f'<table:table table:name="Sheds">{rows}</table:table>'), "a.ods")
    assert parts_of(reading) == [
        (None, "Sheds > row 1", "Sheds – Columns: Shed; Rent"),
        (None, "Sheds > row 5", "Sheds – Shed: 12; Rent: 5,00 €"),
        (None, "Sheds > row 6", "Sheds – Shed: 12; Rent: 5,00 €"),
    ]


def test_slides_of_an_opendocument_presentation_are_pages():
    slide = (
        '<draw:page><draw:frame presentation:class="title"><text:p>Boats</text:p></draw:frame><draw:frame><text:p>One'
        "</text:p></draw:frame><presentation:notes><text:p>Hello</text:p></presentation:notes></draw:page>"
    )
    reading = read(opendocument_of("presentation", slide + "<draw:page/>"), "a.odp")
    assert parts_of(reading) == [(1, "Boats", "Boats\n\nOne\n\nNotes: Hello"), (2, "", "")]


def test_rich_text_keeps_its_letters_in_every_code_page():
    text = rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\*\generator x}\f0 Gr\'fc\'dfe \u8364?5\par next {\b bold}}"
    assert read(text, "a.rtf").text.strip() == "Grüße €5\nnext bold"


def notebook(*cells, **more):
    return json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, **more}).encode()


def test_notes_code_and_printed_output_of_a_notebook():
    outputs = [
        {"output_type": "stream", "text": ["42\n"]},
        {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}},
        {"output_type": "error", "ename": "KeyError", "evalue": "x", "traceback": ["long"]},
        {"output_type": "stream", "text": "y" * 9000},
    ]
    reading = read(
        notebook(
            {"cell_type": "markdown", "source": ["# Tides\n", "Notes."]},
            {"cell_type": "code", "source": "print(42) # ```", "outputs": outputs},
        ),
        "a.ipynb",
    )
    assert (reading.title, [mark.section for mark in reading.marks]) == ("Tides", ["Tides"])
    assert reading.tier1 == {"lang": "python"}
    expected = "# Tides\nNotes.\n\n````python\nprint(42) # ```\n````\n\n```\n42\n```\n\n```\n<Figure>\n```\n\n"
    assert reading.text == f"{expected}```\nKeyError: x\n```\n\n```\n{'y' * 4000} …\n```"


@pytest.mark.parametrize("content", [b"{", b"[]", b"3", b'{"cells": 3}', b'{"cells": [3, {"source": {}}]}'])
def test_what_is_no_notebook_is_refused(content):
    with pytest.raises(Unreadable):
        read(content, "a.ipynb")


def test_a_format_is_recognised_by_its_content():
    assert kind_of(pptx_of(shape("x")), "a.docx", None)[1] == "pptx"
    assert kind_of(epub_of("x"), "a", None)[1] == "epub"
    assert kind_of(opendocument_of("text", ""), "a.zip", None)[0].module == "opendocument"
    assert kind_of(b"{\\rtf1 x}", "a.txt", None)[1] == "rtf"


@pytest.mark.attack("hidden text")
def test_what_a_reader_of_an_opendocument_file_cannot_see_is_left_out():
    space = 'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
    space += ' xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'
    styles = (
        f"<office:document-styles {OASIS} {space}>"
        '<style:style style:name="Gone" style:family="text"><style:text-properties text:display="none"/></style:style>'
        '<style:style style:name="Tiny" style:family="text"><style:text-properties fo:font-size="1pt"/></style:style>'
        '<style:style style:name="Small" style:family="text"><style:text-properties fo:font-size="10pt"/></style:style>'
        '<style:style style:name="Away" style:family="table"><style:table-properties table:display="false"/>'
        "</style:style>"
        "</office:document-styles>"
    )
    more = {"styles.xml": styles}
    text = (
        '<text:p>Seen <text:span text:style-name="Gone">A</text:span>and '
        '<text:span text:style-name="Tiny">B</text:span><text:span text:style-name="Small">small</text:span>.</text:p>'
        '<text:section text:display="none"><text:p>C</text:p></text:section>'
        '<text:p>D<text:hidden-paragraph text:is-hidden="true"/></text:p>'
        '<text:p>Shown<text:hidden-paragraph text:is-hidden="false"/></text:p>'
    )
    assert read(opendocument_of("text", text, more=more), "a.odt").text.split() == ["Seen", "and", "small.", "Shown"]
    cell = "<table:table-row><table:table-cell><text:p>{0}</text:p></table:table-cell></table:table-row>"
    sheets = (
        f'<table:table table:name="One">{cell.format("seen")}</table:table>'
        f'<table:table table:name="Two" table:style-name="Away">{cell.format("E")}</table:table>'
    )
    assert read(opendocument_of("spreadsheet", sheets, more=more), "a.ods").text.split() == ["One", "–", "seen"]


@pytest.mark.attack("hidden text")
def test_what_a_reader_of_slides_cannot_see_is_left_out():
    hidden = shape("A").replace("<p:nvSpPr>", '<p:nvSpPr><p:cNvPr id="2" name="x" hidden="1"/>')
    group = '<p:grpSp><p:nvGrpSpPr><p:cNvPr id="3" name="y" hidden="true"/></p:nvGrpSpPr>' + shape("B") + "</p:grpSp>"
    assert read(pptx_of(shape("Seen") + hidden + group), "a.pptx").text.split() == ["Seen"]


@pytest.mark.attack("hidden text")
def test_hidden_groups_of_rich_text_are_left_out():
    text = rb"{\rtf1\ansi Seen {\v A}{\f0\fs20\v\b B}{\vertalt and} {\b bold}}"
    assert read(text, "a.rtf").text.split() == ["Seen", "and", "bold"]


@pytest.mark.attack("hidden text")
def test_hidden_text_of_rich_text_ends_where_it_is_switched_off():
    text = rb"{\rtf1\ansi Seen \v A{B \'fc\u8364?}\v0 and {\v C \}{\b D}\v0 later} {\v E\plain plain} {\v0 last}}"
    assert read(text, "a.rtf").text.split() == ["Seen", "and", "later", "plain", "last"]


@pytest.mark.attack("hidden text")
def test_the_style_sheets_of_a_book_hide_text():
    links = '<link rel="stylesheet" href="../my%20style.css"/>'
    css = ".gone { display: none } .light { color: white }"
    chapter = '<p>Seen</p><p class="gone">A</p><p class="light">light</p>'
    book = epub_of(chapter, links=links, more={"OEBPS/my style.css": css})
    assert read(book, "a.epub").text.split() == ["Seen", "light"]


def test_alternate_and_missing_style_sheets_of_a_book_hide_nothing():
    links = (
        '<link rel="alternate stylesheet" href="../a.css"/><link rel="stylesheet" href="../../../b.css"/>'
        '<link rel="stylesheet" href="../c.css"/>'
    )
    book = epub_of(
        '<p class="x">Seen</p>', links=links, more={"OEBPS/a.css": ".x{display:none}", "OEBPS/c.css": "\x00{"}
    )
    assert read(book, "a.epub").text.split() == ["Seen"]


@pytest.mark.attack("hidden text")
def test_styles_of_opendocument_hide_what_inherits_them_and_nothing_else():
    space = 'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
    space += ' xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'

    def style(family, name, properties, parent=""):
        return (
            f'<style:style style:family="{family}" style:name="{name}" style:parent-style-name="{parent}">'
            f"<style:text-properties {properties}/></style:style>"
        )

    styles = (
        f"<office:document-styles {OASIS} {space}><office:styles>"
        + style("text", "Gone", 'text:display="none"')
        + style("text", "Heir", 'fo:color="#000000"', "Gone")
        + style("text", "Loop", "", "Loop")
        + style("paragraph", "Tiny", 'fo:font-size="1pt"')
        + style("text", "Big", 'fo:font-size="12pt"')
        + style("graphic", "Same", 'fo:font-size="1pt"')
        + "</office:styles><office:automatic-styles>"
        + style("paragraph", "P1", 'fo:font-size="1pt"')
        + "</office:automatic-styles></office:document-styles>"
    )
    text = (
        '<text:p><text:span text:style-name="Heir">A</text:span>One <text:span text:style-name="Loop">two</text:span>'
        '</text:p><text:p text:style-name="Tiny">B<text:span text:style-name="Big">three</text:span>C</text:p>'
        '<text:p text:style-name="Same">four</text:p><text:p text:style-name="P1">five</text:p>'
    )
    reading = read(opendocument_of("text", text, more={"styles.xml": styles}), "a.odt")
    assert reading.text.split() == ["One", "two", "three", "four", "five"]


def workbook(*rows, template=False):
    book, file = Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.template = template
    book.save(file)
    return file.getvalue()


@pytest.mark.parametrize("form", ["document.macroEnabled.12", "template.macroEnabled.12", "template"])
def test_documents_with_macros_and_templates_are_read(form):
    content = word_of(paragraph("words"), main_type=f"application/vnd.ms-word.{form}.main+xml")
    for name in ("a.docx", "a.docm", "a.dotx", "a.dotm", "a"):
        assert read(content, name).text.strip() == "words"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (lambda: workbook(["Shed", "Rent"], ["12", "5"], template=True), "a.xltx"),
        (lambda: workbook(["Shed", "Rent"], ["12", "5"]), "a.xltm"),
        (lambda: pptx_of(shape("12")), "a.potx"),
        (lambda: pptx_of(shape("12")), "a.pptm"),
        (lambda: opendocument_of("text", "<text:p>12</text:p>"), "a.ott"),
    ],
)
def test_the_endings_of_templates_and_macros_are_known(content, name):
    assert "12" in read(content(), name).text
    assert kind_of(content(), name, None)[1] == name[2:]


@pytest.mark.parametrize(
    "stated",
    [
        "application/vnd.ms-word.document.macroEnabled.12",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
    ],
)
def test_the_content_types_of_templates_and_macros_are_known(stated):
    assert kind_of(word_of(paragraph("x")), "download", stated)[0].module == "word"


def test_strict_office_documents_are_read_as_others():
    content = word_of(paragraph("Kiln", style="Heading1") + paragraph("980 degrees"))
    assert strict(content) != content
    assert parts_of(read(strict(content), "a.docx")) == [(None, "Kiln", "Kiln\n\n980 degrees")]
    rows = (["Kiln", "Fired"], ["long", date(2024, 3, 31)])
    assert read(strict(workbook(*rows)), "a.xlsx").text == read(workbook(*rows), "a.xlsx").text
    assert parts_of(read(strict(pptx_of(shape("Kiln", place="title"))), "a.pptx")) == [(1, "Kiln", "Kiln")]


@pytest.mark.attack("hidden text")
def test_strict_documents_hide_what_others_hide():
    run = "<w:p><w:r><w:rPr>{}</w:rPr><w:t>A</w:t></w:r><w:r><w:t>seen</w:t></w:r></w:p>"
    for hidden in ('<w:sz w:val="1pt"/>', '<w:vanish w:val="true"/>'):
        assert read(strict(word_of(run.format(hidden))), "a.docx").text.strip() == "seen"


def test_opendocument_files_may_have_document_types_without_entities():
    manifest = '<!DOCTYPE manifest:manifest PUBLIC "-//OpenOffice.org//DTD Manifest 1.0//EN" "Manifest.dtd"><x/>'
    more = {"META-INF/manifest.xml": manifest, "Basic/script-lc.xml": '<!DOCTYPE library:libraries PUBLIC "x" "y"><x/>'}
    assert read(opendocument_of("text", "<text:p>words</text:p>", more=more), "a.odt").text.strip() == "words"


def test_notes_of_an_opendocument_text_stand_below_their_paragraph():
    def note(kind, number, words):
        return (
            f'<text:note text:note-class="{kind}"><text:note-citation>{number}</text:note-citation><text:note-body>'
            f"<text:p>{words}</text:p></text:note-body></text:note>"
        )

    body = (
        f"<text:h>House{note('footnote', 1, 'Now a shop.')}</text:h><text:p>Sold<text:span>"
        f"{note('footnote', 2, 'To the Rowes.')}</text:span> in 1911{note('endnote', 'i', 'Deed 31.')}.</text:p>"
    )
    reading = read(opendocument_of("text", body), "a.odt")
    assert reading.text == (
        "House\nFootnote 1: Now a shop.\n\nSold in 1911.\nFootnote 2: To the Rowes.\nEndnote i: Deed 31.\n\n"
    )
    assert [mark.section for mark in reading.marks] == ["House"]


def test_equations_of_slides_are_written_in_a_line():
    run = '<a14:m xmlns:a14="urn:a14" xmlns:m="{}"><m:oMath><m:r><m:t>Q=2·h</m:t></m:r></m:oMath></a14:m>'.format(
        "http://schemas.openxmlformats.org/officeDocument/2006/math"
    )
    body = shape("With ").replace("</a:p>", f"{run}<a:r><a:t> it flows.</a:t></a:r></a:p>")
    assert read(pptx_of(body), "a.pptx").text.strip() == "With Q = 2·h it flows."


def test_lists_and_tables_in_cells_of_an_opendocument_text_are_read_once():
    def table(*cells):
        written = "".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in cells)
        return f"<table:table><table:table-row>{written}</table:table-row></table:table>"

    inner = table("<text:p>Slates</text:p>", "<text:p>640</text:p>")
    listed = "<text:list><text:list-item><text:p>new</text:p></text:list-item></text:list>"
    assert read(opendocument_of("text", table(f"<text:p>P-208</text:p>{inner}", listed)), "a.odt").text.strip() == (
        "P-208 Slates 640 | new"
    )


CHARTS = f'{OASIS} xmlns:chart="urn:oasis:names:tc:opendocument:xmlns:chart:1.0"'
CHART = (
    f"<office:document-content {CHARTS}><office:body><office:chart><chart:chart>"
    "<chart:title><text:p>Eels</text:p></chart:title><table:table><table:table-header-rows><table:table-row>"
    "<table:table-cell><text:p/></table:table-cell><table:table-cell><text:p>Up</text:p></table:table-cell>"
    "</table:table-row></table:table-header-rows><table:table-row><table:table-cell><text:p>2024</text:p>"
    "</table:table-cell><table:table-cell><text:p>517</text:p></table:table-cell></table:table-row></table:table>"
    "</chart:chart></office:chart></office:body></office:document-content>"
)
MATH = (
    '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mi>Q</mi><annotation encoding="StarMath 5.0">'
    "Q = 1.84 cdot b</annotation></semantics></math>"
)
OBJECT = '<draw:frame><draw:object xmlns:x="http://www.w3.org/1999/xlink" x:href="./Object {}"/></draw:frame>'


def test_charts_and_formulas_of_opendocument_files_are_read_where_they_stand():
    more = {"Object 1/content.xml": CHART, "Object 2/content.xml": MATH}
    slide = f"<draw:page>{OBJECT.format(1)}{OBJECT.format(1)}{OBJECT.format(3)}</draw:page>"
    assert read(opendocument_of("presentation", slide, more=more), "a.odp").text.strip() == "Eels\n\n | Up\n2024 | 517"
    text = f"<text:p>With {OBJECT.format(2)} it flows.</text:p><text:p>Counts: {OBJECT.format(1)}</text:p>"
    assert read(opendocument_of("text", text, more=more), "a.odt").text.strip() == (
        "With Q = 1.84 cdot b it flows.\n\nCounts: \nEels\n\n | Up\n2024 | 517"
    )


def test_charts_and_formulas_in_cells_of_opendocument_sheets_are_no_values():
    more = {"Object 1/content.xml": CHART, "Object 2/content.xml": MATH}
    cells = (
        ("<text:p>Shed</text:p>", "<text:p>Tenant</text:p>"),
        (f"<text:p>12</text:p>{OBJECT.format(2)}", OBJECT.format(1)),
    )
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in cells
    )
    content = opendocument_of("spreadsheet", f'<table:table table:name="Sheds">{rows}</table:table>', more=more)
    assert read(content, "a.ods").text.strip().endswith("Shed: 12")


@pytest.mark.attack("hidden text")
def test_charts_in_hidden_sections_of_opendocument_files_are_left_out():
    body = f'<text:p>seen</text:p><text:section text:display="none"><text:p>{OBJECT.format(1)}</text:p></text:section>'
    content = opendocument_of("text", body, more={"Object 1/content.xml": CHART})
    assert read(content, "a.odt").text.strip() == "seen"


def test_words_of_text_boxes_in_opendocument_texts_are_not_joined():
    box = "<draw:frame><draw:text-box><text:p>Open</text:p><text:p>at nine</text:p></draw:text-box></draw:frame>"
    assert read(opendocument_of("text", f"<text:p>The weir{box}is old.</text:p>"), "a.odt").text.split() == [
        "The", "weir", "Open", "at", "nine", "is", "old.",
    ]  # fmt: skip


def test_a_document_type_that_names_entities_elsewhere_opens_nothing():
    content = opendocument_of("text", "<text:p>one&e;two</text:p>")
    head = (
        '<!DOCTYPE office:document-content PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "file:///etc/passwd">'
    )
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        body = archive.read("content.xml").decode()
    assert read(opendocument_of("text", "", more={"content.xml": head + body}), "a.odt").text.strip() == "onetwo"


def test_numbered_paragraphs_of_slides_have_their_numbers():
    def line(text, form="", level=0, start=""):
        numbered = f'<a:buAutoNum type="{form}" {start}/>' if form else ""
        return f'<a:p><a:pPr lvl="{level}">{numbered}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'

    lines = [
        line("a", "arabicPeriod"), line("b", "alphaLcParenBoth", 1), line("c", "alphaLcParenBoth", 1), line(""),
        line("d", "arabicPeriod"), line("e", "alphaLcParenBoth", 1), line("f"), line("g", "arabicPeriod"),
        line("h", "romanUcParenR", start='startAt="4"'), line("i", "romanUcParenR", start='startAt="4"'),
        line("j", "unknown"), line("k", "arabicPlain", level="x", start='startAt="x"'),
    ]  # fmt: skip
    body = shape("x").replace("<a:p><a:r><a:t>x</a:t></a:r></a:p>", "".join(lines))
    assert read(pptx_of(body), "a.pptx").text.strip().split("\n") == [
        "1. a", "(a) b", "(b) c", "2. d", "(a) e", "f", "1. g", "IV) h", "V) i", "j", "1 k",
    ]  # fmt: skip
