"""The host that runs the models, as the proxy and the doctor use it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol


class ModelHost(Protocol):
    """An Ollama host. Answers are cached for a short time, so calls are cheap."""

    async def version(self) -> str:
        """The host's version. Raises `ServiceUnavailable("ollama", ...)`."""

    async def models(self) -> frozenset[str]:
        """Names of the models the host has. Raises `ServiceUnavailable("ollama", ...)`."""

    async def context_length(self, model: str) -> int | None:
        """The model's longest context in tokens; None if the host does not say."""

    async def window(self, model: str) -> int | None:
        """The context in tokens of a request without `num_ctx`; None if the host does not say.

        The host may have to load the model. Raises `ServiceUnavailable("ollama", ...)`.
        """

    async def writer(self, wanted: str | None) -> str:
        """The model that writes answers: the wanted one, else the configured one, else one that the host has.

        Raises `ServiceUnavailable("ollama", ...)` with what to do when there is none.
        """

    def write(self, model: str, messages: Sequence[Mapping[str, str]]) -> AsyncIterator[str]:
        """A model's answer to a conversation, piece by piece as it is written, with the model's own settings.

        Raises `ServiceUnavailable("ollama", ...)`.
        """

    async def check_chat(self, model: str) -> None:
        """Have a model write a few words. Raises `ServiceUnavailable("ollama", ...)` if it fails."""

    async def check_embedding(self, model: str) -> None:
        """Have a model embed a word. Raises `ServiceUnavailable("ollama", ...)` if it fails."""
