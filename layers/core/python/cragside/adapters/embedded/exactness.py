"""Lowers the scores of passages that lack what a question names exactly or asks for."""

from dataclasses import dataclass
from functools import cached_property

from cragside.adapters.embedded.answers import Kind, asked_kind, has_kind
from cragside.adapters.embedded.features import novelty
from cragside.adapters.embedded.lexicon import Lexicon
from cragside.adapters.embedded.names import is_english, mentions, misspells, names_in, resembles
from cragside.adapters.embedded.numbers import named_numbers, numbers_of
from cragside.adapters.embedded.passage_words import Excerpt, PassageWords
from cragside.adapters.embedded.question_words import QuestionWords
from cragside.adapters.embedded.statements import states_something
from cragside.adapters.embedded.words import Language, stem, words

# With fewer content words that the question lacks, a passage may be an echo of it: a question or a title. Unless it
# states something, its score falls in proportion.
_ENOUGH_NEW_WORDS = 5
# A passage about another number or name than the question's counts half, and so does one without the kind of answer
# that is asked for: too little for the threshold, enough to be shown as weak evidence where the web cannot be asked.
# Lower scores are weak evidence at most, and stay.
_INEXACT, _TELLING = 0.5, 0.3
# Shorter numbers may be a part of a date or of another number.
_LONG_FORM = 4


@dataclass(frozen=True)
class Exactness:
    """Holds what a question names: another number or name, however near, is another thing. And the answer it wants."""

    question: QuestionWords
    text: str
    lexicon: Lexicon

    def share(self, score: float, excerpt: Excerpt, passage: PassageWords) -> float:
        """Tell how much of a score to keep.

        Less for an echo of the question, for a passage about another number or name, and for one that has nothing of
        the kind that is asked for beside the question's words.
        """
        new = novelty(self.question, passage)
        short = new < _ENOUGH_NEW_WORDS
        echo = short and not (new and states_something(excerpt.text, self.question, passage.language))
        share = new / _ENOUGH_NEW_WORDS if echo else 1.0
        if score * share <= _TELLING:
            return share
        lacking = self._lacks_one(excerpt, passage, short=short) or not self._has_kind(excerpt, passage.language)
        return share * _INEXACT if lacking else share

    @cached_property
    def _kind(self) -> Kind | None:
        return asked_kind(self.text)

    @cached_property
    def _numbers(self) -> list[frozenset[str]]:
        return named_numbers(self.text)

    @cached_property
    def _names(self) -> list[str]:
        if not is_english(self.question.every_word):
            return []
        return names_in(self.question.content, self.lexicon, rare=False)

    @cached_property
    def _rare_names(self) -> list[str]:
        return names_in(self._names, self.lexicon, rare=True)

    def _has_kind(self, excerpt: Excerpt, language: Language) -> bool:
        every_word = self.question.every_word
        return self._kind is None or has_kind(self._kind, every_word, excerpt.title, excerpt.text, language)

    def _lacks_one(self, excerpt: Excerpt, passage: PassageWords, *, short: bool) -> bool:
        """Tell if the passage, title included, lacks a name, number or date. A short one has well-known names too."""
        names = self._names if short else self._rare_names
        dates = [date for date in self.question.dates if date.sure]
        if dates and not passage.states_any(dates) and not passage.may_move_any(dates):
            return True
        if not self._numbers and not names:
            return False
        whole = f"{excerpt.title}\n{excerpt.text}"
        found = words(whole)
        # A year or a code that stands there as it is needs no look at all forms of the passage's numbers.
        unseen = [forms for forms in self._numbers if max(map(len, forms)) < _LONG_FORM or forms.isdisjoint(found)]
        if unseen:
            stated = numbers_of(whole)
            if any(stated.isdisjoint(forms) for forms in unseen):
                return True
        other = [
            name
            for name in names
            if not passage.has_stem(stem(name, passage.language)) and not misspells(name, found, self.lexicon)
        ]
        suspects = [name for name in other if short or resembles(name, found)]
        return (
            bool(suspects)
            and is_english(found)
            and not all(mentions(name, self.question.every_word, found) for name in suspects)
        )
