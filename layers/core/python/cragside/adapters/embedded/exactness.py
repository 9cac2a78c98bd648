"""Tells if a passage lacks a number, a code, a date or a rare name that the question has."""

from dataclasses import dataclass
from functools import cached_property

from cragside.adapters.embedded.lexicon import Lexicon
from cragside.adapters.embedded.names import is_english, mentions, misspells, names_in, resembles
from cragside.adapters.embedded.numbers import named_numbers, numbers_of
from cragside.adapters.embedded.passage_words import PassageWords
from cragside.adapters.embedded.question_words import QuestionWords
from cragside.adapters.embedded.words import stem, words

# Shorter numbers may be a part of a date or of another number.
_LONG_FORM = 4


@dataclass(frozen=True)
class Identifiers:
    """The identifiers that a question names. Another number or name, however near, is another thing."""

    question: QuestionWords
    text: str
    lexicon: Lexicon

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

    def lacking(self, title: str, text: str, passage: PassageWords, *, short: bool) -> bool:
        """Tell if the passage, title included, lacks one of them. A short one should have well-known names too."""
        names = self._names if short else self._rare_names
        dates = [date for date in self.question.dates if date.sure]
        if dates and not passage.states_any(dates) and not passage.may_move_any(dates):
            return True
        if not self._numbers and not names:
            return False
        whole = f"{title}\n{text}"
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
