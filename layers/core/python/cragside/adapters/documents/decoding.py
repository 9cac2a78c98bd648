"""Decodes bytes by byte order mark, declared charset, UTF-8, UTF-16, or the legacy encoding that they look like."""

import codecs
import re
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import suppress

# chardet looks at this many bytes, which are taken where bytes beyond ASCII stand.
_LEGACY_SAMPLE = 64 * 1024
_BEFORE = 60
_PIECE = re.compile(rb"[\x80-\xff][^\n]{0,65536}+")
# Of two encodings that fit, the one that more files have wins. Those of Mac OS and MS-DOS need more evidence.
_CANDIDATES = {
    **dict.fromkeys(("cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"), 1.0),
    **dict.fromkeys(("cp932", "euc_jis_2004", "cp949", "gb18030", "big5hkscs", "koi8-r", "koi8-u", "cp874"), 1.0),
    **dict.fromkeys(("iso8859-2", "iso8859-5", "iso8859-6", "iso8859-7"), 0.99),
    **dict.fromkeys(("cp866", "cp850"), 0.9),
    **dict.fromkeys(("cp852", "mac-cyrillic"), 0.8),
    "mac-roman": 0.5,
}
_OF_EAST_ASIA = ("cp932", "euc_jis_2004", "gb18030", "big5hkscs", "cp949")
# Nearly all characters of a text are in these older sets, with two bytes each, and begin with these bytes: standards
# sort signs first, then common characters, then rare ones.
_COMMON = {
    "gb18030": ("gb2312", bytes(range(0xA1, 0xD8))),
    "cp949": ("euc_kr", bytes(range(0xA1, 0xC9))),
    "euc_jis_2004": ("euc_jp", bytes(range(0xA1, 0xD0))),
    "big5hkscs": ("big5", bytes(range(0xA1, 0xC7))),
}
# A text with only these characters beyond ASCII is most probably Western.
_WESTERN = frozenset("äöüßÄÖÜéèêëÉÈÊàâáãåÀÂÁÅçÇñÑîïíìÎÍôóòõøÔÓØûúùÛÚœæŒÆ“”„‘’‚–—…•€£§°«»·¿¡®©™²³½¼¾×µ±\xa0")
_PREFERRED = 1.6
# The first byte of dashes, quotes and the euro sign in UTF-8 is this letter, with a sign behind it or cut off.
_CUT_SIGN = re.compile(r"â(?:[^\w\x00-\x7f]|\Z)")
# ISO 8859-15 differs from Windows' page only where that gives a currency sign, fractions or accents without a letter.
_NEXT_TO_WESTERN = ("iso8859-15", 0.99)
_MOST_ODD = 0.5
# The pages of ISO have control characters where those of Windows have letters, quotes and dashes.
_CONTROL = re.compile(r"[\x80-\x9f]")
_MOST_CONTROL = 0.2
_NEVER_SEEN = 0.001  # chardet's score of an encoding that fits, with pairs of letters that it has never seen
# Of words with so many bytes beyond ASCII, random bytes score 0.07 at most, those of 30 languages 0.1 at least.
_ENOUGH = 64
_LEAST_SCORE = 0.08
_LETTERS = re.compile(r"(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0e31-\u0e4e]){1,200}")

# The end of each script, in their order.
_SCRIPTS = (
    (0x250, "l"), (0x370, "-"), (0x400, "g"), (0x530, "c"), (0x590, "x"), (0x600, "h"), (0x780, "a"), (0xE00, "x"),
    (0xE80, "t"), (0x1E00, "x"), (0x1F00, "l"), (0x2000, "g"), (0x2E80, "x"),
)  # fmt: skip
_HALF_WIDTH_KANA = range(0xFF61, 0xFFA0)
_PLAIN = frozenset("ªºµ°®©™№")  # beside letters of any script
_BEFORE_WORDS = frozenset("¿¡§£€")
_WORD = re.compile(r"[a-zA-Z!]+")
# Letters of two scripts in one word, a capital inside of a word, a symbol inside of a word.
_ODD = re.compile(
    r"!|[a-zA-Z]q[a-zA-Z]|[elcg][LCG]|[EL]L[el]|LE[el]|s[eElLcCgG]|[eElL][cCgGhatkx]|[cC][eElLgGhatkx]|[gG][eElLcChatkx]|[hatkx][eElLcCgG]"
    r"|h[atkx]|a[htkx]|t[hakx]|k[hatx]"
)
_NO_LETTER = re.compile(r"\W")
_FOREIGN = re.compile(r"[cCgGhat]+")


