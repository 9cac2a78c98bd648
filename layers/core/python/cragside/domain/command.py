"""The `/rag` command at the start of a prompt."""

import re
from functools import lru_cache

DEFAULT_PREFIX = "/rag"


@lru_cache(maxsize=16)
def _pattern(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{re.escape(prefix)}(?=\s|$)\s*", re.IGNORECASE)


def question_of(text: str, prefix: str = DEFAULT_PREFIX) -> str | None:
    """The text behind the command, or None when the text does not begin with it.

    The prefix counts as a word of its own (`/rag`, not `/ragtime`), in any case, after any blanks.
    """
    match = _pattern(prefix).match(text)
    return text[match.end() :].strip() if match else None
