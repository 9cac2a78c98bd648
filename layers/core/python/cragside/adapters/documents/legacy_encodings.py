"""Recognises the encodings that programs wrote before UTF-8, by the frequencies of bytes and by the words they give."""

import re
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator

# chardet looks at this many bytes, which are taken where bytes beyond ASCII stand.
_SAMPLE = 64 * 1024
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
    """The encodings whose words look like words, the most probable first. Bytes beyond ASCII are needed."""
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
    """Tell how much the pairs of bytes are those of a language, for each encoding."""
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
    return _oddness(text[:_SAMPLE]) <= _MOST_ODD


def is_western(text: str) -> bool:
    """Tell if all characters beyond ASCII are common in the west of Europe, and none begins a cut sign of UTF-8."""
    if text.isascii():
        return True
    return all(each.isascii() or each in _WESTERN for each in set(text)) and not _CUT_SIGN.search(text)


def mixes_scripts(content: bytes) -> bool:
    """Tell if UTF-8 gives letters of two scripts, or capitals after small letters, in more than half of the words."""
    text = b"\n".join(_pieces(content)).decode("utf-8", "ignore")
    return _share_of_odd(_NO_LETTER.sub(" ", text).translate(_SORTS)) > _MOST_ODD


def _pieces(content: bytes) -> Iterator[bytes]:
    """The lines with bytes beyond ASCII, with a little of the text before them, up to the size of a sample."""
    taken, end = 0, 0
    for piece in _PIECE.finditer(content):
        start = max(end, piece.start() - _BEFORE)
        end = piece.end()
        yield content[start:end]
        taken += end - start
        if taken >= _SAMPLE:
            return


def _quality(sample: bytes, encoding: str) -> float:
    """The plausibility of a text in an encoding: 0 if it does not fit or is no text."""
    try:
        text = _decoded(sample, encoding)
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
    text = _decoded(sample, encoding)
    if encoding in _OF_EAST_ASIA or is_western(text):
        return True
    words = "".join(word for word in _LETTERS.findall(text) if not word.isascii()).lower().encode(encoding, "ignore")
    share = min(1, sum(byte > 0x7F for byte in words) / _ENOUGH)
    scored = "cp1252" if encoding == _NEXT_TO_WESTERN[0] else encoding
    score = max(_scores(words, [scored]).values(), default=0) if words else 1
    return score * _quality(sample, encoding) >= _LEAST_SCORE * share


def _decoded(sample: bytes, encoding: str) -> str:
    return getincrementaldecoder(encoding)().decode(sample)  # its last character may be cut off


def _rareness(text: str, encoding: str) -> float:
    beyond = [character for character in text if not character.isascii()]
    if encoding not in _COMMON or not beyond:
        return 0
    older, first_bytes = _COMMON[encoding]
    encoded = [character.encode(older, "ignore") for character in beyond]
    return sum(len(each) != 2 or each[0] not in first_bytes for each in encoded) / len(beyond)


def _oddness(text: str) -> float:
    """The share of odd words among those with characters beyond ASCII."""
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
