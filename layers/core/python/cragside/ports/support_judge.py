"""Judges whether a passage supports a sentence that cites it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Support:
    """How much of a sentence a passage has (0..1), and whether that suffices."""

    score: float
    supported: bool


class SupportJudge(Protocol):
    """Compares a sentence with a passage. It takes milliseconds, and may run in any thread."""

    def judge(self, sentence: str, *, title: str, text: str) -> Support:
        """Whether the passage, title included, supports the sentence."""
