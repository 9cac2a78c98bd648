"""Files of each format, read as a whole."""

import asyncio
import json
from pathlib import Path

import pytest

from cragside.adapters.documents import html, texts
from cragside.adapters.documents.kinds import kind_of
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.web.fetcher import CONTENT_TYPES
from cragside.domain.errors import ValidationError
from tests.programs import output_of

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def load():
    loader = FileLoader(parallel=1)

    async def read(content, name, content_type=None):
        return await loader.load(
            content.encode() if isinstance(content, str) else content, name=name, content_type=content_type
        )

    yield read
    asyncio.run(loader.close())


def on_page(source, number):
    starts = {mark.page: mark.start for mark in source.marks}
    return source.text[starts[number] : starts.get(number + 1)]


async def test_every_page_of_a_pdf_made_by_libreoffice_is_where_it_should_be(load):
    source = await load((DATA / "survey.pdf").read_bytes(), "survey.pdf")
    assert (source.file_type, source.doc_type, source.title) == ("pdf", "pdf", "The Station Survey")
    assert source.size == (DATA / "survey.pdf").stat().st_size
    assert {**source.tier1, "createdDate": ""} == {
        "title": "The Station Survey",
        "author": "Ada Keeper",
        "pageCount": 200,
        "createdDate": "",
    }
    assert source.tier1["createdDate"].startswith("2026-")
    assert [mark.page for mark in source.marks] == list(range(1, 201))
    for number in range(1, 201):
        assert f"auf Seite {number} steht die Prüfzahl {number * 104_729 % 1_000_003}." in on_page(source, number)
        assert f"Station {number} recorded {number * 37 + 11} " in on_page(source, number)
    assert source.marks[136].section == "Part 7 > Station 137"


async def test_a_docx_made_by_libreoffice_keeps_its_order_headings_and_table(load):
    source = await load((DATA / "weir.docx").read_bytes(), "weir.docx")
    assert source.title == "Handbook of the Weir"
    assert source.tier1 == {
        "title": "Handbook of the Weir",
        "author": "Ada Keeper",
        "createdDate": "2026-03-01T09:30:00+00:00",
    }
    assert (
        "hang in the mill.\n\nGate | Width | Keeper\nNorth | 3.20 m | Jürgen\nSouth | 2.85 m | Ines\n\nThe table"
        in source.text
    )
    assert [(mark.section, source.text[mark.start :].split("\n")[0]) for mark in source.marks] == [
        ("The weir", "The weir"),
        ("The weir > Gates", "Gates"),
        ("The turbine", "The turbine"),
    ]


async def test_a_docx_is_read_in_printed_order(load, docx_of):
    paragraphs = """
      <w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Terms</w:t></w:r></w:p>
      <w:p><w:r><w:t>Paid in </w:t></w:r><w:del><w:r><w:delText>thirty</w:delText></w:r></w:del>
        <w:ins><w:r><w:t>ten</w:t></w:r></w:ins><w:r><w:t xml:space="preserve"> days</w:t></w:r>
        <w:r><w:rPr><w:vanish/></w:rPr><w:t>SECRET</w:t></w:r></w:p>
      <w:sdt><w:sdtContent><w:p><w:r><w:t>In a control</w:t></w:r></w:p></w:sdtContent></w:sdt>
      <w:p><w:moveFrom><w:r><w:t>moved away</w:t></w:r></w:moveFrom><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t></w:r></w:p>
    """
    source = await load(docx_of(paragraphs), "terms.docx")
    assert source.text.split() == ["Terms", "Paid", "in", "ten", "days", "In", "a", "control", "a", "b"]
    assert source.title == "Terms"
    assert source.marks[0].section == "Terms"


HTML = """<!doctype html><html><head><title>Otters of the coast | Site</title><meta charset="{charset}">
<meta name="author" content="Ada Keeper"><meta property="article:published_time" content="2026-02-03T10:00:00Z">
<script>var tracking = "nowhere";</script></head>
<body><nav><a href="/">Home</a><a href="/b">Buy now</a></nav><article><h1>Otters of the coast</h1>
<p>Sea otters wrap themselves in kelp before they sleep, so that the tide does not carry them off while they rest.</p>
<h2>Food</h2><p>They eat urchins, crabs and clams; an adult takes a quarter of its weight every day in cold water.</p>
<h3>Urchins</h3><p>Where otters vanish, urchins eat the kelp forests down to the rock — Grüße from the coast.</p>
</article><footer>Imprint and cookies</footer></body></html>"""


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252"])
async def test_a_page_is_read_as_an_article(load, charset):
    page = HTML.format(charset=charset).replace("—", "-")
    source = await load(page.encode(charset), "https://coast.example/otters?x=1", "text/html")
    assert (source.file_type, source.doc_type) == ("html", "article")
    assert "Grüße from the coast" in source.text
    assert "tracking" not in source.text
    assert "Buy now" not in source.text
    assert source.title == source.tier1["title"] == "Otters of the coast"
    assert source.tier1["author"] == "Ada Keeper"
    assert source.tier1["publishDate"] == "2026-02-03"
    assert source.tier1["url"] == "https://coast.example/otters?x=1"
    assert [mark.section for mark in source.marks][-2:] == [
        "Otters of the coast > Food",
        "Otters of the coast > Food > Urchins",
    ]


