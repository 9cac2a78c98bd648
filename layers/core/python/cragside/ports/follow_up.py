"""Makes follow-up questions stand alone."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.conversation import ChatTurn


class FollowUpReader(Protocol):
    """Completes a question from the conversation before it."""

    async def standalone(self, question: str, turns: Sequence[ChatTurn], *, model: str | None) -> str:
        """A question that means the same without the turns, which are given oldest first.

        A question that stands alone already is returned unchanged. `model` is the chat model that the request names.
        Raises `ServiceUnavailable("conversation", ...)`.
        """
