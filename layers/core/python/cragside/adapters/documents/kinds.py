"""Chooses the format of a file, by its first bytes, its content type and the ending of its name."""

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import cast
from urllib.parse import urlsplit

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.languages import BY_ENDING, BY_NAME
from cragside.adapters.documents.reading import Reader, Unreadable

# They are imported by name, because the extra `ocr` may be missing.
OCR_LIBRARIES = ("PIL.Image", "tesserocr")


@dataclass(frozen=True, slots=True)
class Kind:
    """A format. A function of a `module` reads it with `libraries`: `read`, or the one that is named behind a point.

    If `isolated`, that always happens in a child process.
    With `recognised`, reading takes OCR, which has a longer time limit.
    """

    module: str
    endings: tuple[str, ...]
    content_types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    isolated: bool = False
    libraries: tuple[str, ...] = ()
    recognised: bool = False

    @property
    def reader(self) -> Reader:
        """The function that reads the format. This imports its module."""
        module, _, function = self.module.partition(".")
        return cast(Reader, getattr(import_module(f"cragside.adapters.documents.{module}"), function or "read"))


def _office_types(program: str, format_: str, *documents: str) -> tuple[str, ...]:
    """Return the content types of a program's documents, without and with macros."""
    plain = (f"application/vnd.openxmlformats-officedocument.{format_}.{document}" for document in documents)
    return (*plain, *(f"application/vnd.ms-{program}.{document}.macroenabled.12" for document in documents))


