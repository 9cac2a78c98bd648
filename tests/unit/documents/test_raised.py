"""Raised and lowered figures beside a number, in all formats that have them."""

import pytest

from cragside.adapters.documents import html, opendocument, rich_text, slides, word
from cragside.adapters.documents.reading import FileOrigin
from cragside.adapters.documents.texts import read_markdown
from tests.unit.documents.archives import opendocument_of, pptx_of, word_of

STYLES = (
    '<office:automatic-styles xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0">'
    '<style:style style:name="sup" style:family="text"><style:text-properties style:text-position="super 58%"/>'
    '</style:style><style:style style:name="sub" style:family="text"><style:text-properties '
    'style:text-position="-33% 58%"/></style:style></office:automatic-styles>'
)


def of_page(pieces):
    body = "".join(f"<{kind}>{text}</{kind}>" if kind else text for kind, text in pieces)
    return html.read(f"<html><body><p>{body}</p></body></html>".encode(), FileOrigin("a.html", "html"))


def of_styled_page(pieces):
    styles = {"sup": "vertical-align: super", "sub": "color: red; vertical-align:sub"}
    body = "".join(f'<span style="{styles[kind]}">{text}</span>' if kind else text for kind, text in pieces)
    return html.read(f"<html><body><p>{body}</p></body></html>".encode(), FileOrigin("a.html", "html"))


def of_markdown(pieces):
    body = "".join(f"<{kind}>{text}</{kind}>" if kind else text for kind, text in pieces)
    return read_markdown(body.encode(), FileOrigin("a.md", "md"))


def of_word(pieces):
    kinds = {"sup": "superscript", "sub": "subscript", "": "baseline"}
    runs = "".join(
        f'<w:r><w:rPr><w:vertAlign w:val="{kinds[kind]}"/></w:rPr><w:t xml:space="preserve">{letter}</w:t></w:r>'
        for kind, text in pieces
        for letter in text
    )
    return word.read(word_of(f"<w:p>{runs}</w:p>"), FileOrigin("a.docx", "docx"))


def of_opendocument(pieces):
    spans = "".join(f'<text:span text:style-name="{kind}">{text}</text:span>' for kind, text in pieces)
    content = opendocument_of("text", f"<text:p>{spans}</text:p>", styles=STYLES)
    return opendocument.read(content, FileOrigin("a.odt", "odt"))


def of_slides(pieces):
    shifts = {"sup": 30000, "sub": -25000, "": 0}
    runs = "".join(f'<a:r><a:rPr baseline="{shifts[kind]}"/><a:t>{text}</a:t></a:r>' for kind, text in pieces)
    shape = f"<p:sp><p:txBody><a:p>{runs}</a:p></p:txBody></p:sp>"
    return slides.read(pptx_of(shape), FileOrigin("a.pptx", "pptx"))


def of_rich_text(pieces):
    words = {"sup": "\\super ", "sub": "\\dn6 ", "": "\\nosupersub "}
    body = "".join(f"{{{words[kind]}{text}}}" for kind, text in pieces)
    encoded = body.replace("⁄", "\\u8260?").replace("−", "\\u8722?")
    return rich_text.read(f"{{\\rtf1\\ansi {encoded}}}".encode(), FileOrigin("a.rtf", "rtf"))


@pytest.mark.parametrize(
    "read", [of_page, of_styled_page, of_markdown, of_word, of_opendocument, of_slides, of_rich_text]
)
@pytest.mark.parametrize(
    ("pieces", "seen"),
    [
        ([("", "about 10"), ("sup", "3"), ("", " of them")], "about 10^3 of them"),
        ([("", "10"), ("sup", "−12"), ("", "m")], "10^−12m"),
        ([("", "sold 12"), ("sup", "1"), ("", ", in all")], "sold 12^1, in all"),
        ([("", "of 1250"), ("sup", "1, 2"), ("", ".")], "of 1250^(1, 2)."),
        ([("", "10"), ("sup", "3"), ("", "5")], "10^3 5"),
        ([("sup", "1"), ("", "250 crowns")], "1 250 crowns"),
        ([("", "101"), ("sub", "2"), ("", " is five")], "101(2) is five"),
        ([("", "5"), ("sup", "1"), ("", "⁄"), ("sub", "2"), ("", " cups")], "5 1⁄2 cups"),
        ([("", "5"), ("sup", "1"), ("", "/"), ("sub", "2"), ("", " cups")], "5 1/2 cups"),
        ([("", "H"), ("sub", "2"), ("", "O")], "H2O"),
        ([("", "the 1"), ("sup", "st"), ("", " of May")], "the 1st of May"),
        ([("", "7 m"), ("sup", "2")], "7 m2"),
    ],
)
def test_a_raised_figure_does_not_become_a_part_of_the_number_beside_it(read, pieces, seen):
    assert read(pieces).text.strip() == seen


def test_a_power_in_a_cell_that_counts_twice_and_in_half_a_word_stays_one():
    page = "<main><table><tr><th>Year</th><th>Cells</th></tr><tr><td>1</td><td rowspan=2><b>10</b><sup><i>3</i></sup>"
    text = html.read(f"{page}<tr><td>2</td></tr></table></main>".encode(), FileOrigin("a.html", "html")).text
    assert text.count("10^3") == 2


def test_elements_in_code_of_markdown_stay():
    text = "Write `10<sup>3</sup>` for 10<sup>3</sup>.\n\n```\n10<sup>3</sup>\n```\n"
    reading = read_markdown(text.encode(), FileOrigin("a.md", "md"))
    assert reading.text == "Write `10<sup>3</sup>` for 10^3.\n\n```\n10<sup>3</sup>\n```\n"
