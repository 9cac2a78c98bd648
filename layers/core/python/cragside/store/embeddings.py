"""Keeps vectors that a model has made in the store, beside the documents they were made for."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from cragside.domain.errors import ServiceUnavailable
from cragside.ports.embedder import Embedder, Vectors
from cragside.store.ledger import Ledger

# 64 MB, which is 21,000 passages at 768 dimensions. What is searchable has its vector in the store anyway; the cache is
# for what is indexed once more (a part that failed half way, a document that is begun anew), mostly the latest.
MAX_BYTES = 64 * 1024 * 1024
# Asked of the model at a time; each batch is kept before the next one is asked for.
_BATCH = 32


class CachedEmbedder:
    """Asks the model only for texts whose vectors it does not have.

    Vectors are kept for the passages of documents (`keep`), not for what is embedded once: questions, and entities,
    whose descriptions change with each merge. Those of a document are dropped when it is replaced or deleted; the
    ledger sees to it. To write and read a vector takes 0.02 ms. Of a passage of 1,000 tokens an Ollama host makes
    one in 20 ms and more, and WordLlama in 1 ms, so both are cached.
    """

    def __init__(self, embedder: Embedder, ledger: Ledger, patience: float | None = None) -> None:
        self._embedder = embedder
        self._ledger = ledger
        self._patience = patience
        self._made: dict[str, Vectors] = {}
        self._stored_dimensions: int | None = None

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._embedder.name

    @property
    def dimensions(self) -> int | None:
        """Return the length of the store's vectors, else of the model's; None while neither is known."""
        return self._stored_dimensions or self._embedder.dimensions

    @property
    def in_process(self) -> bool:
        """Tell if the model runs in this process."""
        return self._embedder.in_process

    async def prepare(self) -> None:
        """Have a model that has not been asked yet loaded. Raises `ServiceUnavailable` and `ConfigurationError`."""
        if self._embedder.dimensions is None:
            await self._embedder.embed([])

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape (len(texts), dimensions).

        Raises `ServiceUnavailable` and `ConfigurationError`, if the model is needed.
        """
        known = await self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not known:
            return await self._asked(texts)
        if missing:
            known |= dict(zip(missing, await self._asked(missing), strict=True))
        return np.stack([known[text] for text in texts])

    async def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as `embed` does, which are embedded once and never kept."""
        if texts and all(text in self._made for text in texts):
            return np.stack([self._made[text] for text in texts])
        return await self._asked(texts)

    async def embed_in_time(self, texts: Sequence[str]) -> Vectors:
        """Embed questions for a search that can go on without them.

        Raises `ServiceUnavailable` after `patience` seconds, too.
        """
        try:
            async with asyncio.timeout(self._patience):
                return await self.embed_questions(texts)
        except TimeoutError as error:
            message = f"No vector of the question within {self._patience:.1f} s."
            raise ServiceUnavailable("embedder", message) from error

    @contextmanager
    def made(self, vectors: Mapping[str, Vectors]) -> Iterator[None]:
        """Have these vectors given to any task that asks for those of these questions in this block."""
        self._made.update(vectors)
        try:
            yield
        finally:
            for text in vectors:
                self._made.pop(text, None)

    async def keep(self, document_id: str, texts: Sequence[str]) -> None:
        """Make sure that the vectors of a document's passages are kept, as far as there is room.

        What is done survives a failure of the model, and a kill. Raises as `embed` does.
        """
        known = await self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            vectors = await self._asked(batch)
            most = MAX_BYTES // (4 * vectors.shape[1])
            await self._ledger.keep_vectors(self.name, document_id, batch, vectors, most=most)

    async def _asked(self, texts: Sequence[str]) -> Vectors:
        """Ask the model for vectors, which have to be as long as those of the store."""
        wanted = await self._wanted_dimensions()
        vectors = await self._embedder.embed(texts)
        if vectors.shape[1] != (wanted or vectors.shape[1]):
            raise ServiceUnavailable(
                "embedder",
                f"{self.name} answers vectors of {vectors.shape[1]} dimensions, and the store was built with vectors "
                f"of {wanted}: another model has this name now. Build the store anew: cragside reindex",
            )
        return vectors

    async def _wanted_dimensions(self) -> int | None:
        if self._stored_dimensions is None:
            self._stored_dimensions = await self._ledger.driver.stored_dimensions()
        return self.dimensions

    async def _known(self, texts: Sequence[str]) -> dict[str, Vectors]:
        if (dimensions := await self._wanted_dimensions()) is None:
            await self.prepare()
            dimensions = self.dimensions
        found = await self._ledger.kept_vectors(self.name, texts)
        # A host may have another model under the same name by now.
        return {text: vector for text, vector in found.items() if len(vector) == dimensions}
