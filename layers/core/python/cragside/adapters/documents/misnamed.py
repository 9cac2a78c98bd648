"""Tells what a file with the name of an old Office file is in truth: programs export pages, tables and texts so."""

import re

from cragside.adapters.documents.decoding import decode

_HEAD = 4096
_PAGE = re.compile(
    r"<(?:!doctype\s{1,9}html|(?:html|head|body|meta|title|style|link|script|table|thead|tbody|tr|div|span|p|h[1-6]|font"
    r"|center|b|br|img|ul|ol)[\s/>])",
    re.IGNORECASE,
)
_XML = re.compile(r"\A\s{0,200}<(?:\?xml|[\w:]{1,40}[\s>])")
_WORKBOOK = "urn:schemas-microsoft-com:office:spreadsheet"
_OFFICE_XML = re.compile(
    f"{_WORKBOOK}|schemas.microsoft.com/office/word/2003/wordml|schemas.microsoft.com/office/2006/xmlPackage"
)
_MIME = re.compile(r"^mime-version:", re.IGNORECASE | re.MULTILINE)
_PARTS = re.compile(r"^content-type:\s{0,20}(?:multipart/(?:related|mixed)|text/html)", re.IGNORECASE | re.MULTILINE)
_HEADER = re.compile(r"\A\s{0,20}[A-Za-z-]{1,60}: ?\S")


def reader_of(content: bytes, ending: str) -> tuple[str, str]:
    """The module that reads a file with the name of an old Office file, and the type of the file."""
    text = decode(content[:_HEAD])
    if text is None:
        return "old_office", ending.removeprefix(".") or "doc"
    if _PAGE.match(_begun(text)):
        return "html", "html"
    if _XML.search(text) and _OFFICE_XML.search(text):
        return "office_xml", "xml"
    if _HEADER.search(text) and _MIME.search(text) and _PARTS.search(text):
        return "web_archives", "mhtml"
    if ending in (".doc", ".ppt"):
        return "texts", "txt"
    return "delimited", "tsv" if "\t" in text else "csv"


def _begun(text: str) -> str:
    """The text without the declaration of XML and the comments before its first element."""
    text = text.lstrip()
    for begin, end in (("<?", "?>"), ("<!--", "-->")):
        while text.startswith(begin):
            text = text.partition(end)[2].lstrip()
    return text


def is_workbook(head: bytes) -> bool:
    """Tell if XML is a workbook of Excel 2003."""
    return _WORKBOOK.encode() in head and b"<Workbook" in head
