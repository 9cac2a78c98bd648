"""Reads questions in the words of the documents: misspelt words, and abbreviations that passages explain."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import get_args

from typing_extensions import override

from cragside.adapters.embedded.abbreviations import Abbreviation, abbreviations_in
from cragside.adapters.embedded.foreign import topicless
from cragside.adapters.embedded.known_words import WordFilter, words_of
from cragside.adapters.embedded.misspellings import WRONG, meant, spellings, unmarked
from cragside.adapters.embedded.stopwords import OTHER, SCAFFOLDING, STOPWORDS
from cragside.adapters.embedded.words import Language, stem, terms, words
from cragside.domain.reading import Reading, ReadWord
from cragside.ports.models import QuestionReader, Vocabulary

_LISTED: Mapping[Language, frozenset[str]] = {language: topicless(language) for language in get_args(Language)}
_EMPTY = OTHER.union(SCAFFOLDING, *_LISTED.values())
# Words that say nothing are misspelt too: wich, untill. Shorter ones are near to too many names.
_OFTEN_MISSPELT = frozenset(word for word in STOPWORDS if len(word) > 3 and word.isalpha())
_TOKEN = re.compile(r"[^\W_]{1,60}(?:['’][^\W_]{1,60})?")
_SHORTEST, _LONGEST = 4, 30
_LONGEST_ABBREVIATION = 8
_SHORTEST_PART, _SHORTEST_JOINED, _FURTHEST_APART = 3, 6, 3
_LONGEST_READ = 1_000
# So many strange words are looked up: a question with more of them is in another language than the documents.
_MOST_STRANGE = 4
_MOST_WORDS = 32
# So many abbreviations are read, each as so many documents explain it: no document may replace another's meaning.
_MOST_EQUAL, _MOST_MEANINGS = 2, 3
# So many of the nearest words are looked at in a passage.
_MOST_TRIED = 3


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a question: as it is written, in lower case without accents, and its place."""

    written: str
    plain: str
    start: int
    end: int

    def is_strange(self, known: Sequence[WordFilter]) -> bool:
        """Tell if it is no word of these languages, no abbreviation, and long enough to be misspelt."""
        abbreviates = self.written.isupper() and len(self.written) <= _LONGEST_ABBREVIATION
        if abbreviates or len(self.plain) < _SHORTEST:
            return False
        # A name may be from anywhere.
        return not any(self.plain in words for words in (_every_word() if self.written[0].isupper() else known))

    @property
    def terms(self) -> frozenset[str]:
        return _terms(self.plain)


class EmbeddedQuestionReader(QuestionReader):
    """Corrects one slip in a word, umlauts that are written otherwise, and words that are joined or split wrongly.

    A word is left alone if the documents or the question's language have it.
    """

    @override
    async def read(self, question: str, vocabulary: Vocabulary) -> Reading:
        known = _known_in(question)
        found = [word for word in _words_of(question) if word.plain not in _EMPTY]
        strange = [word for word in found if word.is_strange(known)]
        pairs = _pairs(found, strange, known)
        looked_for = dict.fromkeys((*strange, *chain.from_iterable(pairs.values())))
        if not looked_for:
            return Reading(question)
        # A search has asked for these just now. Hardly any question without misspelt words asks for more.
        sought = set(terms(question))
        there = (await vocabulary.held({term for word in looked_for for term in word.terms & sought})).keys()
        lacking = {word for word in looked_for if there.isdisjoint(word.terms)}
        if not lacking:
            return Reading(question)
        asked = {term for word in lacking for term in word.terms} | {term for word in pairs for term in _terms(word)}
        held = (await vocabulary.held(asked)).keys()
        changes = []
        for whole, (first, second) in pairs.items():
            if lacking & {first, second} and not held.isdisjoint(_terms(whole)):
                passage = await vocabulary.passage_with(whole)
                if form := next(filter(None, (_form_in(passage, term, {whole: 0}) for term in _terms(whole))), ""):
                    changes.append((first.start, second.end, form))
        joined = {place for start, end, _ in changes for place in range(start, end)}
        apart = [word for word in strange if word in lacking and word.start not in joined]
        if len(apart) <= _MOST_STRANGE:
            for word in apart:
                # In the other language the documents may have the word: with its umlauts, it is read as that.
                others = dict.fromkeys(spellings(word.plain), 0) if word.terms & held else meant(word.plain)
                read = await _nearest(word, others, known, vocabulary)
                if read.lower() not in ("", word.plain):
                    changes.append((word.start, word.end, read))
        return _changed(question, sorted(changes))

    @override
    def explained(self, reading: Reading, passages: Sequence[str]) -> Reading:
        explained = [*dict.fromkeys(chain.from_iterable(map(abbreviations_in, passages)))]
        if not explained:
            return reading
        asked = _Asked(reading.text)
        equal: dict[str, list[str]] = {}
        for each in explained:
            for form, meaning in ((asked.short(each), each.long), (asked.long(each), each.short)):
                meanings = equal.setdefault(form, []) if form else []
                if form and meaning.lower() not in map(str.lower, meanings):
                    meanings.append(meaning)
        told = [
            ReadWord(form, meaning)
            for form, meanings in islice(equal.items(), _MOST_EQUAL)
            for meaning in meanings[:_MOST_MEANINGS]
        ]
        return replace(reading, equal=tuple(told)) if told else reading


