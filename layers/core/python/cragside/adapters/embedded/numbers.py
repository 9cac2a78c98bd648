"""Reads dates, numbers and codes that questions name and passages state, in any of their usual forms."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from cragside.adapters.embedded.words import OTHER, STOPWORDS, words
from cragside.domain.dates import AMBIGUOUS, CARDINALS, MONTHS, ORDINALS, Date, Period, dates_in, month_and_day

_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")
# A line that says of what year those below it are.
_HEADING = re.compile(r"^(?:#{1,6} |\*\*|(?:date|datum|sent|gesendet|stand|envoyé) ?:)[^\n]{0,200}", re.MULTILINE)
# Beside the day of something they say that it was another one before.
_MOVED = re.compile(
    r"\b(?:mov(?:ed?|es|ing) (?:to|from|back|forward)|postpon(?:e|es|ed|ing)|resched\w{2,7}|put off|brought forward"
    r"|delay(?:ed|s)|extended|shifted|instead|now (?:on|by|from)|no longer|new date|cancel\w{2,5}"
    r"|versch(?:oben|iebt|ieben|obene[nr]?)|verlegt|vorgezogen|verlängert|geändert|abgesagt|stattdessen"
    r"|(?:jetzt|nun|erst) a[mb]|neue[nrs]? termin|report(?:é|ée|és|ées)|avancée?s?|déplacée?s?|décalée?s?"
    r"|repoussée?s?|prolongée?s?|annulée?s?|désormais|au lieu|nouvelle date)\b"
)
_BESIDE_A_MOVE = 60
# So many characters beside the name of a month tell if it is one.
_BESIDE_A_MONTH = 60
# How much a text that tells the month has of a day.
_OF_ITS_MONTH = 0.5
_NO_NOUNS = STOPWORDS | OTHER | {"mr", "mrs", "ms", "dr", "herr", "frau", "madame"}
_ARTICLES = frozenset({"the", "our", "your", "der", "die", "das", "den", "dem", "des", "unsere", "unserer"})
_MOST_ASKED, _MOST_YEARS, _MOST_ABOVE = 8, 4, 16
_ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}


class AskedDate(NamedTuple):
    """A date in a question, with the words for it. Unless it is `sure`, they may mean no date: "protest march"."""

    periods: tuple[Period, ...]
    words: frozenset[str]
    sure: bool = True

    def is_year(self, word: str) -> bool:
        """Tell if one of its words is its year."""
        return word.isdecimal() and len(word) == len("2025") and self.periods[0].year is not None

    def shares(self, parts: Sequence[Sequence[Period]], *, of_year: bool) -> list[float]:
        """Give the share (0..1) of its year, or of its other words, that each part of a text has by its dates.

        All or none, with two exceptions: a date without a year lacks the year, and a month has half of each of its
        days.
        """
        of_each = {
            stated: max((_share(period, stated, needs_year=of_year) for period in self.periods), default=0.0)
            for stated in set(chain.from_iterable(parts))
        }
        return [max(map(of_each.__getitem__, part), default=0.0) for part in parts]

    def forms(self) -> list[str]:
        """Return the words by which texts name it: of a day, the day, its month and its year, of a month these two."""
        found: dict[str, None] = {}
        for period in self.periods:
            month, day = month_and_day(period.first)
            days = [] if period.is_month else [str(day), f"{day:02}", f"{day}{_ENDINGS.get(day, 'th')}"]
            years = [] if period.year is None else [str(period.year)]
            names = [name for name, number in MONTHS.items() if number == month]
            # Alone, a short number of a month is mostly another one.
            found |= dict.fromkeys([*days, f"{month:02}", *([] if period.is_month else [str(month)]), *years, *names])
        return list(found)

    def in_full(self, stated: Sequence[Period]) -> bool:
        """Tell if one of these dates is this one, in its year if it has one. A range states each of its days."""
        known = [each for each in stated if not each.is_year]
        return any(
            _share(period, each, needs_year=period.year is not None) == 1 for period in self.periods for each in known
        )

    def may_be_moved(self, stated: Sequence[Period]) -> bool:
        """Tell if it is a day of a year in which a text with these dates moves something to another day."""
        return any(
            each.is_year and _share(period, each, needs_year=period.year is not None)
            for period in self.periods
            for each in stated
        )


@dataclass(frozen=True, slots=True)
class PassageDates:
    """The dates of a passage by the number of words before them, and those of its title and place."""

    above: tuple[Period, ...]
    within: tuple[tuple[int, tuple[Period, ...]], ...]

    @classmethod
    def of(cls, text: str, above: str) -> "PassageDates":
        """Read a passage. `above` is what names it: title, file and section."""
        text, above = text.lower(), above.lower()
        within = []
        start = number = 0
        for date in stated_dates(text, above):
            number += len(words(text[start : date.start]))
            start = date.start
            within.append((number, date.periods))
        named = [period for date in stated_dates(above, above) for period in date.periods]
        return cls(tuple(named[:_MOST_ABOVE]), tuple(within))

    def among(self, first: int, end: int) -> tuple[Period, ...]:
        """Return the dates in these words, and the last before them: what follows an entry's date is of that date."""
        start = max(bisect_left(self.within, (first,)) - 1, 0)
        stated = self.within[start : bisect_left(self.within, (end,))]
        return tuple(dict.fromkeys([*self.above, *(period for _, periods in stated for period in periods)]))