PDF = Kind("pdf", (".pdf",), ("application/pdf", "application/x-pdf"), isolated=True, libraries=("pypdfium2",))
# PDF whose pages are pictures of text: `pdf` reads it first.
SCAN = Kind("pdf.read_scan", (), isolated=True, libraries=("pypdfium2", *OCR_LIBRARIES), recognised=True)
PICTURE = Kind(
    "ocr",
    (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp"),
    ("image/png", "image/jpeg", "image/tiff", "image/webp", "image/bmp"),
    isolated=True,
    libraries=OCR_LIBRARIES,
    recognised=True,
)
WORD = Kind(
    "word",
    (".docx", ".docm", ".dotx", ".dotm"),
    _office_types("word", "wordprocessingml", "document", "template"),
    isolated=True,
    libraries=("lxml.etree",),
)
EXCEL = Kind(
    "spreadsheets",
    (".xlsx", ".xlsm", ".xltx", ".xltm"),
    _office_types("excel", "spreadsheetml", "sheet", "template"),
    isolated=True,
    libraries=("lxml.etree", "openpyxl"),
)
SLIDES = Kind(
    "slides",
    (".pptx", ".ppsx", ".potx", ".pptm", ".ppsm", ".potm"),
    _office_types("powerpoint", "presentationml", "presentation", "slideshow", "template"),
    isolated=True,
    libraries=("lxml.etree",),
)
OPEN_DOCUMENT = Kind(
    "opendocument",
    (".odt", ".ods", ".odp", ".ott", ".ots", ".otp"),
    tuple(
        f"application/vnd.oasis.opendocument.{name}{template}"
        for template in ("", "-template")
        for name in ("text", "spreadsheet", "presentation")
    ),
    isolated=True,
    libraries=("lxml.etree",),
)
EPUB = Kind(
    "page_archives.read_book", (".epub",), ("application/epub+zip",), isolated=True, libraries=("lxml.html", "tinycss2")
)
OLD_OFFICE = Kind(
    "old_office",
    (".doc", ".xls", ".ppt"),
    ("application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"),
    isolated=True,
    libraries=("kreuzberg", "python_calamine", "olefile", "openpyxl"),
)
RTF = Kind("rich_text", (".rtf",), ("application/rtf", "text/rtf"), isolated=True)
NOTEBOOK = Kind("structured.read_notebook", (".ipynb",), ("application/x-ipynb+json",))
DELIMITED = Kind("structured.read_delimited", (".csv", ".tsv"), ("text/csv", "text/tab-separated-values"))
HTML = Kind(
    "html",
    (".html", ".htm", ".xhtml"),
    ("text/html", "application/xhtml+xml"),
    isolated=True,
    libraries=("trafilatura", "tinycss2"),
)
WEB_ARCHIVE = Kind(
    "page_archives.read_saved_page",
    (".mhtml", ".mht"),
    ("multipart/related", "application/x-mimearchive"),
    isolated=True,
    libraries=("trafilatura", "tinycss2"),
)
OFFICE_XML = Kind("spreadsheets.read_xml", (), isolated=True, libraries=("lxml.etree",))
EMAIL = Kind("emails", (".eml",), ("message/rfc822",), isolated=True)
OUTLOOK = Kind("outlook", (".msg",), ("application/vnd.ms-outlook",), isolated=True, libraries=("olefile",))
MAILBOX = Kind("emails.read_mailbox", (".mbox",), ("application/mbox",), isolated=True)
MARKDOWN = Kind("texts.read_markdown", (".md", ".markdown", ".mdx"), ("text/markdown", "text/x-markdown"))
JSON = Kind(
    "structured",
    (".json", ".jsonl", ".ndjson", ".canvas"),
    ("application/json", "application/x-ndjson", "application/jsonl", "application/ld+json"),
)
TRANSCRIPT = Kind("transcripts", (".vtt", ".srt", ".ass", ".ssa"), ("text/vtt", "application/x-subrip"))
TEXT = Kind(
    "texts",
    (
        ".txt", ".text", ".log", ".rst", ".adoc", ".org", ".tex", ".yaml", ".yml", ".toml", ".ini",
        ".cfg", ".conf", ".xml",
    ),
    names=("readme", "license", "licence", "notice", "authors", "changelog", "contributing", "copying"),
)  # fmt: skip
CODE = Kind("texts.read_code", tuple(BY_ENDING), names=tuple(BY_NAME))
KINDS = {
    kind.module: kind
    for kind in (
        PDF, SCAN, PICTURE, WORD, EXCEL, SLIDES, OPEN_DOCUMENT, EPUB, OLD_OFFICE, RTF, HTML, WEB_ARCHIVE, OFFICE_XML,
        EMAIL, OUTLOOK, MAILBOX, NOTEBOOK, DELIMITED, MARKDOWN, JSON, TRANSCRIPT, TEXT, CODE,
    )
}  # fmt: skip
# Of a repository's files. Its pictures are logos and icons, so they are left out.
ENDINGS = tuple(dict.fromkeys(ending for kind in KINDS.values() if kind is not PICTURE for ending in kind.endings))

SUPPORTED = (
    "PDF (.pdf), Word (.docx), Excel (.xlsx), PowerPoint (.pptx), OpenDocument (.odt, .ods, .odp), books (.epub), "
    "rich text (.rtf), web pages (.html, .mhtml), e-mail (.eml, .msg, .mbox), tables (.csv, .tsv), notebooks (.ipynb), "
    "Markdown (.md), JSON (.json, .jsonl, .canvas), transcripts (.vtt, .srt, .ass), text (.txt, .rst, .yaml, ...) "
    "and source code (.py, .js, .go, .rs, ...); with the extra `ocr` also pictures of text (.png, .jpg, .tiff, .webp, "
    ".bmp), with the extra `office` old Office files (.doc, .xls, .ppt)"
)


_HEAD = 4096
_PAGE = re.compile(
    r"<(?:!doctype\s{1,9}html|(?:html|head|body|meta|title|style|link|script|table|thead|tbody|tr|div|span|p|h[1-6]|font"
    r"|center|b|br|img|ul|ol)[\s/>])",
    re.IGNORECASE,
)
_XML_HEAD = re.compile(r"\A\s{0,200}<(?:\?xml|[\w:]{1,40}[\s>])")
_XML_WORKBOOK = "urn:schemas-microsoft-com:office:spreadsheet"
_OFFICE_XML_HEAD = re.compile(
    f"{_XML_WORKBOOK}|schemas.microsoft.com/office/word/2003/wordml|schemas.microsoft.com/office/2006/xmlPackage"
)
_MIME = re.compile(r"^mime-version:", re.IGNORECASE | re.MULTILINE)
_PARTS = re.compile(r"^content-type:\s{0,20}(?:multipart/(?:related|mixed)|text/html)", re.IGNORECASE | re.MULTILINE)
_HEADER = re.compile(r"\A\s{0,20}[A-Za-z-]{1,60}: ?\S")


def kind_of_misnamed(content: bytes, ending: str) -> tuple[Kind, str]:
    """Tell what a file with the name of an old Office file is in truth, and the type of the file.

    Programs export pages, tables and texts under such names.
    """
    text = decode(content[:_HEAD])
    if text is None:
        return OLD_OFFICE, ending.removeprefix(".") or "doc"
    if _PAGE.match(_begun(text)):
        return HTML, "html"
    if _XML_HEAD.search(text) and _OFFICE_XML_HEAD.search(text):
        return OFFICE_XML, "xml"
    if _HEADER.search(text) and _MIME.search(text) and _PARTS.search(text):
        return WEB_ARCHIVE, "mhtml"
    if ending in (".doc", ".ppt"):
        return TEXT, "txt"
    return DELIMITED, "tsv" if "\t" in text else "csv"


def _begun(text: str) -> str:
    """Return the text without the declaration of XML and the comments before its first element."""
    text = text.lstrip()
    for begin, end in (("<?", "?>"), ("<!--", "-->")):
        while text.startswith(begin):
            text = text.partition(end)[2].lstrip()
    return text


def is_workbook(head: bytes) -> bool:
    """Tell if XML is a workbook of Excel 2003."""
    return _XML_WORKBOOK.encode() in head and b"<Workbook" in head


# Archives, recognised by the entry that holds the text or by their first entry.
_ZIPPED = {b"word/document.xml": WORD, b"xl/workbook.xml": EXCEL, b"ppt/presentation.xml": SLIDES}
_FIRST_ENTRIES = {b"mimetypeapplication/vnd.oasis.opendocument.": OPEN_DOCUMENT, b"mimetypeapplication/epub+zip": EPUB}
_BY_ENDING = {end: each for each in KINDS.values() for end in each.endings}
_BY_NAME = {called: each for each in KINDS.values() for called in each.names}
_BY_CONTENT_TYPE = {media: each for each in KINDS.values() for media in each.content_types}
_PICTURES = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpg", b"II*\x00": "tiff", b"MM\x00*": "tiff"}
# Files of Office 97 to 2003, files with a password of later ones, and Outlook's messages, which have this stream.
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OUTLOOK_STREAM = "__properties_version1.0".encode("utf-16-le")
_ENDINGS_OF_OTHER_PICTURES = (".gif", ".heic", ".svg", ".ico")
# "From ada@weir.example Mon Mar  3 08:00:00 2025" in front of each message.
FROM_LINE = rb"From \S{1,300} {1,5}(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[^\n]{0,100}\n"
_MAILBOX = re.compile(FROM_LINE + rb"[A-Za-z-]{1,60}:")
_OTHER_PICTURE = "is a picture of a kind that is not supported: save it as .png or .jpg, or describe it in words"
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")


def kind_of(content: bytes, name: str, content_type: str | None) -> tuple[Kind, str]:
    """Return the format of a file and its type, such as `pdf`. Raises `Unreadable` with the supported formats."""
    head = content[:1024]
    carried = media_type(content_type)
    declared = JSON if carried.endswith("+json") else _BY_CONTENT_TYPE.get(carried)
    ending = ending_of(name)
    named = named_kind(name)
    if head.startswith((b"GIF87a", b"GIF89a")):
        raise Unreadable(_OTHER_PICTURE)
    if head.startswith(_ARCHIVES):
        raise Unreadable("is an archive: unpack it and index its files")
    if pictured := _picture(head):
        return PICTURE, ending.removeprefix(".") if ending in PICTURE.endings else pictured
    if head.startswith(_COMPOUND):
        # Office documents may hold messages.
        if OUTLOOK in (declared, named) or (named is not OLD_OFFICE and _OUTLOOK_STREAM in content):
            return OUTLOOK, "msg"
        return OLD_OFFICE, (ending if ending in OLD_OFFICE.endings else OLD_OFFICE.endings[0]).removeprefix(".")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"%PDF-") or (b"%PDF-" in head and PDF in (declared, named)):
        return PDF, "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        held = _zipped(content, declared or named)
        return held, (ending if ending in held.endings else held.endings[0]).removeprefix(".")
    if start.startswith(b"{\\rtf"):
        return RTF, "rtf"
    if start.startswith(b"WEBVTT"):
        return TRANSCRIPT, "vtt"
    kind = declared or named
    if kind is OLD_OFFICE:
        if named in (None, OLD_OFFICE):
            return kind_of_misnamed(content, ending)
        kind = named  # browsers declare Excel's type for tables
    if kind is TEXT and ending == ".xml" and is_workbook(head):
        return OFFICE_XML, "xml"
    # Mail programs name a mailbox after its folder: "Inbox".
    if kind is None and ending == "" and _MAILBOX.match(start):
        return MAILBOX, "mbox"
    if kind in (None, TEXT) and start[:15].lower().startswith((b"<!doctype html", b"<html")) and ending != ".xml":
        return HTML, "html"
    if kind is None and carried.startswith("text/"):
        kind = TEXT
    if kind is None:
        raise Unreadable(unsupported(name))
    fits = ending in kind.endings or named is kind
    return kind, (ending or kind.endings[0]).removeprefix(".") if fits else kind.endings[0].removeprefix(".")


