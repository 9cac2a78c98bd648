"""The host that runs the models, as the proxy and the doctor use it."""

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

    async def check_chat(self, model: str) -> None:
        """Have a model write a few words. Raises `ServiceUnavailable("ollama", ...)` if it fails."""

    async def check_embedding(self, model: str) -> None:
        """Have a model embed a word. Raises `ServiceUnavailable("ollama", ...)` if it fails."""
