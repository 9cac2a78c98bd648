"""The host that runs the models, as the proxy and the doctor use it."""

from typing import Protocol


class ModelHost(Protocol):
    """An Ollama host. Answers are remembered for a short while, so asking is cheap."""

    async def version(self) -> str:
        """The host's version. Raises `ServiceUnavailable("ollama", ...)`."""

    async def models(self) -> frozenset[str]:
        """Names of the models the host has. Raises `ServiceUnavailable("ollama", ...)`."""

    async def context_length(self, model: str) -> int | None:
        """The longest context the model can take, in tokens; None when the host does not say."""

    async def window(self, model: str) -> int | None:
        """Tokens that the host reads of a request that sets no `num_ctx`; None when the host does not say.

        May have the host load the model. Raises `ServiceUnavailable("ollama", ...)`.
        """

    async def check_chat(self, model: str) -> None:
        """Have a model write a few words. Raises `ServiceUnavailable("ollama", ...)` when it does not."""

    async def check_embedding(self, model: str) -> None:
        """Have a model embed a word. Raises `ServiceUnavailable("ollama", ...)` when it does not."""
