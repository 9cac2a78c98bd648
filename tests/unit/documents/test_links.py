"""The addresses that stand behind the texts of links."""

import pytest

from cragside.adapters.documents import html
from cragside.adapters.documents.inline_text import address_behind, field_target
from cragside.adapters.documents.kinds import kind_of
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import A, R, epub_of, opendocument_of, pptx_of, shape


@pytest.mark.parametrize(
    ("text", "target", "behind"),
    [
        ("here", "https://a.example/b?c=1", " (https://a.example/b?c=1)"),
        ("here", " HTTP://a.example ", " (HTTP://a.example)"),
        ("here", "www.a.example", " (https://www.a.example)"),
        ("here", "//a.example/b", " (https://a.example/b)"),
        ("here", "https://a.example/my file.pdf", " (https://a.example/my%20file.pdf)"),
        ("write", "mailto:me@a.example?subject=Hello%20you", " (me@a.example)"),
        ("call", "tel:+49-40-123456", " (+49-40-123456)"),
        ("040 / 12 34 56", "tel:+4940123456", ""),
        ("me@a.example", "mailto:me@a.example", ""),
        ("a.example", "https://www.a.example/", ""),
        ("see https://a.example/b.", "https://a.example/b", ""),
        ("a.example", "https://a.example/b", " (https://a.example/b)"),
        ("https://a.example/müll", "https://a.example/m%C3%BCll", ""),
        ("", "https://a.example", ""),
        (" ", "https://a.example", ""),
        ("here", "", ""),
        ("here", "#top", ""),
        ("here", "../b.html", ""),
        ("here", "javascript:alert(1)", ""),
        ("here", "java\nscript:alert(1)", ""),
        ("here", "data:text/html,x", ""),
        ("here", "file:///etc/passwd", ""),
        ("here", "vbscript:x", ""),
        ("here", "https://a.example/\u202egpj.exe", ""),
        ("here", "https://a.example/\nIgnore all", ""),
        ("write", "mailto:a%0Ab@c.example", ""),
        ("here", "https://a.example/" + "x" * 500, ""),
        ("here", "https://" + " " * 1_000_000, ""),
    ],
)
def test_an_address_stands_behind_a_text_that_does_not_show_it(text, target, behind):
    assert address_behind(text, target) == behind


def read(content, name):
    kind, file_type = kind_of(content, name, None)
    return kind.reader(content, FileOrigin(name, file_type))


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        (' HYPERLINK "https://a.example/b" ', "https://a.example/b"),
        ("hyperlink https://a.example/b", "https://a.example/b"),
        ('HYPERLINK \\o "tip" \\t "_blank" "https://a.example"', "https://a.example"),
        ('HYPERLINK "https://a.example" \\l "part"', "https://a.example"),
        ('HYPERLINK \\l "part"', ""),
        ("PAGE", ""),
        ("HYPERLINK", ""),
        ('HYPERLINK "' + "x" * 100_000, ""),
    ],
)
def test_a_field_may_link_to_an_address(asked, target):
    assert field_target(asked) == target


PAGE = b"""<html><head><title>Hut</title></head><body><article>
<h1>How to book <a href='https://a.example/self'>the hut</a></h1>
<p>Fill in the <a href='https://huts.example.org/book?hut=7'><b>booking form</b> </a> two weeks ahead of your stay, and
bring the keys back to <a rel='author' href='https://b.example/ada'>Ada</a>.</p>
<p>The address <a href='https://huts.example.org/'>huts.example.org</a> is new, as is <a href='/other'>that page</a> and
<a href='javascript:steal()'>this button</a> which nobody has to press.</p>
<p hidden>Never <a href='https://hidden.example'>here</a></p>
<p><a href='https://c.example'><img alt='x'></a> <a href='https://d.example' style='color:white'>white</a></p>
</article></body></html>"""


def test_the_addresses_of_links_stand_in_the_article_of_a_page():
    reading = read(PAGE, "hut.html")
    assert "the **booking form** (https://huts.example.org/book?hut=7) two weeks" in reading.text
    assert "back to Ada (https://b.example/ada)." in reading.text
    assert reading.text.count("http") == 2
    assert reading.title == "How to book the hut"
    assert [mark.section for mark in reading.marks] == ["How to book the hut"]
    assert not any("http" in str(value) for value in reading.tier1.values())


def test_the_addresses_of_links_stand_in_the_whole_text_of_pages_mails_and_books():
    expected = [
        "How to book the hut",
        "Fill in the booking form (https://huts.example.org/book?hut=7) two weeks ahead of your stay, and bring "
        "the keys back to Ada (https://b.example/ada).",
    ]
    whole = html.whole(html.tree_of(PAGE, None)).text
    assert whole.split("\n")[:2] == expected
    assert whole.count("http") == 2
    mail = b"From: a@b.example\nSubject: x\nContent-Type: text/html\n\n" + PAGE
    assert expected[1] in read(mail, "a.eml").text
    link = '<p><a href="https://a.example/b">here</a> <a href="c%201.xhtml">next</a></p>'
    assert read(epub_of(link), "a.epub").text.strip() == "here (https://a.example/b) next"


def test_a_page_that_uses_the_signs_of_links_itself_keeps_its_text():
    page = PAGE.replace(b"two weeks", "two \U00020001 weeks".encode())
    text = read(page, "hut.html").text
    assert "booking form" in text
    assert "two \U00020001 weeks" in text
    assert "http" not in text


def test_addresses_do_not_change_what_is_the_article():
    links = "".join(f"<li><a href='https://nav.example/{number}'>Topic {number}</a></li>" for number in range(30))
    page = PAGE.replace(b"<article>", f"<nav><ul>{links}</ul></nav><article>".encode())
    assert read(page, "hut.html").text == read(PAGE, "hut.html").text


def test_the_addresses_of_links_stand_in_opendocument_files():
    link = '<text:a xmlns:x="http://www.w3.org/1999/xlink" x:href="{}">{}</text:a>'
    here = link.format("https://a.example/b", "<text:span>he</text:span>re")
    text = f"<text:p>Book {here}, not {link.format('#top', 'there')}{link.format('https://c.example', '')}.</text:p>"
    assert read(opendocument_of("text", text), "a.odt").text.strip() == "Book here (https://a.example/b), not there."


def test_the_addresses_of_links_stand_in_slides():
    def run(text, link=""):
        click = f'<a:rPr><a:hlinkClick xmlns:r="{R}" r:id="{link}"/></a:rPr>' if link else ""
        return f'<a:r xmlns:a="{A}">{click}<a:t>{text}</a:t></a:r>'

    lines = run("Book ") + run("he", "a1") + run("re", "a1") + run(" or ") + run("there", "a2") + run("next", "r1")
    body = shape("x").replace("<a:r><a:t>x</a:t></a:r>", lines)
    button = shape("Go").replace(
        "<p:nvSpPr>", f'<p:nvSpPr><p:cNvPr id="2" name="x"><a:hlinkClick xmlns:r="{R}" r:id="a2"/></p:cNvPr>'
    )
    titled = shape("Hut", place="title").replace("<a:r><a:t>Hut</a:t></a:r>", run("Hut", "a1"))
    reading = read(pptx_of(titled + body + button, addresses=["https://a.example/b", "https://c.example"]), "a.pptx")
    assert reading.text.split("\n\n")[1:3] == [
        "Book here (https://a.example/b) or there (https://c.example)next", "Go (https://c.example)",
    ]  # fmt: skip
    assert [mark.section for mark in reading.marks] == ["Hut"]
