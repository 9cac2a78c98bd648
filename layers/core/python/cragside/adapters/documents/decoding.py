"""Decodes bytes by byte order mark, declared charset, UTF-8, UTF-16, or the legacy encoding that they look like."""

import codecs
import re
from contextlib import suppress

from cragside.adapters.documents.legacy_encodings import is_readable, is_western, mixes_scripts, ranked

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
_WIDE = ("utf-16-le", "utf-16-be")
_USUAL = re.compile(r"[A-Za-z0-9 \n.,;:/\-、。，：]")
# Python decodes these as text, but nobody writes texts in them, and some are slow.
_NOT_FOR_TEXTS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
# Programs declare a subset and write the whole, as the web's encoding standard says of browsers.
_WHOLE = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}
_OTHER_NAMES = {"windows-874": "cp874", "x-sjis": "cp932", "x-gbk": "gb18030", "x-mac-cyrillic": "mac-cyrillic"}
# Japanese and Korean mail in seven bits switches between sets of characters with escapes.
_SWITCHING = re.compile(rb"\x1b(?:\$[@B()]|\([JI])")
_XML = re.compile(rb"""\s{0,20}<\?xml[^>]{0,200}?encoding\s{0,5}=\s{0,5}["']([\w:.-]{1,40})""")
_WINDOWS = {code: bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xA0)}
_UNDEFINED = bytes(code for code, character in _WINDOWS.items() if ord(character) == code)
# Bytes of legacy encodings may make these characters in UTF-8, such as a capital with an accent before a quotation
# mark in Windows-1252, or two characters of Chinese. Hardly any text has them.
_RARE = re.compile(r"[\u0250-\u02ff\u0700-\u08ff\u1a00-\u1dff\u2b80-\u2fff\u3400-\u4dbf\ua000-\uabff\ue000-\uf8ff]")
# With so many characters beyond ASCII for each damaged byte it is no chance.
_NO_CHANCE = 10


def decode(content: bytes, charset: str | None = None) -> str | None:
    """The text with line feeds as line ends and without byte order mark; None for data that is no readable text.

    A byte order mark decides. Without one, these are tried: `charset`, or the encoding that an XML file declares,
    UTF-8, UTF-16 if the bytes look like it, UTF-8 with damaged bytes, and the legacy encoding whose words look most
    like words.
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
            return _marked(content, encoding)
    if charset is None and (stated := _XML.match(content)):
        charset = stated[1].decode("ascii")
    text = _strictly(content, "utf-8")
    declared = _as_declared(content, charset, text) if charset else None
    if declared is not None:
        return declared
    if text is not None and "\x00" not in text:
        return _switched(content) or text
    return _wide(content) or _damaged(content) or _legacy(content)


def _as_declared(content: bytes, charset: str, text: str | None) -> str | None:
    """The content in the declared encoding. Valid UTF-8 beyond ASCII is no text of one byte for each character."""
    try:
        encoding = codecs.lookup(_OTHER_NAMES.get(charset.lower(), charset)).name
    except (LookupError, ValueError):
        return None
    decoded = _strictly(content, _WHOLE.get(encoding, encoding))
    return None if text is not None and decoded is not None and len(text) < len(decoded) == len(content) else decoded


def _switched(content: bytes) -> str | None:
    escape = _SWITCHING.search(content[:_SAMPLE])
    return _strictly(content, "iso2022_kr" if escape[0] == b"\x1b$)" else "iso2022_jp_ext") if escape else None


def _damaged(content: bytes) -> str | None:
    """The text if it is UTF-8 with damaged bytes or with lines in Windows-1252."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    whole = decoder.decode(content)
    cut = decoder.getstate()[0]  # one damage, however many bytes of the last character are there
    damaged = len(content) - len(whole.encode()) - len(cut) + bool(cut)
    sound = _beyond_ascii(whole)
    if not sound and damaged == 1 and _is_cut(content, cut):
        return whole + "\ufffd"
    if sound <= _NO_CHANCE * damaged:
        sound -= sum(1 for _ in _RARE.finditer(whole))
        if sound <= 0 or mixes_scripts(content):
            return None
    lines = []
    for line in content.split(b"\n"):
        lines.append(_line(line))
        if sound < damaged and not is_western(lines[-1]):
            return None
    return "\n".join(lines)


def _is_cut(content: bytes, cut: bytes) -> bool:
    """Tell if an ASCII text ends with a part of a character in UTF-8 rather than with a letter of Windows-1252."""
    # Words of many languages end with one of the other letters.
    if len(cut) < 2 and not (b"\xc2" <= cut < b"\xe0" or cut == b"\xe2"):
        return False
    western = content.decode("cp1252", "replace")
    capital_after_small = western[-1:].isupper() and western[-2:-1].islower()
    return capital_after_small or not is_western(western)


def _marked(content: bytes, encoding: str) -> str | None:
    """The text behind a byte order mark. UTF-8 may be damaged, and the last character of each may be cut off."""
    if encoding == "utf-8-sig":
        content = content.removeprefix(codecs.BOM_UTF8)
        text = _strictly(content, "utf-8")
        return _damaged(content) if text is None else text
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(content)
    except UnicodeError:
        return None
    cut = decoder.getstate()[0]
    return text + "\ufffd" * bool(cut) if text or not cut else None


def _line(content: bytes) -> str:
    """A line in UTF-8, or in Windows-1252 if nothing in it is UTF-8."""
    with suppress(UnicodeDecodeError):
        return content.decode()
    if not _beyond_ascii(content.decode("utf-8", "ignore")):
        western = _strictly(content, "cp1252")
        if western and is_western(western) and is_readable(western):
            return western
    return content.decode("utf-8", "replace")


def _beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _legacy(content: bytes) -> str | None:
    if b"\x00" in content:
        return None
    for encoding in ranked(content):
        if (text := _strictly(content, encoding)) is not None:
            return text
    # Windows' code page with a few bytes that it does not define.
    text = content.decode("latin-1").translate(_WINDOWS)
    western = is_western(content.translate(None, _UNDEFINED).decode("cp1252"))
    return text if western and is_readable(text) else None


def _wide(content: bytes) -> str | None:
    """The text if it is UTF-16 without byte order mark: readable, with usual characters, and more of them than the
    other byte order gives."""
    if len(content) % 2 or len(content) < 4 or b"\x00" not in content[:_SAMPLE]:
        return None
    usual = {encoding: _usual(content[:_SAMPLE], encoding) for encoding in _WIDE}
    encoding = max(_WIDE, key=lambda each: usual[each])
    return _strictly(content, encoding) if usual[encoding] else None


def _usual(sample: bytes, encoding: str) -> int:
    """The number of the usual characters, 0 if the sample is not readable."""
    text = sample.decode(encoding, "ignore")
    readable = sum(character.isprintable() or character in "\r\n\t\f" for character in text) >= 0.97 * len(text)
    return len(_USUAL.findall(text)) if readable else 0


def _strictly(content: bytes, encoding: str) -> str | None:
    try:
        if codecs.lookup(encoding).name in _NOT_FOR_TEXTS:
            return None
        return content.decode(encoding)
    except (UnicodeError, LookupError, ValueError):
        return None
