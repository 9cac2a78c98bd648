"""Files made to break, stall or fill whoever reads them: each is refused with its reason."""

import asyncio
import io
import json
import os
import random
import struct
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from PIL import Image

from cragside.adapters.documents.kinds import KINDS, PDF, kind_of
from cragside.adapters.documents.loader import MAX_FILE_BYTES, FileLoader
from cragside.adapters.documents.parsing import ParserProcesses
from cragside.adapters.documents.reading import FileOrigin, Ocr, Unreadable
from cragside.domain.document import SourceText
from cragside.domain.errors import PayloadTooLarge, ServiceUnavailable, ValidationError
from tests.unit.documents.archives import epub_of, opendocument_of, packed, pdf_of, pptx_of, shape, word_of

pytestmark = [pytest.mark.slow, pytest.mark.interpreter]

DATA = Path(__file__).parents[2] / "data"
SURVEY = (DATA / "survey.pdf").read_bytes()
WEIR = (DATA / "weir.docx").read_bytes()


@pytest.fixture(scope="module")
def loader():
    """One for all: the files that come after a hostile one are part of the test."""
    loader = FileLoader(seconds=20, parallel=1, ocr=Ocr(seconds=20))
    yield loader
    asyncio.run(loader.close())


def stream(content, filters=""):
    return b"<</Length %d%b>>\nstream\n%b\nendstream" % (len(content), filters.encode(), content)


CATALOG = "<</Type/Catalog/Pages 2 0 R>>"
ONE_PAGE = "<</Type/Pages/Kids[3 0 R]/Count 1>>"
PAGE = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
FONT = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def scanned():
    return pdf_of(CATALOG, ONE_PAGE, PAGE, stream(b"0 0 100 100 re f"), FONT)


def without_pages():
    return pdf_of(CATALOG, "<</Type/Pages/Kids[]/Count 0>>")


def with_too_many_pages():
    kids = "3 0 R " * 5001
    return pdf_of(CATALOG, f"<</Type/Pages/Kids[{kids}]/Count 5001>>", PAGE, stream(b""), FONT)


def with_an_endless_page():
    """Twelve megabytes of the same line, in twelve kilobytes, on a hundred pages."""
    packed = zlib.compress(b"BT /F 9 Tf (the same line again) Tj ET\n" * 300_000, 9)
    kids = "3 0 R " * 1000
    return pdf_of(
        CATALOG, f"<</Type/Pages/Kids[{kids}]/Count 1000>>", PAGE, stream(packed, "/Filter/FlateDecode"), FONT
    )


def zeros(megabytes):
    """Zeros in zlib's format: the same piece over and over, an empty last one, and the checksum."""
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    piece = deflate.compress(bytes(2**20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return b"x\x01" + piece * megabytes + b"\x03\x00" + struct.pack(">HH", megabytes * 2**20 % 65521, 1)


def that_unpacks_to_gigabytes():
    packed = zlib.compress(zeros(1024), 9)
    return pdf_of(CATALOG, ONE_PAGE, PAGE, stream(packed, "/Filter[/FlateDecode/FlateDecode]"), FONT)


def encrypted():
    security = "<</Filter/Standard/V 2/R 3/Length 128/P -1/O<" + "41" * 32 + ">/U<" + "42" * 32 + ">>>"
    return pdf_of(CATALOG, ONE_PAGE, PAGE, stream(b""), FONT, security, trailer="/Encrypt 6 0 R/ID[<00><00>]")


def bomb(name="word/media/x.xml", size=301 * 2**20):
    """A DOCX with an entry of zeros."""
    file = io.BytesIO(WEIR)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as entry:
        for _ in range(size // 2**20):
            entry.write(bytes(2**20))
    return file.getvalue()


def lying_bomb():
    """The bomb's directory says that its entry holds ten bytes."""
    content = bytearray(bomb(size=40 * 2**20))
    directory = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, directory + 24, 10)
    return bytes(content)


def many_entries():
    file = io.BytesIO(WEIR)
    with zipfile.ZipFile(file, "a") as archive:
        for number in range(5001):
            archive.writestr(f"{number}", "")
    return file.getvalue()


LAUGHS = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
ENTITY = "<w:p><w:r><w:t>&e;</w:t></w:r></w:p>"


def late_document_type():
    """A document type that two pieces of what is unpacked have between them."""
    piece = 1024 * 1024
    head = f"<?xml version='1.0'?>{' ' * piece}"[: piece - 4]
    return packed({"[Content_Types].xml": "<Types/>", "word/document.xml": head + LAUGHS[21:]})


def deep(opening, closing, depth=200_000):
    return (opening * depth + "x" + closing * depth).encode()


def archive_of_texts():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "text")
    return file.getvalue()


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
# Its `<!ENTITY` are other bytes.
IN_UTF_7 = '<?xml version="1.0" encoding="UTF-7"?>' + ENTITIES.replace("<!ENTITY", "+ADw-+ACE-ENTITY") + "<x>&b;</x>"
ELSEWHERE = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="../../etc/passwd"/></rootfiles></container>'
)


