"""Writes numbers, dates and times as people see them in sheets, and the numbers of headings and lists."""

import operator
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import NamedTuple

Moment = date | time | timedelta

# What stands for a number in a format: 0.00, #,##0, 0%.
_DIGITS = re.compile(r"[#0?][#0?,.]*+")
_GENERAL = re.compile("General", re.IGNORECASE)
_PLACE = re.compile(r"[#0?]")
# French, Swiss and Russian formats separate thousands with these.
_SPACES = " '’\u00a0\u202f"
_THOUSANDS = re.compile(f"(?<=#)[{_SPACES}](?=##0)")
# A currency, padding, a sign and a text that stand as they are.
_LITERAL = re.compile(r'\[\$([^\]-]{0,20})[^\]]{0,40}\]|_.|\*.|\\(.)|"([^"]{0,100})"')
_CONDITION = re.compile(r"\[(<=|>=|<>|=|<|>) {0,3}(-?\d{1,15}(?:\.\d{1,15})?)\]")
_COMPARED = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, "<>": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
# Conditions and colours.
_BRACKETS = re.compile(r"\[[^\]]{0,60}\]")
# Signs of texts are moved to this plane, so that they are no places, points or sections.
_APART = 0xF0000
_MOVED = re.compile(r"[\U000f0000-\U000fffff]")
_SIGNS = re.compile(r'[^\w"@\\]*')
_NO_DECIMALS = re.compile(r"[0#?]\s*/|E[+-]|@")
# A part of a format for dates and times: [h], AM/PM, hh, .00, a quoted or escaped text, what is not seen, another sign.
_PART = re.compile(
    r"\[(?P<all>h{1,2}|m{1,2}|s{1,2})\]|(?P<half>am/pm|a/p)|(?P<unit>h{1,2}|m{1,5}|s{1,2}|[yd]{1,4})"
    r'|(?P<decimals>\.0{1,3})|"(?P<quoted>[^"]{0,100})"|\\(?P<escaped>.)|_.|\*.|\[[^\]]{0,60}\]|(?P<sign>.)',
    re.IGNORECASE | re.DOTALL,
)
_BRACKETED = re.compile(r"^\(|\)$")
# Excel shows its own format 47 otherwise than the standard writes it.
_MISWRITTEN = {"mmss.0": "mm:ss.0"}
_DAY = 24 * 3600
# Excel keeps 15 digits. A number with more of them is in its cell as a power of ten anyway.
_LONGEST_WHOLE = 1e21
# Enough digits for the decimals of any format.
_ROUNDED = Context(prec=400, rounding=ROUND_HALF_UP)


class _Section(NamedTuple):
    """A section of a number format, such as that for negative numbers.

    It has the text before the number, the places of its digits, the text behind it, the factor of the number, and the
    numbers that it is for. Places of None write the number in full, and places of "" leave it out.
    """

    before: str = ""
    places: str | None = None
    after: str = ""
    scale: int = 1
    condition: tuple[str, float] | None = None

    def holds(self, value: float) -> bool:
        return self.condition is None or _COMPARED[self.condition[0]](value, self.condition[1])


class _Part(NamedTuple):
    """A part of a time: `kind` is one of h, m, s, [h], [m], [s], half and decimals, or "" for a text."""

    kind: str
    text: str


def value_shown(value: object, written: str) -> str:
    """Return a value in the format of its cell, "" for none."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return number_shown(value, written or "General")
    return moment_shown(value, written) if isinstance(value, Moment) else str(value)


def number_shown(value: float, written: str) -> str:
    """Return a number in a format such as `0.00%`. Thousands are not separated, because that differs between languages.

    A minus stands where only a colour or brackets say that the number is negative.
    """
    sections = _sections(written)
    if any(section.condition for section in sections):
        chosen = next((section for section in sections if section.holds(value)), _Section())
        return f"{'-' if value < 0 and '-' not in chosen.before else ''}{_in_section(abs(value), chosen)}"
    if value == 0 and len(sections) > 2:
        return _in_section(0, sections[2])
    shown = _in_section(abs(value), sections[0])
    if value >= 0:
        return shown
    negative = _in_section(abs(value), sections[1]) if len(sections) > 1 else shown
    is_left_out = not negative and len(sections) == 2
    return f"-{shown}" if shown and (is_left_out or _BRACKETED.sub("", negative) == shown) else negative


def _in_section(value: float, section: _Section) -> str:
    """Write a number, without its sign, in the form that one section of a format describes."""
    before, places, after, scale, _ = section
    if places is None or (places and not value < _LONGEST_WHOLE):
        return f"{before}{_general(value)}{after}".strip()
    exact = _exact(value) * scale if places else Decimal()
    whole_places, _, decimal_places = places.partition(".")
    most, least = len(_PLACE.findall(decimal_places)), decimal_places.rfind("0") + 1
    whole, _, decimals = str(exact.quantize(Decimal(1).scaleb(-most), context=_ROUNDED)).partition(".")
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    shown = _text(_in_places(whole.lstrip("0"), whole_places))
    return f"{before}{shown}{f'.{decimals}' if decimals else ''}{after}".strip()


def _exact(value: float) -> Decimal:
    """Return the number without the noise behind the 15 digits that a sheet keeps."""
    return Decimal(f"{value:.15g}") if isinstance(value, float) else Decimal(value)


def _general(value: float) -> str:
    """Return a number that has no format, never as a power of ten."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.11g}"
    return f"{_exact(value):f}" if "e+" in short and abs(value) < _LONGEST_WHOLE else short


