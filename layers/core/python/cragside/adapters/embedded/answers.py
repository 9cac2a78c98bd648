"""The kind of answer that a question asks for, and whether a text has one near the question's words."""

import re
from collections.abc import Sequence, Set
from enum import Enum, auto

from cragside.adapters.embedded.numbers import MONTHS, SPELT
from cragside.adapters.embedded.statements import pieces
from cragside.adapters.embedded.stopwords import QUESTION_WORDS, STOPWORDS, VERBS
from cragside.adapters.embedded.words import Language, stem, words


class Kind(Enum):
    """Kinds of answers that a text shows by their form. Names are none: nearly every text has some."""

    AMOUNT = auto()
    MONEY = auto()
    LENGTH = auto()
    DATE = auto()


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_START = r"(?:^|\b(?:in|for|of|at|about|after|by|and|und|et|für|nach) )"
_WHAT = r"^(?:what|which|was|welche[rsmn]?|quel(?:le)?)(?:'s)?(?: (?:is|was|are|were|ist|war|est))?"
_ARTICLE = r"(?: (?:the|our|my|a|der|die|das|le|la))?(?: \w+)??"
_PRICES = r"price|costs?|salary|wages?|rent|fee|budget|preis|kosten|gehalt|miete|gebühr|prix|salaire|loyer"
_LENGTHS = r"height|length|width|thickness|höhe|länge|breite|dicke|hauteur|longueur|largeur|épaisseur"
_FIGURES = (
    r"(?:phone|telephone|serial|account|invoice|contract|order)[ -]number|percentage|weight|speed|anzahl|nombre"
    r"|telefonnummer|vertragsnummer|kontonummer"
)
_BILLS = r"\w*(?:miete|rechnung|gehalt|lohn|gebühr|beitrag|preis|kosten|rabatt|budget)"
# The first that a question fits is the kind that it asks for.
_ASKING = (
    (
        Kind.MONEY,
        re.compile(
            rf"{_START}(?:how much|wie ?viel|combien)\b(?! of\b).*\b(?:costs?|earns?|earned|pay|pays|paid|charged?|spent|spend"
            r"|kostete?n?|gekostet|verdiente?n?|verdient|bezahlt|zahlen|zahlt|gezahlt|coûte|coûtait|coûté|paie|payé|gagne)\b"
            rf"|{_START}what (?:did|does|do|will|would) .*\b(?:cost|earn|charge|pay for)\b|^was (?:kostete?n?|haben|hat)\b.*\b(?:kostet|gekostet)\b"
            rf"|^was kostete?n?\b|\bhow expensive\b|\bwie teuer\b|\bwie hoch\b.*\b{_BILLS}"
        ),
    ),
    (Kind.LENGTH, re.compile(rf"{_START}(?:how (?:tall|wide|thick|high)|wie (?:breit|dick)) (?:is|are|was|were|can|does|ist|sind|war)\b")),
    (
        Kind.AMOUNT,
        re.compile(
            rf"{_START}(?:how (?:many|much|long|far|old|big|large|heavy|often|deep|fast)\b"
            r"|wie ?(?:viele?n?|lange?|alt|gro(?:ß|ss)|weit|schwer|oft|tief|schnell|hoch)\b|combien\b)"
        ),
    ),
    (
        Kind.DATE,
        re.compile(
            r"(?:^|\b(?:until|till|since|by|from|and|bis|seit|ab|depuis) )(?:when|wann|quand)\b"
            r"|\b(?:(?:what|which) (?:year|date|day|month|time|century)|welche[mnrs]? (?:jahr|tag|datum|monat|uhrzeit)"
            r"|quel(?:le)? (?:année|jour|date|mois|heure))\b"
        ),
    ),
)
# "What is the price", and "hotel price hamburg", but not "why is the price so high".
_NAMING = ((Kind.MONEY, _PRICES), (Kind.LENGTH, _LENGTHS), (Kind.AMOUNT, _FIGURES))
_NAMED_BY_WHAT = [(kind, re.compile(rf"{_WHAT}{_ARTICLE} (?:{listed})\b")) for kind, listed in _NAMING]
_NAMED_ALONE = [(kind, re.compile(rf"\b(?:{listed})\b")) for kind, listed in _NAMING]
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}")
_DATE_WORDS = _words("""
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag montags dienstags mittwochs donnerstags freitags
samstags sonntags lundi mardi mercredi jeudi vendredi samedi dimanche mon tue wed thu fri sat sun mo di mi do fr sa so
today tomorrow yesterday heute morgen gestern spring summer autumn fall winter frühling herbst sommer printemps ete automne
hiver century centuries season week weekend month year years day daily weekly noon midnight morning evening afternoon night
easter christmas jahr jahre jahren jahrhundert tag tage woche monat abend mittag nacht ostern weihnachten siecle annee an ans
jour mois semaine before after during while once until since immediately later end beginning start vor während bis seit
sobald apres avant pendant lors
""")
_AMOUNT_WORDS = _words("""
half twice once dozen hundred hundreds thousand thousands million millions billion few several many no none unknown rare free
zero single couple both every each annually yearly monthly weekly daily hours minutes years thirty forty fifty sixty seventy
eighty ninety halb hälfte hundert tausend millionen milliarden keine kein kostenlos viele wenige täglich jährlich vingt trente
quarante cinquante soixante cent cents mille plusieurs gratuit gratuitement quinze seize quatorze treize dizaine douzaine
""")
_GERMAN_NUMBER = re.compile(r"\w*(?:zig|ßig|hundert|tausend|fache?|ein(?:und)?\w+zig)")
_CURRENCIES = _words("eur euro euros dollar dollars usd gbp pound pounds pence chf franken francs franc cent cents ct yen free kostenlos gratuit")
# A currency's sign, a figure such as 1,500 or 12.50, or the word for a price in a table.
_PAID = re.compile(rf"[€$£¥]|\b[0-9]{{1,3}}[.,](?:[0-9]{{2}}|[0-9]{{3}})\b|(?:{_PRICES})")
_LENGTH_UNITS = _words("""
mm cm m km nm ft feet foot inch inches in metre metres meter meters mile miles yards yard metern zentimeter millimeter kilometer
centimetre centimetres millimetre millimetres kilometres kilometers centimeters millimeters metres
""")
_GLUED = re.compile(r"[0-9.,]+(?:mm|cm|m|km|ft|in|nm)")


