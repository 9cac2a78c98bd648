"""Chooses the format of a file, by its first bytes, its content type and the ending of its name."""

import re
from pathlib import PurePath
from urllib.parse import urlsplit

from cragside.adapters.documents.kinds import (
    EPUB,
    EXCEL,
    HTML,
    JSON,
    KINDS,
    MAILBOX,
    OFFICE_XML,
    OLD_OFFICE,
    OPEN_DOCUMENT,
    OUTLOOK,
    PDF,
    PICTURE,
    RTF,
    SLIDES,
    SUPPORTED,
    TEXT,
    TRANSCRIPT,
    WORD,
    Kind,
)
from cragside.adapters.documents.misnamed import is_workbook, kind_of_misnamed
from cragside.adapters.documents.reading import Unreadable

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
    """The format of a file and its type, such as `pdf`. Raises `Unreadable` with the supported formats."""
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
    """The ending of a picture that begins so; "" for other files. The two letters of BMP are too few to tell it."""
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
    """The format of a name, None if it is not supported."""
    return _BY_ENDING.get(ending_of(name)) or _BY_NAME.get(_last(name).lower())


def ending_of(name: str) -> str:
    """The ending of a file's name or a URL's path, in lower case, with its dot; "" for none."""
    return PurePath(_last(name)).suffix.lower()


def media_type(content_type: str | None) -> str:
    """A content type without its parameters, in lower case."""
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