async def test_a_page_declares_its_charset_behind_scripts_of_any_length(load):
    scripts = "<script>" + "var a = 1;" * 5_000 + "</script>"
    page = f'<html><head><title>T</title>{scripts}<meta charset="windows-1251"></head><body><p>Ёж</body></html>'
    assert "Ёж" in (await load(page.encode("cp1251"), "a.html")).text


async def test_pages_and_tables_in_legacy_encodings_are_read(load):
    table = await load("品名,数量\n長靴,125\n防水布,58\n".encode("cp932"), "stock.csv")
    page = await load("<h1>Паром</h1><p>Паром отходит в восемь сорок утра.".encode("cp1251"), "ferry.html")
    assert "品名: 長靴; 数量: 125" in table.text
    assert "Паром отходит в восемь сорок утра." in page.text


async def test_text_in_an_unknown_encoding_is_refused_with_what_to_do(load):
    with pytest.raises(ValidationError, match="encoding that is not recognised: if it is text, save it as UTF-8"):
        await load(b"a\x80b\xffc\x81d \x9d\x8de\xfe", "note.txt")


def test_all_of_a_page_is_read_where_there_is_no_article():
    page = (
        "<html><head><title>T</title></head><body><h1>List</h1><ul><li>one <b>bold</b> word</li></ul><p hidden>no</p>"
        "<style>x{}</style><h2>Sub <i>part</i></h2>two<p style='display: none'>no</p><table><tr><td>a<td>b</table>"
    )
    read = html.whole(html.tree_of(page.encode(), None))
    assert read.text == "List\none bold word\nSub part\ntwo\na | b\n"
    assert [(mark.section, read.text[mark.start :][:4]) for mark in read.marks] == [
        ("List", "List"),
        ("List > Sub part", "Sub "),
    ]


async def test_a_short_page_is_not_lost(load):
    assert (await load("<p>Closed on Mondays.", "note.html")).text.strip() == "Closed on Mondays."


async def test_a_page_without_text_is_refused(load):
    with pytest.raises(ValidationError, match="page without text"):
        await load("<html><body><script>app()</script><div id=app></div></body></html>", "app.html")


async def test_json_is_laid_out_and_numbers_stay_as_they_are(load):
    source = await load(
        '{"price":19.90,"id":123456789012345678901234567890,"name":"Gr\\u00fc\\u00dfe","n":[1,null]}', "a.json"
    )
    assert '"price": 19.90' in source.text
    assert '"id": 123456789012345678901234567890' in source.text
    assert '"name": "Grüße"' in source.text
    assert json.loads(source.text)["n"] == [1, None]


async def test_json_lines_are_read_and_a_cut_line_costs_that_line(load):
    source = await load('{"a":1}\n\n{"b":2}\n', "a.jsonl")
    assert '"a": 1' in source.text
    assert '"b": 2' in source.text
    assert (await load('{"a":1}\n{"b":2}\n', "a.json")).text == source.text
    cut = await load('{"a":1}\n{"b":\n{"c":3}\n', "a.jsonl")
    assert '"c": 3' in cut.text
    assert cut.unread == "line 2 (Expecting value) is not valid JSON and was not read"
    with pytest.raises(ValidationError, match="not valid JSON in line 1"):
        await load('{"b":\n{"a":\n{"c":1}\n', "a.jsonl")
    with pytest.raises(ValidationError, match=r"not valid JSON \(line 1: Expecting"):
        await load("{a: 1}", "a.json")


async def test_half_a_surrogate_pair_in_json_breaks_nothing(load):
    assert "ud800" in (await load('{"a": "\\ud800"}', "a.json")).text


async def test_a_slack_export_becomes_a_chat(load):
    asked = "Hi <@U2>, see <https://a.example|this> &amp; that"
    first = {"ts": "1767225600.000100", "user": "U1", "text": asked, "user_profile": {"real_name": "Ada Keeper"}}
    second = {"ts": "1767225660.000200", "user": "U2", "text": "ok", "user_profile": {"display_name": "ines"}}
    messages = [
        {"type": "message", **first, "thread_ts": "1767225600.000100"},
        {"type": "message", **second, "files": [{"name": "plan.pdf"}]},
    ]
    source = await load(json.dumps(messages), "export/general/2026-01-01.json")
    assert source.doc_type == "slack"
    assert source.text.splitlines() == [
        "[2026-01-01 00:00:00Z] Ada Keeper: Hi @ines, see this (https://a.example) & that",
        "[2026-01-01 00:01:00Z] ines: ok [file: plan.pdf]",
    ]
    assert source.tier1 == {
        "channel": "general",
        "threadId": "1767225600.000100",
        "participants": ["Ada Keeper", "ines"],
        "timestamp": "2026-01-01T00:00:00Z",
    }


