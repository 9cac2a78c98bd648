"""Words, their language and their stems: what lexical matching is done with."""

import re
import unicodedata
from functools import lru_cache
from typing import Literal

import snowballstemmer

from cragside.adapters.embedded.stopwords import ENGLISH, GERMAN

Language = Literal["english", "german"]

# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Combining marks of Latin, Hebrew, Arabic and the Indic scripts, which Python's \w leaves out.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
_WORD = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    r"|\d+(?:[.,:]\d+)+"
    rf"|(?:(?![{_UNSPACED}])[^\W_])(?:(?![{_UNSPACED}])[^\W_]|[{_MARKS}]|['’](?=[^\W_]))*(?:\+\+|\#)?"
)
# What the tokenised forms of "it's", "don't", "I'm", "he'd" leave behind.
_CLITICS = frozenset({"s", "t", "d", "m", "ll", "re", "ve"})


def words(text: str) -> list[str]:
    """Lower-case words in their order; a run of a script without spaces gives its overlapping pairs of characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for match in _WORD.finditer(text.lower()):
        run = match.group()
        if match.lastgroup == "unspaced" and len(run) > 2:
            found.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            found.append(run)
    return found


def language_of(found: list[str]) -> Language:
    """English or German, by which one's function words are more numerous; English when neither shows."""
    german = sum(word in GERMAN or (not word.isascii() and any(c in "äöüß" for c in word)) for word in found)
    return "german" if german > sum(word in ENGLISH for word in found) else "english"


def terms(text: str) -> list[str]:
    """Stemmed words without function words, in their order, repetitions kept.

    Both sides of a comparison go through here: a question's terms equal the terms of a passage that says the same
    words. Questions take 0.05 ms once their words have been met.
    """
    found = words(text)
    return stems(found, language_of(found))


def stems(found: list[str], language: Language) -> list[str]:
    """The stems of words (as `words` gives them) without the language's function words."""
    stop = GERMAN if language == "german" else ENGLISH
    return [stem(word, language) for word in found if word not in stop and word not in _CLITICS]


def is_filler(word: str, stop: frozenset[str]) -> bool:
    """Whether a word, spelt as in its text, is one of `stop`; an acronym (`US`, `IT`) never is."""
    return word.lower().replace("’", "'") in stop and not (len(word) > 1 and word.isupper())


@lru_cache(maxsize=1 << 16)
def stem(word: str, language: Language) -> str:
    """The word's stem; words with digits or of other scripts stay as they are."""
    base = word.replace("’", "'").removesuffix("'s")
    if len(base) > 40 or not base.isalpha():
        return base
    return str(_stemmer(language).stemWord(base))


@lru_cache(maxsize=2)
def _stemmer(language: Language) -> "snowballstemmer.stemmer":
    return snowballstemmer.stemmer(language)
