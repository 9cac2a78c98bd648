"""Reads what a question asks for."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.document import Document
from cragside.domain.several import Asked


class QuestionParts(Protocol):
    """Finds the parts of a question that asks for several things."""

    def read(self, question: str) -> Asked:
        """The parts of a question, two to `MOST_PARTS` or none, and whether it asks for a list."""

    def unnamed(self, asked: Asked, evidence: Sequence[Document]) -> list[str]:
        """The things that parts of the question name and no passage does."""
