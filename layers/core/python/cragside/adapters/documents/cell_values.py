"""Writes values of sheets as people see them: numbers, dates, times and durations in their formats, and formulas."""

import re
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
_THOUSANDS = re.compile("(?<=#)[ '’\u00a0\u202f](?=##0)")
# What people do not see of a format: conditions, colours, widths and padding.
_UNSEEN = re.compile(r'\[\$([^\]-]{0,20})[^\]]{0,40}\]|\[[^\]]{0,60}\]|_.|\*.|\\(.)|"([^"]{0,100})"')
_NO_DECIMALS = re.compile(r"[0#?]\s*/|E[+-]|@")
# A part of a format for dates and times: [h], AM/PM, hh, .00, a quoted or escaped text, what is not seen, another sign.
_PART = re.compile(
    r"\[(?P<all>h{1,2}|m{1,2}|s{1,2})\]|(?P<half>am/pm|a/p)|(?P<unit>h{1,2}|m{1,5}|s{1,2}|[yd]{1,4})"
    r'|(?P<decimals>\.0{1,3})|"(?P<quoted>[^"]{0,100})"|\\(?P<escaped>.)|_.|\*.|\[[^\]]{0,60}\]|(?P<sign>.)',
    re.IGNORECASE | re.DOTALL,
)
_DAY = 24 * 3600
# Excel keeps 15 digits. A number with more of them is in its cell as a power of ten anyway.
_LONGEST_WHOLE = 1e21
# Enough digits for the decimals of any format.
_ROUNDED = Context(prec=400, rounding=ROUND_HALF_UP)


class _Part(NamedTuple):
    """A part of a time: `kind` is one of h, m, s, [h], [m], [s], half and decimals, or "" for a text."""

    kind: str
    text: str


def value_shown(value: object, written: str) -> str:
    """A value in the format of its cell, "" for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return number_shown(value, written or "General")
    return moment_shown(value, written) if isinstance(value, Moment) else str(value)


def number_shown(value: float, written: str) -> str:
    """A number in a format such as `0.00%`. Thousands are not separated, because that differs between languages."""
    before, places, after, scale = _format(written)
    if not places or not abs(value) < _LONGEST_WHOLE:
        return f"{'-' if value < 0 else ''}{before}{_general(abs(value))}{after}".strip()
    exact = _exact(value) * scale
    whole_places, _, decimal_places = places.partition(".")
    most, least = len(_PLACE.findall(decimal_places)), decimal_places.rfind("0") + 1
    whole, _, decimals = str(abs(exact).quantize(Decimal(1).scaleb(-most), context=_ROUNDED)).partition(".")
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    shown = _in_places(whole, whole_places) + (f".{decimals}" if decimals else "")
    return f"{'-' if exact < 0 else ''}{before}{shown}{after}".strip()


def _exact(value: float) -> Decimal:
    """The number without the noise behind the 15 digits that a sheet keeps."""
    return Decimal(f"{value:.15g}") if isinstance(value, float) else Decimal(value)


def _general(value: float) -> str:
    """A number without a format. What is whole, and what has many digits, is no power of ten."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.11g}"
    return f"{_exact(value):f}" if "e+" in short and abs(value) < _LONGEST_WHOLE else short


def _in_places(digits: str, places: str) -> str:
    """A whole number with the zeros and the signs of a format: 12 in `000-00` is 000-12."""
    shown = list[str]()
    for sign in reversed(places):
        if _PLACE.match(sign):
            shown.append(digits[-1:] or ("0" if sign == "0" else ""))
            digits = digits[:-1]
        else:
            shown.append(sign)
    return digits + "".join(reversed(shown))


@lru_cache(maxsize=1024)
def _format(written: str) -> tuple[str, str, str, int]:
    """The text before a number, the places of its digits, the text behind it, and what the number is multiplied with.

    Without places the number is written in full.
    """
    section = written[:300].split(";")[0]
    seen = _THOUSANDS.sub(",", _UNSEEN.sub(_seen, section))
    if (general := _GENERAL.search(section)) and not _DIGITS.search(section):
        before, after = (_UNSEEN.sub(_seen, text) for text in (section[: general.start()], section[general.end() :]))
        return before.lstrip(), "", after.rstrip(), 1
    found = list(_DIGITS.finditer(seen))
    if not found or _NO_DECIMALS.search(written):
        return "", "", "", 1
    start, end = found[0].start(), found[-1].end()
    places = seen[start:end]
    if places.endswith(","):  # in thousands or millions, which would be another number
        return "", "", "", 1
    if len(found) > 1 and "." in places:  # such as two numbers in one cell
        return "", "", "", 1
    before = seen[:start]
    # A quoted or an escaped per cent sign is a text.
    scale = 100 if "%" in _UNSEEN.sub("", section) else 1
    return " ".join(before.split()) and before.lstrip(), places.replace(",", ""), seen[end:].rstrip(), scale


def _seen(part: re.Match[str]) -> str:
    return part[1] or part[2] or part[3] or " "


def formula_shown(formula: str) -> str:
    """A formula whose value no program has worked out."""
    return f"{formula} (not computed)"


def moment_shown(value: Moment, written: str = "") -> str:
    """A date as 2024-03-31, a time or a duration in a format such as `[h]:mm:ss`. A date at midnight has no time."""
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
    """A time or duration. Without a format it has hours, minutes, and seconds unless they are 0."""
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
    """Tell if a format shows a date, and give the parts of its time."""
    # The parts that are seen, and the units of dates and times alone.
    parts, units = list[_Part](), list[int]()
    for found in _PART.finditer(written[:300].split(";")[0]):
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
