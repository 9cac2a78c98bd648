"""What full-text search sees of a text, as SQLite's FTS5 would cut it (ADR 2)."""

import re
import unicodedata

_WORD = re.compile(r"\w+")
# PostgreSQL keeps no more positions of a word, and no later ones.
_MOST_TIMES, _LAST = 255, 16_383
# A longer word cannot be one, and the words of a passage have to fit into a megabyte.
_LONGEST = 200


def words_in(text: str) -> list[str]:
    """The words of a text in their order, in lower case and without accents."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return [word[:_LONGEST] for word in _WORD.findall(plain)]


def vector_of_words(text: str) -> tuple[str, int]:
    """A `tsvector` as text, and how many words the text has."""
    words = words_in(text)
    positions: dict[str, list[int]] = {}
    for number, word in enumerate(words, start=1):
        positions.setdefault(word, []).append(min(number, _LAST))
    told = (f"{quoted(word)}:{','.join(map(str, places[:_MOST_TIMES]))}" for word, places in positions.items())
    return " ".join(told), len(words)


def quoted(word: str) -> str:
    """A word as it stands in a `tsvector` or a `tsquery`."""
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
