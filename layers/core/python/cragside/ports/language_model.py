"""The model that LightRAG extracts entities and relations with."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class LanguageModel(Protocol):
    """Answers LightRAG's indexing prompts: entity extraction and the merging of descriptions."""

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        """The answer's text. Raises `ServiceUnavailable("extractor", ...)`."""
