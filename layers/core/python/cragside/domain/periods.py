"""Periods of days, as exactly as texts tell them: years, months, days and ranges of days."""

from calendar import isleap
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

LONGEST_MONTH = 31
_SHORTER_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
DAYS_OF_A_YEAR = 12 * LONGEST_MONTH


def month_and_day(days: int) -> tuple[int, int]:
    """The month and the day of so many days after the start of a year, each month with 31 days."""
    return days // LONGEST_MONTH % 12 + 1, days % LONGEST_MONTH + 1


class Period(NamedTuple):
    """The days from `first` to `last`, counted from those of `year` as if each month had 31. Without a year, any."""

    year: int | None
    first: int
    last: int

    @classmethod
    def of(cls, year: int | None, month: int = 0, day: int = 0) -> "Period":
        """A year, a month or a day of a calendar."""
        first = max(month - 1, 0) * LONGEST_MONTH + max(day - 1, 0)
        return cls(year, first, first if day else first + (LONGEST_MONTH if month else DAYS_OF_A_YEAR) - 1)

    @classmethod
    def of_month(cls, year: int | None, month: int) -> "Period | None":
        """A month, None for one that no calendar has."""
        if not 1 <= month <= 12 or (year is not None and not 1800 <= year <= 2099):
            return None
        return cls.of(year, month)

    @classmethod
    def of_days(cls, year: int | None, month: int, day: int, last: int = 0) -> "Period | None":
        """The days of a month from one to the last, None for those that no calendar has."""
        if not 1 <= month <= 12 or (year is not None and not 1000 <= year <= 2999):
            return None
        last = max(day, last)
        is_short = month == 2 and year is not None and not isleap(year)
        if day < 1 or last > (28 if is_short else _SHORTER_MONTHS.get(month, LONGEST_MONTH)):
            return None
        return cls.of(year, month, day)._replace(last=cls.of(year, month, last).last)

    def __str__(self) -> str:
        """Its year, month or last day in ISO 8601, as exactly as it is known: 2025, 2025-03 or 2025-03-11."""
        month, day = month_and_day(self.last)
        parts = (f"{month:02}", f"{day:02}")[: 0 if self.is_year else 1 if self.is_month else 2]
        return "-".join((f"{self.year or 0:04}", *parts))

    @property
    def is_year(self) -> bool:
        """Tell if it is a whole year."""
        return self.last - self.first == DAYS_OF_A_YEAR - 1

    @property
    def is_day(self) -> bool:
        """Tell if it is one day."""
        return self.first == self.last

    @property
    def is_month(self) -> bool:
        """Tell if it is one month without a day."""
        return self.first % LONGEST_MONTH == 0 and self.last - self.first == LONGEST_MONTH - 1

    def meets(self, other: "Period") -> bool:
        """Tell if both share a day, as far as their years are known."""
        if self.year is not None and other.year is not None:
            shifts: Sequence[int] = ((other.year - self.year) * DAYS_OF_A_YEAR,)
        else:
            shifts = (-DAYS_OF_A_YEAR, 0, DAYS_OF_A_YEAR)
        return any(other.first + shift <= self.last and self.first <= other.last + shift for shift in shifts)

    def is_after(self, other: "Period") -> bool:
        """Tell if it is surely later than another one. Both have a year."""
        return (self.year or 0) * DAYS_OF_A_YEAR + self.first > (other.year or 0) * DAYS_OF_A_YEAR + other.last

    def is_plausible(self, today: date) -> bool:
        """Tell if a document can have this date: not before 1900, and not later than tomorrow: time zones differ."""
        tomorrow = date.fromordinal(today.toordinal() + 1)
        return (self.year or 0) >= 1900 and not self.is_after(Period.of(tomorrow.year, tomorrow.month, tomorrow.day))


class Date(NamedTuple):
    """Where in a text in lower case a date is, and the periods that it may mean: two for 3/4/2025."""

    start: int
    end: int
    periods: tuple[Period, ...]


def year_of(digits: str) -> int:
    """The year that four digits or the last two are."""
    number = int(digits)
    return number if len(digits) == 4 else number + (1900 if number >= 70 else 2000)
