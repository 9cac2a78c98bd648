"""A question, reworded with the words that the documents use."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]{1,60}")


@dataclass(frozen=True, slots=True)
class ReadWord:
    """Words as a question writes them, and as the documents do."""

    asked: str
    read: str


@dataclass(frozen=True, slots=True)
class Reading:
    """Holds a question in the words of the documents. A search looks for `text`.

    `words` are corrected words. `equal` are abbreviations in the text with what the documents say they stand for, or
    the reverse: a passage may have either form. Documents may explain one abbreviation differently.
    """

    text: str
    words: Sequence[ReadWord] = ()
    equal: Sequence[ReadWord] = ()

    @property
    def others(self) -> list[str]:
        """The text in other words: with each word that has an equal replaced, once for each equal that it has."""
        texts: list[str] = []
        left = list(self.equal)
        while left:
            chosen = {word.asked: word for word in reversed(left)}.values()
            texts.append(_replaced(self.text, list(chosen)))
            left = [word for word in left if word not in chosen]
        return texts

    def asked_of(self, passage: str) -> str:
        """Return the text in the words of a passage: those that it lacks are replaced by its own names for them."""
        return _replaced(self.text, self.read_in(passage)) if self.equal else self.text

    def read_in(self, passage: str) -> list[ReadWord]:
        """Return the words of the text that a passage lacks, but has by another name."""
        found = _words_in(passage)
        return [word for word in self.equal if not _has(found, word.asked) and _has(found, word.read)]


def _replaced(text: str, words: Sequence[ReadWord]) -> str:
    for word in words:
        before, asked, after = text.partition(word.asked)
        while asked and (before[-1:].isalnum() or after[:1].isalnum()):  # a part of another word
            skipped, asked, after = after.partition(word.asked)
            before += word.asked + skipped
        text = f"{before}{word.read}{after}" if asked else text
    return text


def _has(passage: Sequence[str], words: str) -> bool:
    """Tell if a passage, as its words, has these in a row. A longer ending counts, but not that of an abbreviation."""
    sought = _words_in(words)
    last, inflects = len(sought) - 1, len(sought) > 1 or not words.isupper()
    return any(
        passage[place : place + last] == sought[:last]
        and (each == sought[last] or (inflects and each.startswith(sought[last])))
        for place, each in enumerate(passage[last:])
    )


def _words_in(text: str) -> Sequence[str]:
    return _WORD.findall(text.lower())