EMAIL = b"""From: =?utf-8?q?J=C3=BCrgen_Weir?= <j@weir.example>
To: Ada <ada@weir.example>, ines@weir.example
Cc: mill@weir.example
Subject: =?utf-8?b?U2NobMO8c3NlbA==?= for the gates
Date: Tue, 03 Feb 2026 10:15:00 +0100
Message-ID: <2@weir.example>
In-Reply-To: <1@weir.example>
References: <0@weir.example> <1@weir.example>
MIME-Version: 1.0
"""


async def test_an_email_has_headers_text_and_named_attachments(load):
    body = b"""Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Der Schl=FCssel h=E4ngt.
--b
Content-Type: application/pdf; name=plan.pdf
Content-Disposition: attachment; filename=plan.pdf
Content-Transfer-Encoding: base64

JVBERi0=
--b--
"""
    source = await load(EMAIL + body, "mail.eml")
    assert (source.doc_type, source.title) == ("email", "Schlüssel for the gates")
    assert source.text.startswith("From: Jürgen Weir <j@weir.example>\nTo: Ada <ada@weir.example>")
    assert "Der Schlüssel hängt." in source.text
    assert "Attachments (not indexed): plan.pdf" in source.text
    assert "JVBERi0" not in source.text
    assert source.tier1 == {
        "from": "Jürgen Weir <j@weir.example>",
        "to": ["Ada <ada@weir.example>", "ines@weir.example"],
        "cc": ["mill@weir.example"],
        "subject": "Schlüssel for the gates",
        "date": "2026-02-03T10:15:00+01:00",
        "messageId": "<2@weir.example>",
        "inReplyTo": "<1@weir.example>",
        "references": ["<0@weir.example>", "<1@weir.example>"],
        "unread": source.unread,
    }
    assert source.unread == "the attachment plan.pdf was not read"


async def test_an_email_of_html_alone_is_read_as_the_page_it_is(load):
    source = await load(
        EMAIL + b"Content-Type: text/html; charset=utf-8\n\n<h1>Keys</h1><p>In the <b>mill</b>.</p>", "m.eml"
    )
    assert "Keys\nIn the mill." in source.text
    assert source.text[source.marks[0].start :].startswith("Keys")


async def test_transcripts_keep_their_speakers_and_a_time_every_half_minute(load):
    vtt = """WEBVTT

1
00:00:01.000 --> 00:00:04.000
<v Ada Keeper>The weir <i>leaks</i>.

00:00:04.000 --> 00:00:06.000
<v Ada Keeper>At the north gate.

01:02:03.000 --> 01:02:05.500
Ines: I shall look.
"""
    source = await load(vtt, "call.vtt")
    assert source.text == "[0:01] Ada Keeper: The weir leaks. At the north gate.\n[1:02:03] Ines: I shall look."
    assert (source.doc_type, source.tier1) == (
        "meeting",
        {"duration": "01:02:05", "participants": ["Ada Keeper", "Ines"]},
    )
    srt = "1\n00:00:01,000 --> 00:00:02,000\nHello there\n\n2\n00:00:02,000 --> 00:00:03,000\nGoodbye\n"
    assert (await load(srt, "call.srt")).text == "[0:01] Hello there\nGoodbye"


async def test_substation_alpha_is_read_in_the_order_of_its_times(load):
    ass = """[Script Info]
Title: talk

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:07:31.00,0:07:35.00,Default,Ines,0,0,0,,The third bell cracked, {\\b1}long ago{\\b0}.
Dialogue: 0,0:03:10.00,0:03:14.00,Default,,0,0,0,,{\\i1}The tenor bell weighs\\N 1,340 kilograms.
Dialogue: 0,0:03:11.00,0:03:14.00,Default,,0,0,0,,{\\p1}m 0 0 l 100 0
Comment: 0,0:03:12.00,0:03:14.00,Default,,0,0,0,,a note of the translator
"""
    source = await load(ass, "talk.ass")
    assert source.text == (
        "[3:10] The tenor bell weighs 1,340 kilograms.\n[7:31] Ines: The third bell cracked, long ago."
    )
    assert source.tier1 == {"duration": "00:07:35", "participants": ["Ines"]}


