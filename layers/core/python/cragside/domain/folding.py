"""Texts as a reader sees them: without invisible characters, and with look-alike characters folded."""

import re
import unicodedata
from dataclasses import dataclass

# All line breaks of Unicode. Models and pages may show each of them as a new line.
_LINE_END = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# Controls, soft hyphens, bidi marks, fillers, tags, and variation selectors that no emoji and no script needs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
# Persian, Indic and Mongolian scripts and emoji need joiners and selectors.
_JOINED = (
    "\u0600-\u109f\u1780-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
    "\u00a9\u00ae\u203c\u2049\u20e3\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_KEYCAP = "(?<=[0-9#*])\ufe0f(?=\u20e3)"
_JOINER = re.compile(
    f"{_KEYCAP}|(?<=[{_JOINED}])([\u180b-\u180f\u200c\u200d\ufe0e\ufe0f]{{1,2}})|[\u180b-\u180f\u200c\u200d\ufe0e\ufe0f]"
)

# Letters that look like Latin ones and that no normal form maps to them: Cyrillic, Greek, Armenian, IPA, Cherokee,
# Lisu and small capitals.
_LIKE_LATIN = {
    "a": "аɑαᴀꓮᎪΑА", "b": "ЬВΒʙᏴꓐ", "c": "сϲᴄСϹᏟꓚ", "d": "ԁɗᴅᎠꓓ", "e": "еҽєεᴇℯЕΕᎬꓰ℮ə", "f": "ꓝϝғ",
    "g": "ɡցԍɢᏀꓖ", "h": "һհʜНΗᎻꓧ", "i": "іıɩιӏɪІΙӀᎥꓲ", "j": "јϳᴊЈᎫꓙ", "k": "кκᴋКΚᏦꓗ", "l": "ⅼʟᏞꓡ",
    "m": "мᴍМΜᎷꓟ", "n": "ոпηɴΝꓠ", "o": "оοօσᴏОΟՕꓳ", "p": "рρᴘРΡᏢꓑ", "q": "ԛզ", "r": "гᴦʀᎡꓣ", "s": "ѕꜱЅᏚꓢ",
    "t": "тτᴛТΤᎢꓔ", "u": "սυᴜꓴ", "v": "ѵνᴠѴᏙꓦ", "w": "ѡԝᴡԜᎳꓪ", "x": "хχХΧꓫ", "y": "уүγʏУΥҮᎩꓬ", "z": "ᴢΖᏃꓜ",
}  # fmt: skip
_LATIN = {ord(like): ord(letter) for letter, alike in _LIKE_LATIN.items() for like in alike}
_NOTHING = 0
_MOST_KEPT = 20_000


class _Folding(dict[int, int]):
    """The folded form of each character: one character, or `_NOTHING` for a combining one."""

    def __missing__(self, code: int) -> int:
        folded = _folded(chr(code))
        if len(self) < _MOST_KEPT:
            self[code] = folded
        return folded


# Raised and lowered parentheses are kept: unlike "(1)", they do not number lists.
_FOLDING = _Folding({code: code for code in (*range(128), *map(ord, "⁽⁾₍₎"))})


@dataclass(frozen=True, slots=True)
class Folded:
    """A text with folded look-alike characters, and the position of each in the original text."""

    text: str
    positions: range | list[int]

    def span(self, start: int, end: int) -> slice:
        """The part of the original text that a part of the folded text stands for."""
        return slice(self.positions[start], self.positions[end - 1] + 1)


def visible(text: str) -> str:
    """The text without invisible characters, with line feeds as line ends. Joiners inside words and emoji stay."""
    if not text.isascii() or _CONTROL.search(text):
        text = _INVISIBLE.sub("", _LINE_END.sub("\n", text))
    return text if text.isascii() else _JOINER.sub(_joining, text)


def fold(text: str) -> Folded:
    """The text with all digits as 0 to 9, all spaces as spaces, and Latin letters without accents."""
    if text.isascii():
        return Folded(text, range(len(text)))
    folded = text.translate(_FOLDING)
    if "\x00" not in folded:
        return Folded(folded, range(len(text)))
    return Folded(folded.replace("\x00", ""), [at for at, character in enumerate(folded) if character != "\x00"])


def _joining(found: re.Match[str]) -> str:
    return found.group(1) or (found.group() if found.string[found.end() : found.end() + 1] == "\u20e3" else "")


def _folded(character: str) -> int:
    code = ord(character)
    if code in _LATIN:
        return _LATIN[code]
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf"):
        return _NOTHING
    if category == "Zs":
        return ord(" ")
    number = unicodedata.numeric(character, None)
    if number is not None:
        return ord("0") + (int(number) if number in range(10) else 1)
    plain = unicodedata.normalize("NFKD", character)
    if any(unicodedata.category(mark) not in ("Mn", "Me") for mark in plain[1:]):
        return code
    return _LATIN.get(ord(plain[0]), ord(plain[0]))
