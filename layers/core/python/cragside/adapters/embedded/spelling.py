"""Reads questions in the words of the documents: misspelt words, and abbreviations that passages explain."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, get_args

from cragside.adapters.embedded.languages import topicless
from cragside.adapters.embedded.names import WRONG, meant, spellings, unmarked
from cragside.adapters.embedded.words import FRENCH, OTHER, SCAFFOLDING, STOPWORDS, Language, stem, terms, words
from cragside.domain.reading import Reading, ReadWord

if TYPE_CHECKING:
    from cragside.store.repository import Vocabulary

# One word in a hundred that is none passes.
BITS, _HASHES = 10, 7


class WordFilter:
    """A set of words as a Bloom filter: it can tell if it has a word, but not list its words."""

    def __init__(self, bits: bytes) -> None:
        self._bits = bits

    def __contains__(self, word: str) -> bool:
        return all(self._bits[place >> 3] & 1 << (place & 7) for place in places_of(word, len(self._bits)))


def places_of(word: str, size: int) -> list[int]:
    """Return the numbers of a word's bits in a filter of `size` bytes."""
    digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
    return [(first + number * second) % (8 * size) for number in range(_HASHES)]


@cache
def words_of(language: Language) -> WordFilter:
    """Return the words of a language, as `words` finds them (`evals/known_words.py` writes the files)."""
    return WordFilter(resources.files(__package__).joinpath(f"known_words.{language}").read_bytes())


_TOPICLESS = STOPWORDS | FRENCH
# At least one capital after the first letter, so that no common word is one.
_SHORT = r"(?<![\w-])([A-ZÄÖÜ][A-Za-zÄÖÜäöü]{0,6}[A-ZÄÖÜ]|[A-ZÄÖÜ][A-ZÄÖÜ][a-z]{1,6})"
_ANY_SHORT = re.compile(_SHORT)
_IN_BRACKETS = re.compile(r"\(\s?" + _SHORT + r"\s?[),;]")
_FIRST = re.compile(
    _SHORT
    + r"(?![\w-])\s?(?:\(|=|:|–|—|\||- |;\s?[^\s:;]{1,40}:"  # the last for a row: `Abbreviation: RT; Meaning: ...`
    r"|,? (?:short|kurz) for |(?:stands|is short) for |(?:steht|ist kurz|kurz) für )"
)
_AFTER = re.compile(r"[,(] ?(?:in |for )?(?:short|abbreviated|kurz|abgekürzt)(?: as)?:? " + _SHORT + r"(?![\w-])")
_LONG_WORD = re.compile(r"[^\W_]{1,40}(?:['’-][^\W_]{1,40}){0,4}")
_END = re.compile(r"[()\[\],;:=|\n]|\.\s")
_LONGEST_FORM, _MOST_LONG_WORDS = 120, 9
# A long form of one word is a compound.
_SHORTEST_COMPOUND = 8
_MOST = 20


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """A short form and what a text says that it stands for."""

    short: str
    long: str


@lru_cache(maxsize=1 << 11)  # as many passages as the grader remembers
def abbreviations_in(text: str) -> tuple[Abbreviation, ...]:
    """Return the abbreviations that a text explains, at most 20."""
    found: dict[Abbreviation, None] = {}
    for each in _explained(text):
        found[each] = None
        if len(found) == _MOST:
            break
    return tuple(found)


def _explained(text: str) -> Iterator[Abbreviation]:
    if not _ANY_SHORT.search(text):
        return
    for pattern in (_IN_BRACKETS, _AFTER):
        for match in pattern.finditer(text):
            before = _END.split(text[max(0, match.start() - _LONGEST_FORM) : match.start()].rstrip(" ."))[-1]
            yield from _fitting(match.group(1), before, at_end=True)
    for match in _FIRST.finditer(text):
        after = _END.split(text[match.end() : match.end() + _LONGEST_FORM].lstrip(), maxsplit=1)[0]
        yield from _fitting(match.group(1), after, at_end=False)


def _fitting(short: str, text: str, *, at_end: bool) -> Iterator[Abbreviation]:
    """Yield the fewest words at one end of a text that a short form may stand for."""
    words = list(_LONG_WORD.finditer(text))
    while at_end and words and len(words[-1].group()) == 1:  # Segelclub Asverbucht e.V.
        words.pop()
    words = words[-_MOST_LONG_WORDS:] if at_end else words[:_MOST_LONG_WORDS]
    runs = [words[-size:] if at_end else words[:size] for size in range(1, len(words) + 1)]
    for fits in (_is_initials, _stands_for):
        for run in runs:
            if fits(short.lower(), [word.group().lower() for word in run]):
                yield Abbreviation(short, " ".join(text[run[0].start() : run[-1].end()].split()))
                return


def _is_initials(short: str, words: Sequence[str]) -> bool:
    """Tell if the words begin with the letters of a short form. Those without a topic need not."""
    return len(words) > 1 and short in (_initials(words), _initials(_telling(words)))


