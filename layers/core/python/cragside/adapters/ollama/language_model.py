"""LightRAG's extraction by a chat model of the host."""

from collections.abc import Mapping, Sequence

from cragside.adapters.ollama.host import OllamaHost
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.language_model import LanguageModel

# Room for about sixty extraction rows; a small model that loops is stopped here.
_MOST_TOKENS = 2048


class OllamaLanguageModel:
    """Implements `ports.LanguageModel`; `embedded` answers when the host has no model for it, not when it is silent.

    A silent host is an error, so that a document waits for its model instead of being extracted by a lesser one.
    """

    def __init__(self, host: OllamaHost, embedded: LanguageModel) -> None:
        self._host = host
        self._embedded = embedded

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        """The answer's text, in a context that holds prompt and answer.

        Raises `ServiceUnavailable("extractor", ...)`.
        """
        try:
            model = await self._host.choose(None)
            if model is not None:
                reply = await self._host.chat(model, prompt, system=system, history=history, max_tokens=_MOST_TOKENS)
                return reply.text
        except ServiceUnavailable as failure:
            raise ServiceUnavailable("extractor", failure.message) from failure
        return await self._embedded.complete(prompt, system=system, history=history)
