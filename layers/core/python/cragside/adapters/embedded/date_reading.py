"""Reads dates in any of their usual forms: English, German, French, and in digits.

Libraries took a hundred times as long, found words that are no dates, and gave neither ranges nor dates without a year
(ADR 25).
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cragside.domain.numerals import DAYS

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner janvier janv",
            "february feb februar febr février fevrier févr fevr",
            "march mar märz maerz marz mär mrz mars",
            "april apr avril avr",
            "may mai",
            "june jun juni juin",
            "july jul juli juillet juil",
            "august aug août aout",
            "september sep sept septembre",
            "october oct oktober okt octobre",
            "november nov novembre",
            "december dec dezember dez décembre decembre déc",
        ),
        1,
    )
    for name in names.split()
}
# These are also other words: they are months beside a number, behind a word such as "in", and in a cell of a table.
_AMBIGUOUS = frozenset({"may", "march", "mar", "mars", "august", "jan", "jun", "sep", "dec", "mai", "déc"})
_BEFORE_A_MONTH = re.compile(
    r"(?:[:;|,(]|\b(?:in|of|since|by|until|till|from|during|and|early|late|mid|im|ab|seit|bis|ende|anfang|mitte|und"
    r"|en|de|fin|début|depuis)) ?$"
)
_LETTERS = re.compile(r"[^\W\d_]+")
# So much of a text before and after a month's name may belong to its date.
_BESIDE = 40
_DAY_BEFORE = re.compile(r"(?<![\w.,:])([0-9]{1,2}|[a-zäöü]{3,11})(?:st|nd|rd|th|er)?\.? ?(?:(?:of|de)(?: the)? )?$")
_DAY_TO = re.compile(
    r"(?<![\w.,:/])([0-9]{1,2})(?:st|nd|rd|th|er)?\.? ?(-|–|/|&|,|to|until|bis(?: zum)?|and|or|und|oder|au|et|ou) ?$"
)
_DAY_AFTER = re.compile(r"\.? ([0-9]{1,2})(?:st|nd|rd|th)?(?![\w%]|[.,:/][0-9])")
_TO_DAY = re.compile(r" ?(-|–|&|,|to|until|and|or) ?([0-9]{1,2})(?:st|nd|rd|th)?(?![\w%]|[.,:/][0-9])")
_YEAR_AFTER = re.compile(r"\.?,? ?(?:of |de |in )?((?:19|20)[0-9]{2}|(?<= )'?[0-9]{2})(?![\w%]|[.,:/][0-9])")
_SPANNING = frozenset({"-", "–", "to", "until", "bis", "bis zum", "au"})
_DIGITS = re.compile(r"([0-9][0-9]{0,3})([-./])([0-9]{1,4})(?:\2([0-9]{2,4}))?(\.?)(?![0-9a-su-z/]|[.,:][0-9])")
_NO_DATE_BEHIND = frozenset(".,:/+")
# One of two dates, or of a day and its month, before the other: "from 3.3. to 7.3.2025".
_BETWEEN = re.compile(r" ?(?:-|–|—|to|until|till|through|bis(?: zum)?|au) ?(?:the )?")
# "11/3" is a date behind these, and a fraction elsewhere. "11.3." may stand anywhere.
_ON = re.compile(r"\b(?:on|by|until|since|from|to|am|vom|zum|bis|ab|seit|le|du|au) $")
LONGEST_MONTH = 31
_DAYS = 12 * LONGEST_MONTH
_MOST = 1_000


class Period(NamedTuple):
    """The days from `first` to `last`, counted from those of `year` as if each month had 31. Without a year, any."""

    year: int | None
    first: int
    last: int

    @property
    def is_month(self) -> bool:
        """Tell if it is one month without a day."""
        return self.first % LONGEST_MONTH == 0 and self.last - self.first == LONGEST_MONTH - 1

    def meets(self, other: "Period") -> bool:
        """Tell if both share a day, as far as their years are known."""
        if self.year is not None and other.year is not None:
            shifts: Sequence[int] = ((other.year - self.year) * _DAYS,)
        else:
            shifts = (-_DAYS, 0, _DAYS)
        return any(other.first + shift <= self.last and self.first <= other.last + shift for shift in shifts)


class Date(NamedTuple):
    """Where in a text in lower case a date is, and the periods that it may mean: two for 3/4/2025."""

    start: int
    end: int
    periods: tuple[Period, ...]


def dates_in(text: str) -> list[Date]:
    """The dates of a text in lower case, in order; of a very long text the first thousand.

    A day and its month, or a month, with or without a year. A range is one date.
    """
    found: list[Date] = []
    for each in sorted((*_in_digits(text), *_with_names(text))):
        if found and each.start < found[-1].end:
            continue
        if found and (joined := _joined(text, found[-1], each)):
            found[-1] = joined
        else:
            found.append(each)
        if len(found) == _MOST:
            break
    return found


def _joined(text: str, first: Date, last: Date) -> Date | None:
    """The period from one date to the next, if the text has no more than a word such as "to" between them."""
    between = text[first.end : last.start] if last.start - first.end <= _BESIDE else ""
    if not between or not _BETWEEN.fullmatch(between):
        return None
    begin, end = first.periods[0], last.periods[-1]
    year = end.year if begin.year is None else begin.year
    years = end.year - year if end.year is not None and year is not None else 0
    until = end.last + years * _DAYS
    if until < begin.first and begin.year is None and year is not None:
        year, until = year - 1, until + _DAYS
    elif until < begin.first:
        until += _DAYS
    return Date(first.start, last.end, (Period(year, begin.first, max(until, begin.first)),))


def _in_digits(text: str) -> Iterator[Date]:
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else " "
        if before.isalnum() or before in _NO_DATE_BEHIND:
            continue
        first, sign, second, third, dot = match.groups()
        # The dot behind 11.3. belongs to the date, that behind 11.3.2025 to the sentence.
        is_named = bool(dot) or _ON.search(text[max(0, start - 6) : start]) is not None
        periods = _read(first, sign, second, third or "", is_named=is_named)
        if found := tuple(dict.fromkeys(each for each in periods if each is not None)):
            yield Date(start, end, found)


def _read(first: str, sign: str, second: str, third: str, *, is_named: bool) -> list[Period | None]:
    """The readings of a date in digits."""
    a, b = int(first), int(second)
    if len(first) == 4:
        if third:
            return [_day(a, b, int(third))] if len(third) == 2 else []
        return [_month(a, b)] if sign == "-" and len(second) == 2 else []
    if len(first) > 2:
        return []
    if len(second) == 4:
        return [] if third or sign == "-" else [_month(b, a)]
    if len(second) > 2 or len(third) == 3 or (sign == "-" and len(third) != 4):
        return []
    year = _year(third) if third else None
    if year is None and not is_named:
        return []
    return [_day(year, b, a), *([_day(year, a, b)] if sign == "/" else [])]


def _with_names(text: str) -> Iterator[Date]:
    if MONTHS.keys().isdisjoint(_LETTERS.findall(text)):
        return
    for match in _LETTERS.finditer(text):
        if (month := MONTHS.get(match[0])) is None:
            continue
        start, end = match.span()
        begin, days = _days_before(text, start)
        if not days:
            end, days = _days_after(text, end)
        year = None
        # A name's full stop may be missing, so that "7 feb 25 boats" has a year; a day behind a name wants four digits.
        if (behind := _YEAR_AFTER.match(text, end)) and (days or len(behind[1]) == 4):
            year, end = _year(behind[1].lstrip("'")), behind.end()
        is_clear = days or year is not None or match[0] not in _AMBIGUOUS
        if not is_clear and not _BEFORE_A_MONTH.search(text[max(0, start - 9) : start]):
            continue
        periods = [_day(year, month, first, last) for first, last in days] if days else [_month(year, month)]
        if found := tuple(each for each in periods if each is not None):
            yield Date(begin, end, found)


def _days_before(text: str, end: int) -> tuple[int, list[tuple[int, int]]]:
    """The days before a month's name, as ranges, and where they begin: `4 and 5` of 4 and 5 May."""
    match = _DAY_BEFORE.search(text[max(0, end - _BESIDE) : end])
    day = _numeral(match[1]) if match else 0
    if not match or not day:
        return end, []
    begin = max(0, end - _BESIDE) + match.start()
    days = [(day, day)]
    while len(days) < LONGEST_MONTH and (other := _DAY_TO.search(text[max(0, begin - _BESIDE) : begin])):
        if not (first := _numeral(other[1])):
            break
        spanned = other[2] in _SPANNING
        days = [(first, days[0][1]), *days[1:]] if spanned else [(first, first), *days]
        begin = max(0, begin - _BESIDE) + other.start()
    return begin, days