def asked_kind(question: str) -> Kind | None:
    """The kind of answer that a question asks for; None if any will do or it is unclear."""
    lowered = " ".join(question.lower().replace("’", "'").split())
    found = words(lowered)
    if not found or found[0] in VERBS:
        return None
    named = _NAMED_ALONE if QUESTION_WORDS.isdisjoint(found) else _NAMED_BY_WHAT
    return next((kind for kind, asking in (*_ASKING, *named) if asking.search(lowered)), None)


def has_kind(kind: Kind, question: Sequence[str], text: str, language: Language) -> bool:
    """Whether the sentences or lines with most of a question's words, or one beside them, have such an answer.

    `question` are all words of the question: what it names itself is no answer.
    """
    known = frozenset(question)
    found = [(piece, words(piece)) for piece in pieces(text)]
    has = [_shows(kind, piece, of, known) for piece, of in found]
    if not any(has):
        return False
    sought = {stem(word, language) for word in question if word not in STOPWORDS}
    met = [len(sought.intersection(stem(word, language) for word in of)) for _, of in found]
    most = max(met)
    return any(any(has[max(0, place - 1) : place + 2]) for place, count in enumerate(met) if count == most)


def _shows(kind: Kind, piece: str, found: Sequence[str], known: Set[str]) -> bool:
    others = [word for word in found if word not in known]
    if kind is Kind.DATE:
        return any(word in MONTHS or word in _DATE_WORDS or word in SPELT or _has_digit(word) for word in others)
    if not any(
        word in _AMOUNT_WORDS
        or (word in SPELT and len(word) > 2)
        or (_has_digit(word) and not _YEAR.fullmatch(word))
        or _GERMAN_NUMBER.fullmatch(word)
        for word in others
    ):
        return False
    if kind is Kind.MONEY:
        return _PAID.search(piece.lower()) is not None or not _CURRENCIES.isdisjoint(found)
    if kind is Kind.LENGTH:
        return not _LENGTH_UNITS.isdisjoint(found) or any(map(_GLUED.fullmatch, found))
    return True


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
