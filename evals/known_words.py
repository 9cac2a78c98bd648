"""Writes the filters of known words by which misspelt words are told from words that the documents lack.

    uv run --with pyspellchecker==0.9.1 python evals/known_words.py

The words are those of pyspellchecker's dictionaries (MIT).
"""

from importlib import resources
from pathlib import Path

from spellchecker import SpellChecker

from cragside.adapters.embedded.known_words import WordFilter
from cragside.adapters.embedded.words import Language, words

LANGUAGES: dict[Language, str] = {"english": "en", "german": "de", "french": "fr"}


def main() -> None:
    folder = Path(str(resources.files("cragside.adapters.embedded")))
    for language, code in LANGUAGES.items():
        listed = map(words, SpellChecker(language=code).word_frequency.words())
        known = {found[0] for found in listed if len(found) == 1}
        (folder / f"known_words.{language}").write_bytes(WordFilter.of(known).bits)
        print(f"{language}: {len(known):,} words")


if __name__ == "__main__":
    main()
