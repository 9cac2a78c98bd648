"""Numbers and codes that a question names, and whether a text has them in any of their usual forms."""

import re
from collections.abc import Iterator
from functools import lru_cache

from cragside.adapters.embedded.dates import without_dates
from cragside.adapters.embedded.words import words
from cragside.domain.dates import CARDINALS, ORDINALS

# Numbers that say how much to answer: "top 10", "give me 3", "in 20 words".
_BEFORE_A_COUNT = re.compile(r"top|best|first|last|name|list|give|me|show|write|i'm|nenne|gib|mir")
_ANSWER_PART = re.compile(
    r"(?:bullet|example|idea|line|paragraph|point|reason|sentence|step|thing|tip|way|word)s?"
    r"|beispiele|gründe|punkte|sätzen?|worten?"
)
# The number of zeros.
_SCALES = {"thousand": 3, "million": 6, "billion": 9}
_ROMANS = "ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx"
_ROMAN_NUMERALS = {word: str(number) for number, word in enumerate(_ROMANS.split(), 2)}
SPELT = {word: str(number) for word, number in (CARDINALS | ORDINALS).items()} | _ROMAN_NUMERALS
# A single letter is mostly no numeral.
_ROMAN = {word: number for word, number in _ROMAN_NUMERALS.items() if len(word) > 1}
_DIGITS = re.compile(r"[0-9]+")
_CODE = re.compile(r"([a-z]*)([0-9]+)([a-z]*)")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:[.,][0-9]{3})+")
_PLAIN = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:st|nd|rd|th)?")
_DAY_MONTH_YEAR = re.compile(r"\b([0-9]{1,2})[./]([0-9]{1,2})[./]([0-9]{4}|[0-9]{2})\b")
_YEARS = re.compile(
    r"\b([12][0-9]{3})(?: ?[-–—/]{1,2} ?| to | and | until | bis | und | à | et )([0-9]{4}|[0-9]{2})\b(?![-/])"
)
# "Jetty C", "vitamin D": a letter that tells one thing from the others. No initial, no unit, no "I".
_LETTER = re.compile(r"(?<=[^\W\d_] )([A-HJ-Z])(?![\w.'’&+#/-]| [A-ZÄÖÜ])")
_LETTERS = re.compile(r"\b([A-Z]) ?(?:[-–—]|to|bis|à) ?([A-Z])\b")
_LONGEST_PERIOD, _LONGEST_VERSION = 100, 4


@lru_cache(maxsize=1 << 14)
def plain(word: str) -> str:
    """A number in its plain form: 1,000 as 1000, 12th as 12, 007 as 7, and the Roman VII too. Other words unchanged."""
    if word in _ROMAN:
        return _ROMAN[word]
    found = _PLAIN.fullmatch(word)
    return _trimmed(found[1].replace(",", "")) if found else word


def named_numbers(question: str, *, counts: bool = False) -> list[frozenset[str]]:
    """The forms of each number, code and letter that a question names outside of its dates. One form of each is enough.

    A number that says how much to answer ("top 10", "in 3 sentences") does not count, unless `counts`: in a statement
    it is one like any other.
    """
    found = words(without_dates(question))
    named = []
    for before, word, after in zip(["", *found], found, [*found[1:], ""], strict=False):
        if word in _ROMAN:
            named.append(frozenset({_ROMAN[word]}))
        elif _has_digit(word) and (counts or not _is_a_count(before, word, after)):
            named.append(frozenset({*_forms(word), *_asked_forms(word, after)}))
    if not question.isupper():
        named += [frozenset({letter.lower()}) for letter in _LETTER.findall(question)]
    return named


def numbers_of(text: str) -> frozenset[str]:
    """All forms of all numbers, codes and single letters in a text, those in its dates too."""
    found = words(_DAY_MONTH_YEAR.sub(r"\1 \2 \3", text))
    forms = {word for word in found if len(word) == 1}
    for first, last in _LETTERS.findall(text):
        forms.update(map(chr, range(ord(first.lower()), ord(last.lower()) + 1)))
    for first, last in _YEARS.findall(text):
        end = int(first[: -len(last)] + last)
        forms.update(map(str, range(int(first), min(end, int(first) + _LONGEST_PERIOD) + 1)))
    for word, after, third in zip(found, [*found[1:], ""], [*found[2:], "", ""], strict=False):
        if word in SPELT:
            forms.add(SPELT[word])
        if _has_digit(word):
            forms.update(_forms(word))
            forms.update(_stated_forms(word, after))
        if word[0].isalpha() and word[1:].isdecimal():
            forms.add(word[0])  # jetty C has berth C12
        if _has_digit(word + after):
            # `K 200` and `K-200` are the code K200, and 555-1234 is a number.
            forms |= {word + after, word + after + third}
    return frozenset(forms)


def _is_a_count(before: str, word: str, after: str) -> bool:
    return bool(_ANSWER_PART.fullmatch(after) or (_BEFORE_A_COUNT.fullmatch(before) and len(word) <= 2))


def _forms(word: str) -> Iterator[str]:
    """A number or code as it is, and without thousands separators, leading zeros, `.0` and the end of an ordinal."""
    yield word
    if _THOUSANDS.fullmatch(word):
        yield word.replace(",", "").replace(".", "")
    elif not word.isalnum():
        whole, _, rest = word.replace(",", ".").replace(":", ".").partition(".")
        yield whole + "." + rest if rest.strip("0.") else _trimmed(whole)
    match = _CODE.fullmatch(word)
    if match and not match[1] and match[3] in ("", "st", "nd", "rd", "th"):
        yield _trimmed(match[2])
    if len(word) == 3 and word[0] != "0" and match and match[3] == "s":
        yield f"19{word}"


def _asked_forms(word: str, after: str) -> Iterator[str]:
    """Give what else answers a question that names this number: a year of a century, `12` for `12km`."""
    match = _CODE.match(word)
    if match and after in ("century", "centuries"):
        yield f"century {match[2]}"
    if match and not match[1] and len(match[3]) > 1:
        yield f"only {_trimmed(match[2])}"
    if word.isdecimal() and after in _SCALES:
        yield word + "0" * _SCALES[after]


def _stated_forms(word: str, after: str) -> Iterator[str]:
    """Give what else a number in a text states: the 200 of `K200`, the 12 of `12km`, and the 3.11 of version 3.11.4."""
    match = _CODE.fullmatch(word)
    if match and (not match[3] or len(match[3]) > 1):
        yield _trimmed(match[2])
    if word.isdecimal():
        yield f"only {_trimmed(word)}"
        if after in _SCALES:
            yield word + "0" * _SCALES[after]
        if len(word) == 4:
            yield from (word, f"{word[:3]}0s", f"century {int(word[:2]) + 1}")
    pieces = word.split(".", _LONGEST_VERSION)
    for end in range(1, min(len(pieces), _LONGEST_VERSION)):
        yield ".".join(pieces[:end])


def _trimmed(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _has_digit(word: str) -> bool:
    return _DIGITS.search(word) is not None