def ranked(content: bytes) -> Iterator[str]:
    """Yield the encodings whose words look like words, the most probable first. Bytes beyond ASCII are needed."""
    sample = b"\n".join(_pieces(content))
    if not sample:
        return
    likely = {encoding: score + _NEVER_SEEN for encoding, score in _scores(sample, _CANDIDATES).items()}
    # chardet passes over short texts in katakana. The Chinese sets have it too.
    likely = dict.fromkeys(_OF_EAST_ASIA, _NEVER_SEEN) | likely
    if "cp1252" in likely:
        encoding, share = _NEXT_TO_WESTERN
        likely[encoding] = likely["cp1252"] * share
    scores = {encoding: score * _quality(sample, encoding) for encoding, score in likely.items()}
    likeliest = sorted((each for each, score in scores.items() if score), key=lambda each: -scores[each])
    yield from (each for each in likeliest if _has_words(sample, each))


def _scores(sample: bytes, encodings: Iterable[str]) -> dict[str, float]:
    """Return for each encoding how much the pairs of bytes look like those of a language."""
    from chardet import detect_all

    found = detect_all(
        sample,
        ignore_threshold=True,
        compat_names=False,
        include_encodings=encodings,
        empty_input_encoding=next(iter(encodings)),
        no_match_encoding=next(iter(encodings)),
        max_bytes=len(sample),
    )
    return {each["encoding"]: each["confidence"] for each in found if each["encoding"]}


def is_readable(text: str) -> bool:
    """Tell if at most half of the words beyond ASCII are odd: of two scripts, or with symbols inside."""
    return _oddness(text[:_LEGACY_SAMPLE]) <= _MOST_ODD


def is_western(text: str) -> bool:
    """Tell if all characters beyond ASCII are common in Western Europe, and none is the beginning of a broken sign."""
    if text.isascii():
        return True
    return all(each.isascii() or each in _WESTERN for each in set(text)) and not _CUT_SIGN.search(text)


def mixes_scripts(content: bytes) -> bool:
    """Tell if UTF-8 gives letters of two scripts, or capitals after small letters, in more than half of the words."""
    text = b"\n".join(_pieces(content)).decode("utf-8", "ignore")
    return _share_of_odd(_NO_LETTER.sub(" ", text).translate(_SORTS)) > _MOST_ODD


def _pieces(content: bytes) -> Iterator[bytes]:
    """Yield the lines with bytes beyond ASCII, with a little of the text before them, up to the size of a sample."""
    taken, end = 0, 0
    for piece in _PIECE.finditer(content):
        start = max(end, piece.start() - _BEFORE)
        end = piece.end()
        yield content[start:end]
        taken += end - start
        if taken >= _LEGACY_SAMPLE:
            return


def _quality(sample: bytes, encoding: str) -> float:
    """Return the plausibility of a text in an encoding: 0 if it does not fit or is no text."""
    try:
        text = _in_encoding(sample, encoding)
    except UnicodeError:
        return 0
    odd = max(_oddness(text), _rareness(text, encoding))
    if odd > _MOST_ODD:
        return 0
    quality = (1 - odd) ** 3 * _CANDIDATES.get(encoding, 1.0)
    if encoding in _OF_EAST_ASIA:
        wide = sum(character > "\u2e7f" for character in text)
        plain = sum(character.isascii() and character.isalpha() for character in text)
        # A Western accent and the letter behind it also make a character.
        return quality * min(1, wide / 8) if plain > 4 * wide else quality
    # Mac OS has written other encodings for decades, and its page gives letters for nearly all bytes.
    if encoding == "mac-roman" and not is_western(text):
        return 0
    western = encoding in ("cp1252", "iso8859-15") and is_western(text)
    return quality * _PREFERRED if western else quality


