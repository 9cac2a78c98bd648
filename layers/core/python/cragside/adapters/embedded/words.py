"""Words, their language and their stems, for lexical matching."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import Stemmer

from cragside.adapters.embedded.asian_words import korean_stem
from cragside.adapters.embedded.stopwords import ENGLISH, GERMAN, OTHER

Language = Literal["english", "german", "french"]

# Scripts without spaces: Thai, Lao, Burmese, Khmer, katakana, Han. In them, characters that mostly express grammar
# (hiragana, the most frequent Chinese particles) separate words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u30a0-\u30ff\u3400-\u9fff\uf900-\ufaff"
_GRAMMAR = "\u3040-\u309f的了是在和吗呢什么"
# Combining marks of Latin, Hebrew, Arabic and the Indic scripts, which Python's \w leaves out.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
_WORD = re.compile(
    rf"(?P<grammar>[{_GRAMMAR}]+)"
    rf"|(?P<unspaced>(?:(?![{_GRAMMAR}])[{_UNSPACED}])+)"
    r"|\d+(?:[.,:]\d+)+"
    rf"|(?:(?![{_UNSPACED}{_GRAMMAR}])[^\W_])(?:(?![{_UNSPACED}{_GRAMMAR}])[^\W_]|[{_MARKS}]|['’](?=[^\W_]))*(?:\+\+|\#)?"
)
# For ASCII texts: it finds the same words in a third of the time.
_ASCII_WORD = re.compile(r"[0-9]+(?:[.,:][0-9]+)+|[a-z0-9](?:[a-z0-9]|'(?=[a-z0-9]))*(?:\+\+|#)?")
# Remains of tokenised forms such as "it's", "don't", "I'm" and "he'd".
_CLITICS = frozenset({"s", "t", "d", "m", "ll", "re", "ve"})
# The plain letters of umlauts.
UMLAUTS = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})


def words(text: str) -> list[str]:
    """Lower-case words without accents, in order. Scripts without spaces give overlapping pairs of characters."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = _folded(text)
    found: list[str] = []
    grammar: list[str] = []
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        if kind is None:
            found.append(match.group())
        else:
            (grammar if kind == "grammar" else found).extend(_pairs(match.group()))
    return found or grammar


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _folded(text: str) -> str:
    """Lower case without the accents of Latin letters, except German umlauts: `Hōryū-ji` is `horyu-ji`."""
    return unicodedata.normalize("NFKC", text).lower().translate(_accents())


@lru_cache(maxsize=1)
def _accents() -> dict[int, str]:
    """The plain letters of accented Latin letters."""
    letters = map(chr, [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)])
    bases = {letter: unicodedata.normalize("NFD", letter)[0] for letter in letters if letter.lower() not in "äöüß"}
    return {ord(letter): base for letter, base in bases.items() if base != letter and base.isascii()}


def language_of(found: Sequence[str]) -> Language:
    """English or German, whichever has more function words in the text; English if there are none."""
    german = sum(map(GERMAN.__contains__, found))
    if not all(map(str.isascii, found)):
        german += sum(1 for word in found if word not in GERMAN and any(c in "äöüß" for c in word))
    return "german" if german > sum(map(ENGLISH.__contains__, found)) else "english"


def function_words(found: list[str]) -> frozenset[str]:
    """The words without a topic in the language of a text, which is given as the result of `words`."""
    if language_of(found) == "german":
        return GERMAN
    return ENGLISH if any(word in ENGLISH for word in found) else ENGLISH | OTHER


def terms(text: str) -> list[str]:
    """The stems of words without function words, in order, with repetitions.

    Both sides of a comparison use it, so equal words of a question and a passage give equal terms. A question with
    cached words takes 0.05 ms. A text as German as it is English ("Was fressen Raupen?") gives the stems of both.
    """
    found = words(text)
    known = stems(found, language_of(found))
    if 0 < sum(map(GERMAN.__contains__, found)) == sum(map(ENGLISH.__contains__, found)):
        known += [term for term in stems(found, "german") if term not in known]
    return known


def stems(found: list[str], language: Language, stop: frozenset[str] | None = None) -> list[str]:
    """The stems of words (from `words`) without function words, by default those of their language."""
    if stop is None:
        stop = GERMAN if language == "german" else function_words(found)
    return [stem(word, language) for word in found if word not in stop and word not in _CLITICS]


def is_filler(word: str, stop: frozenset[str]) -> bool:
    """Tell if a word, as written in its text, is one of `stop`. An acronym (`US`, `IT`) never is."""
    return word.lower().replace("’", "'") in stop and not (len(word) > 1 and word.isupper())


@lru_cache(maxsize=1 << 16)
def stem(word: str, language: Language) -> str:
    """The stem of a word. Words with digits, and in scripts other than Latin and Korean, are unchanged."""
    base = word.replace("’", "'").removesuffix("'s")
    if len(base) > 40 or not base.isalpha():
        return base
    return korean_stem(str(_stemmer(language).stemWord(base)).translate(UMLAUTS))


@lru_cache(maxsize=3)
def _stemmer(language: Language) -> "Stemmer.Stemmer":
    return Stemmer.Stemmer(language, 0)  # `stem` caches
