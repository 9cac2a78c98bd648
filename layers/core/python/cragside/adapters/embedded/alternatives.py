"""Things that a question joins or compares: A or B, A and B, A, B and C, A against B, more than B, from then to now.

Where it is not clear where a thing ends, a part keeps the doubtful words: with too many words it finds less, with too
few it finds wrong passages.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cragside.adapters.embedded import part_words as listed
from cragside.adapters.embedded.grammar import AND, OR
from cragside.adapters.embedded.question_text import PUNCTUATION, QuestionText
from cragside.domain.outcome import MOST_PARTS, Part

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
    """The things that a question joins or compares, each with all that is not one of the others.

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
        each = text.lower[found.things[0].start - 1] in listed.OF_EACH  # "prices of kestrel and heron"
        if found.weight == _PLAIN and len(found.things) == 2 and not (chosen or pairs or each):
            continue
        named = found.named or chosen
        yield _Found(found.things, found.joints, found.weight + _COMPARED * joint.compares, named)


def _joint(text: QuestionText, place: int) -> _Joint | None:
    word, before = text.lower[place], text.lower[:place]
    one = range(place, place + 1)
    for phrase in listed.COMPARING:
        size = phrase.count(" ") + 1
        if word == phrase.split(" ", 1)[0] and " ".join(text.lower[place : place + size]) == phrase:
            return _Joint(range(place, place + size), place, compares=True)
    if word in listed.VERSUS:
        return _Joint(one, place, compares=True)
    if word in listed.WITH | AND and not listed.COMPARE.isdisjoint(before):
        return _Joint(one, place, compares=True)
    if word in listed.THAN:
        comparative = next((n for n in range(place - 1, 0, -1) if _is_comparative(text.lower[n])), None)
        if comparative is None:
            return None
        is_near = place - comparative < 4  # else "how much more did we pay in 2025 than in 2024"
        return _Joint(one, comparative if is_near else place, compares=True, spans=not is_near)
    if word in listed.JOINS:
        return _Joint(one, place, spans=not listed.BETWEEN.isdisjoint(before[-4:]))
    if word in listed.TO and not listed.FROM.isdisjoint(before[-4:]):
        return _Joint(one, place, spans=True)
    if word == "," and "," in before and "," not in text.lower[place + 1 :] and not text.joins:
        return _Joint(one, place)
    return None


def _is_comparative(word: str) -> bool:
    return word in listed.COMPARATIVES or (len(word) > 4 and word.endswith(("er", "ere", "eren")))


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
            leads = sum(1 for place in other if text.lower[place] in listed.LEADS)
            start = one.start
            while leads and start > before.start and text.lower[start - 1] in listed.LEADS:
                start, leads = start - 1, leads - 1
            return range(start, one.stop), other, weight
    return None


def _following(text: QuestionText, place: int) -> range:
    end = place
    while end < min(len(text.lower), place + _REACH + 1) and text.lower[end] not in PUNCTUATION:
        if end > place and text.lower[end] in listed.JOINS | listed.VERSUS:
            break
        end += 1
    return range(place, end)


def _start(text: QuestionText, place: int, *, far: bool) -> int:
    start = place
    while start > (0 if far else max(0, place - _REACH)) and text.lower[start - 1] not in PUNCTUATION:
        if text.lower[start - 1] in listed.JOINS and not far:
            break
        start -= 1
    return start


def _figures(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """Years, numbers and codes, with the words before the second one that the first one has as well."""
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
    """A month with the year behind it."""
    year = place + 1 in within and text.kind(place + 1) == "year"
    return range(place, place + 2 if year else place + 1)


def _repeated(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """Words that end alike: "red tent or blue tent"."""
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
    """Words with capitals on both sides. German writes all nouns so: there, both have as many."""
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
    """Words behind an article or a preposition on both sides: "the tent or the trailer"."""
    if not after or text.lower[after[0]] not in listed.LEADS:
        return None
    start = before.stop
    while start > before.start and text.has_content(start - 1):
        start -= 1
    size = before.stop - start
    if not 1 <= size <= 3 or start == before.start or text.lower[start - 1] not in listed.LEADS:
        return None
    there = next((place for place in after if text.has_content(place)), None)
    if there is None:
        return None
    stop = there
    while stop < after.stop and text.has_content(stop) and stop - there < size:
        stop += 1
    return range(start, before.stop), range(after.start, stop), _LED


def _words(text: QuestionText, before: range, after: range) -> tuple[range, range, int] | None:
    """One word on each side. The first word of a question has a capital whether it is a name or not."""
    if not before or not after or not text.kind(before[-1]):
        return None
    if text.kind(before[-1]) != text.kind(after[0]) and (before[-1], text.kind(after[0])) != (0, "name"):
        return None
    return range(before[-1], before.stop), range(after[0], after[0] + 1), _PLAIN
