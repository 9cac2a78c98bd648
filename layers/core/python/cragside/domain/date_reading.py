"""Reads dates in any of their usual forms: English, German, French, in digits, and as file names have them.

Libraries took a hundred times as long, found words that are no dates, and gave neither ranges nor dates without a year
(ADR 25).
"""

import re
from collections.abc import Iterator, Sequence

from cragside.domain.named_dates import named_dates
from cragside.domain.periods import DAYS_OF_A_YEAR, LONGEST_MONTH, Date, Period, year_of

_DIGITS = re.compile(
    r"([0-9][0-9]{0,3})(?:([-./_])([0-9]{1,4})(?:\2([0-9]{1,4}))?|\. ?([0-9]{1,2})\. ?([0-9]{4})"
    r"|(0[1-9]|1[0-2])([0-3][0-9]))(\.?)(?![0-9a-su-z/]|[.,:][0-9])"
)
_NO_DATE_BEHIND = frozenset(".,:/+")
_NUMBERED = re.compile(r"\b(?:version|release|rev|chapter|section|kapitel|abschnitt|chapitre)\.? $")
# In prose, 2003-4 are two years; in a table it is a month.
_TWO_YEARS = re.compile(r"[0-9]{3}(?:0-1|1-2|2-3|3-4|4-5|5-6|6-7|7-8|8-9)\.?")
_BEFORE_YEARS = re.compile(r"[^\W_] \(?$")
# One of two dates, or of a day and its month, before the other: "from 3.3. to 7.3.2025".
_BETWEEN = re.compile(r" ?(?:-|–|—|to|until|till|through|bis(?: zum)?|au) ?(?:the )?")
# "11/3" is a date behind these, and a fraction elsewhere. "11.3." may stand anywhere.
_ON = re.compile(r"\b(?:on|by|until|since|from|to|am|vom|zum|bis|ab|seit|le|du|au) $")
# Before a date in slashes these say that its day comes first.
_DAY_FIRST = re.compile(r"(?:\b(?:le|du|au|dès|depuis|am|vom|ab|den|zum|bis)|\bpartir du) $")
# A year alone, or a period of years of which the last one counts: 2024-25, 2024/2025. Patterns that begin with a class
# of characters are searched several times as fast.
_YEARS = re.compile(
    r"([12](?:(?<=1)[89]|(?<=2)0)[0-9]{2})(?<![^\W_][0-9]{4})(?<![0-9][.,-][0-9]{4})"
    r"(?:[-–/]([0-9]{4}|[0-9]{2})(?![0-9]))?(?![^\W_]|[.,][0-9])"
)
_OF_A_YEAR = re.compile(r"[0-9]{2}")
_LONGEST_BETWEEN = 40
# A longer range with a dash is a life, which says nothing of the days in it.
_MOST_YEARS = 10
_MOST = 1_000


def dates_in(text: str, *, every_name: bool = False) -> list[Date]:
    """The dates of a text in lower case, in order; of a very long text the first thousand.

    A day and its month, or a month, with or without a year. A range is one date. With `every_name`, names of months
    that are also other words ("may", "march") are months wherever they stand.
    """
    found: list[Date] = []
    for each in _apart(text, every_name=every_name):
        if found and (joined := _joined(text, found[-1], each)):
            found[-1] = joined
        else:
            found.append(each)
        if len(found) == _MOST:
            break
    return found


