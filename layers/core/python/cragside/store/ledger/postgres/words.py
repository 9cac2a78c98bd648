"""Words of a text for full-text search, cut as SQLite's FTS5 would (ADR 2)."""

import json
import re
import unicodedata
from collections import Counter

_WORD = re.compile(r"\w+")
# A longer word cannot be one, and the words of a passage have to fit into a megabyte.
_LONGEST = 200


def words_in(text: str) -> list[str]:
    """Return the words of a text in their order, in lower case and without accents."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return [word[:_LONGEST] for word in _WORD.findall(plain)]


def counted(text: str, store: int) -> tuple[str, str, int]:
    """Return a text's words as a `tsvector` for a store, the counts of repeated ones as JSON, and its length."""
    words = words_in(text)
    times = Counter(words)
    several = {word: count for word, count in times.items() if count > 1}
    return " ".join(quoted(word, store) for word in times), json.dumps(several, ensure_ascii=False), len(words)


def quoted(word: str, store: int) -> str:
    """Return a word as it stands in a store's `tsvector`, or in a `tsquery` for it."""
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{store}:{escaped}'"
