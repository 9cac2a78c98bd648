"""Rich text as many programs write it."""

import pytest

from cragside.adapters.documents import rich_text
from cragside.adapters.documents.reading import FileOrigin, Unreadable


def text_of(body, head=rb"\ansi\ansicpg1252"):
    return rich_text.read(rb"{\rtf1" + head + b" " + body + b"}", FileOrigin("a.rtf", "rtf")).text.strip()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"open \u-10179?\u-8704? until nine", "open \U0001f600 until nine"),
        (rb"\u128512?", "\U0001f600"),
        (rb"a\u-10179?b", "a\ufffdb"),
        (rb"\uc2\u8364 ??5 \uc0\u8364 5\uc1 {\uc0\u8364 6}\u8364?7", "€5 €5€6€7"),
        (rb"\u8364\'805", "€5"),
        (rb"\u8364 {?}", "€?"),
        (rb"\u99999999?\u0?x\u", "\ufffdx"),
        (rb"a\'zzb\'4", "azzb4"),
        (rb"a\.b\|c\:d\q99999999999 e", "abcde"),
        (rb"a\~b\_c\-d\{\}\\", "a\xa0b\u2011cd{}\\"),
        (b"a\\\nb\\\r\nc\\par\nd", "a\nb\nc\nd"),
        (rb"\lquote x\rquote\emdash y", "‘x’—y"),
        (rb"{\*\unknown{secret} more}{\*\newer 1}seen", "seen"),
        (rb"{\unknown seen}\wordsthatnobodyknows-7 too", "seentoo"),
        (rb"{\pict\jpegblip\picw10 \bin ffd8ffe0}seen", "seen"),
        (rb"{\pict\bin5 }}{{\}seen", "seen"),
        (rb"{\pict\bin99999 }}", ""),
        (rb"\bin-5 seen", "seen"),
        (rb"seen\bin" + b"7" * 5000 + b" }", "seen"),
        (rb"\fsN seen\uN?\uc-N too".replace(b"N", b"7" * 5000), "seen\ufffdtoo"),
        (rb"{\upr{old}{\*\ud{new \u8364?}}} seen", "new € seen"),
        (rb"{\listtext\pard 2.1\tab}Rent\par{\pntext (b)\tab}doors", "2.1\tRent\n(b)\tdoors"),
        (rb"seen}outside{\par", "seen"),
        (rb"{{{seen", "seen"),
        (rb"a\nestcell{\*\nesttableprops\nestrow}{\nonesttables\par}b", "a|\nb"),
        (rb"a\cell b\cell\row c", "a|b|\nc"),
        (b"a\x00b", "ab"),
    ],
)
def test_odd_rich_text_is_read(written, read):
    assert text_of(written) == read


@pytest.mark.parametrize(
    ("head", "written", "read"),
    [
        (rb"\ansi\ansicpg1251", b"\\'cf\\'f0\\'e8", "При"),
        (rb"\ansi\ansicpg1251", "При".encode("cp1251"), "При"),
        (
            rb"\ansi\ansicpg1252{\fonttbl{\f0 A;}{\f1\fcharset204 B;}}",
            rb"\f0\'fc{\f1\'cf}\'fc\f1\'cf\plain\'fc",
            "üПüПü",
        ),
        (rb"\ansi\ansicpg932", b"\\'93\\'fa\\'96{\\'83A}", "日\ufffdア"),
        (rb"\ansi\ansicpg932", b"\\'93\\'fa\\'96\\'7b \\'83A", "日本 ア"),
        (rb"\ansi{\fonttbl{\f0\fcharset128 MS Mincho;}}", rb"\loch\af0\dbch\f0\'82\'a0", "あ"),
        (rb"\mac", rb"\'8a", "ä"),
        (rb"\pc", rb"\'81", "ü"),
        (rb"\ansi\ansicpg65001", "Grüße".encode(), "Grüße"),
        (rb"\ansi\ansicpg99999", rb"\'fc", "ü"),
        (rb"\ansi\ansicpg", rb"\'fc", "ü"),
    ],
)
def test_bytes_are_read_in_the_encoding_of_their_font_or_file(head, written, read):
    assert text_of(written, head) == read


def test_notes_stand_below_their_paragraph():
    note = rb"{\super\chftn}{\footnote\pard{\super\chftn} The buyer was\par Halloran.}"
    end = rb"{\footnote\ftnalt Register.}"
    assert text_of(rb"Sold" + note + rb" in 1911." + end + rb"\par Let\cell " + note + rb"\row x") == (
        "Sold in 1911.\nFootnote 1: The buyer was Halloran.\nEndnote 1: Register.\nLet|\n"
        "Footnote 2: The buyer was Halloran.\nx"
    )


def test_the_address_of_a_link_stands_behind_its_text():
    link = rb'{\field{\*\fldinst{\b HYPERLINK "https://a.example/b?c=1" \\o "tip"}}{\fldrslt{\ul here}}}'
    assert text_of(b"Book " + link + b".") == "Book here (https://a.example/b?c=1)."
    inside = rb'{\field{\*\fldinst HYPERLINK \\l "top"}{\fldrslt top}} {\field{\*\fldinst PAGE}{\fldrslt 7}}'
    assert text_of(inside) == "top 7"


@pytest.mark.attack("hidden text")
def test_hidden_and_deleted_text_and_links_of_hidden_text_are_left_out():
    link = rb'{\v{\field{\*\fldinst HYPERLINK "https://a.example"}{\fldrslt A}}{\footnote B}}'
    assert text_of(rb"seen{\deleted C}{\v\u8364?\'fc\emdash\cell}" + link + rb"{\v\plain too}") == "seentoo"


@pytest.mark.attack("hostile files")
def test_endless_groups_are_refused_and_endless_fields_are_read():
    with pytest.raises(Unreadable, match="nested more than 10,000 groups"):
        text_of(b"{" * 20_000)
    fields = rb'{\field{\*\fldinst HYPERLINK "https://a.example"}{\fldrslt a' * 4000
    assert text_of(fields).startswith("aaa")
