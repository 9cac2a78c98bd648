"""Writes the numbers of headings and list items as word processors do: 2, 02, b, iv, second."""

from collections.abc import Callable

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
    """The number that a file states. What is no number of at most eight digits counts as the default."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else default


def written(number: int, form: str, pattern: str = "") -> str:
    """The number in a format with the name that Word gives it. An unknown format is decimal.

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
    """The letters of a number; behind z come aa, bb and cc."""
    times, place = divmod(number - 1, len(alphabet))
    return alphabet[place] * (times + 1) if number > 0 and times < _MOST_LETTERS else str(number)


def _ordinal(number: int) -> str:
    return f"{number}{'th' if number % 100 in (11, 12, 13) else _ORDINALS.get(number % 10, 'th')}"


def _from(words: str | tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


def _han(number: int) -> str:
    """The number in Chinese characters up to 99; further ones digit by digit."""
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