def _picture(head: bytes) -> str:
    """Return the ending of a picture that begins so.

    "" for other files. The two letters of BMP are too few to tell it.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    return next((ending for begin, ending in _PICTURES.items() if head.startswith(begin)), "")


def _zipped(content: bytes, expected: Kind | None) -> Kind:
    """The format of an archive: the one that it claims, if it holds what that needs, else the first that fits."""
    first = next((kind for begin, kind in _FIRST_ENTRIES.items() if content.startswith(begin, 30)), None)
    if first is not None:
        return first
    fitting = [kind for entry, kind in _ZIPPED.items() if entry in content]
    if expected in (*fitting, OPEN_DOCUMENT, EPUB, *(() if fitting else _ZIPPED.values())) and expected is not None:
        return expected
    return fitting[0] if fitting else WORD


def named_kind(name: str) -> Kind | None:
    """Return the format of a name, None if it is not supported."""
    return _BY_ENDING.get(ending_of(name)) or _BY_NAME.get(_last(name).lower())


def ending_of(name: str) -> str:
    """Return the ending of a file's name or a URL's path, in lower case, with its dot; "" for none."""
    return PurePath(_last(name)).suffix.lower()


def media_type(content_type: str | None) -> str:
    """Return a content type without its parameters, in lower case."""
    return (content_type or "").partition(";")[0].strip().lower()


def unsupported(name: str) -> str:
    """Why a file with this name is not read."""
    ending = ending_of(name)
    if ending in _ENDINGS_OF_OTHER_PICTURES:
        return _OTHER_PICTURE
    kind = f"{ending} files are" if ending else "files without a type are"
    return f"{kind} not supported; supported are {SUPPORTED}"


def _last(name: str) -> str:
    if name.lower().startswith(("http://", "https://")):
        try:
            parts = urlsplit(name)
        except ValueError:
            return ""
        # A file of a repository is named by the repository's address and, behind a #, its path.
        inside = PurePath(parts.fragment)
        if inside.suffix.lower() in _BY_ENDING or inside.name.lower() in _BY_NAME:
            return inside.name
        name = parts.path
    return PurePath(name).name