def _share(asked: Period, stated: Period, *, needs_year: bool) -> float:
    if stated.is_year and not asked.is_day:
        return 0.0
    if not stated.meets(asked) or (needs_year and stated.year is None):
        return 0.0
    return _OF_ITS_MONTH if stated.is_month and not asked.is_month else 1.0


def asked_dates(question: str) -> list[AskedDate]:
    """Return the dates that a question names, eight at most.

    Names of months that are also other words are months at its end, behind a noun, and before one: "electricity march",
    "the may meeting".
    """
    text = question.lower()
    sure = dates_in(text)
    starts = {each.start for each in sure}
    named = dates_in(text, every_name=True) if any(name in text for name in AMBIGUOUS) else []
    placed = islice((each for each in named if each.start not in starts and _is_placed(text, each)), _MOST_ASKED)
    return [
        AskedDate(each.periods, frozenset(words(text[each.start : each.end])), each.start in starts)
        for each in [*sure, *placed][:_MOST_ASKED]
    ]


def _is_placed(text: str, date: Date) -> bool:
    """Tell if a word stands where a month would: behind a noun at the end, or between an article and a noun."""
    before = words(text[max(0, date.start - _BESIDE_A_MONTH) : date.start])[-1:]
    after = words(text[date.end : date.end + _BESIDE_A_MONTH])[:1]
    if not after:
        return bool(before) and before[0] not in _NO_NOUNS
    return before != [] and before[0] in _ARTICLES and after[0] not in _NO_NOUNS


def without_dates(text: str) -> str:
    """Return a text in lower case whose dates are blank."""
    text = text.lower()
    ends = 0
    kept = []
    for start, end, _ in dates_in(text):
        kept.append(text[ends:start])
        ends = end
    return " ".join([*kept, text[ends:]])


def stated_dates(text: str, place: str) -> list[Date]:
    """Return the dates of a text in lower case. `place` names its document and its section.

    A date without a year is of the years of the headings above it, else of those of the place, else of those that
    stand alone in the text. A day to which something is moved stands for all days of its year as well: it answers a
    question about the day before.
    """
    found = _of_their_years(text, place)
    moves = [match.start() for match in _MOVED.finditer(text)] if found else []
    for number, (start, end, periods) in enumerate(found) if moves else ():
        near = bisect_left(moves, start - _BESIDE_A_MOVE)
        if periods[-1].is_day and near < len(moves) and moves[near] < end + _BESIDE_A_MOVE:
            found[number] = Date(start, end, (*periods, Period.of(periods[-1].year)))
    return found