class _Asked:
    """The words of a question, in which the forms of abbreviations are sought."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._words = _TOKEN.findall(question[:_LONGEST_READ])[:_MOST_WORDS]
        self._lower = [word.lower() for word in self._words]

    @cached_property
    def _terms(self) -> list[frozenset[str]]:
        return list(map(_terms, self._lower))

    def short(self, abbreviation: Abbreviation) -> str:
        """The short form as the question writes it, "" if it has none. A common word is none, unless in capitals."""
        short = abbreviation.short
        if short.lower() not in self._lower:
            return ""
        written = self._words[self._lower.index(short.lower())]
        as_explained = written == short and not self._question.isupper()
        return written if as_explained or not _is_common(written) else ""

    def long(self, abbreviation: Abbreviation) -> str:
        """The long form as the question writes it, in any inflection. A single common word is none."""
        long = _TOKEN.findall(abbreviation.long)
        if not long or (len(long) == 1 and _is_common(long[0])):
            return ""
        sought = [_terms(word.lower()) for word in long]
        for place in range(len(self._words) - len(long) + 1):
            if all(each & there for each, there in zip(sought, self._terms[place:], strict=False)):
                words = self._words[place : place + len(long)]
                return next((part for part in (" ".join(words), "-".join(words)) if part in self._question), "")
        return ""


def _is_common(word: str) -> bool:
    return word.lower() in _EMPTY or any(word.lower() in known for known in _every_word())


def _pairs(
    found: Sequence[_Word], strange: Sequence[_Word], known: Sequence[WordFilter]
) -> dict[str, tuple[_Word, _Word]]:
    """Words that two neighbours in a question may be together: one is strange, or the language has the whole."""
    return {
        whole: (first, second)
        for first, second in pairwise(found)
        if 0 < second.start - first.end < _FURTHEST_APART
        and _SHORTEST_JOINED <= len(whole := first.plain + second.plain) <= _LONGEST
        and (first in strange or second in strange or any(whole in words for words in known))
    }


def _known_in(question: str) -> list[WordFilter]:
    """The words of the languages that a question may be in."""
    found = words(question)
    tongues = [language for language, listed in _LISTED.items() if any(map(listed.__contains__, found))]
    return [words_of(language) for language in tongues] or _every_word()


def _every_word() -> list[WordFilter]:
    return [words_of(language) for language in _LISTED]


async def _nearest(word: _Word, ranks: Mapping[str, int], known: Sequence[WordFilter], vocabulary: Vocabulary) -> str:
    """The nearest word of the vocabulary, "" if none is near. Words that say nothing are known without looking."""
    sought: dict[str, str] = {}
    asked = unmarked(word.plain)
    for other in sorted(ranks, key=ranks.__getitem__):
        for term in _terms(other):
            # Else it is a word of its own with another ending.
            if not ranks[other] or not asked.startswith(term):
                sought.setdefault(term, other)
    splits = dict(_splits(word.plain))
    held = await vocabulary.held({*sought, *(term for parts in splits.values() for term in parts)})
    # A word of the language comes before one that a single document may have misspelt in another way.
    near = sorted(
        (not any(sought[term] in words for words in known), ranks[sought[term]], -held[term], term)
        for term in sought.keys() & held.keys()
    )
    empty, rank = _nearest_empty(word.plain)
    for _, at, _, term in near[:_MOST_TRIED]:
        if empty and rank <= at:
            return empty
        other = sought[term]
        # Which language the passage was read in is not known, so it is looked for by the word and by its term.
        if form := _form_in(await vocabulary.passage_with(f"{other} {term}"), term, ranks):
            return form
        # Many terms are also those of something that is no word.
        if any(other in words for words in known):
            return other
    if empty:
        return empty
    for parts, (first, second) in splits.items():
        if first in held and second in held and _beside(parts, await vocabulary.passage_with(parts)):
            return parts
    return ""


def _nearest_empty(word: str) -> tuple[str, int]:
    """The nearest word without a topic and its rank; "" if none is near."""
    ranks = meant(word, shortest=_SHORTEST)
    near = [(ranks[other], other) for other in ranks.keys() & _OFTEN_MISSPELT if ranks[other] < WRONG]
    rank, other = min(near, default=(WRONG, ""))
    return other, rank


def _words_of(question: str) -> Iterator[_Word]:
    found = 0
    for match in _TOKEN.finditer(question[:_LONGEST_READ]):
        plain = words(match.group())
        if len(plain) == 1 and plain[0].isalpha() and len(plain[0]) <= _LONGEST and plain[0][0] < "\u0250":
            found += 1
            yield _Word(match.group(), plain[0], match.start(), match.end())
        if found == _MOST_WORDS:
            return


def _terms(word: str) -> frozenset[str]:
    """The terms under which passages in different languages have a word."""
    return frozenset({stem(word, "english"), stem(word, "german")})


def _splits(word: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for place in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
        first, second = word[:place], word[place:]
        yield f"{first} {second}", (stem(first, "english"), stem(second, "english"))


def _form_in(passage: str, term: str, ranks: Mapping[str, int]) -> str:
    """The likeliest word of a passage that has this term and a rank, as it is written there, "" if there is none."""
    found = (match.group() for match in _TOKEN.finditer(passage) if len(match.group()) <= _LONGEST)
    plain = {written: each[0] for written in found if len(each := words(written)) == 1 and each[0] in ranks}
    likely = [written for written, each in plain.items() if term in _terms(each)]
    form = min(likely, key=lambda written: ranks[plain[written]], default="")
    return form.lower() if form.isupper() else form


def _beside(parts: str, passage: str) -> bool:
    """Tell if a passage has two words one after the other."""
    return f" {parts} " in f" {' '.join(words(passage))} "


def _changed(question: str, changes: Sequence[tuple[int, int, str]]) -> Reading:
    text, end, read = "", 0, []
    for start, stop, word in changes:
        text += question[end:start] + word
        read.append(ReadWord(question[start:stop], word))
        end = stop
    return Reading(text + question[end:], tuple(read))