def _in_places(digits: str, places: str) -> str:
    """Return a whole number with the zeros and the signs of a format: 12 in `000-00` is 000-12."""
    shown = list[str]()
    for sign in reversed(places):
        if _PLACE.match(sign):
            shown.append(digits[-1:] or ("0" if sign == "0" else ""))
            digits = digits[:-1]
        else:
            shown.append(sign)
    return digits + "".join(reversed(shown))


@lru_cache(maxsize=1024)
def _sections(written: str) -> tuple[_Section, ...]:
    """Return the parts of a format: for numbers above 0, below 0 and for 0, or each for its condition."""
    return tuple(_section(part) for part in _LITERAL.sub(_moved, written[:300]).split(";")[:3])


def _section(part: str) -> _Section:
    stated = _CONDITION.search(part)
    condition = (stated[1], float(stated[2])) if stated else None
    seen = _THOUSANDS.sub(",", _BRACKETS.sub(" ", part))
    found = list(_DIGITS.finditer(seen))
    if (general := _GENERAL.search(seen)) and not found:
        return _Section(_text(seen[: general.start()]), None, _text(seen[general.end() :]), 1, condition)
    if not found and _SIGNS.fullmatch(seen):
        return _Section(_text(" ".join(seen.split())), "", "", 1, condition)
    if not found or _NO_DECIMALS.search(seen):
        return _Section(condition=condition)
    start, end = found[0].start(), found[-1].end()
    places = seen[start:end]
    # In thousands or millions it would be another number. Two numbers may stand in one cell.
    if places.endswith(",") or (len(found) > 1 and "." in places):
        return _Section(condition=condition)
    before = seen[:start] if seen[:start].strip() else ""
    scale = 100 if "%" in seen else 1
    return _Section(_text(before), places.replace(",", ""), _text(seen[end:]), scale, condition)


def _moved(part: re.Match[str]) -> str:
    """Return a literal part as people see it, with its signs apart. The sign that fills a cell is left out."""
    text = part[1] or part[2] or part[3] or ("" if part[0].startswith("*") else " ")
    return "".join(sign if sign in _SPACES or ord(sign) > 0xFFFF else chr(_APART + ord(sign)) for sign in text)


def _text(moved: str) -> str:
    return _MOVED.sub(lambda sign: chr(ord(sign[0]) - _APART), moved)


def formula_shown(formula: str) -> str:
    """Return a formula whose value no program has worked out."""
    return f"{formula} (not computed)"


