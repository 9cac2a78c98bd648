"""Judges passages with a chat model, one at a time."""

from typing import Protocol

from cragside.domain.document import Document


class PassageJudge(Protocol):
    """Asks a chat model if a passage answers a question. The model sees no other passage, and reads all of this one."""

    async def ready(self, requested: str | None) -> str | None:
        """The chat model that judges, once it is loaded; None if there is none, or only one that is too small,
        or that lately gave no judgement.

        `requested` is the model of the request. Raises `ServiceUnavailable("grader", ...)`.
        """

    def seconds(self, model: str) -> float:
        """The seconds that the model needed for its last judgement; 0.0 if that is not known, or long ago."""

    async def probability(self, model: str, question: str, passage: Document) -> float:
        """The probability (0..1) that the passage answers the question.

        Raises `ServiceUnavailable("grader", ...)`.
        """

    def try_again(self, model: str, question: str, passage: Document) -> None:
        """Judge a passage beside the request, if that was not tried just now: a slow model may be faster again."""
