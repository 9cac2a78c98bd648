"""Tells what kind of answer a question asks for, whether a text has one near its words, and echoes from statements."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum, auto
from typing import get_args

from cragside.adapters.embedded.features import QuestionWords
from cragside.adapters.embedded.numbers import SPELT, plain
from cragside.adapters.embedded.words import (
    HEADING_WORDS,
    INTERROGATIVES,
    SCAFFOLDING,
    STOPWORDS,
    VERBS,
    Language,
    stem,
    word_list,
    words,
)
from cragside.domain.dates import MONTHS, dates_in


class Kind(Enum):
    """The kinds of answers that have a form of their own. A name is none, because nearly every passage has one."""

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


# Words of one question lie so near to each other. Without a bound, a long text would take long.
_NEAR = ".{0,80}"
_START = r"(?:^|\b(?:in|for|of|at|about|after|by|and|und|et|für|nach) )"
_PRICES = r"price|costs?|salary|wages?|rent|fee|budget|preis|kosten|gehalt|miete|gebühr|prix|salaire|loyer"
_PAYING = (
    r"costs?|earns?|earned|pay|pays|paid|charged?|spent|spend|kostete?n?|gekostet|verdiente?n?|verdient|bezahlt|zahlen"
    r"|zahlt|gezahlt|coûte|coûtait|coûté|paie|payé|gagne"
)
_BILLS = r"\w{0,30}(?:miete|rechnung|gehalt|lohn|gebühr|beitrag|preis|kosten|rabatt|budget)"

_IS = r"(?:is|are|was|were|can|does|do|did|will|ist|sind|war|waren|wird|werden|darf|dürfen|kann)"
# "What is the price of ...", but not "what explains the high price of ...".
_WHAT_IS_THE = (
    r"^(?:de |of |in )?(?:what|which|was|welche[rsmn]?|quel(?:le)?)(?:'s)?(?: (?:is|was|are|were|ist|war|est))?"
    r"(?: (?:the|our|my|a|der|die|das|le|la))?(?: \w+)?? "
)

_DATES = word_list("dates")
_AMOUNTS = word_list("amounts")
_GERMAN_AMOUNT = re.compile(r"\w{0,30}(?:zig|ßig|hundert|tausend|fache?)")
_CURRENCIES = word_list("currencies")
# A currency's sign, a figure such as 1,500 or 12.50 without the unit of another thing, or the name of a price before a
# figure, as a table has it.
_OF_OTHER_THINGS = (
    r" ?(?:[mck]?m[23]?|[mk]?g|t|[mc]?l|h|min|ohm|v|a|k?w|kwh|bar|hz|°c?|%|percent|prozent|metres?|meters?|km/h|knots)"
)
_MONEY = re.compile(
    rf"[€$£¥]|\b[0-9]{{1,3}}[.,][0-9]{{2,3}}\b(?!{_OF_OTHER_THINGS}(?!\w))|(?:{_PRICES})\b\W*(?:\w+\W+){{0,2}}[0-9]"
)
_LENGTH_UNITS = word_list("length units")
_TIME_UNITS = word_list("time units")
# A figure with its unit in one word.
_WITH_A_UNIT = re.compile(r"[0-9][0-9.,]{0,20}([a-z]{1,3}[0-9]?)")
# A time of day.
_TIME = re.compile(r"\b[0-9]{1,2}(?:[:.h][0-9]{2}\b| ?(?:am|pm|a\.m|p\.m|o'clock|uhr|h|heures?)\b)")
_YEAR_OR_DECADE = re.compile(r"(?:1[0-9]|20)[0-9]{2}s?|[0-9]{1,2}(?:st|nd|rd|th)|[1-9]0s")
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}")


_PIECES = re.compile(r"[^.!?。？！\n]*(?:[.!?。？！](?=\w)[^.!?。？！\n]*)*[.!?。？！]*")
_NO_NEWS = {
    language: frozenset(stem(word, language) for word in SCAFFOLDING | HEADING_WORDS) for language in get_args(Language)
}
_TITLE_MARKS = "|-–—·»"
_SEPARATED = re.compile(r"\S,[^\W\d]|\t|=|→|->")
_ROW = re.compile(r"\|[^|]*\|")


def states_something(text: str, question: QuestionWords, language: Language) -> bool:
    """Tell if a sentence, a row or an entry of the text has a content word that the question lacks."""
    known = _NO_NEWS[language].union(plain(stem(word, language)) for word in question.every_word)
    answers = False
    for piece in pieces(text):
        if _asks(piece):
            answers = True
            continue
        # "Who was Ada? | Ada's pages" is a title, not a question with its answer.
        if answers and piece[0] in _TITLE_MARKS and "\n" not in text:
            continue
        statement = piece if answers or _is_sentence(piece) or _is_row(piece) else piece.partition(":")[2]
        if _has_news(statement, known, language):
            return True
    return False


def pieces(text: str) -> Iterator[str]:
    """Return the lines of a text, parted into sentences, each with its closing mark."""
    return (piece for found in _PIECES.findall(text) if (piece := found.strip()))


def _asks(piece: str) -> bool:
    first = words(piece)[:1]
    return piece[-1] in "?？" or (first != [] and first[0] in INTERROGATIVES and piece[-1] not in ".!。！")


def _is_sentence(piece: str) -> bool:
    return piece[-1] in ".!。！" or not VERBS.isdisjoint(words(piece))


def _is_row(piece: str) -> bool:
    return _SEPARATED.search(piece) is not None or _ROW.search(piece) is not None


def _has_news(text: str, known: frozenset[str], language: Language) -> bool:
    stems = (plain(stem(word, language)) for word in words(text) if word not in STOPWORDS)
    return not known.issuperset(stems)


# A question asks for the first kind that it fits.
_ASKING: Mapping[Kind, re.Pattern[str]] = {
    Kind.PHONE: re.compile(
        r"\b(?:tele)?phone number|\bmobile number|\b(?:telefon|handy|ruf|mobil)nummer"
        r"|\bnuméro de (?:téléphone|portable)"
    ),
    Kind.MAIL_ADDRESS: re.compile(
        r"\be-?mail\b.{0,10}\b(?:address|of|from|for|von)\b|\be-?mail-?adresse|\badresse (?:e-?)?mail\b"
    ),
    Kind.SITE: re.compile(r"\b(?:web ?site|web ?page|home ?page|url|site web|webseite|web address|webadresse)\b"),
    Kind.ADDRESS: re.compile(
        r"\b(?:(?:postal |home |street |delivery |billing )?address|(?:post|liefer|rechnungs)?anschrift"
        r"|(?:post|liefer|rechnungs)?adresse) (?:of|for|is|from|von|der|des|vom|hat|du|de|d')"
    ),
    Kind.MONEY: re.compile(
        rf"{_START}(?:how much|wie ?viel|combien)\b(?! of\b){_NEAR}\b(?:{_PAYING})\b"
        rf"|{_START}what (?:did|does|do|will|would) {_NEAR}\b(?:cost|earn|charge|pay for)\b"
        rf"|^was (?:kostete?n?\b|(?:haben|hat)\b{_NEAR}\bgekostet\b)"
        rf"|\bhow expensive\b|\bwie teuer\b|\bwie hoch\b{_NEAR}\b{_BILLS}"
    ),
    Kind.LENGTH: re.compile(rf"{_START}(?:how (?:tall|wide|thick|high|deep)|wie (?:breit|dick|tief)) {_IS}\b"),
    Kind.SPAN: re.compile(rf"{_START}(?:how (?:long|far)|wie (?:lang|lange|weit)) {_IS}\b"),
    Kind.WEIGHT: re.compile(rf"{_START}(?:how heavy|wie schwer) {_IS}\b|\bhow much {_NEAR}\bweighs?\b|\bwas wiegt\b"),
    Kind.AGE: re.compile(rf"{_START}(?:how old|wie alt) {_IS}\b|\bquel âge\b"),
    Kind.SPEED: re.compile(rf"{_START}(?:how fast|wie schnell) {_IS}\b"),
    Kind.VOLUME: re.compile(
        rf"{_START}(?:how many|wie ?viele?|combien de) (?:litres?|liters?|gallons?|litern?|pints?)\b"
    ),
    Kind.AMOUNT: re.compile(
        rf"{_START}(?:how (?:many|much|long|far|old|big|large|heavy|often|deep|fast)\b"
        r"|wie ?(?:viele?n?|lange?|alt|gro(?:ß|ss)|weit|schwer|oft|tief|schnell|hoch)\b|combien\b)"
    ),
    Kind.DATE: re.compile(
        r"(?:^|\b(?:until|till|since|by|from|and|bis|seit|ab|depuis) )(?:when|wann|quand)\b"
        r"|\b(?:(?:what|which) (?:year|date|day|month|time|century)|welche[mnrs]? (?:jahr|tag|datum|monat|uhrzeit)"
        r"|quel(?:le)? (?:année|jour|date|mois|heure))\b"
    ),
}
# Kinds that a pattern finds. The others are figures or dates.
_FORMS: Mapping[Kind, re.Pattern[str]] = {
    Kind.PHONE: re.compile(r"\+?[0-9](?:[ ()/.–-]{0,3}[0-9]){4,20}"),
    Kind.MAIL_ADDRESS: re.compile(r"[^\s@]@[^\s@]"),
    Kind.SITE: re.compile(r"\bhttps?:|\bwww\.|[a-z0-9-]\.[a-z]{2,10}(?:/|\b)"),
    # A postal code, or the name of a street with a number before or behind it.
    Kind.ADDRESS: re.compile(
        r"\b[0-9]{4,5}\b|\b[a-z]{1,2}[0-9]{1,2}[a-z]? ?[0-9][a-z]{2}\b"
        r"|[0-9]{1,4}[a-z]?,? (?:[\w'’.-]{1,30} ){0,4}?"
        r"(?:street|st|road|rd|lane|ln|avenue|ave|way|square|drive|close|court|place|row|rue|boulevard"
        r"|chemin|allée|quai|impasse)\b"
        r"|(?:straße|strasse|str\.|weg|platz|allee|gasse|ring|ufer|damm|kamp|hof|stieg|markt|deich) [0-9]{1,4}\b"
    ),
    Kind.COLOUR: re.compile(
        r"\b(?:(?:light|dark|pale|navy|hell|dunkel)-?)?"
        r"(?:red(?:dish)?|blue|green|yellow|orange|purple|violet|pink|brown|black|white|gr[ae]y|beige"
        r"|silver|gold(?:en)?|cream|turquoise|magenta|crimson|scarlet|navy|ivory|transparent|colourless|colorless"
        r"|(?:rot|rötlich|blau|grün|gelb|lila|violett|rosa|braun|schwarz|wei(?:ß|ss)|grau|silbern"
        r"|türkis|farblos|bunt)e?[nrsm]?"
        r"|rouges?|bleue?s?|verte?s?|jaunes?|violette?s?|roses?|bruns?|brunes?|marron|noire?s?|blanc(?:he)?s?|grise?s?"
        r"|argentée?s?|dorée?s?|ral)\b"
    ),
}
# The words beside a figure of each kind.
_UNITS: Mapping[Kind, frozenset[str]] = {
    Kind.LENGTH: _LENGTH_UNITS,
    Kind.SPAN: _LENGTH_UNITS | _TIME_UNITS | _DATES,
    Kind.WEIGHT: word_list("weight units"),
    Kind.AGE: _TIME_UNITS | word_list("age words"),
    Kind.SPEED: word_list("speed units") | _LENGTH_UNITS | _TIME_UNITS,
    Kind.VOLUME: word_list("volume units"),
}
# The names with which a question asks for each kind.
_NAMED: Mapping[Kind, str] = {
    Kind.MONEY: _PRICES,
    Kind.LENGTH: r"height|width|thickness|höhe|breite|dicke|hauteur|largeur|épaisseur",
    Kind.SPAN: r"length|länge|longueur|duration|dauer|durée|(?:battery|driving|flight) range|reichweite|autonomie",
    Kind.WEIGHT: r"weight|gewicht|poids",
    Kind.SPEED: r"(?:top |maximum |max )?speed|(?:höchst)?geschwindigkeit|vitesse",
    Kind.AMOUNT: r"(?:serial|account|invoice|contract|order)[ -]number|percentage|anzahl|nombre"
    r"|vertragsnummer|kontonummer",
    Kind.DATE: r"deadline|due date|expiry date|date of birth|birthday"
    r"|(?:opening|closing|departure|arrival|office) (?:hours|times?)"
    r"|(?:öffnungs|abfahrts|ankunfts|sprech)zeit(?:en)?|geburtstag|geburtsdatum|frist|abgabetermin"
    r"|date limite|échéance|anniversaire|heures? d'ouverture|horaires",
    Kind.COLOUR: r"(?:colou?rs?|farben?|couleurs?)"
    r"(?= (?:is|are|was|does|do|did|of|for|hat|haben|ist|von|vom|der|des|a|de|du|est)\b|$)",
}
_NAMED_BY_WHAT = tuple((kind, re.compile(rf"{_WHAT_IS_THE}(?:{named})\b")) for kind, named in _NAMED.items())
_NAMED_ALONE = tuple((kind, re.compile(rf"\b(?:{named})\b")) for kind, named in _NAMED.items())
# Two letters may be a Roman numeral or an article.
_SHORTEST_NUMERAL = 3


def asked_kind(question: str) -> Kind | None:
    """Return the kind of answer that a question asks for; None if it is another one or unclear."""
    lowered = " ".join(question.lower().replace("’", "'").split())
    found = words(lowered)
    if not found or found[0] in VERBS - INTERROGATIVES:
        return None
    # "hotel price hamburg" asks for the price, "why is the price so high" does not.
    named = _NAMED_ALONE if INTERROGATIVES.isdisjoint(found) else _NAMED_BY_WHAT
    return next((kind for kind, asking in (*_ASKING.items(), *named) if asking.search(lowered)), None)


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
        return any(map(_is_of_a_date, others)) or bool(_TIME.search(lowered)) or bool(dates_in(lowered))
    if kind in _FORMS:
        return _FORMS[kind].search(piece.lower()) is not None
    if kind is Kind.AGE and any(map(_YEAR.fullmatch, others)):
        return True
    if not any(map(_is_amount, others)):
        return False
    if kind is Kind.MONEY:
        return not _CURRENCIES.isdisjoint(found) or _MONEY.search(piece.lower()) is not None
    units = _UNITS.get(kind)
    if units is None or not units.isdisjoint(found):
        return True
    return any((match := _WITH_A_UNIT.fullmatch(word)) and match[1] in units for word in found)


def _is_of_a_date(word: str) -> bool:
    return word in MONTHS or word in _DATES or word in SPELT or _YEAR_OR_DECADE.fullmatch(word) is not None


def _is_amount(word: str) -> bool:
    if _has_digit(word):
        return _YEAR.fullmatch(word) is None
    is_numeral = word in SPELT and len(word) >= _SHORTEST_NUMERAL
    return is_numeral or word in _AMOUNTS or _GERMAN_AMOUNT.fullmatch(word) is not None


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
