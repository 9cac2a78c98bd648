"""What a ledger keeps beside its documents: cached vectors, recorded queries, and sizes."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from typing_extensions import override

from cragside.adapters.lightrag.ledger.entries import text_hash
from cragside.adapters.lightrag.ledger.sqlite.part_writes import PartWrites
from cragside.adapters.lightrag.storable import storable
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors
from cragside.ports.workspaces import KnowledgeStatus

_KEEP = "INSERT OR REPLACE INTO embedding (model, text_hash, document_id, vector) VALUES (?, ?, ?, ?)"
_TRIM = "DELETE FROM embedding WHERE seq <= (SELECT max(seq) FROM embedding) - ?"


class Notes(PartWrites):
    """Reads and writes the embedding cache and recorded queries."""

    @override
    async def dimensions(self) -> int | None:
        stored = self._database.one("SELECT length(vector) / 4 FROM vector LIMIT 1")
        return int(stored[0]) if stored else None

    @override
    async def kept_vectors(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        by_hash = {text_hash(text): text for text in texts}
        rows = self._database.within(
            "SELECT text_hash, vector FROM embedding WHERE model = ? AND text_hash IN ({})", by_hash, [model]
        )
        return {by_hash[key]: np.frombuffer(vector, np.float32) for key, vector in rows}

    @override
    async def keep_vectors(
        self, model: str, document_id: str, texts: Sequence[str], vectors: Vectors, *, most: int
    ) -> None:
        rows = zip(texts, vectors, strict=True)
        with self._transaction() as connection:
            connection.executemany(
                _KEEP,
                [(model, text_hash(text), document_id, vector.astype(np.float32).tobytes()) for text, vector in rows],
            )
            connection.execute(_TRIM, (most,))

    @override
    async def save_query(self, query: Query, *, most: int) -> None:
        row = (storable(query.id), storable(query.text), query.created_at.isoformat())
        self._database.write_at_once(
            ("INSERT OR REPLACE INTO query VALUES (?, ?, ?)", row),
            ("DELETE FROM query WHERE rowid <= (SELECT max(rowid) FROM query) - ?", (most,)),
        )

    @override
    async def query(self, query_id: str) -> Query | None:
        row = self._database.one("SELECT id, text, created_at FROM query WHERE id = ?", (storable(query_id),))
        return None if row is None else Query(row[0], row[1], self._workspace, datetime.fromisoformat(row[2]))

    @override
    async def status(self, model: str) -> KnowledgeStatus:
        with self._database.snapshot():
            return KnowledgeStatus(
                workspace=self._workspace,
                embedding_model=model,
                documents=self._count("document WHERE state = 'current'"),
                passages=self._count("passage"),
                entities=self._count("node"),
                relations=self._count("edge"),
                by_status=self._statuses(),
                size=_size_of(self._database.path),
            )

    def _count(self, rows: str) -> int:
        return int(self._database.one(f"SELECT count(*) FROM {rows}")[0])


def _size_of(path: Path) -> int:
    """The bytes of a store's file, with those beside it that wait to be written into it."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
