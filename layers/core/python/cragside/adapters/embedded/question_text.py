"""A question as its tokens, with the sort of each."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cragside.adapters.embedded import part_words as listed
from cragside.adapters.embedded.grammar import INTERROGATIVES
from cragside.adapters.embedded.stopwords import SCAFFOLDING
from cragside.adapters.embedded.words import function_words, language_of, words
from cragside.domain.dates import MONTHS

PUNCTUATION = frozenset(",;:?!")
_NAMELESS = SCAFFOLDING | listed.LEADS | INTERROGATIVES | listed.COMPARE | listed.BETWEEN
_TOKEN = re.compile(r"[ldLD]['’](?=\w)|[^\s,;:?!()\"“”„«»]+|[,;:?!]")
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class QuestionText:
    """A question's tokens as written and in lower case, where each begins, and its function words."""

    question: str
    written: list[str]
    lower: list[str]
    starts: list[int]
    stop: frozenset[str]
    german: bool

    @property
    def joins(self) -> bool:
        """Tell if it has an "and" or an "or"."""
        return not listed.JOINS.isdisjoint(self.lower)

    @classmethod
    def read(cls, question: str) -> "QuestionText":
        """Take a question apart."""
        found = list(_TOKEN.finditer(question))
        written = [match.group().replace("’", "'").rstrip(".") or "." for match in found]
        lower = [word.lower() for word in written]
        every = words(question)
        stop = function_words(every)
        return cls(question, written, lower, [match.start() for match in found], stop, language_of(every) == "german")

    def has_content(self, place: int) -> bool:
        """Tell if a word names something."""
        word = self.lower[place]
        if word.endswith(("-il", "-elle", "-ils", "-elles")) or (len(word) == 1 and self.written[place].islower()):
            return False
        return word not in self.stop and word not in _NAMELESS and any(map(str.isalnum, word))

    def content(self, places: Iterable[int]) -> int:
        """Count the words that name something."""
        return sum(map(self.has_content, places))

    def kind(self, place: int) -> str:
        """The sort of a word: two things that are compared are of one sort."""
        word = self.written[place]
        if any(map(str.isdigit, word)):
            return "year" if _YEAR.fullmatch(word) else "code" if any(map(str.isalpha, word)) else "number"
        if self.lower[place] in MONTHS and (word[0].isupper() or word not in ("may", "mars", "march")):
            return "month"
        if not self.has_content(place):
            return ""
        return "name" if place and word[0].isupper() else "word"

    def between(self, first: int, last: int) -> str:
        """The words from one place to before another, as written."""
        end = self.starts[last] if last < len(self.starts) else len(self.question)
        return self.question[self.starts[first] : end].strip(" ,;:?!")

    def without(self, dropped: set[int]) -> str:
        """The question without the words at some places."""
        kept = [self.written[place] for place in range(len(self.written)) if place not in dropped]
        return " ".join(word for word in kept if word[0] not in ",;:")
