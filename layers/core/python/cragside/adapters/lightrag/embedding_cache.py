"""Vectors that a model has made already, kept in the store beside the documents they were made for."""

import hashlib
from collections.abc import Sequence

import numpy as np

from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.embedder import Embedder, Vectors

# 64 MB, which is 21,000 passages at 768 dimensions. What is searchable has its vector in the store anyway; the cache is
# for what is indexed once more (a part that failed half way, a document that is begun anew), mostly the latest.
MAX_BYTES = 64 * 1024 * 1024
# Asked of the model at a time; each batch is kept before the next one is asked for.
_BATCH = 32
_KEEP = "INSERT OR REPLACE INTO embedding (model, text_hash, document_id, vector) VALUES (?, ?, ?, ?)"
_TRIM = "DELETE FROM embedding WHERE seq <= (SELECT max(seq) FROM embedding) - ?"


class CachedEmbedder:
    """An `Embedder` that asks the model only for texts whose vectors it does not have.

    Vectors are kept for the passages of documents (`keep`), not for what is embedded once: questions, and entities,
    whose descriptions change with each merge. Those of a document are dropped when it is replaced or deleted; triggers
    of the store see to it. To write and read a vector takes 0.02 ms. Of a passage of 1,000 tokens an Ollama host makes
    one in 20 ms and more, and WordLlama in 1 ms, so both are cached.
    """

    def __init__(self, embedder: Embedder, database: Database) -> None:
        self._embedder = embedder
        self._database = database

    @property
    def name(self) -> str:
        """The model's."""
        return self._embedder.name

    @property
    def dimensions(self) -> int | None:
        """Those of the store's vectors, or of the model while there are none; None while neither is known."""
        stored = self._database.one("SELECT length(vector) / 4 FROM vector LIMIT 1")
        return int(stored[0]) if stored else self._embedder.dimensions

    async def prepare(self) -> None:
        """Have a model that has not been asked yet loaded. Raises `ServiceUnavailable` and `ConfigurationError`."""
        if self._embedder.dimensions is None:
            await self._embedder.embed([])

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (len(texts), dimensions).

        Raises `ServiceUnavailable` and `ConfigurationError`, if the model is needed.
        """
        known = await self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not known:
            return await self._asked(texts)
        if missing:
            known |= dict(zip(missing, await self._asked(missing), strict=True))
        return np.stack([known[text] for text in texts])

    async def keep(self, document_id: str, texts: Sequence[str]) -> None:
        """Make sure that the vectors of a document's passages are kept, as far as there is room.

        What is done survives a failure of the model, and a kill. Raises as `embed` does.
        """
        known = await self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            self._write(document_id, batch, await self._asked(batch))

    async def _asked(self, texts: Sequence[str]) -> Vectors:
        """The model's vectors, which are as long as those of the store."""
        wanted = self.dimensions
        vectors = await self._embedder.embed(texts)
        if vectors.shape[1] != (wanted or vectors.shape[1]):
            raise ServiceUnavailable(
                "embedder",
                f"{self.name} answers vectors of {vectors.shape[1]} dimensions, and the store was built with vectors "
                f"of {wanted}: another model has this name now. Build the store anew: cragside reindex",
            )
        return vectors

    async def _known(self, texts: Sequence[str]) -> dict[str, Vectors]:
        if (dimensions := self.dimensions) is None:
            await self.prepare()
            dimensions = self.dimensions
        by_hash = {_hash(text): text for text in texts}
        rows = self._database.within(
            "SELECT text_hash, vector FROM embedding WHERE model = ? AND text_hash IN ({})", by_hash, [self.name]
        )
        found = ((by_hash[key], np.frombuffer(vector, np.float32)) for key, vector in rows)
        # A host may have another model under the same name by now.
        return {text: vector for text, vector in found if len(vector) == dimensions}

    def _write(self, document_id: str, texts: Sequence[str], vectors: Vectors) -> None:
        rows = zip(texts, vectors, strict=True)
        with self._database.transaction() as connection:
            connection.executemany(
                _KEEP,
                [(self.name, _hash(text), document_id, vector.astype(np.float32).tobytes()) for text, vector in rows],
            )
            connection.execute(_TRIM, (MAX_BYTES // (4 * vectors.shape[1]),))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
