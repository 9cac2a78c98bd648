"""Embeddings by a model of the host."""

import asyncio
from collections.abc import Sequence
from typing import Self

import numpy as np

from cragside.adapters.ollama.host import OllamaHost
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.embedder import Vectors

_BATCH = 32


class OllamaEmbedder:
    """Implements `ports.Embedder` on `/api/embed`; made by `open`.

    Queries and passages are embedded alike: the port does not say which is which, so the task prefixes that models such
    as nomic-embed-text were trained with ("search_query: ") are left out on both sides.
    """

    def __init__(self, host: OllamaHost, model: str, dimensions: int) -> None:
        self._host = host
        self._model = model
        self._dimensions = dimensions

    @classmethod
    async def open(cls, host: OllamaHost, model: str) -> Self:
        """An embedder whose dimensions are the model's. Raises `ServiceUnavailable("embedder", ...)`."""
        embedder = cls(host, model, 0)
        try:
            if not await host.has(model):
                raise ServiceUnavailable("embedder", f"{host.url} does not have {model}: run `ollama pull {model}`")
        except ServiceUnavailable as failure:
            raise ServiceUnavailable("embedder", failure.message) from failure
        embedder._dimensions = (await embedder._batch(["dimensions"])).shape[1]
        return embedder

    @property
    def name(self) -> str:
        """The model's name, without the tag `latest`: with and without it is the same model."""
        return self._model.removesuffix(":latest")

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (len(texts), dimensions). Raises `ServiceUnavailable("embedder", ...)`.

        Texts longer than the model's context are cut by the host.
        """
        if not texts:
            return np.zeros((0, self._dimensions), dtype=np.float32)
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        return np.concatenate(await asyncio.gather(*(self._batch(batch) for batch in batches)))

    async def _batch(self, texts: Sequence[str]) -> Vectors:
        try:
            # A blank text has no tokens to embed, which the host answers with an error or an empty vector.
            rows = await self._host.embed(self._model, [text if text.strip() else "." for text in texts])
        except ServiceUnavailable as failure:
            raise ServiceUnavailable("embedder", failure.message) from failure
        return self._unit(rows)

    def _unit(self, rows: list[list[float]]) -> Vectors:
        try:
            vectors = np.asarray(rows, dtype=np.float32)
        except (ValueError, TypeError) as error:
            raise ServiceUnavailable("embedder", f"{self._model} answered vectors of unequal length") from error
        if vectors.ndim != 2 or vectors.shape[1] == 0 or vectors.shape[1] != (self._dimensions or vectors.shape[1]):
            raise ServiceUnavailable("embedder", f"{self._model} no longer answers {self._dimensions} dimensions")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
            raise ServiceUnavailable("embedder", f"{self._model} answered vectors without a direction")
        unit: Vectors = vectors / lengths
        return unit
