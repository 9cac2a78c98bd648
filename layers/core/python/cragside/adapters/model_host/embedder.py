"""Embeddings by a model of the host."""

import asyncio
from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from cragside.adapters.model_host.text_host import TextHost, failures_of
from cragside.domain.errors import ConfigurationError, InputRefused
from cragside.ports.embedder import Embedder, Vectors

_BATCH = 32


class HostedEmbedder(Embedder):
    """Embeds with a model of the host. It asks the host at the first embedding, not before.

    Texts that are longer than the model's context are cut. Queries and passages are embedded alike: the port does
    not say which is which, so both lack the task prefixes ("search_query: ") that models such as nomic-embed-text were
    trained with.
    """

    def __init__(self, host: TextHost, model: str) -> None:
        self._host = host
        self._model = model
        self._dimensions: int | None = None

    @property
    @override
    def name(self) -> str:
        return model_name(self._model)

    @property
    @override
    def dimensions(self) -> int | None:
        return self._dimensions

    @override
    async def embed(self, texts: Sequence[str]) -> Vectors:
        dimensions = self._dimensions or await self._asked_first()
        if not texts:
            return np.zeros((0, dimensions), dtype=np.float32)
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        return np.concatenate(await asyncio.gather(*(self._batch(batch) for batch in batches)))

    async def _asked_first(self) -> int:
        """Return the length of the model's vectors. Raises `ServiceUnavailable` if the host lacks the model."""
        with failures_of("embedder"):  # also where the host does not take this word: no document is to blame
            if not await self._host.has(self._model):
                raise self._host.lacking(self._model)
            rows = await self._host.embed(self._model, ["dimensions"])
        self._dimensions = self._unit(rows).shape[1]
        return self._dimensions

    async def _batch(self, texts: Sequence[str]) -> Vectors:
        # For a blank text, which has no tokens, the host answers an error or an empty vector.
        sent = [text if text.strip() else "." for text in texts]
        with failures_of("embedder", refusals=True):
            rows = await self._host.embed(self._model, sent)
        return self._unit(rows)

    def _unit(self, rows: list[list[float]]) -> Vectors:
        try:
            vectors = np.asarray(rows, dtype=np.float32)
        except (ValueError, TypeError) as error:
            raise self._unfit("vectors of unequal length, or what is no vector") from error
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise self._unfit("vectors without numbers")
        if vectors.shape[1] != (self._dimensions or vectors.shape[1]):
            found = f"vectors of {vectors.shape[1]} dimensions and no longer of {self._dimensions}"
            raise self._unfit(f"{found}: another model has this name now, or the host cuts its vectors")
        if not np.all(np.isfinite(vectors)):
            raise self._unfit("a vector with a value that is no number (NaN)")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
            raise self._unfit("a vector without a direction")
        unit: Vectors = vectors / lengths
        return unit

    def _unfit(self, answer: str) -> InputRefused:
        return InputRefused("embedder", f"{self._model} answered {answer}")


class HostlessEmbedder(Embedder):
    """Stands for a host's model where no host is configured. Its stores can be read, but not searched or extended."""

    dimensions = None
    name = ""

    def __init__(self, model: str) -> None:
        self.name = model_name(model)

    @override
    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise ConfigurationError(
            f"The embedding model {self.name} needs a model host. Set OLLAMA_BASE_URL or RAG_MODEL_HOST, or rebuild "
            "the store with RAG_EMBEDDING_MODEL=embedded and cragside reindex.",
            model=self.name,
        )


def model_name(model: str) -> str:
    """Return the name without the tag `latest`, which names the same model."""
    return model.removesuffix(":latest")
