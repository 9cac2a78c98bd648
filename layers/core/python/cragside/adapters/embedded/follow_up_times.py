"""Dates that a follow-up question gives by their distance from the last one: "and two weeks later?"."""

import calendar
import re
from datetime import date, timedelta

from cragside.domain.dates import CARDINALS, Period, dates_in, month_and_day

_UNITS = {
    word: unit
    for unit, listed in {
        "day": "day days tag tage tagen jour jours",
        "week": "week weeks woche wochen semaine semaines",
        "month": "month months monat monate monaten mois",
        "year": "year years jahr jahre jahren an ans année années",
    }.items()
    for word in listed.split()
}
_UNIT = "|".join(_UNITS)
_LATER = r"later|after|afterwards|später|danach|darauf|plus tard|après"
_EARLIER = r"before|earlier|prior|davor|zuvor|vorher|früher|plus tôt|avant|auparavant"
_NEXT = r"next|following|folgenden?|nächsten?"
_LAST = r"previous|vorigen?|vorherigen?"
_DISTANCE = re.compile(
    rf"\b(?:(?P<number>[0-9]{{1,2}}|{'|'.join(CARDINALS)}) )?(?P<unit>{_UNIT}) (?:(?P<later>{_LATER})|(?:{_EARLIER}))\b"
    rf"|\b(?:(?P<next>{_NEXT})|(?:{_LAST})) (?P<beside>{_UNIT})\b"
    rf"|\b(?P<named>{_UNIT}) (?:(?P<suivant>suivante?)|précédente?)\b"
    r"|\bim (?:(?P<folgejahr>folgejahr)|vorjahr)\b"
)
_YEAR = re.compile(r"(?<![0-9.,])(?:19|20)[0-9]{2}(?![0-9])")
# Any year with 365 days does for a date without one.
_NO_LEAP_YEAR = 2001


def moved(question: str, last: str) -> tuple[str, str] | None:
    """The date that a question means by its distance from the date of the last question, and that one as it stands.

    Both are texts: a day, a month or a year. None if the question names no distance or a date of its own, or the last
    question no date that the distance applies to.
    """
    asked = question.lower()
    found = _DISTANCE.search(asked)
    if found is None or _YEAR.search(asked) or dates_in(asked):
        return None
    unit = _UNITS[found["unit"] or found["beside"] or found["named"] or "jahr"]
    number = int(found["number"]) if (found["number"] or "").isdigit() else CARDINALS.get(found["number"] or "", 1)
    forwards = found["later"] or found["next"] or found["suivant"] or found["folgejahr"]
    distance = number if forwards else -number
    if dates := dates_in(last.lower()):
        start, end, (period, *_) = dates[0]
        text = _day(period, unit, distance) if period.is_day else _month(period, unit, distance)
        return (text, last[start:end]) if text else None
    if unit == "year" and (year := _YEAR.search(last)):
        return str(int(year[0]) + distance), year[0]
    return None


def _day(period: Period, unit: str, distance: int) -> str:
    year, (month, day) = period.year or _NO_LEAP_YEAR, month_and_day(period.first)
    if unit in ("day", "week"):
        there = date(year, month, min(day, calendar.monthrange(year, month)[1]))
        there += timedelta(days=distance * (7 if unit == "week" else 1))
        year, month, day = there.year, there.month, there.day
    else:
        year, month = _shifted(year, month, unit, distance)
        day = min(day, calendar.monthrange(year, month)[1])
    return f"{day} {_written(period, year, month)}"


def _month(period: Period, unit: str, distance: int) -> str | None:
    if not period.is_month or unit not in ("month", "year"):
        return None
    month, _ = month_and_day(period.first)
    return _written(period, *_shifted(period.year or _NO_LEAP_YEAR, month, unit, distance))


def _shifted(year: int, month: int, unit: str, distance: int) -> tuple[int, int]:
    months = year * 12 + month - 1 + distance * (12 if unit == "year" else 1)
    return months // 12, months % 12 + 1


def _written(period: Period, year: int, month: int) -> str:
    name = calendar.month_name[month]
    return name if period.year is None else f"{name} {year}"
