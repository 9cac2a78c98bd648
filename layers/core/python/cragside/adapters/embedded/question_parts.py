"""Reads the parts of a question by rules: things that it joins or compares, enumerations, two questions in one.

Each part is the question without the other parts' words, so it keeps what they share: "Which planer is louder, the
PT-410 or the PT-520?" is also asked as "Which planer is louder, the PT-410?". Where it is not clear where a thing ends,
a part keeps the doubtful words: with too many words it finds less, with too few it finds wrong passages.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile

from cragside.adapters.embedded.follow_up import completed
from cragside.adapters.embedded.words import (
    AND,
    ARTICLES,
    FRENCH_ARTICLES,
    INTERROGATIVES,
    OR,
    PREPOSITIONS,
    SCAFFOLDING,
    function_words,
    language_of,
    listed,
    stem,
    word_list,
    words,
)
from cragside.domain.dates import MONTHS
from cragside.domain.evidence import Document
from cragside.domain.outcome import MOST_PARTS, ONE_THING, Asked, Part
from cragside.domain.prompt import ChatTurn

_JOINS = AND | OR
_VERSUS = listed("vs vs. versus gegenüber contra")
# What precedes the second of two things that are compared.
_COMPARING = (
    "compared with", "compared to", "in comparison with", "in comparison to", "as opposed to", "rather than",
    "instead of", "im vergleich zu", "im vergleich zur", "im vergleich zum", "verglichen mit", "im gegensatz zu",
    "par rapport à", "par rapport au", "par rapport aux", "comparé à", "comparée à", "plutôt que",
)  # fmt: skip
# "Compare A with B", "the difference between A and B".
_COMPARE = word_list("compare")
_WITH = listed("with to mit avec à")
_THAN = listed("than als que")
_COMPARATIVES = listed("more less mehr weniger plus moins")
# "From 2024 to 2025", "between May and July". Only of dates and codes: a ferry from one town to another is one ferry.
_FROM, _TO = listed("from von vom de du depuis seit"), listed("to bis auf zu à au")
_BETWEEN = listed("between zwischen entre")
# "Prices of kestrel and heron" are two prices.
_OF_EACH = listed("of for von für de pour")
# They precede a thing.
_OWNERS = listed("our my your his her their unser unsere unseren unserem meine mein notre nos mon ma mes")
_LEADS = ARTICLES | FRENCH_ARTICLES | PREPOSITIONS | _OWNERS | listed("this that celui celle ceux")
# They ask for all of something, wherever they stand.
_EVERYTHING = word_list("everything")
# They ask for all of something where that follows: "all boats", "all the boats", "a list of boats".
_GERMAN_ALL = listed("alle allen aller")
_ALL = _GERMAN_ALL | listed("all tous")
_LIST = listed("list lists liste lister listez")
_OF = listed("of all von aller alle des der de")
_ENGLISH_WHICH, _GERMAN_WHICH = listed("which what"), listed("welche")
_PLURAL_VERBS = listed("sind gibt")
# Without one of these words a question is about one thing.
_SIGNS = (
    _JOINS | _VERSUS | _WITH | _THAN | _TO | _EVERYTHING | _ALL | _LIST | _ENGLISH_WHICH | _GERMAN_WHICH
    | frozenset(phrase.split(" ", 1)[0] for phrase in _COMPARING)
)  # fmt: skip


PUNCTUATION = frozenset(",;:?!")
_NAMELESS = SCAFFOLDING | _LEADS | INTERROGATIVES | _COMPARE | _BETWEEN
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
        """Return the sort of a word: two things that are compared are of one sort."""
        word = self.written[place]
        if any(map(str.isdigit, word)):
            return "year" if _YEAR.fullmatch(word) else "code" if any(map(str.isalpha, word)) else "number"
        if self.lower[place] in MONTHS and (word[0].isupper() or word not in ("may", "mars", "march")):
            return "month"
        if not self.has_content(place):
            return ""
        return "name" if place and word[0].isupper() else "word"

    def between(self, first: int, last: int) -> str:
        """Return the words from one place to before another, as written."""
        end = self.starts[last] if last < len(self.starts) else len(self.question)
        return self.question[self.starts[first] : end].strip(" ,;:?!")

    def without(self, dropped: set[int]) -> str:
        """Return the question without the words at some places."""
        kept = [self.written[place] for place in range(len(self.written)) if place not in dropped]
        return " ".join(word for word in kept if word[0] not in ",;:")


_REACH = 5  # words that a thing may be away from what joins it

_PLAIN, _LED, _NAMED, _FIGURES = 1, 2, 3, 4
_COMPARED = 10
_DATES_AND_CODES = ("year", "month", "code")


@dataclass(frozen=True, slots=True)
class _Found:
    """The places of things in a question, and of what joins them; `weight` tells how sure it is."""

    things: list[range]
    joints: set[int]
    weight: int
    named: bool = True


@dataclass(frozen=True, slots=True)
class _Joint:
    """The words that join two things, and where those before it end: a comparative is of both.

    One that `compares` has the second thing behind it and the first one anywhere before it. One that
    `spans` joins dates and codes alone.
    """

    places: range
    before: int
    compares: bool = False
    spans: bool = False


def alternatives(text: QuestionText, *, for_a_list: bool) -> list[Part]:
    """Return the things that a question joins or compares, each with all that is not one of the others.

    "Begin and end", "sword and shield" are about one thing, unless the question asks `for_a_list`.
    """
    found = max(_joined(text, pairs=for_a_list), key=lambda each: (each.weight, len(each.things)), default=None)
    if found is None:
        return []
    parts: list[Part] = []
    every = set[int]().union(*found.things)
    rest = [place for place in range(len(text.lower)) if place not in every | found.joints]
    # "The difference between A and B": all about A would answer a part.
    shared = text.content(rest) > 0 or any(_is_comparative(text.lower[place]) for place in rest)
    if found.weight < _NAMED and not shared:
        return []
    for thing in found.things:
        name = " ".join(text.written[place] for place in thing if text.kind(place))
        question = text.without((every - set(thing)) | found.joints)
        parts.append(Part(question, name if found.named else "", graded_alone=shared))
    return parts


def _joined(text: QuestionText, *, pairs: bool) -> Iterator[_Found]:
    for place in range(1, len(text.lower) - 1):
        joint = _joint(text, place)
        found = _things(text, joint) if joint else None
        if joint is None or found is None or (joint.spans and text.kind(found.things[-1][-1]) not in _DATES_AND_CODES):
            continue
        chosen = joint.compares or text.lower[place] in OR
        each = text.lower[found.things[0].start - 1] in _OF_EACH  # "prices of kestrel and heron"
        if found.weight == _PLAIN and len(found.things) == 2 and not (chosen or pairs or each):
            continue
        named = found.named or chosen
        yield _Found(found.things, found.joints, found.weight + _COMPARED * joint.compares, named)


def _joint(text: QuestionText, place: int) -> _Joint | None:
    word, before = text.lower[place], text.lower[:place]
    one = range(place, place + 1)
    for phrase in _COMPARING:
        size = phrase.count(" ") + 1
        if word == phrase.split(" ", 1)[0] and " ".join(text.lower[place : place + size]) == phrase:
            return _Joint(range(place, place + size), place, compares=True)
    if word in _VERSUS:
        return _Joint(one, place, compares=True)
    if word in _WITH | AND and not _COMPARE.isdisjoint(before):
        return _Joint(one, place, compares=True)
    if word in _THAN:
        comparative = next((n for n in range(place - 1, 0, -1) if _is_comparative(text.lower[n])), None)
        if comparative is None:
            return None
        is_near = place - comparative < 4  # else "how much more did we pay in 2025 than in 2024"
        return _Joint(one, comparative if is_near else place, compares=True, spans=not is_near)
    if word in _JOINS:
        return _Joint(one, place, spans=not _BETWEEN.isdisjoint(before[-4:]))
    if word in _TO and not _FROM.isdisjoint(before[-4:]):
        return _Joint(one, place, spans=True)
    if word == "," and "," in before and "," not in text.lower[place + 1 :] and _JOINS.isdisjoint(text.lower):
        return _Joint(one, place)
    return None


def _is_comparative(word: str) -> bool:
    return word in _COMPARATIVES or (len(word) > 4 and word.endswith(("er", "ere", "eren")))


def _things(text: QuestionText, joint: _Joint) -> _Found | None:
    """Find what a joint joins: the thing behind it, the one before it, and those before that, between commas."""
    end = joint.before - 1 if text.lower[joint.before - 1] == "," else joint.before  # "A, B, or C"
    before = range(_start(text, end, far=joint.compares), end)
    pair = _pair(text, before, _following(text, joint.places.stop))
    if pair is None:
        return None
    one, other, weight = pair
    if one.start:  # what is compared with comes last, unless "kestrel vs heron weight"
        while joint.compares and other.stop < len(text.lower) and text.has_content(other.stop):
            other = range(other.start, other.stop + 1)
    things, joints = [one, other], {*joint.places, *range(end, joint.before)}
    while len(things) < MOST_PARTS and things[0].start and text.lower[things[0].start - 1] == ",":
        comma = things[0].start - 1
        earlier = _pair(text, range(_start(text, comma, far=False), comma), things[0])
        if earlier is None or earlier[2] != weight or _is_comparative(text.lower[comma - 1]):
            break
        things.insert(0, earlier[0])
        joints.add(comma)
    return _Found(things, joints, weight, named=weight != _PLAIN)


def _pair(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    for parallel in (_figures, _repeated, _names, _led, _words):
        if pair := parallel(text, before, after):
            one, other, weight = pair
            leads = sum(1 for place in other if text.lower[place] in _LEADS)
            start = one.start
            while leads and start > before.start and text.lower[start - 1] in _LEADS:
                start, leads = start - 1, leads - 1
            return range(start, one.stop), other, weight
    return None


def _following(text: QuestionText, place: int) -> range:
    end = place
    while end < min(len(text.lower), place + _REACH + 1) and text.lower[end] not in PUNCTUATION:
        if end > place and text.lower[end] in _JOINS | _VERSUS:
            break
        end += 1
    return range(place, end)


def _start(text: QuestionText, place: int, *, far: bool) -> int:
    start = place
    while start > (0 if far else max(0, place - _REACH)) and text.lower[start - 1] not in PUNCTUATION:
        if text.lower[start - 1] in _JOINS and not far:
            break
        start -= 1
    return start


def _figures(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """Find years, numbers or codes, with as many words before the first one as the second one has before it."""
    for there in after:
        kind = text.kind(there)
        if kind in ("year", "code", "number", "month"):
            here = next((place for place in reversed(before) if text.kind(place) == kind), None)
            if here is None:
                continue
            if kind == "month":
                return _dated(text, here, before), _dated(text, there, after), _FIGURES
            extra = text.content(range(after.start, there))
            return range(max(before.start, here - extra), here + 1), range(after.start, there + 1), _FIGURES
    return None


def _dated(text: QuestionText, place: int, within: range) -> range:
    """Return a month with the year behind it."""
    year = place + 1 in within and text.kind(place + 1) == "year"
    return range(place, place + 2 if year else place + 1)


def _repeated(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """Find words that end alike: "red tent or blue tent"."""
    if not before or not text.has_content(before[-1]):
        return None
    last = next((place for place in after if text.lower[place] == text.lower[before[-1]]), None)
    if last is None or not all(map(text.has_content, range(after.start, last))):
        return None
    size = min(last + 1 - after.start, len(before))
    if size < 2 or not all(map(text.has_content, before[-size:])):
        return None
    return before[-size:], range(after.start, last + 1), _LED


def _names(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """Find names with capitals on both sides. German gives all nouns capitals: there, both names have as many words."""
    there = next((place for place in after if text.kind(place)), None)
    if there is None or text.kind(there) != "name" or not before or text.kind(before[-1]) not in ("name", "code"):
        return None
    stop = there
    while stop < after.stop and text.kind(stop) in ("name", "number", "code"):
        stop += 1
    start = before.stop
    while start > before.start and text.kind(start - 1) in ("name", "number", "code"):
        start -= 1
    if text.german:
        size = min(stop - there, before.stop - start)
        start, stop = before.stop - size, there + size
    return range(start, before.stop), range(after.start, stop), _NAMED


def _led(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """Find words behind an article or a preposition on both sides: "the tent or the trailer"."""
    if not after or text.lower[after[0]] not in _LEADS:
        return None
    start = before.stop
    while start > before.start and text.has_content(start - 1):
        start -= 1
    size = before.stop - start
    if not 1 <= size <= 3 or start == before.start or text.lower[start - 1] not in _LEADS:
        return None
    there = next((place for place in after if text.has_content(place)), None)
    if there is None:
        return None
    stop = there
    while stop < after.stop and text.has_content(stop) and stop - there < size:
        stop += 1
    return range(start, before.stop), range(after.start, stop), _LED


def _words(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """Find one word on each side. The first word of a question has a capital whether it is a name or not."""
    if not before or not after or not text.kind(before[-1]):
        return None
    if text.kind(before[-1]) != text.kind(after[0]) and (before[-1], text.kind(after[0])) != (0, "name"):
        return None
    return range(before[-1], before.stop), range(after[0], after[0] + 1), _PLAIN


# A longer text is no question about two things.
_LONGEST = 400
_LONGEST_ITEM = 16  # tokens
# Of a compound: "Sauerteig" of "Sauerteigbrot".
_SHORTEST_BEGINNING = 6


class EmbeddedQuestionParts:
    """Takes time linear in the length of a question of at most 400 characters. Longer ones have no parts."""

    def read(self, question: str) -> Asked:
        """Read the parts of a question, two to `MOST_PARTS` or none, and tell if it asks for a list."""
        if len(question) > _LONGEST or not _may_ask_for_several(question):
            return ONE_THING
        text = QuestionText.read(question)
        a_list, clauses = _asks_for_a_list(text), _clauses(text)
        parts = clauses if all(part.graded_alone for part in clauses) else []
        parts = parts or _after_a_colon(text) or alternatives(text, for_a_list=a_list) or clauses
        return Asked(tuple(parts[:MOST_PARTS]) if len(parts) > 1 else (), a_list)

    def unnamed(self, asked: Asked, evidence: Sequence[Document]) -> list[str]:
        """Give the things that parts of the question name and no passage does."""
        named = [part.named for part in asked.parts if part.named]
        if len(named) < 2:
            return []
        shared = set.intersection(*(set(words(name)) for name in named))
        found = {word for each in evidence for word in words(f"{each.title} {each.content}")}
        return [name for name in named if not _is_named(name, found, shared)]


def _may_ask_for_several(question: str) -> bool:
    """Tell if it is worth a closer look: most questions have no such word."""
    signs = question.count(",") > 1 or ":" in question or "?" in question[:-1]
    return signs or not _SIGNS.isdisjoint(question.lower().split())


def _is_named(name: str, found: Set[str], shared: Set[str]) -> bool:
    """Tell if a word that tells a thing from the others is `found`: in a compound, or the beginning of its own one.

    Passages may write months as figures.
    """
    telling = [word for word in words(name) if word not in shared and word not in function_words([word])]
    if not telling or not MONTHS.keys().isdisjoint(telling):
        return True
    stems = tuple(stem(word, "english") for word in telling)
    beginnings = tuple(word for word in found if len(word) >= _SHORTEST_BEGINNING)
    return any(word.startswith(beginnings) for word in telling) or any(root in word for root in stems for word in found)


def _clauses(text: QuestionText) -> list[Part]:
    """Read several questions in one. The later ones are completed from the first."""
    cuts: list[tuple[int, int]] = []
    start = 0
    for place in range(1, len(text.lower) - 1):
        if _ends_a_question(text, place):
            cuts.append((start, place))
            start = place + 1
    cuts.append((start, len(text.lower)))
    if len(cuts) < 2 or text.content(range(*cuts[0])) < 2 or any(last - first < 3 for first, last in cuts):
        return []
    first = text.between(*cuts[0])
    turns = [ChatTurn("user", f"{first}?")]
    others = [f"and {text.between(*cut)}?" for cut in cuts[1:]]
    whole = [completed(other, turns) for other in others]
    # Where the second one needs the first one, both ask about one thing.
    parts = (f"{first}?", *(question.removeprefix("and ") for question in whole))
    return [Part(question, graded_alone=whole == others) for question in parts]


def _ends_a_question(text: QuestionText, place: int) -> bool:
    """Tell if another question follows: behind a question mark, or behind an "and" with a question word."""
    if text.lower[place] == "?":
        return text.content(range(place + 1, len(text.lower))) > 0
    first, second = [*text.lower[place + 1 : place + 3], ""][:2]
    if first == "was" and not text.german:
        return False
    asks = first in INTERROGATIVES or (first in _LEADS and second in INTERROGATIVES)
    return text.lower[place] in AND and asks


def _after_a_colon(text: QuestionText) -> list[Part]:
    """Read what is enumerated behind a colon, each with the words before the colon."""
    if ":" not in text.lower:
        return []
    colon = text.lower.index(":")
    head = text.between(0, colon)
    items: list[tuple[int, int]] = []
    start = colon + 1
    separators = [n for n in range(start, len(text.lower)) if text.lower[n] in _JOINS or text.lower[n] in ",;?"]
    for place in [*separators, len(text.lower)]:
        if text.content(range(start, place)):
            items.append((start, place))
        start = place + 1
    if len(items) < 2 or any(last - first > _LONGEST_ITEM for first, last in items) or not head:
        return []
    return [Part(f"{head} {item}?") for item in (text.between(*item) for item in items)]


def _asks_for_a_list(text: QuestionText) -> bool:
    if not _EVERYTHING.isdisjoint(text.lower) or (text.lower and text.lower[0] in _LIST):
        return True
    for place, word in enumerate(text.lower):
        following = range(place + 1, min(place + 4, len(text.lower)))
        after = following[0] if following else place
        if word in _LIST and text.lower[after] in _OF:
            return True
        named = list(takewhile(text.has_content, following))
        is_plural = any(_is_plural(text, n) for n in named)
        if word in _ALL and (text.lower[after] in _LEADS or is_plural):
            return True
        if word in _GERMAN_ALL and following and text.has_content(after):
            return True
        if word in _ENGLISH_WHICH and is_plural:
            return True
        if word in _GERMAN_WHICH and _has_plural_verb(text, following):
            return True
    return False


def _is_plural(text: QuestionText, place: int) -> bool:
    word = text.lower[place]
    return (
        text.has_content(place) and len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    )


def _has_plural_verb(text: QuestionText, following: Sequence[int]) -> bool:
    """Tell if a verb in the plural follows a noun: "welche Geräte haben"; "welche Farbe hat" asks for one.

    In a question without capitals the noun comes at once.
    """
    noun = next((n for n in following if text.written[n][0].isupper()), None)
    if noun is None and text.question.islower() and following and text.has_content(following[0]):
        noun = following[0]
    if noun is None or noun + 1 >= len(text.lower):
        return False
    verb = text.lower[noun + 1]
    return (verb in _PLURAL_VERBS or verb.endswith("en")) and text.lower[noun + 2 : noun + 3] != ["die"]
