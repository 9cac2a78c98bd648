"""Reads plain text of any ending. It may be an e-mail, a chat or the notes of a meeting."""

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The text, unchanged."""
    text = decoded(content, origin)
    doc_type, tier1 = describe(origin.name, text)
    return Reading(text, doc_type, tier1=tier1)


def decoded(content: bytes, origin: FileOrigin) -> str:
    """The bytes as text. Raises `Unreadable` for binary data."""
    text = decode(content, origin.charset)
    if text is None:
        raise Unreadable("holds binary data, not text; if it is text in a rare encoding, save it as UTF-8")
    return text