def xlsx_of(rows, *, more="", shared=""):
    """A workbook whose only sheet has these rows; its cells may refer to a `shared` text."""
    file = io.BytesIO()
    Workbook().save(file)
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    entries["xl/worksheets/sheet1.xml"] = (
        f'{rows if rows == ENTITIES else ""}<worksheet {space}><dimension ref="A1:XFD1048576"/>'
        f"<sheetData>{'' if rows == ENTITIES else rows}</sheetData>{more}</worksheet>"
    ).encode()
    if shared:
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
        told = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
        entries["xl/sharedStrings.xml"] = f"<sst {space}><si><t>{shared}</t></si></sst>".encode()
        entries["[Content_Types].xml"] = entries["[Content_Types].xml"].replace(b"</Types>", told.encode())
    return packed(entries)


def picture_of(size, form="PNG", *, noise=True):
    """A picture of noise, or of nothing."""
    file = io.BytesIO()
    (Image.effect_noise(size, 90) if noise else Image.new("L", size, 255)).save(file, form)
    return file.getvalue()


def claiming_png(width, height):
    """A PNG that says it is so large, with a few bytes of pixels."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(999))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def claiming_bmp(width, height):
    return b"BM" + struct.pack("<IHHI", 154, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, *[0] * 6)


def tiff_of(pages, *, last=0, shared=False):
    """A TIFF of so many pages of one pixel. After the last page, the page at `last` follows; 0 ends the file.

    If `shared`, all pages show the same data.
    """
    parts, start = [b"II*\x00" + struct.pack("<I", 8)], 8
    entries = {256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 4, 277: 1, 278: 1, 279: 1}
    length = 2 + 12 * len(entries) + 4
    for number in range(1, pages + 1):
        following = last if number == pages else start + number * length
        told = entries if shared else {**entries, 273: 3 + number}
        directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in told.items())
        parts.append(struct.pack("<H", len(entries)) + directory + struct.pack("<I", following))
    return b"".join(parts)


def endless_tiff():
    return tiff_of(2, last=8)


def many_pages():
    return tiff_of(1001)


def pdf_with_picture(width, height, box="0 0 200 200"):
    """A PDF that shows a picture which says it is so large."""
    page = f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R/Resources<</XObject<</P 5 0 R>>>>>>"
    told = f"/Type/XObject/Subtype/Image/Width {width}/Height {height}/ColorSpace/DeviceGray/BitsPerComponent 8"
    packed = zlib.compress(bytes(min(width * height, 999)))
    picture = stream(packed, f"{told}/Filter/FlateDecode")
    return pdf_of(CATALOG, ONE_PAGE, page, stream(b"200 0 0 200 0 0 cm /P Do"), picture)


def repeating_sheet():
    """A cell that stands for a million."""
    text = "<text:p>Some words of a cell.</text:p>"
    cell = f'<table:table-cell table:number-columns-repeated="999">{text}</table:table-cell>'
    other = "<table:table-cell><text:p>And others.</text:p></table:table-cell>"
    row = f'<table:table-row table:number-rows-repeated="1000">{cell}{other}</table:table-row>'
    return opendocument_of("spreadsheet", f'<table:table table:name="s">{row}</table:table>')


def sharing_sheet():
    """One long text in thousands of cells."""
    cells = '<c r="A{0}" t="s"><v>0</v></c><c r="B{0}"><v>{0}</v></c>'
    return xlsx_of("".join(f'<row r="{n}">{cells.format(n)}</row>' for n in range(1, 2000)), shared="word " * 6000)


def overlapping_sheet():
    """Merges that fill the same cells again and again."""
    rows = "".join(f'<row r="{n}"><c r="A{n}" t="str"><v>x</v></c></row>' for n in range(1, 3000))
    merges = "".join(f'<mergeCell ref="A{n}:CV3000"/>' for n in range(1, 3000))
    return xlsx_of(rows, more=f"<mergeCells>{merges}</mergeCells>")


REFUSED = {
    "an empty file": (b"", "a.txt", "is empty"),
    "blanks": (b" \n\t", "a.md", "is empty"),
    "an empty page": (b" \n", "a.html", "is empty"),
    "an empty pdf": (b"", "a.pdf", "is empty"),
    "binary": (os.urandom(64) + b"\x00" * 64, "a.txt", "binary data"),
    "binary code": (b"\x7fELF\x00\x01\x02\x00" * 99, "a.py", "binary data"),
    "an unknown type": (b"text", "a.xyz", "supported are PDF"),
    "no type": (b"text", "noending", "files without a type are not supported"),
    "a picture that breaks off": (b"\x89PNG\r\n\x1a\n....", "a.png", "is damaged, or no picture"),
    "a broken picture named pdf": (b"\xff\xd8\xff\xe0....", "a.pdf", "is damaged, or no picture"),
    "a drawing": (b"<svg/>", "a.svg", "is a picture of a kind that is not supported"),
    "a moving picture": (b"GIF89a....", "a.png", "is a picture of a kind that is not supported"),
    "a text named png": (b"hello", "a.png", "is damaged, or no picture"),
    "a text named bmp": (b"BMhello", "a.bmp", "is damaged, or no picture"),
    "half a png": (lambda: picture_of((400, 400))[:900], "a.png", "is damaged, or no picture"),
    "half a jpeg": (lambda: picture_of((400, 400), "JPEG")[:900], "a.jpg", "is damaged, or no picture"),
    "half a webp": (lambda: picture_of((400, 400), "WEBP")[:200], "a.webp", "is damaged, or no picture"),
    "a tiff without an end": (lambda: endless_tiff(), "a.tiff", "holds no text|is damaged"),
    "a tiff of one page many times": (lambda: tiff_of(900, shared=True), "a.tiff", "same data on page 2"),
    "a tiff of thousands": (lambda: many_pages(), "a.tiff", "more than 1,000 pages"),
    "a tiff of lies": (b"II*\x00\x08\x00\x00\x00" + b"\xff" * 900, "a.tif", "is damaged, or no picture"),
    "a png that is a bomb": (lambda: claiming_png(100_000, 100_000), "a.png", "more than 80,000,000 pixels"),
    "a png that is a smaller bomb": (lambda: claiming_png(10_000, 9_000), "a.png", "10,000 x 9,000 pixels"),
    "a png without its pixels": (lambda: claiming_png(8_000, 8_000), "a.png", "is damaged, or no picture"),
    "a bmp that is a bomb": (lambda: claiming_bmp(60_000, 60_000), "a.bmp", "pixels"),
    "a picture of nothing": (lambda: picture_of((300, 300), noise=False), "a.png", "holds no text that OCR can"),
    "a picture of noise": (lambda: picture_of((300, 300)), "a.png", "holds no text that OCR can recognise"),
    "a pdf with a picture that is a bomb": (
        lambda: pdf_with_picture(60_000, 60_000), "a.pdf", "no text|memory|damaged",
    ),
    "a pdf as large as a field": (lambda: pdf_with_picture(1, 1, box="0 0 900000 900000"), "a.pdf", "holds no text"),
    "a pdf as thin as a hair": (lambda: pdf_with_picture(1, 1, box="0 0 0.001 14000"), "a.pdf", "no text|damaged"),
    "old word": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.docx", "is damaged, or no Office document"),
    "rich text without text": (b"{\\rtf1 {\\pict 00}}", "a.txt", "is empty"),
    "a text named rtf": (b"hello", "a.rtf", "is damaged, or no rich text"),
    "gzip": (b"\x1f\x8b\x08", "a.txt", "is an archive"),
    "a sheet of entities": (lambda: xlsx_of(ENTITIES), "a.xlsx", "declares a document type"),
    "a book of entities": (lambda: epub_of("x", head=ENTITIES), "a.epub", "declares entities"),
    "an odt of entities": (lambda: opendocument_of("text", "", more={"x.xml": ENTITIES}), "a.odt", "declares entities"),
    "an odt of entities in utf-7": (
        lambda: opendocument_of("text", "", more={"content.xml": IN_UTF_7}), "a.odt", "declares entities",
    ),
    "a sheet that is a bomb": (lambda: xlsx_of(" " * 40 * 2**20), "a.xlsx", "may be a zip bomb"),
    "a sheet nested deep": (lambda: xlsx_of("<a>" * 100_000 + "</a>" * 100_000), "a.xlsx", "is empty"),
    "a workbook without rows": (lambda: xlsx_of(""), "a.xlsx", "is empty"),
    "slides nested deep": (lambda: pptx_of("<a>" * 100_000 + "</a>" * 100_000), "a.pptx", "is damaged"),
    "an odt nested deep": (
        lambda: opendocument_of("text", "<text:p>" * 100_000 + "</text:p>" * 100_000), "a.odt", "is damaged",
    ),
    "a book that leads out": (
        lambda: epub_of(more={"META-INF/container.xml": ELSEWHERE}), "a.epub", "is damaged, or not a book",
    ),
    "an encrypted odt": (
        lambda: opendocument_of("text", "", more={"META-INF/manifest.xml": "<encryption-data/>"}), "a.odt",
        "is encrypted",
    ),
    "an ods that repeats": (lambda: repeating_sheet(), "a.ods", "characters with the headers of each row"),
    "an xlsx whose cells share a long text": (lambda: sharing_sheet(), "a.xlsx", "characters with the headers"),
    "a row of an impossible number": (
        lambda: xlsx_of("<row r='99999999999999'><c r='A1' t='str'><v>x</v></c></row>"), "a.xlsx", "is empty",
    ),
    "a sheet of overlapping merges": (lambda: overlapping_sheet(), "a.xlsx", "cells by merging"),
    "a sheet of garbage": (lambda: xlsx_of("<row r='x'><c r='1A'/></row>"), "a.xlsx", "is damaged|stopped|is empty"),
    "half a workbook": (lambda: xlsx_of("")[:600], "a.xlsx", "is damaged, or not an Excel workbook"),
    "a document type between two pieces": (late_document_type, "a.docx", "declares a document type"),
    "a zip of texts": (archive_of_texts, "a.docx", "is an archive, but not a Word document"),
    "a zip named txt": (archive_of_texts, "a.txt", "is an archive, but not a Word document"),
    "half a docx": (WEIR[:2000], "a.docx", "is damaged, or not a Word document"),
    "a flipped docx": (lambda: WEIR.replace(b"word/document.xml", b"word/documentxxml", 1), "a.docx", "is damaged"),
    "a text named docx": (b"hello", "a.docx", "is damaged, or not a Word document"),
    "a zip bomb": (bomb, "a.docx", "unpacks to more than"),
    "a bomb that lies": (lying_bomb, "a.docx", "is damaged|unpacks to more than"),
    "an archive of thousands": (many_entries, "a.docx", "the limit is 5,000"),
    "a pdf that breaks off": (SURVEY[:300], "a.pdf", "is damaged, or no PDF"),
    "no pdf at all": (b"hello", "a.pdf", "is damaged, or no PDF"),
    "a scanned pdf without words": (scanned, "a.pdf", "holds no text that OCR can recognise"),
    "a pdf without pages": (without_pages, "a.pdf", "without pages|is damaged"),
    "too many pages": (with_too_many_pages, "a.pdf", "5,001 pages, the limit is 5,000"),
    "an encrypted pdf": (encrypted, "a.pdf", "is encrypted"),
    "a pdf that unpacks to gigabytes": (that_unpacks_to_gigabytes, "a.pdf", "holds no text|memory|damaged"),
    "deep json": (deep("[", "]"), "a.json", "nested more than 100 deep"),
    "deep json objects": (deep('{"a":', "}", 5000), "a.json", "nested more than 100 deep"),
    "broken json": (b'{"a": ', "a.json", "is not valid JSON"),
    "an email without headers": (b"\n\nhello", "a.eml", "no headers"),
    "an email of pictures": (b"From: a@b\nContent-Type: image/png\n\nx", "a.eml", "neither a text nor an HTML part"),
    "a transcript without speech": (b"WEBVTT\n\n00:00.000 --> 00:01.000\n\n", "a.vtt", "no spoken text"),
    "a page nested deep": (b"<html>" + b"<div>" * 100_000 + b"text", "a.html", "nested more than 256 elements deep"),
    "a page that goes on after a nest": (b"<p>a" + b"<div>" * 300 + b"</div>" * 300 + b"b", "a.html", "256 elements"),
    "a page of one text": (b"<p>" + b"x" * 11_000_000 + b"</p><p>b", "a.html", "more than 10,000,000 characters"),
    "a page of scripts": (b"<html><script>x</script></html>", "a.html", "page without text"),
}  # fmt: skip


@pytest.mark.attack("hostile files")
@pytest.mark.parametrize("case", REFUSED)
async def test_it_is_refused_with_the_reason(loader, case):
    content, name, reason = REFUSED[case]
    content = content() if callable(content) else content
    with pytest.raises(ValidationError, match=reason) as refused:
        await loader.load(content, name=name)
    assert refused.value.message.startswith(f"{name} ")
    assert refused.value.message == f"{name} {refused.value.details['reason']}."


@pytest.mark.attack("hostile files")
@pytest.mark.parametrize("head", [LAUGHS, OUTSIDE], ids=["a billion laughs", "an external entity"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_a_document_type_in_word_is_refused(loader, docx_of, head, encoding):
    content = docx_of(ENTITY, head=head)
    if encoding == "utf-16":
        wide = f"{head.replace('1.0', '1.0')}<w:document/>".encode("utf-16")
        content = docx_of("", more=[("word/comments.xml", wide)])
    with pytest.raises(ValidationError, match="declares a document type"):
        await loader.load(content, name="a.docx")


async def test_elements_nested_deep_in_word_are_refused(loader, docx_of):
    with pytest.raises(ValidationError, match=r"is damaged|nested|crashed"):
        await loader.load(docx_of("<w:p>" * 100_000 + "</w:p>" * 100_000), name="a.docx")


@pytest.mark.parametrize("tag", ["div", "table><tr><td", "b", "a", "ul><li"])
async def test_a_page_nested_deep_ends(loader, tag):
    page = b"<html><body>" + f"<{tag}>".encode() * 50_000 + b"the innermost words"
    with suppress(ValidationError):
        assert isinstance(await loader.load(page, name="a.html"), SourceText)


async def test_a_file_of_a_byte_too_many_is_refused_with_the_limit(loader):
    with pytest.raises(PayloadTooLarge, match="has 52,428,801 bytes, the limit is 52,428,800") as refused:
        await loader.load(bytes(MAX_FILE_BYTES + 1), name="a.txt")
    assert refused.value.details["limit"] == 52_428_800


async def test_an_endless_pdf_is_ended_when_its_time_is_up():
    loader = FileLoader(seconds=2, parallel=1)
    with pytest.raises(ValidationError, match=r"takes more than 2 s to read|more than 52,428,800 characters"):
        await loader.load(with_an_endless_page(), name="a.pdf")
    assert (await loader.load(WEIR, name="weir.docx")).title == "Handbook of the Weir", "and the next file is read"
    await loader.close()


async def test_a_parser_that_needs_too_much_memory_is_ended():
    loader = FileLoader(memory=300 * 2**20, parallel=1)
    page = b"<html>" + b"<p>a<b>b</b>" * 1_500_000
    with pytest.raises(ValidationError, match="memory"):
        await loader.load(page, name="a.html")
    await loader.close()


@pytest.fixture
def dying(monkeypatch):
    """A kind whose reader does what a test says, in the child."""

    def make(folder, code):
        (folder / "doomed_reader.py").write_text(f"def read(content, origin):\n    {code}\n")
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setenv("SECRET_TOKEN", "do not tell")
        (folder / "sitecustomize.py").write_text(
            "import sys, importlib.util, pathlib\n"
            f"path = pathlib.Path({str(folder)!r}, 'doomed_reader.py')\n"
            "spec = importlib.util.spec_from_file_location('cragside.adapters.documents.texts', path)\n"
            "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
            "sys.modules['cragside.adapters.documents.texts'] = module\n"
        )
        return KINDS["texts"]

    return make


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.abort()", "crashed"),
        ("import os; os._exit(0)", "crashed"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("raise RuntimeError('inner')", r"its parser stopped \(RuntimeError\)"),
        ("read(content, origin)", "nested too deeply"),
        ("bytearray(2**40)", "more memory"),
        ("import time; time.sleep(60)", "takes more than 2 s"),
        ("\n    while True: pass", "takes more than 2 s"),
        ("open('/tmp/doomed', 'w').write('x' * 99999)", "cannot be read"),
        ("import os; os.write(1, b'noise'); import missing_parser", "missing_parser is missing"),
    ],
)
def test_whatever_a_parser_does_it_is_the_file_that_is_refused(tmp_path, dying, code, reason):
    processes = ParserProcesses(seconds=2, memory=2**30)
    with pytest.raises((Unreadable, ServiceUnavailable), match=reason):
        processes.read(dying(tmp_path, code), b"content", FileOrigin("a.txt", "txt"))
    processes.close()


def test_a_child_knows_no_secrets(tmp_path, dying):
    code = "import os; from cragside.adapters.documents.reading import Reading; return Reading(repr(dict(os.environ)))"
    processes = ParserProcesses(seconds=20, memory=2**30)
    told = processes.read(dying(tmp_path, code), b"content", FileOrigin("a.txt", "txt")).text
    processes.close()
    assert "PYTHONPATH" in told
    assert "do not tell" not in told
    assert "HOME" not in told


def test_a_child_is_kept_for_the_next_files_and_replaced_after_some():
    processes = ParserProcesses(seconds=20, memory=2**30, files=2)
    identities = set()
    for _ in range(4):
        processes.read(PDF, SURVEY, FileOrigin("a.pdf", "pdf"))
        identities.update(child._process.pid for child in processes._idle)
    assert len(identities) == 2, "of two files each, the second leaves none"
    processes.close()


def test_a_kept_child_that_went_is_replaced_without_a_word():
    processes = ParserProcesses(seconds=20, memory=2**30)
    processes.read(PDF, SURVEY, FileOrigin("a.pdf", "pdf"))
    (child,) = processes._idle
    child._process.stdin.close()
    child._process.wait()
    child._process.stdin = io.BytesIO()
    assert processes.read(PDF, SURVEY, FileOrigin("a.pdf", "pdf")).tier1["pageCount"] == 200
    processes.close()


def test_closing_ends_the_children():
    processes = ParserProcesses(seconds=20, memory=2**30)
    processes.read(PDF, SURVEY, FileOrigin("a.pdf", "pdf"))
    (child,) = processes._idle
    processes.close()
    assert child._process.returncode is not None


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([SURVEY[:4000] + SURVEY[-3000:], WEIR]), st.integers(), st.integers(1, 40))
def test_damage_at_random_is_read_or_refused(content, seed, count):
    generator = random.Random(seed)
    damaged = bytearray(content)
    for _ in range(count):
        damaged[generator.randrange(len(damaged))] = generator.randrange(256)
    name = "a.pdf" if content[:4] == b"%PDF" else "a.docx"
    try:
        reading = PROCESSES.read(kind_of(bytes(damaged), name, None)[0], bytes(damaged), FileOrigin(name, name[2:]))
    except Unreadable:
        return
    assert all(0 <= mark.start <= len(reading.text) for mark in reading.marks)


PROCESSES = ParserProcesses(seconds=20, memory=2**30)
MARKED = (
    "# A heading",
    "## Another",
    "def function(): pass",
    "class Name:",
    "int main(void) {",
    "}",
    "",
    "```",
    "\u00e9",
)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=3000) | st.lists(st.sampled_from(MARKED), max_size=30).map("\n".join).map(str.encode),
    st.sampled_from([".txt", ".md", ".json", ".jsonl", ".vtt", ".srt", ".py", ".c", ".csv"]),
)
def test_any_bytes_are_read_or_refused_by_the_readers_of_small_files(content, ending):
    try:
        kind, file_type = kind_of(content, f"a{ending}", None)
        reading = kind.reader(content, FileOrigin(f"a{ending}", file_type))
    except Unreadable:
        return
    assert all(0 <= mark.start <= len(reading.text) for mark in reading.marks)
    json.dumps(dict(reading.tier1))


CELL = '<c r="{}" t="inlineStr"><is><t>{}</t></is></c>'


@pytest.mark.attack("hostile files")
async def test_a_sheet_that_claims_all_rows_and_columns_is_read_for_what_it_holds(loader):
    rows = f'<row r="1">{CELL.format("A1", "first")}</row><row r="1048576">{CELL.format("XFD1048576", "last")}</row>'
    merged = '<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    source = await loader.load(xlsx_of(rows, more=merged), name="a.xlsx")
    assert source.text.split()[0] == "first"
    assert source.text.split()[-1] == "last"


@pytest.mark.attack("hostile files")
async def test_formulas_are_not_evaluated_and_nothing_is_fetched(loader):
    formula = '<row r="1"><c r="A1"><f>WEBSERVICE("http://127.0.0.1:9/")</f><v>7</v></c></row>'
    assert (await loader.load(xlsx_of(formula), name="a.xlsx")).text.strip() == "7"
    slide = shape("seen") + '<p:pic r:link="http://127.0.0.1:9/"/>'
    assert (await loader.load(pptx_of(slide), name="a.pptx")).text.strip() == "seen"


@pytest.mark.attack("hostile files")
@pytest.mark.parametrize("what", ["rows", "columns"])
async def test_repeated_rows_and_cells_do_not_fill_the_memory(loader, what):
    rows = "".join(
        f'<table:table-row table:number-rows-repeated="{10**8 - 1 if what == "rows" else 1}"><table:table-cell '
        f'table:number-columns-repeated="{10**8 - 1 if what == "columns" else 1}"><text:p>x</text:p></table:table-cell>'
        "</table:table-row>"
        for _ in range(5)
    )
    source = await loader.load(opendocument_of("spreadsheet", f"<table:table>{rows}</table:table>"), name="a.ods")
    assert len(source.text) < 100_000


@pytest.mark.attack("hostile files")
async def test_a_document_whose_text_grows_beyond_measure_is_refused(loader):
    address = f"https://a.example/{'x' * 220}"
    link = '<w:hyperlink r:id="a1"><w:r><w:t>x</w:t></w:r></w:hyperlink>'
    with pytest.raises(ValidationError, match="300 times as much text"):
        await loader.load(word_of(f"<w:p>{link * 60_000}</w:p>", addresses=[address]), name="a.docx")
    assert (await loader.load(word_of(f"<w:p>{link * 60}</w:p>", addresses=[address]), name="a.docx")).text
