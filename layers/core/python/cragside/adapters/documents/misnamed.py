"""Tells what a file with the name of an old Office file is in truth: programs export pages, tables and texts so."""

import re

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.kinds import DELIMITED, HTML, OFFICE_XML, OLD_OFFICE, TEXT, WEB_ARCHIVE, Kind

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
    """The text without the declaration of XML and the comments before its first element."""
    text = text.lstrip()
    for begin, end in (("<?", "?>"), ("<!--", "-->")):
        while text.startswith(begin):
            text = text.partition(end)[2].lstrip()
    return text


def is_workbook(head: bytes) -> bool:
    """Tell if XML is a workbook of Excel 2003."""
    return _XML_WORKBOOK.encode() in head and b"<Workbook" in head
