"""Reads dates that have the name of a month, in English, German and French."""

import re
from collections.abc import Iterator, Sequence

from cragside.domain.numerals import DAYS
from cragside.domain.periods import LONGEST_MONTH, Date, Period, year_of

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
    """The year that a number of two digits behind a month may be, if no word says that it is a day."""
    found = _SHORT_YEAR.match(text, name.end())
    if not found or name[0] == _ENGLISH[MONTHS[name[0]] - 1]:
        return None
    return None if _BEFORE_A_DAY.search(text[max(0, name.start() - 7) : name.start()]) else year_of(found[1])


def _days_before(text: str, end: int) -> tuple[int, list[tuple[int, int]]]:
    """The days before a month's name, as ranges, and where they begin: `4 and 5` of 4 and 5 May."""
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