def _of_their_years(text: str, place: str) -> list[Date]:
    found = dates_in(text)
    if all(period.year is not None for each in found for period in each.periods):
        return found
    headings = _headings(text)
    alone = _years(place) or _years_alone(text, found)
    dated = []
    for each in found:
        above = bisect_right(headings, each.start, key=lambda heading: heading[0])
        years = headings[above - 1][1] if above else alone
        dated.append(each._replace(periods=tuple(_of_years(each.periods, years))))
    return dated


def _of_years(periods: Sequence[Period], years: Sequence[int]) -> Iterator[Period]:
    for period in periods:
        if period.year is None and years:
            yield from (period._replace(year=year) for year in years)
        else:
            yield period


def _headings(text: str) -> list[tuple[int, list[int]]]:
    """Return the years of the lines that tell one for those below, with the ends of these lines, in order."""
    first = len(text) - len(text.lstrip())
    line = text.find("\n", first)
    spans = [(first, line)] if line >= 0 else []
    spans += [match.span() for match in _HEADING.finditer(text) if match.start() > first]
    return [(end, years) for start, end in spans if (years := _years(text[start:end]))]


def _years(text: str) -> list[int]:
    return list(dict.fromkeys(map(int, _YEAR.findall(text))))[:_MOST_YEARS]


def _years_alone(text: str, found: Sequence[Date]) -> list[int]:
    """Return the years of a text that belong to none of the dates in it."""
    between = zip([0, *(each.end for each in found)], [*(each.start for each in found), len(text)], strict=True)
    return _years(" ".join(text[end:start] for end, start in between))


# Numbers that say how much to answer: "top 10", "give me 3", "in 20 words".
_BEFORE_A_COUNT = re.compile(r"top|best|first|last|name|list|give|me|show|write|i'm|nenne|gib|mir")
_ANSWER_PART = re.compile(
    r"(?:bullet|example|idea|line|paragraph|point|reason|sentence|step|thing|tip|way|word)s?"
    r"|beispiele|gründe|punkte|sätzen?|worten?"
)
# The number of zeros.
_SCALES = {"thousand": 3, "million": 6, "billion": 9}
_ROMANS = "ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx"
_ROMAN_NUMERALS = {word: str(number) for number, word in enumerate(_ROMANS.split(), 2)}
SPELT = {word: str(number) for word, number in (CARDINALS | ORDINALS).items()} | _ROMAN_NUMERALS
# A single letter is mostly no numeral.
_ROMAN = {word: number for word, number in _ROMAN_NUMERALS.items() if len(word) > 1}
_DIGITS = re.compile(r"[0-9]+")
_CODE = re.compile(r"([a-z]*)([0-9]+)([a-z]*)")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:[.,][0-9]{3})+")
_PLAIN = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:st|nd|rd|th)?")
_DAY_MONTH_YEAR = re.compile(r"\b([0-9]{1,2})[./]([0-9]{1,2})[./]([0-9]{4}|[0-9]{2})\b")
_YEARS = re.compile(
    r"\b([12][0-9]{3})(?: ?[-–—/]{1,2} ?| to | and | until | bis | und | à | et )([0-9]{4}|[0-9]{2})\b(?![-/])"
)
# "Jetty C", "vitamin D": a letter that tells one thing from the others. No initial, no unit, no "I".
_LETTER = re.compile(r"(?<=[^\W\d_] )([A-HJ-Z])(?![\w.'’&+#/-]| [A-ZÄÖÜ])")
_LETTERS = re.compile(r"\b([A-Z]) ?(?:[-–—]|to|bis|à) ?([A-Z])\b")
_LONGEST_PERIOD, _LONGEST_VERSION = 100, 4


@lru_cache(maxsize=1 << 14)
def plain(word: str) -> str:
    """Return a number in its plain form: 1,000 as 1000, 12th as 12, 007 as 7, VII as 7. Other words are unchanged."""
    if word in _ROMAN:
        return _ROMAN[word]
    found = _PLAIN.fullmatch(word)
    return _trimmed(found[1].replace(",", "")) if found else word


