"""The kind of answer that a question asks for, and whether a text has one near the question's words."""

import re
from collections.abc import Sequence, Set
from enum import Enum, auto

from cragside.adapters.embedded import answer_words as listed
from cragside.adapters.embedded.grammar import INTERROGATIVES, VERBS
from cragside.adapters.embedded.numbers import SPELT
from cragside.adapters.embedded.statements import pieces
from cragside.adapters.embedded.stopwords import STOPWORDS
from cragside.adapters.embedded.words import Language, stem, words
from cragside.domain.dates import MONTHS, dates_in


class Kind(Enum):
    """Kinds of answers that have a form of their own. Names are none: nearly every passage has some."""

    PHONE = auto()
    MAIL_ADDRESS = auto()
    SITE = auto()
    ADDRESS = auto()
    COLOUR = auto()
    MONEY = auto()
    LENGTH = auto()
    SPAN = auto()
    WEIGHT = auto()
    AGE = auto()
    SPEED = auto()
    VOLUME = auto()
    AMOUNT = auto()
    DATE = auto()


# A question asks for the first kind that it fits.
_ASKING = (
    (Kind.PHONE, listed.ASKING_FOR_A_PHONE),
    (Kind.MAIL_ADDRESS, listed.ASKING_FOR_A_MAIL_ADDRESS),
    (Kind.SITE, listed.ASKING_FOR_A_SITE),
    (Kind.ADDRESS, listed.ASKING_FOR_AN_ADDRESS),
    (Kind.MONEY, listed.ASKING_FOR_MONEY),
    (Kind.LENGTH, listed.ASKING_FOR_A_LENGTH),
    (Kind.SPAN, listed.ASKING_FOR_A_SPAN),
    (Kind.WEIGHT, listed.ASKING_FOR_A_WEIGHT),
    (Kind.AGE, listed.ASKING_FOR_AN_AGE),
    (Kind.SPEED, listed.ASKING_FOR_A_SPEED),
    (Kind.VOLUME, listed.ASKING_FOR_A_VOLUME),
    (Kind.AMOUNT, listed.ASKING_FOR_AN_AMOUNT),
    (Kind.DATE, listed.ASKING_FOR_A_DATE),
)
# Kinds that a pattern finds. The others are figures or dates.
_FORMS = {
    Kind.PHONE: listed.PHONE,
    Kind.MAIL_ADDRESS: listed.MAIL_ADDRESS,
    Kind.SITE: listed.SITE,
    Kind.ADDRESS: listed.ADDRESS,
    Kind.COLOUR: listed.COLOURS,
}
# The words beside a figure of each kind.
_UNITS = {
    Kind.LENGTH: listed.LENGTH_UNITS,
    Kind.SPAN: listed.LENGTH_UNITS | listed.TIME_UNITS | listed.DATES,
    Kind.WEIGHT: listed.WEIGHT_UNITS,
    Kind.AGE: listed.AGE_WORDS,
    Kind.SPEED: listed.SPEED_UNITS | listed.LENGTH_UNITS | listed.TIME_UNITS,
    Kind.VOLUME: listed.VOLUME_UNITS,
}
# The names with which a question asks for each kind.
_NAMED = (
    (Kind.MONEY, listed.PRICES),
    (Kind.LENGTH, listed.LENGTHS),
    (Kind.SPAN, listed.SPANS),
    (Kind.WEIGHT, listed.WEIGHTS),
    (Kind.SPEED, listed.SPEEDS),
    (Kind.AMOUNT, listed.FIGURES),
    (Kind.DATE, listed.TIMES),
    (Kind.COLOUR, listed.NAMES_OF_COLOURS),
)
_NAMED_BY_WHAT = tuple((kind, re.compile(rf"{listed.WHAT_IS_THE}(?:{named})\b")) for kind, named in _NAMED)
_NAMED_ALONE = tuple((kind, re.compile(rf"\b(?:{named})\b")) for kind, named in _NAMED)
# Two letters may be a Roman numeral or an article.
_SHORTEST_NUMERAL = 3


def asked_kind(question: str) -> Kind | None:
    """The kind of answer that a question asks for; None if it is another one or unclear."""
    lowered = " ".join(question.lower().replace("’", "'").split())
    found = words(lowered)
    if not found or found[0] in VERBS - INTERROGATIVES:
        return None
    # "hotel price hamburg" asks for the price, "why is the price so high" does not.
    named = _NAMED_ALONE if INTERROGATIVES.isdisjoint(found) else _NAMED_BY_WHAT
    return next((kind for kind, asking in (*_ASKING, *named) if asking.search(lowered)), None)


def has_kind(kind: Kind, question: Sequence[str], title: str, text: str, language: Language) -> bool:
    """Tell if a sentence or line with most of a question's words, or one beside it, has such an answer.

    `question` has all words of the question: what it names itself is no answer. Words of the title count nowhere,
    because every sentence is about them.
    """
    known = frozenset(question)
    found = [(piece, words(piece)) for piece in pieces(text)]
    named = {stem(word, language) for word in words(title)}
    sought = {stem(word, language) for word in question if word not in STOPWORDS} - named
    met = [len(sought.intersection(stem(word, language) for word in of)) for _, of in found]
    most = max(met, default=0)
    near = sorted({at + step for at, count in enumerate(met) if count == most for step in (-1, 0, 1)})
    return any(_answers(kind, *found[at], known) for at in near if 0 <= at < len(found))


def _answers(kind: Kind, piece: str, found: Sequence[str], known: Set[str]) -> bool:
    others = [word for word in found if word not in known]
    if kind is Kind.DATE:
        lowered = piece.lower()
        return any(map(_is_of_a_date, others)) or bool(listed.TIME.search(lowered)) or bool(dates_in(lowered))
    if kind in _FORMS:
        return _FORMS[kind].search(piece.lower()) is not None
    if kind is Kind.AGE and any(map(listed.YEAR.fullmatch, others)):
        return True
    if not any(map(_is_amount, others)):
        return False
    if kind is Kind.MONEY:
        return not listed.CURRENCIES.isdisjoint(found) or listed.MONEY.search(piece.lower()) is not None
    units = _UNITS.get(kind)
    if units is None or not units.isdisjoint(found):
        return True
    return any((match := listed.WITH_A_UNIT.fullmatch(word)) and match[1] in units for word in found)


def _is_of_a_date(word: str) -> bool:
    return word in MONTHS or word in listed.DATES or word in SPELT or listed.YEAR_OR_DECADE.fullmatch(word) is not None


def _is_amount(word: str) -> bool:
    if _has_digit(word):
        return listed.YEAR.fullmatch(word) is None
    is_numeral = word in SPELT and len(word) >= _SHORTEST_NUMERAL
    return is_numeral or word in listed.AMOUNTS or listed.GERMAN_AMOUNT.fullmatch(word) is not None


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
