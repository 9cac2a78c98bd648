"""Dates as people write them in English, German and French, as exactly as they are known."""

import calendar
import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

_MONTHS = (
    "january januar janvier janv jänner jan",
    "february februar février fevrier févr fevr fév feb",
    "march märz maerz mars mar mrz",
    "april avril apr avr",
    "may mai",
    "june juni juin jun",
    "july juli juillet juil jul",
    "august août aout aug",
    "september septembre sept sep",
    "october oktober octobre oct okt",
    "november novembre nov",
    "december dezember décembre decembre dec dez déc",
)
_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
# By their first letters, which spares most comparisons.
_MONTH = "|".join(
    f"{letter}(?:{'|'.join(sorted((name[1:] for name in _NUMBERS if name[0] == letter), key=len, reverse=True))})"
    for letter in sorted({name[0] for name in _NUMBERS})
)
_YEAR = "(?:1[89]|20)[0-9]{2}"
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_ORDINAL = "(?:st|nd|rd|th|er|\\.)?"
# Of several forms that begin at one place, the first one counts. The last is a year alone, or a period of years.
_FORMS = (
    f"(?P<y1>{_YEAR})(?P<s1>[-_./]?)(?P<m1>0[1-9]|1[0-2])(?P=s1)(?P<d1>0[1-9]|[12][0-9]|3[01])(?![0-9])",
    f"(?P<y2>{_YEAR})[-_](?P<m2>0[1-9]|1[0-2])(?![0-9]|[-_.][0-9])",
    f"(?P<d3>{_DAY})(?P<s3>[-./_]) ?(?P<m3>0?[1-9]|[12][0-9]|3[01])(?P=s3) ?(?P<y3>{_YEAR}|[0-9]{{2}})(?![0-9.])",
    f"(?P<d4>{_DAY}){_ORDINAL}[ _-]{{0,2}}(?:of )?(?P<m4>{_MONTH})\\.?,?[ _-]{{1,2}}(?P<y4>{_YEAR})(?![0-9])",
    f"(?P<m5>{_MONTH})\\.?[ _-](?P<d5>{_DAY})(?:st|nd|rd|th)?,?[ _-](?P<y5>{_YEAR})(?![0-9])",
    f"(?P<m6>{_MONTH})\\.?[ _-](?P<y6>{_YEAR})(?![0-9])",
    f"(?P<y7>{_YEAR})[ _-](?P<m7>{_MONTH})(?![^\\W_])",
    f"(?P<y8>{_YEAR})(?:[-–/](?P<until>[0-9]{{4}}|[0-9]{{2}})(?![0-9]))?(?![^\\W_]|[.,-][0-9])",
)
WRITTEN = re.compile(f"(?<![^\\W_])(?<![0-9][.,-])(?:{'|'.join(_FORMS)})", re.IGNORECASE)
_YEARLESS = re.compile(f"\\b(?:(?P<day>{_DAY}){_ORDINAL} ?(?:of )?)?(?P<month>{_MONTH})\\b", re.IGNORECASE)
_YEARS = re.compile(f"{_YEAR}|[0-9]{{2}}[./] ?[0-9]{{2}}[./] ?[0-9]{{2}}")
# More characters than any form has before or behind its year.
_AROUND = 20
# Before a date in slashes these say that its day comes first.
_DAY_FIRST = re.compile(r"(?:\b(?:le|du|au|dès|depuis|am|vom|ab|den|zum|bis)|\bpartir du) $", re.IGNORECASE)


class Moment(NamedTuple):
    """A day, a month (`day` is 0) or a year (`month` is 0 too)."""

    year: int
    month: int = 0
    day: int = 0

    def __str__(self) -> str:
        """The moment in ISO 8601, as exactly as it is known: 2025-03-11, 2025-03 or 2025."""
        return "-".join((f"{self.year:04}", *(f"{part:02}" for part in (self.month, self.day) if part)))

    @property
    def first(self) -> date:
        """The first day that it may be."""
        return date(self.year, self.month or 1, self.day or 1)

    @property
    def last(self) -> date:
        """The last day that it may be."""
        month = self.month or 12
        return date(self.year, month, self.day or calendar.monthrange(self.year, month)[1])

    def is_after(self, other: "Moment") -> bool:
        """Tell if it is surely later than another."""
        return self.first > other.last

    def meets(self, other: "Moment") -> bool:
        """Tell if both may be one day."""
        return not self.is_after(other) and not other.is_after(self)

    def is_known(self, today: date) -> bool:
        """Tell if documents can be of then: neither before 1900 nor in the future. Time zones differ by a day."""
        return self.year >= 1900 and self.first.toordinal() <= today.toordinal() + 1


def moments_in(text: str) -> Iterator[tuple[Moment, re.Match[str]]]:
    """All moments that a text writes with their year, and where, in their order."""
    at = 0
    while year := _YEARS.search(text, at):
        # It takes some 3 us a character to look for all forms, so only the surroundings of years are searched.
        found = WRITTEN.search(text, max(at, year.start() - _AROUND), year.end() + _AROUND)
        at = year.end()
        if found and found.start() <= year.start():
            at = max(at, found.end())
            if moment := moment_of(found):
                yield moment, found


def moment_in(text: str) -> Moment | None:
    """The first moment that a text writes."""
    return next((moment for moment, _ in moments_in(text)), None)


def anniversaries_in(text: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    """All months with their day, or 0, that a text writes, with a year or without one, and where."""
    for found in _YEARLESS.finditer(text):
        yield _NUMBERS[found["month"].lower()], int(found["day"] or 0), found


def moment_of(found: re.Match[str]) -> Moment | None:
    """The moment of a match of `WRITTEN`, None for one that no calendar has."""
    parts = {name: value for name, value in found.groupdict().items() if value}
    year, month, day = (next((parts[key] for key in parts if key[0] == kind), "") for kind in "ymd")
    if "y3" in parts:
        return _in_digits(day, month, year, found)
    if until := parts.get("until"):
        last = int(year[: -len(until)] + until)
        return Moment(last) if int(year) < last < int(year) + 100 else Moment(int(year))
    number = _NUMBERS.get(month.lower()) or int(month or 0)
    return _checked(int(year), number, int(day or 0))


def _in_digits(day: str, month: str, year: str, found: re.Match[str]) -> Moment | None:
    """A date such as 11.03.2025. In 03/04/2025 only the year is sure, unless a French or German word is before it."""
    if len(year) == 2:
        if found["s3"] not in "./" or len(day + month) < 4:
            return None
        year = f"20{year}"
    first, second = int(day), int(month)
    if found["s3"] == "/" and first != second and max(first, second) <= 12:
        before = found.string[max(found.start() - 12, 0) : found.start()]
        return _checked(int(year), second, first) if _DAY_FIRST.search(before) else Moment(int(year))
    return _checked(int(year), second, first) or (_checked(int(year), first, second) if found["s3"] == "/" else None)


def _checked(year: int, month: int, day: int) -> Moment | None:
    try:
        date(year, month or 1, day or 1)
    except ValueError:
        return None
    return Moment(year, month, day)
