"""From bytes to text: byte order marks, what was declared, UTF-8, and what Windows writes."""

import codecs
import re

# UTF-32's little-endian mark begins with UTF-16's, so the longer ones come first.
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
# In UTF-16 one byte of each pair is nearly always a small number, 0 for Latin and 4 for Cyrillic, that no other text has.
_WIDE = {0: "utf-16-be", 1: "utf-16-le"}
# Python knows them as encodings of text, but no text is written in them, and some take long.
_NOT_FOR_TEXTS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
_HIGH_BYTES = frozenset(range(7))


def decode(content: bytes, charset: str | None = None) -> str | None:
    """The text that the bytes hold, with plain line ends and without byte order mark; None when they are binary.

    A byte order mark decides; without one `charset` does where it fits, then UTF-8, then UTF-16 if it looks so, and
    then Windows' code page, which is Latin-1 with quotes and dashes in place of control characters.
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
    """The text if it is UTF-16 without byte order mark: half of its bytes are of few kinds, and it reads as text."""
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