def times_in(text: str) -> list[Date]:
    """The years, months and days of a text in lower case that are written with their year, each with one period.

    In 03/04/2025 only the year is sure. Of 4 and 18 May 2024 the last day counts, and both ends of a longer range.
    """
    found: list[Date] = []
    end = 0
    for each in _apart(text) if _OF_A_YEAR.search(text) else ():
        found += _years_alone(text, end, each.start)
        end = each.end
        if known := [period for period in each.periods if period.year is not None]:
            sure = _last_day(known) if len({period.first // LONGEST_MONTH for period in known}) == 1 else None
            found.append(each._replace(periods=(sure or Period.of(known[0].year or 0),)))
    return [*found, *_years_alone(text, end, len(text))]


def time_in(text: str) -> Period | None:
    """The first year, month or day of a text in any case that is written with its year."""
    return next((each.periods[0] for each in times_in(text.lower())), None)


def _years_alone(text: str, start: int, end: int) -> Iterator[Date]:
    for match in _YEARS.finditer(text, start, end):
        year, until = int(match[1]), match[2] or ""
        last = int(match[1][: -len(until)] + until) if until else year
        yield Date(*match.span(), (Period.of(last if year < last < year + 100 else year),))


def _last_day(periods: Sequence[Period]) -> Period:
    last = periods[-1]
    return last if last.is_month else last._replace(first=last.last)


def _apart(text: str, *, every_name: bool = False) -> Iterator[Date]:
    """The dates of a text, those at the ends of a range apart unless they share a month."""
    end = 0
    for each in sorted((*_in_digits(text), *named_dates(text, every_name=every_name))):
        if each.start >= end:
            end = each.end
            yield each


def _joined(text: str, first: Date, last: Date) -> Date | None:
    """The period from one date to the next, if the text has no more than a word such as "to" between them."""
    between = text[first.end : last.start] if last.start - first.end <= _LONGEST_BETWEEN else ""
    if not between or not _BETWEEN.fullmatch(between):
        return None
    begin, end = first.periods[0], last.periods[-1]
    year = end.year if begin.year is None else begin.year
    years = end.year - year if end.year is not None and year is not None else 0
    if years > _MOST_YEARS and between.strip() in "-–—":
        return None
    until = end.last + years * DAYS_OF_A_YEAR
    if until < begin.first and begin.year is None and year is not None:
        year, until = year - 1, until + DAYS_OF_A_YEAR
    elif until < begin.first:
        until += DAYS_OF_A_YEAR
    return Date(first.start, last.end, (Period(year, begin.first, max(until, begin.first)),))


def _in_digits(text: str) -> Iterator[Date]:
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else " "
        if before.isalnum() or before in _NO_DATE_BEHIND:
            continue
        first, sign, second, third, spaced, year, month, day, dot = match.groups()
        before = text[max(0, start - 12) : start]
        if year:
            periods = [Period.of_days(int(year), int(spaced), int(first))]
        elif day:
            periods = [Period.of_days(int(first), int(month), int(day)) if 1800 <= int(first) <= 2099 else None]
        elif _NUMBERED.search(before) or (_TWO_YEARS.fullmatch(match[0]) and _BEFORE_YEARS.search(before)):
            continue
        else:
            # The dot behind 11.3. belongs to the date, that behind 11.3.2025 to the sentence.
            is_named = bool(dot) or _ON.search(before) is not None
            both = sign == "/" and not _DAY_FIRST.search(before)
            periods = _read(first, sign, second, third or "", is_named=is_named, both=both)
        if found := tuple(dict.fromkeys(each for each in periods if each is not None)):
            yield Date(start, end, found)


def _read(first: str, sign: str, second: str, third: str, *, is_named: bool, both: bool) -> list[Period | None]:
    """The readings of a date in digits. `both` says that its day or its month may come first."""
    a, b = int(first), int(second)
    if len(first) == 4:
        if len(second) > 2 or len(third) > 2 or (sign in "._" and 1 in (len(second), len(third))):
            return []
        if third:
            return [Period.of_days(a, b, int(third))]
        # 2011/12 are two years.
        is_month = sign == "-" or (len(second) == 2 and (sign == "_" or (sign == "/" and b != a % 100 + 1)))
        return [Period.of_month(a, b)] if is_month else []
    if len(first) > 2 or len(third) in (1, 3):
        return []
    if len(second) == 4:
        return [] if third or sign in "-_" else [Period.of_month(b, a)]
    if len(second) > 2 or (sign in "-_" and len(third) != 4):
        return []
    year = year_of(third) if third else None
    if year is None and not is_named:
        return []
    return [Period.of_days(year, b, a), *([Period.of_days(year, a, b)] if both else [])]
