"""The language of a text, by Compact Language Detector 3."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcld3 import NNetLanguageIdentifier

# Shorter texts give random results: "OK" would be Dutch.
_FEWEST_LETTERS = 12
_LONGEST_READ = 1000
# With less, a short English sentence may be Dutch: "A comet was seen over Durham." is to 0.81.
_LEAST_PROBABILITY = 0.9
# Codes of the detector that ISO 639-1 has replaced.
_REPLACED = {"iw": "he"}


def iso_639_1(text: str) -> str | None:
    """The code of a text's language, such as `de`; None if the text is too short or too mixed."""
    read = text[:_LONGEST_READ]
    if sum(map(str.isalpha, read)) < _FEWEST_LETTERS:
        return None
    found = _identifier().FindLanguage(read.encode("utf-8", "replace").decode())
    code = found.language.partition("-")[0]  # `zh-Latn` is Chinese in Latin letters
    return _REPLACED.get(code, code) if found.probability >= _LEAST_PROBABILITY and len(code) == 2 else None


@cache
def _identifier() -> "NNetLanguageIdentifier":
    from gcld3 import NNetLanguageIdentifier

    return NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=4 * _LONGEST_READ)
