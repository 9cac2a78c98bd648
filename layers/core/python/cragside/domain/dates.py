"""Reads dates and periods in their usual forms: English, German, French, in digits, and as file names have them.

Libraries took a hundred times as long, found words that are no dates, and gave neither ranges nor dates without a year
(ADR 25).
"""

import re
from calendar import isleap
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

LONGEST_MONTH = 31
_SHORTER_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
DAYS_OF_A_YEAR = 12 * LONGEST_MONTH


def month_and_day(days: int) -> tuple[int, int]:
    """Return the month and the day of so many days after the start of a year, each month with 31 days."""
    return days // LONGEST_MONTH % 12 + 1, days % LONGEST_MONTH + 1


class Period(NamedTuple):
    """The days from `first` to `last`, counted from those of `year` as if each month had 31. Without a year, any."""

    year: int | None
    first: int
    last: int

    @classmethod
    def of(cls, year: int | None, month: int = 0, day: int = 0) -> "Period":
        """Return a year, a month or a day of a calendar."""
        first = max(month - 1, 0) * LONGEST_MONTH + max(day - 1, 0)
        return cls(year, first, first if day else first + (LONGEST_MONTH if month else DAYS_OF_A_YEAR) - 1)

    @classmethod
    def of_month(cls, year: int | None, month: int) -> "Period | None":
        """Return a month, None for one that no calendar has."""
        if not 1 <= month <= 12 or (year is not None and not 1800 <= year <= 2099):
            return None
        return cls.of(year, month)

    @classmethod
    def of_days(cls, year: int | None, month: int, day: int, last: int = 0) -> "Period | None":
        """Return the days of a month from one to the last, None for those that no calendar has."""
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
        """Tell if it is surely later than another one. Both must have a year."""
        return (self.year or 0) * DAYS_OF_A_YEAR + self.first > (other.year or 0) * DAYS_OF_A_YEAR + other.last

    def is_plausible(self, today: date) -> bool:
        """Tell if a document can have this date: from 1900 to tomorrow, because time zones differ."""
        tomorrow = date.fromordinal(today.toordinal() + 1)
        return (self.year or 0) >= 1900 and not self.is_after(Period.of(tomorrow.year, tomorrow.month, tomorrow.day))


class Date(NamedTuple):
    """A date in a text in lower case, with its place and the periods that it may mean: two for 3/4/2025."""

    start: int
    end: int
    periods: tuple[Period, ...]


def year_of(digits: str) -> int:
    """Return the year that four digits or the last two are."""
    number = int(digits)
    return number if len(digits) == 4 else number + (1900 if number >= 70 else 2000)


_GERMAN_ORDINALS = (
    *("erst", "zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht", "neunt", "zehnt", "elft", "zwölft"),
    *("dreizehnt", "vierzehnt", "fünfzehnt", "sechzehnt", "siebzehnt", "achtzehnt", "neunzehnt", "zwanzigst"),
)
_FRENCH = "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"


def _counted(words: str, *, first: int = 1, step: int = 1) -> dict[str, int]:
    return {word: first + step * place for place, word in enumerate(words.split())}


CARDINALS = {
    **_counted(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen"
    ),
    **_counted("twenty thirty forty fifty sixty seventy eighty ninety", first=20, step=10),
    **_counted(
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
        "achtzehn neunzehn"
    ),
    **_counted("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig", first=20, step=10),
    **_counted(f"un {_FRENCH}"),
    **_counted("vingt trente quarante cinquante soixante", first=20, step=10),
}
ORDINALS = {
    **_counted(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
    ),
    **{f"{word}{end}": value for value, word in enumerate(_GERMAN_ORDINALS, 1) for end in ("e", "en", "er", "es")},
    "premier": 1,
}
# Days of a month: English and German count them in ordinals alone ("one may ask"), French but the first in cardinals.
DAYS = ORDINALS | _counted(_FRENCH, first=2)


_NAMES = (
    "january jan januar jänner janvier janv",
    "february feb februar febr février fevrier févr fevr fév",
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
)
MONTHS = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
_ENGLISH = tuple(names.split()[0] for names in _NAMES)
# These are also other words: they are months beside a number, behind a word such as "in", and in a cell of a table.
AMBIGUOUS = frozenset({"may", "march", "mar", "mars", "august", "jan", "jun", "sep", "sept", "dec", "mai", "déc"})
_BEFORE_A_MONTH = re.compile(
    r"(?:[:;|,(]|\b(?:in|of|since|by|until|till|from|during|and|early|late|mid|im|ab|seit|bis|ende|anfang|mitte|und"
    r"|en|de|fin|début|depuis)) ?$"
)
# Words that begin as months do, for speed.
_LIKE_A_MONTH = re.compile(r"[adfjmnos](?<![^\W\d_].)[aäeéckopruv][^\W\d_]{1,7}(?![^\W\d_])", re.DOTALL)
# So much of a text before and after a month's name may belong to its date.
_BESIDE = 40
_DAY_BEFORE = re.compile(
    r"(?<![^\W_]|[.,:])(?:([0-9]{1,2})(?:st|nd|rd|th|er)?\.?[ _-]{0,2}|([a-zäöü]{3,11})\.? ?)(?:(?:of|de)(?: the)? )?$"
)
_DAY_TO = re.compile(
    r"(?<![\w.,:/])([0-9]{1,2})(?:st|nd|rd|th|er)?\.? ?(-|–|/|&|,|to|until|bis(?: zum)?|and|or|und|oder|au|et|ou) ?$"
)
# In file names, a number behind a month is its day only if the year follows: march-10-2025.
_DAY_AFTER = re.compile(
    r"\.?(?: |[_-](?=[0-9]{1,2}(?:st|nd|rd|th)?[_-](?:1[89]|20)[0-9]{2}))([0-9]{1,2})(?:st|nd|rd|th)?"
    r"(?![^\W_]|%|[.,:/][0-9])"
)
_TO_DAY = re.compile(r" ?(-|–|&|,|to|until|and|or) ?([0-9]{1,2})(?:st|nd|rd|th)?(?![\w%]|[.,:/][0-9])")
_YEAR_AFTER = re.compile(
    r"\.?,?([ _-]?)(?:of |de |in )?((?:1[89]|20)[0-9]{2}|(?<=[ _-])['’]?[0-9]{2})(?![^\W_]|%|[.,:/][0-9])"
)
_YEAR_BEFORE = re.compile(r"(?<![^\W_]|[.,/-])((?:1[89]|20)[0-9]{2})[ _-]$")
_DAY_LAST = re.compile(r"[_-]([0-9]{1,2})(?![^\W_]|[.,:/-][0-9])")
# "Mar 25" at the end of a phrase may be a year as well. "On Mar 25" and "- Mar 25" are days.
_SHORT_YEAR = re.compile(r"\.? (2[0-9]|3[01])(?= ?(?:$|[\n,;:|)?]))")
_BEFORE_A_DAY = re.compile(r"(?:\b(?:on|by|until|till|since|from|to|the)|[-–]) ?$")
_SPANNING = frozenset({"-", "–", "to", "until", "bis", "bis zum", "au"})


