"""How a question is read in the words of the documents."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadWord:
    """Words as a question writes them, and as the documents do."""

    asked: str
    read: str

    @property
    def in_lower_case(self) -> list[str]:
        """The words that are read."""
        return self.read.lower().split()


@dataclass(frozen=True, slots=True)
class Reading:
    """A question in words that the documents have: `text` is searched for and graded.

    `words` says what was read otherwise than it is written.
    """

    text: str
    words: Sequence[ReadWord] = ()
