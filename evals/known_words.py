"""Writes the filters of known words by which misspelt words are told from words that the documents lack.

    uv run --with pyspellchecker==0.9.1 python evals/known_words.py

The words are those of pyspellchecker's dictionaries (MIT).
"""

from importlib import resources
from pathlib import Path

from spellchecker import SpellChecker

from cragside.adapters.embedded.spelling import BITS, places_of
from cragside.adapters.embedded.words import Language, words

LANGUAGES: dict[Language, str] = {"english": "en", "german": "de", "french": "fr"}


def filter_of(known: set[str]) -> bytes:
    """The bits of a filter that has these words."""
    bits = bytearray(len(known) * BITS // 8 + 1)
    for word in known:
        for place in places_of(word, len(bits)):
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def main() -> None:
    folder = Path(str(resources.files("cragside.adapters.embedded")))
    for language, code in LANGUAGES.items():
        listed = map(words, SpellChecker(language=code).word_frequency.words())
        known = {found[0] for found in listed if len(found) == 1}
        (folder / f"known_words.{language}").write_bytes(filter_of(known))
        print(f"{language}: {len(known):,} words")


if __name__ == "__main__":
    main()
