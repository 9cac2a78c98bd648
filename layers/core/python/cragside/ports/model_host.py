"""The host that runs the models, as the proxy and the doctor use it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from cragside.domain.model_windows import ModelWindows

# The name of the models that need no host.
EMBEDDED = "embedded"


class ModelHost(Protocol):
    """An Ollama, or a host with OpenAI's API. Answers are cached for a short time, so calls are cheap.

    Failures are of the component "ollama" or "model_host". `windows` are those that its models keep.
    """

    windows: ModelWindows

    async def version(self) -> str:
        """The host's version, or what else it says of itself. Raises `ServiceUnavailable`."""

    async def models(self) -> frozenset[str]:
        """Names of the models the host has. Raises `ServiceUnavailable`."""

    async def context_length(self, model: str) -> int | None:
        """The model's longest context in tokens; None if the host does not say."""

    async def window(self, model: str, *, load: bool = True) -> int | None:
        """The context in tokens of a request without `num_ctx`; None if the host does not say.

        The host may have to load the model. Without `load` it does not: then it is the window that the model keeps or
        is loaded with, 0 if neither. Raises `ServiceUnavailable`.
        """

    async def writer(self, wanted: str | None) -> str:
        """The model that writes answers: the wanted one, else the configured one, else one that the host has.

        Raises `ServiceUnavailable` with what to do when there is none.
        """

    def write(self, model: str, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> AsyncIterator[str]:
        """A model's answer to a conversation, piece by piece as it is written, with the model's own settings.

        An answer that reaches `max_tokens` ends there. Raises `ServiceUnavailable`.
        """

    async def check_chat(self, model: str) -> None:
        """Have a model write a few words. Raises `ServiceUnavailable` if it fails."""

    async def check_embedding(self, model: str) -> None:
        """Have a model embed a word. Raises `ServiceUnavailable` if it fails."""