def named_dates(text: str, *, every_name: bool) -> Iterator[Date]:
    """The dates of a text in lower case that have a month's name, in order. With `every_name`, "may" is always one."""
    read = 0
    for match in _LIKE_A_MONTH.finditer(text):
        if (month := MONTHS.get(match[0])) is None:
            continue
        found = _with_name(text, match, month, read)
        is_clear = every_name or len(match[0]) < found.end - found.start or match[0] not in AMBIGUOUS
        if not is_clear and not _BEFORE_A_MONTH.search(text[max(0, match.start() - 9) : match.start()]):
            continue
        read = match.end()
        if found.periods:
            yield found
            read = found.end


def _with_name(text: str, name: re.Match[str], month: int, read: int) -> Date:
    """The date around a month's name, of which no more than `read` belongs to the date before. It may be impossible."""
    start, end = name.span()
    begin, days = _days_before(text, start)
    before = None
    # In "in 2025 may members ..." is no month.
    if text[start - 2 : start - 1].isdecimal() and (text[start - 1] != " " or name[0] not in AMBIGUOUS):
        before = _YEAR_BEFORE.search(text, max(read, start - 6), start)
    if before and (day := _DAY_LAST.match(text, end)):
        return _date(before.start(), day.end(), [Period.of_days(int(before[1]), month, int(day[1]))])
    short = None
    if not days:
        end, days = _days_after(text, name.end())
        short = _short_year(text, name) if len(days) == 1 else None
    year = None
    if (behind := _YEAR_AFTER.match(text, end)) and _is_year(text, behind, start, has_days=bool(days)):
        year, end = year_of(behind[2].lstrip("'’")), behind.end()
    elif before and not days:
        begin, year = before.start(), int(before[1])
    periods = [Period.of_days(year, month, first, last) for first, last in days] or [Period.of_month(year, month)]
    if short and year is None:
        # German and French have the day before the month.
        is_day = _ENGLISH[month - 1].startswith(name[0])
        periods = [*(periods if is_day else ()), Period.of_month(short, month)]
    return _date(begin, end, periods)


def _date(start: int, end: int, periods: Sequence[Period | None]) -> Date:
    return Date(start, end, tuple(period for period in periods if period is not None))


def _is_year(text: str, behind: re.Match[str], start: int, *, has_days: bool) -> bool:
    """Tell if a number behind a month is its year: 2025, '25, "7 feb 25", Mar-25, 11-mar-25."""
    sign, digits = behind.groups()
    if len(digits) != 2:
        return True
    if sign in ("-", "_"):
        return not has_days or text[start - 1] == sign
    return has_days


def _short_year(text: str, name: re.Match[str]) -> int | None:
    """Return the year that a number of two digits behind a month may be, if no word says that it is a day."""
    found = _SHORT_YEAR.match(text, name.end())
    if not found or name[0] == _ENGLISH[MONTHS[name[0]] - 1]:
        return None
    return None if _BEFORE_A_DAY.search(text[max(0, name.start() - 7) : name.start()]) else year_of(found[1])


def _days_before(text: str, end: int) -> tuple[int, list[tuple[int, int]]]:
    """Return the days before a month's name, as ranges, and where they begin: `4 and 5` of 4 and 5 May."""
    match = _DAY_BEFORE.search(text[max(0, end - _BESIDE) : end])
    day = _numeral(match[1] or match[2]) if match else 0
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
    """Return the days behind a month's name, as ranges, and where they end."""
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
    """Return a day of a month; 0 if it is none."""
    number = int(word) if word.isdecimal() else DAYS.get(word, 0)
    return number if number <= LONGEST_MONTH else 0


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
    """Return the dates of a text in lower case, in order; of a very long text the first thousand.

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
    """Return the years, months and days of a text in lower case that are written with their year, each with one period.

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
    """Return the first year, month or day of a text in any case that is written with its year."""
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
    """Yield the dates of a text. Both ends of a range are dates of their own, unless they share a month."""
    end = 0
    for each in sorted((*_in_digits(text), *named_dates(text, every_name=every_name))):
        if each.start >= end:
            end = each.end
            yield each


def _joined(text: str, first: Date, last: Date) -> Date | None:
    """Return the period from one date to the next, if the text has no more than a word such as "to" between them."""
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
    """Return what a date in digits may mean. `both` says that either its day or its month may come first."""
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
