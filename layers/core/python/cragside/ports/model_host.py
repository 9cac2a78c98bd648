"""What the proxy and the doctor have to know of the host that runs the models."""

from typing import Protocol


class ModelHost(Protocol):
    """An Ollama host. Answers are remembered for a short while, so asking is cheap."""

    async def version(self) -> str:
        """The host's version. Raises `ServiceUnavailable("ollama", ...)`."""
        ...

    async def models(self) -> frozenset[str]:
        """Names of the models the host has. Raises `ServiceUnavailable("ollama", ...)`."""
        ...

    async def context_length(self, model: str) -> int | None:
        """The longest context the model can take, in tokens; None when the host does not say."""
        ...

    async def default_context(self, model: str) -> int:
        """`num_ctx` of a request that sets none, in tokens: the model's own parameter, or Ollama's default."""
        ...
