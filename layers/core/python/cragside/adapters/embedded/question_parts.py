"""Reads the parts of a question by rules: things that it joins or compares, enumerations, two questions in one.

Each part is the question without the other parts' words, so it keeps what they share: "Which planer is louder, the
PT-410 or the PT-520?" is also asked as "Which planer is louder, the PT-410?".
"""

from collections.abc import Sequence, Set
from itertools import takewhile

from cragside.adapters.embedded import part_words as listed
from cragside.adapters.embedded.alternatives import alternatives
from cragside.adapters.embedded.follow_up import completed
from cragside.adapters.embedded.grammar import AND, INTERROGATIVES
from cragside.adapters.embedded.question_text import QuestionText
from cragside.adapters.embedded.words import function_words, stem, words
from cragside.domain.dates import MONTHS
from cragside.domain.document import Document
from cragside.domain.outcome import MOST_PARTS, ONE_THING, Asked, Part
from cragside.domain.prompt import ChatTurn

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
    return signs or not listed.SIGNS.isdisjoint(question.lower().split())


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
    """Two questions in one. The second is completed from the first."""
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
    asks = first in INTERROGATIVES or (first in listed.LEADS and second in INTERROGATIVES)
    return text.lower[place] in AND and asks


def _after_a_colon(text: QuestionText) -> list[Part]:
    """Read what is enumerated behind a colon, each with the words before the colon."""
    if ":" not in text.lower:
        return []
    colon = text.lower.index(":")
    head = text.between(0, colon)
    items: list[tuple[int, int]] = []
    start = colon + 1
    for place in [*(n for n in range(start, len(text.lower)) if _separates(text, n)), len(text.lower)]:
        if text.content(range(start, place)):
            items.append((start, place))
        start = place + 1
    if len(items) < 2 or any(last - first > _LONGEST_ITEM for first, last in items) or not head:
        return []
    return [Part(f"{head} {item}?") for item in (text.between(*item) for item in items)]


def _separates(text: QuestionText, place: int) -> bool:
    return text.lower[place] in ",;?" or text.lower[place] in listed.JOINS


def _asks_for_a_list(text: QuestionText) -> bool:
    if not listed.EVERYTHING.isdisjoint(text.lower) or (text.lower and text.lower[0] in listed.LIST):
        return True
    for place, word in enumerate(text.lower):
        following = range(place + 1, min(place + 4, len(text.lower)))
        after = following[0] if following else place
        if word in listed.LIST and text.lower[after] in listed.OF:
            return True
        named = list(takewhile(text.has_content, following))
        is_plural = any(_is_plural(text, n) for n in named)
        if word in listed.ALL and (text.lower[after] in listed.LEADS or is_plural):
            return True
        if word in listed.GERMAN_ALL and following and text.has_content(after):
            return True
        if word in listed.ENGLISH_WHICH and is_plural:
            return True
        if word in listed.GERMAN_WHICH and _has_plural_verb(text, following):
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
    return (verb in listed.PLURAL_VERBS or verb.endswith("en")) and text.lower[noun + 2 : noun + 3] != ["die"]