def _stands_for(short: str, words: Sequence[str]) -> bool:
    """Tell if the letters of a short form occur in these words in order, and each word with a topic begins with one."""
    if (len(words) == 1 and len(words[0]) < _SHORTEST_COMPOUND) or len(short) > sum(map(len, words)) // 2:
        return False
    initials = _initials(_telling(words))
    in_order = _in_order(short, " ".join(words)) and _in_order(initials, short)
    return words[0][0] == short[0] and in_order and len(initials) <= len(short)


def _initials(words: Sequence[str]) -> str:
    return "".join(part[0] for word in words for part in word.split("-"))


def _telling(words: Sequence[str]) -> list[str]:
    return [word for word in words if len(word) > 1 and word not in _TOPICLESS]


def _in_order(letters: str, text: str) -> bool:
    place = -1
    for letter in letters:
        place = text.find(letter, place + 1)
        if place < 0:
            return False
    return True


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


async def correct(question: str, vocabulary: "Vocabulary") -> Reading:
    """Read a question with the nearest words of the vocabulary in place of those that it lacks.

    Correct one slip in a word, umlauts that are written otherwise, and words that are joined or split wrongly. Leave a
    word alone if the documents or the question's language have it.
    """
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
        # In the other language the documents may have the word: with its umlauts, it is read as that.
        near = [
            _Near(word, dict.fromkeys(spellings(word.plain), 0) if word.terms & held else meant(word.plain))
            for word in apart
        ]
        counts = await vocabulary.held({term for each in near for term in each.terms})
        for each in near:
            read = await each.read(counts, known, vocabulary)
            if read.lower() not in ("", each.word.plain):
                changes.append((each.word.start, each.word.end, read))
    return _changed(question, sorted(changes))


def explain(reading: Reading, passages: Sequence[str]) -> Reading:
    """Add the abbreviations that these passages explain, and what they stand for, to the reading."""
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
    read = [
        ReadWord(form, meaning)
        for form, meanings in islice(equal.items(), _MOST_EQUAL)
        for meaning in meanings[:_MOST_MEANINGS]
    ]
    return replace(reading, equal=tuple(read)) if read else reading


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
        """Return the long form as the question writes it, in any inflection. A single common word is none."""
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
    """Return the words that two neighbours may be together: one of them is unknown, or the language has the whole."""
    return {
        whole: (first, second)
        for first, second in pairwise(found)
        if 0 < second.start - first.end < _FURTHEST_APART
        and _SHORTEST_JOINED <= len(whole := first.plain + second.plain) <= _LONGEST
        and (first in strange or second in strange or any(whole in words for words in known))
    }


def _known_in(question: str) -> list[WordFilter]:
    """Return the words of the languages that a question may be in."""
    found = words(question)
    tongues = [language for language, listed in _LISTED.items() if any(map(listed.__contains__, found))]
    return [words_of(language) for language in tongues] or _every_word()


def _every_word() -> list[WordFilter]:
    return [words_of(language) for language in _LISTED]


class _Near:
    """The words that are near to a strange one, by their terms, and the pairs of words that it may be."""

    def __init__(self, word: _Word, ranks: Mapping[str, int]) -> None:
        self.word = word
        self.ranks = ranks
        self.sought: dict[str, str] = {}
        asked = unmarked(word.plain)
        for other in sorted(ranks, key=ranks.__getitem__):
            for term in _terms(other):
                # Else it is a word of its own with another ending.
                if not ranks[other] or not asked.startswith(term):
                    self.sought.setdefault(term, other)
        self.splits = dict(_splits(word.plain))

    @property
    def terms(self) -> set[str]:
        """Return all terms that the documents may have."""
        return {*self.sought, *(term for parts in self.splits.values() for term in parts)}

    async def read(self, held: Mapping[str, int], known: Sequence[WordFilter], vocabulary: "Vocabulary") -> str:
        """Return the nearest word of the vocabulary, which has the terms `held`; "" if none is near.

        Words that say nothing are known without looking.
        """
        # A word of the language comes before one that a single document may have misspelt in another way.
        near = sorted(
            (not any(self.sought[term] in words for words in known), self.ranks[self.sought[term]], -held[term], term)
            for term in self.sought.keys() & held.keys()
        )
        empty, rank = _nearest_empty(self.word.plain)
        for _, at, _, term in near[:_MOST_TRIED]:
            if empty and rank <= at:
                return empty
            other = self.sought[term]
            # Which language the passage was read in is not known, so it is looked for by the word and by its term.
            if form := _form_in(await vocabulary.passage_with(f"{other} {term}"), term, self.ranks):
                return form
            # Many terms are also those of something that is no word.
            if any(other in words for words in known):
                return other
        if empty:
            return empty
        for parts, (first, second) in self.splits.items():
            if first in held and second in held and _beside(parts, await vocabulary.passage_with(parts)):
                return parts
        return ""


def _nearest_empty(word: str) -> tuple[str, int]:
    """Return the nearest word without a topic and its rank; "" if none is near."""
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
    """Return the terms under which passages in different languages have a word."""
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
