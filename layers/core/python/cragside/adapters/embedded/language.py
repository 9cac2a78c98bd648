"""The language of a text, by py3langid."""

from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Shorter texts give random results: "OK" would be Serbian.
_FEWEST_LETTERS = 12
# A guess below this probability is useless for a filter.
_LEAST_PROBABILITY = 0.5
_LONGEST_READ = 1000
_loading = Lock()


def iso_639_1(text: str) -> str | None:
    """The code of a text's language, such as `de`; None if the text is too short or too mixed.

    The first call takes a second: it loads the model.
    """
    read = text[:_LONGEST_READ]
    if sum(map(str.isalpha, read)) < _FEWEST_LETTERS:
        return None
    code, probability = _identifier().classify(read)
    return str(code) if probability >= _LEAST_PROBABILITY and len(code) == 2 else None


def _identifier() -> "LanguageIdentifier":
    # Several threads may ask first: without the lock, each would load a model of its own.
    with _loading:
        return _load()


@cache
def _load() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
