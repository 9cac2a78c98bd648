"""The formats that are read, with the modules that read them, and their endings and content types."""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from cragside.adapters.documents.languages import BY_ENDING, BY_NAME
from cragside.adapters.documents.reading import Reader

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
    """The content types of a program's documents, without and with macros."""
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
DELIMITED = Kind("tables", (".csv", ".tsv"), ("text/csv", "text/tab-separated-values"))
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