def _has_words(sample: bytes, encoding: str) -> bool:
    """Tell if words with bytes beyond ASCII have the pairs of letters of a language, as far as there are enough."""
    text = _in_encoding(sample, encoding)
    if encoding in _OF_EAST_ASIA or is_western(text):
        return True
    words = "".join(word for word in _LETTERS.findall(text) if not word.isascii()).lower().encode(encoding, "ignore")
    share = min(1, sum(byte > 0x7F for byte in words) / _ENOUGH)
    scored = "cp1252" if encoding == _NEXT_TO_WESTERN[0] else encoding
    score = max(_scores(words, [scored]).values(), default=0) if words else 1
    return score * _quality(sample, encoding) >= _LEAST_SCORE * share


def _in_encoding(sample: bytes, encoding: str) -> str:
    return getincrementaldecoder(encoding)().decode(sample)  # its last character may be cut off


def _rareness(text: str, encoding: str) -> float:
    beyond = [character for character in text if not character.isascii()]
    if encoding not in _COMMON or not beyond:
        return 0
    older, first_bytes = _COMMON[encoding]
    encoded = [character.encode(older, "ignore") for character in beyond]
    return sum(len(each) != 2 or each[0] not in first_bytes for each in encoded) / len(beyond)


def _oddness(text: str) -> float:
    """Return the share of odd words among those with characters beyond ASCII."""
    sorts = text.translate(_SORTS)
    if len(_CONTROL.findall(text)) > _MOST_CONTROL * len(text):
        return 1
    foreign = _FOREIGN.findall(sorts)
    # Single letters of another script are accents of this one.
    if foreign and all(len(letters) == 1 for letters in foreign):
        return 1
    return _share_of_odd(sorts)


def _share_of_odd(sorts: str) -> float:
    words = [word for word in _WORD.findall(sorts) if word.strip("eE")]
    return sum(_ODD.search(word) is not None for word in words) / max(len(words), 1)


class _Sorts(dict[int, str]):
    """A letter for each character: e for ASCII, l for Latin, g, c, h, a, t for other scripts, capital for capitals.

    k is katakana of half width, x any other script, s a symbol, q a sign that stands before words, ! what texts do not
    contain, and - all else.
    """

    def __missing__(self, code: int) -> str:
        sort = self[code] = _sort(chr(code))
        return sort


def _sort(character: str) -> str:
    category, code = unicodedata.category(character), ord(character)
    if character in _PLAIN or character in "\t\n\r\f\v":
        return "-"
    if character in _BEFORE_WORDS:
        return "q"
    if character.isascii():
        return ("E" if category == "Lu" else "e") if character.isalpha() else "-"
    if category in ("Cc", "Cn", "Co", "So") or character == "¤":
        return "!"
    if category in ("Sm", "Sk", "No"):
        return "s"
    if category[0] not in "LM" or code >= 0x2E80:
        return "k" if code in _HALF_WIDTH_KANA else "-"
    script = next((sort for end, sort in _SCRIPTS if code < end), "x")
    return script.upper() if category == "Lu" and script in "lgc" else script


_SORTS = _Sorts()


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
    """Return the text with line feeds as line ends and without byte order mark; None for data that is no readable text.

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
    """Return the content in the declared encoding.

    Valid UTF-8 beyond ASCII is no text of one byte for each character.
    """
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
    """Return the text if it is UTF-8 with damaged bytes or with lines in Windows-1252."""
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
    """Tell if an ASCII text ends within a character of UTF-8, rather than with a letter of Windows-1252."""
    # Words of many languages end with one of the other letters.
    if len(cut) < 2 and not (b"\xc2" <= cut < b"\xe0" or cut == b"\xe2"):
        return False
    western = content.decode("cp1252", "replace")
    capital_after_small = western[-1:].isupper() and western[-2:-1].islower()
    return capital_after_small or not is_western(western)


def _marked(content: bytes, encoding: str) -> str | None:
    """Return the text behind a byte order mark. UTF-8 may be damaged, and the last character of each may be cut off."""
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
    """Return a line in UTF-8, or in Windows-1252 if nothing in it is UTF-8."""
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
    """Return the number of usual characters in a sample; 0 if it is not readable."""
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