def moment_shown(value: Moment, written: str = "") -> str:
    """Return a date as 2024-03-31, a time or a duration in a format such as `[h]:mm:ss`.

    A date at midnight has no time.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    dated, clock = _clock(written)
    if not isinstance(value, datetime):
        return _clocked(value, clock)
    if clock and not dated:
        return _clocked(value.time(), clock)
    if value.time() == time():
        # Programs write dates as midnight.
        return value.date().isoformat()
    return f"{value.date().isoformat()} {_clocked(value.time(), clock)}"


def _clocked(value: time | timedelta, parts: tuple[_Part, ...]) -> str:
    """Return a time or duration. Without a format it has hours, minutes, and seconds unless they are 0."""
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    if not parts:
        written = "[hh]:mm:ss" if value.seconds % 60 else "[hh]:mm"
        parts = _clock(written)[1]
    kinds = {part.kind for part in parts}
    decimals = next((len(part.text) - 1 for part in parts if part.kind == "decimals"), 0)
    seconds = abs(value) // timedelta(seconds=1)
    behind = 0
    if kinds & {"s", "[s]"}:  # the last unit that is seen is rounded, but minutes are not
        step = timedelta(seconds=1) / 10**decimals
        seconds, behind = divmod((abs(value) + step / 2) // step, 10**decimals)
    amounts = {
        "[h]": seconds // 3600,
        "[m]": seconds // 60,
        "[s]": seconds,
        "h": (seconds // 3600) % 24,
        "m": seconds // 60 % 60,
        "s": seconds % 60,
    }
    half = "PM" if seconds % _DAY >= _DAY // 2 else "AM"
    if "half" in kinds:
        amounts["h"] = amounts["h"] % 12 or 12
    shown = list[str]()
    for kind, text in parts:
        if kind == "half":
            shown.append(half)
        elif kind == "decimals":
            shown.append(f".{behind:0{decimals}}")
        else:
            shown.append(str(amounts[kind]).zfill(len(text)) if kind else text)
    return ("-" if value < timedelta() else "") + "".join(shown).strip()


@lru_cache(maxsize=1024)
def _clock(written: str) -> tuple[bool, tuple[_Part, ...]]:
    """Tell if a format shows a date, and return the parts of its time."""
    # The parts that are seen, and the units of dates and times alone.
    parts, units = list[_Part](), list[int]()
    for found in _PART.finditer(_MISWRITTEN.get(written, written)[:300].split(";")[0]):
        kind = (found["unit"] or "")[:1].lower()
        if found["all"]:
            parts.append(_Part(f"[{found['all'][0].lower()}]", found["all"]))
        elif found["half"]:
            parts.append(_Part("half", found["half"]))
        elif kind:
            parts.append(_Part(kind, found["unit"]))
        elif found["decimals"]:
            parts.append(_Part("decimals", found["decimals"]))
        else:
            parts.append(_Part("", found["quoted"] or found["escaped"] or found["sign"] or ""))
        if parts[-1].kind and parts[-1].kind not in ("half", "decimals"):
            units.append(len(parts) - 1)
    # m stands for minutes behind hours and before seconds, else for a month.
    kinds = ["", *(parts[at].kind for at in units), ""]
    of_time = [
        at
        for at, before, kind, after in zip(units, kinds, kinds[1:], kinds[2:], strict=False)
        if kind in ("h", "s", "[h]", "[m]", "[s]") or (kind == "m" and (before in ("h", "[h]") or after == "s"))
    ]
    if not of_time:
        return bool(units), ()
    if len(of_time) == len(units):
        return False, tuple(parts)
    # What belongs to the date alone is left out.
    last = max(at for at, part in enumerate(parts) if at in of_time or part.kind in ("half", "decimals"))
    days = set(units) - set(of_time)
    return True, tuple(parts[at] for at in range(of_time[0], last + 1) if at not in days)


_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_MOST_ROMAN = 4000
# Beyond these, letters would repeat themselves more than ten times.
_MOST_LETTERS = 10
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщыэюя"
_HAN = "〇一二三四五六七八九"
_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}
_CARDINALS = (
    "Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve",
    "Thirteen", "Fourteen", "Fifteen", "Sixteen", "Seventeen", "Eighteen", "Nineteen", "Twenty",
)  # fmt: skip
_ORDINAL_WORDS = (
    "Zeroth", "First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth", "Eleventh",
    "Twelfth", "Thirteenth", "Fourteenth", "Fifteenth", "Sixteenth", "Seventeenth", "Eighteenth", "Nineteenth",
    "Twentieth",
)  # fmt: skip


def stated_number(text: str, default: int) -> int:
    """Return the number that a file states. What is no number of at most eight digits counts as the default."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else default


def written(number: int, form: str, pattern: str = "") -> str:
    """Return the number in a format with the name that Word gives it. An unknown format is decimal.

    `pattern` shows the first numbers of a format of its own: "001, 002".
    """
    if form == "custom":
        return str(number).zfill(len(pattern.partition(",")[0].strip()[:9]))
    return _FORMS.get(form, str)(number)


def _roman(number: int) -> str:
    if not 0 < number < _MOST_ROMAN:
        return str(number)
    pieces = []
    for value, letters in _ROMAN:
        pieces.append(letters * (number // value))
        number %= value
    return "".join(pieces)


def _letters(number: int, alphabet: str = _LATIN) -> str:
    """Return the letters of a number; behind z come aa, bb and cc."""
    times, place = divmod(number - 1, len(alphabet))
    return alphabet[place] * (times + 1) if number > 0 and times < _MOST_LETTERS else str(number)


def _ordinal(number: int) -> str:
    return f"{number}{'th' if number % 100 in (11, 12, 13) else _ORDINALS.get(number % 10, 'th')}"


def _from(words: str | tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


def _han(number: int) -> str:
    """Return the number in Chinese characters up to 99; further ones digit by digit."""
    tens, ones = divmod(number, 10)
    if not 9 < number < 100:
        return "".join(_HAN[int(digit)] for digit in str(abs(number)))
    return f"{_HAN[tens] if tens > 1 else ''}十{_HAN[ones] if ones else ''}"


_FORMS: dict[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "bullet": lambda _: "",
    "decimalZero": lambda number: f"{number:02}",
    "upperRoman": _roman,
    "lowerRoman": lambda number: _roman(number).lower(),
    "upperLetter": lambda number: _letters(number).upper(),
    "lowerLetter": _letters,
    "russianLower": lambda number: _letters(number, _RUSSIAN),
    "russianUpper": lambda number: _letters(number, _RUSSIAN).upper(),
    "ordinal": _ordinal,
    "cardinalText": lambda number: _from(_CARDINALS, number),
    "ordinalText": lambda number: _from(_ORDINAL_WORDS, number),
    "numberInDash": lambda number: f"- {number} -",
    "decimalFullWidth": lambda number: str(number).translate(_FULL_WIDTH),
    "decimalEnclosedCircle": lambda number: chr(0x245F + number) if 0 < number < 21 else str(number),
    "chineseCounting": _han,
    "chineseCountingThousand": _han,
    "japaneseCounting": _han,
    "ideographDigital": _han,
    "taiwaneseCounting": _han,
}
