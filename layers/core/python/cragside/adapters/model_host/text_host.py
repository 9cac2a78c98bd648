"""A host whose models write and embed, as the adapters use it that grade, rewrite, extract and embed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from typing_extensions import override

from cragside.domain.errors import ServiceUnavailable
from cragside.ports.models import ModelHost

# A question is embedded with its names and its other key words.
QUESTION_TEXTS = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer without its thoughts. `complete` is False if the token limit cut it off."""

    text: str
    complete: bool


class TextHost(ModelHost, Protocol):
    """Chooses among the host's models and calls them. Every call may raise `ServiceUnavailable`."""

    @property
    def url(self) -> str:
        """The address, without credentials."""

    async def has(self, model: str) -> bool:
        """Whether the host has the model."""

    def lacking(self, model: str) -> ServiceUnavailable:
        """The error for a model that the host does not have, with what to do."""

    async def choose(self, requested: str | None) -> str | None:
        """The model to use, or None for the embedded models.

        Raises `ServiceUnavailable` if the host is silent or lacks the model of the settings.
        """

    async def chat(
        self,
        model: str,
        prompt: str,
        *,
        system: str | None = None,
        history: Sequence[Mapping[str, str]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int,
    ) -> Reply:
        """One answer at temperature 0, optionally with a JSON schema."""

    async def first_tokens(self, model: str, prompt: str, *, system: str) -> Mapping[str, float]:
        """The likeliest first tokens of an answer and their probabilities; none where the host does not tell them."""

    async def parameters(self, model: str) -> int | None:
        """The number of a model's parameters; None if the host does not say."""

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, which is cut if the model cannot read it whole.

        More texts than a question has wait for each other.
        """

    async def prepare(self) -> None:
        """Load the client, which takes a second, before the first request."""

    async def close(self) -> None:
        """Close the running loop's connections."""

    @override
    async def check_chat(self, model: str) -> None:
        await self.chat(model, "Answer with one word: ready?", max_tokens=8)

    @override
    async def check_embedding(self, model: str) -> None:
        await self.embed(model, ["ready"])