async def test_a_long_speech_has_times_inside(load):
    cues = (f"00:0{n}:00.000 --> 00:0{n}:30.000\nAda: Part {n}.\n" for n in range(3))
    source = await load("WEBVTT\n\n" + "\n".join(cues), "call.vtt")
    assert source.text == "[0:00] Ada: Part 0. [1:00] Part 1. [2:00] Part 2."


async def test_source_code_has_functions_and_classes_as_sections(load):
    code = "import os\n\n\nclass Weir:\n    def open(self):\n        return 1\n\n\nX = 1\n\n\ndef main():\n    pass\n"
    source = await load(code, "src/weir.py")
    assert (source.file_type, source.doc_type) == ("py", "code")
    assert source.tier1 == {"lang": "python", "functions": ["open", "main"], "classes": ["Weir"], "imports": ["os"]}
    assert [(mark.section, source.text[mark.start :].split("\n")[0].strip()) for mark in source.marks] == [
        ("Weir", "class Weir:"),
        ("Weir > open", "def open(self):"),
        ("", "X = 1"),
        ("main", "def main():"),
    ]


@pytest.mark.parametrize(
    ("name", "content_type", "file_type"),
    [
        ("notes.txt", None, "pdf"),
        ("https://a.example/paper", "application/pdf", "pdf"),
        ("https://a.example/paper.html", "text/html", "pdf"),
        ("noending", "application/octet-stream", "pdf"),
    ],
)
async def test_a_pdf_is_a_pdf_under_any_name(load, name, content_type, file_type):
    assert (await load((DATA / "survey.pdf").read_bytes(), name, content_type)).file_type == file_type


@pytest.mark.parametrize(
    ("name", "content_type", "file_type"),
    [
        ("https://a.example/", "text/html; charset=utf-8", "html"),
        ("https://a.example/a.md?raw=1", "text/plain", "md"),
        ("https://a.example/data", "application/json", "json"),
        ("https://a.example/data", "application/vnd.api+json", "json"),
        ("https://a.example/x", "text/plain", "txt"),
        ("a/LICENSE", None, "txt"),
        ("Dockerfile", None, "py"),
        ("page.txt", None, "html"),
    ],
)
async def test_the_type_follows_the_carrier_then_the_name(load, name, content_type, file_type):
    content = "<!DOCTYPE html><p>Some text</p>" if file_type == "html" else '{"some": "text"}'
    source = await load(content, name, content_type)
    assert source.file_type == file_type
    assert "ome" in source.text


@pytest.mark.parametrize("content_type", sorted(CONTENT_TYPES))
def test_every_type_of_page_that_is_fetched_has_a_reader(content_type):
    kind, _ = kind_of(b"some text", "https://a.example/x", content_type)
    assert content_type in kind.content_types or content_type.startswith("text/")


async def test_a_declared_charset_is_believed(load):
    assert (await load("Привет, мир".encode("koi8-r"), "a.txt", "text/plain; charset=koi8-r")).text == "Привет, мир"


@pytest.mark.parametrize("size", [100, 100_000, 400_000])
async def test_a_text_reads_the_same_in_here_in_a_thread_and_in_a_child(load, size):
    text = ("Grüße aus dem Hüttenbuch.\n" * size)[:size] + "# end \U0001f9a6"
    source = await load(text, "big.md")
    assert source.text == text


@pytest.mark.parametrize("size", [10, 40_000])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError, r"its parser stopped \(ValueError\)"),
        (OverflowError, r"its parser stopped \(OverflowError\)"),
        (RecursionError, "is nested too deeply"),
        (MemoryError, "needs more memory than a file may take"),
    ],
)
async def test_whatever_stops_a_reader_in_this_process_refuses_the_file(load, monkeypatch, size, error, reason):
    def read(content, origin):
        raise error

    monkeypatch.setattr(texts, "read", read)
    with pytest.raises(ValidationError, match=reason):
        await load(b"a" * size, "a.txt")


def test_the_parsers_are_not_imported_before_they_are_needed():
    code = (
        "import sys; from cragside.adapters.documents.loader import FileLoader; FileLoader();"
        "from cragside.adapters.documents import folders, texts;"
        "heavy = {'pypdfium2', 'lxml', 'trafilatura', 'gcld3', 'numpy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert output_of(code) == "[]\n"


@pytest.mark.parametrize(
    ("name", "file_type"),
    [
        ("https://git.example/sea/lamp.git#README.md", "md"),
        ("https://git.example/sea/lamp.js#src/lamp.py", "py"),
        ("https://a.example/notes.md#part-2.1", "md"),
    ],
)
def test_a_file_of_a_repository_has_the_type_of_its_path(name: str, file_type: str) -> None:
    assert kind_of(b"light: lamp", name, None)[1] == file_type