def named_numbers(question: str, *, counts: bool = False) -> list[frozenset[str]]:
    """The forms of each number, code and letter that a question names outside of its dates. One form of each is enough.

    A number that says how much to answer ("top 10", "in 3 sentences") does not count, unless `counts`: in a statement
    it is one like any other.
    """
    found = words(without_dates(question))
    named = []
    for before, word, after in zip(["", *found], found, [*found[1:], ""], strict=False):
        if word in _ROMAN:
            named.append(frozenset({_ROMAN[word]}))
        elif _has_digit(word) and (counts or not _is_a_count(before, word, after)):
            named.append(frozenset({*_forms(word), *_asked_forms(word, after)}))
    if not question.isupper():
        named += [frozenset({letter.lower()}) for letter in _LETTER.findall(question)]
    return named


def numbers_of(text: str) -> frozenset[str]:
    """All forms of all numbers, codes and single letters in a text, those in its dates too."""
    found = words(_DAY_MONTH_YEAR.sub(r"\1 \2 \3", text))
    forms = {word for word in found if len(word) == 1}
    for first, last in _LETTERS.findall(text):
        forms.update(map(chr, range(ord(first.lower()), ord(last.lower()) + 1)))
    for first, last in _YEARS.findall(text):
        end = int(first[: -len(last)] + last)
        forms.update(map(str, range(int(first), min(end, int(first) + _LONGEST_PERIOD) + 1)))
    has_digit = [_has_digit(word) for word in found]
    for at, word in enumerate(found):
        if word in SPELT:
            forms.add(SPELT[word])
        if word[0].isalpha() and word[1:].isdecimal():
            forms.add(word[0])  # jetty C has berth C12
        if not any(has_digit[at : at + 2]):
            continue
        after, third = [*found[at + 1 : at + 3], "", ""][:2]
        # `K 200` and `K-200` are the code K200, and 555-1234 is a number.
        forms |= {word + after, word + after + third}
        if has_digit[at]:
            forms.update(_forms(word))
            forms.update(_stated_forms(word, after))
    return frozenset(forms)


def _is_a_count(before: str, word: str, after: str) -> bool:
    return bool(_ANSWER_PART.fullmatch(after) or (_BEFORE_A_COUNT.fullmatch(before) and len(word) <= 2))


def _forms(word: str) -> Iterator[str]:
    """A number or code as it is, and without thousands separators, leading zeros, `.0` and the end of an ordinal."""
    yield word
    if _THOUSANDS.fullmatch(word):
        yield word.replace(",", "").replace(".", "")
    elif not word.isalnum():
        whole, _, rest = word.replace(",", ".").replace(":", ".").partition(".")
        yield whole + "." + rest if rest.strip("0.") else _trimmed(whole)
    match = _CODE.fullmatch(word)
    if match and not match[1] and match[3] in ("", "st", "nd", "rd", "th"):
        yield _trimmed(match[2])
    if len(word) == 3 and word[0] != "0" and match and match[3] == "s":
        yield f"19{word}"


def _asked_forms(word: str, after: str) -> Iterator[str]:
    """Return what else answers a question with this number: a year of the century, `12` for `12km`."""
    match = _CODE.match(word)
    if match and after in ("century", "centuries"):
        yield f"century {match[2]}"
    if match and not match[1] and len(match[3]) > 1:
        yield f"only {_trimmed(match[2])}"
    if word.isdecimal() and after in _SCALES:
        yield word + "0" * _SCALES[after]


def _stated_forms(word: str, after: str) -> Iterator[str]:
    """Return what else a number in a text states: the 200 of `K200`, the 12 of `12km`, 3.11 for version 3.11.4."""
    match = _CODE.fullmatch(word)
    if match and (not match[3] or len(match[3]) > 1):
        yield _trimmed(match[2])
    if word.isdecimal():
        yield f"only {_trimmed(word)}"
        if after in _SCALES:
            yield word + "0" * _SCALES[after]
        if len(word) == 4:
            yield from (word, f"{word[:3]}0s", f"century {int(word[:2]) + 1}")
    pieces = word.split(".", _LONGEST_VERSION)
    for end in range(1, min(len(pieces), _LONGEST_VERSION)):
        yield ".".join(pieces[:end])


def _trimmed(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _has_digit(word: str) -> bool:
    return _DIGITS.search(word) is not None
