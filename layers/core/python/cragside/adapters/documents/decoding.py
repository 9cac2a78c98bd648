"""Decodes bytes by byte order mark, declared charset, UTF-8, or Windows' code page."""

import codecs
import re

# The little-endian mark of UTF-32 begins with that of UTF-16, so the longer marks come first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL_CHARACTERS = 0.01
_SAMPLE = 100_000
# In UTF-16 one byte of each pair is nearly always small: 0 for Latin, 4 for Cyrillic. Other texts have no such bytes.
_WIDE = {0: "utf-16-be", 1: "utf-16-le"}
# Python decodes these as text, but nobody writes texts in them, and some are slow.
_NOT_FOR_TEXTS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
_HIGH_BYTES = frozenset(range(7))


def decode(content: bytes, charset: str | None = None) -> str | None:
    """The text with line feeds as line ends and without byte order mark; None for binary data.

    A byte order mark decides. Without one, these are tried: `charset`, UTF-8, UTF-16 if the bytes look like it, and
    Windows' code page, which is Latin-1 with quotes and dashes in place of control characters.
    """
    text = _decoded(content, charset)
    if text is None or "\x00" in text:
        return None
    sample = text[:_SAMPLE]
    if len(_CONTROL_CHARACTER.findall(sample)) > _MOST_CONTROL_CHARACTERS * len(sample):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(content: bytes, charset: str | None) -> str | None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _strictly(content, encoding)
    declared = _strictly(content, charset) if charset else None
    if declared is not None:
        return declared
    text = _strictly(content, "utf-8")
    if text is not None and "\x00" not in text:
        return text
    wide = _wide(content)
    if wide is not None:
        return wide
    return _strictly(content, "cp1252") or content.decode("latin-1")


def _wide(content: bytes) -> str | None:
    """The text if it is UTF-16 without byte order mark: every other byte has few values, and the text is readable."""
    sample = content[:_SAMPLE]
    if len(content) % 2 or len(content) < 4:
        return None
    for offset, encoding in _WIDE.items():
        high = sample[offset::2]
        low = sample[1 - offset :: 2]
        few = sum(byte in _HIGH_BYTES for byte in high) >= 0.9 * len(high)
        if few and 0 not in low and (text := _strictly(content, encoding)) is not None and _readable(text):
            return text
    return None


def _readable(text: str) -> bool:
    sample = text[:_SAMPLE]
    return sum(character.isprintable() or character in "\r\n\t\f" for character in sample) >= 0.97 * len(sample)


def _strictly(content: bytes, encoding: str) -> str | None:
    try:
        if codecs.lookup(encoding).name in _NOT_FOR_TEXTS:
            return None
        return content.decode(encoding)
    except (UnicodeError, LookupError, ValueError):
        return None