def _days_after(text: str, start: int) -> tuple[int, list[tuple[int, int]]]:
    """The days behind a month's name, as ranges, and where they end."""
    match = _DAY_AFTER.match(text, start)
    if not match or not (day := _numeral(match[1])):
        return start, []
    end, days = match.end(), [(day, day)]
    while len(days) < LONGEST_MONTH and (other := _TO_DAY.match(text, end)):
        if not (last := _numeral(other[2])):
            break
        days = [*days[:-1], (days[-1][0], last)] if other[1] in _SPANNING else [*days, (last, last)]
        end = other.end()
    return end, days


def _numeral(word: str) -> int:
    """A day of a month; 0 if it is none."""
    number = int(word) if word.isdecimal() else DAYS.get(word, 0)
    return number if number <= LONGEST_MONTH else 0


def _year(digits: str) -> int:
    number = int(digits)
    return number if len(digits) == 4 else number + (1900 if number >= 70 else 2000)


def _month(year: int | None, month: int) -> Period | None:
    if not 1 <= month <= 12 or (year is not None and not 1000 <= year <= 2999):
        return None
    first = (month - 1) * LONGEST_MONTH
    return Period(year, first, first + LONGEST_MONTH - 1)


def _day(year: int | None, month: int, day: int, last: int = 0) -> Period | None:
    whole = _month(year, month)
    if whole is None or not 1 <= day <= LONGEST_MONTH:
        return None
    return Period(year, whole.first + day - 1, whole.first + max(day, last) - 1)
