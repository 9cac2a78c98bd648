"""The `/rag` command at the start of a prompt."""

import re
from functools import lru_cache

DEFAULT_PREFIX = "/rag"


# Follows the command of a prompt that asks why.
WHY = "?"


@lru_cache(maxsize=16)
def _pattern(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{re.escape(prefix)}(?=\s|$)\s*", re.IGNORECASE)


def question_of(text: str, prefix: str = DEFAULT_PREFIX) -> str | None:
    """The text after the command, or None if the text does not begin with the command.

    The command may follow blanks, is case-insensitive, and must be a whole word (`/rag`, not `/ragtime`).
    """
    match = _pattern(prefix).match(text)
    return text[match.end() :].strip() if match else None


def asks_why(text: str, prefix: str = DEFAULT_PREFIX) -> str | None:
    """The text after the command with a question mark (`/rag?`), or None if the text does not begin with it."""
    return question_of(text, prefix + WHY)
