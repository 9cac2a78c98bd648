"""The addresses that stand behind the texts of links."""

import pytest

from cragside.adapters.documents.links import address_behind


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
