"""LightRAG's vectors in PostgreSQL, with full-text search beside the vectors of passages."""

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from cachetools import LRUCache
from typing_extensions import override

from cragside.domain.query import Filter
from cragside.ports.embedder import Vectors
from cragside.store.driver import Row, VectorChange
from cragside.store.postgres.graph import PostgresGraph
from cragside.store.postgres.lightrag_tables import PGVectorStorage, SharedDatabase, make_vector_tables, vector_table
from cragside.store.postgres.searching import (
    HELD,
    Values,
    find,
    held_words,
    make_near_indexes_of,
    near_passages,
    near_rows,
    with_words,
)
from cragside.store.postgres.store import PostgresStore
from cragside.store.ranking import words_in
from cragside.store.storages import Expansion, Found, Search, VectorStorage

PASSAGES = "chunks"
_MOST_HELD = 5_000
_TEXTS = "SELECT id, text FROM crag.passage WHERE store = $1 AND id = ANY($2)"


@dataclass
class PostgresVectors(PGVectorStorage, VectorStorage):
    """A table of LightRAG's for each namespace and embedding model. Passages are searched in the ledger's own table."""

    @override
    async def initialize(self) -> None:
        self._store = PostgresStore.of_storage(self.global_config)
        self.workspace = self._store.key
        self.db = SharedDatabase(self._store.database)
        self._asked_text = self.global_config["vector_db_storage_cls_kwargs"].get("asked_text", str.lower)
        self._base = self.legacy_table_name
        self._dimensions = self._store.dimensions
        # Words that were there once: to ask for those of each question would be a round trip.
        self._held: LRUCache[str, int] = LRUCache(_MOST_HELD)
        self._store.vectors.add(self.namespace, self)

    @override
    async def finalize(self) -> None:
        self._store.vectors.remove(self.namespace, self)
        self._store.release()

    @override
    async def query(self, query: str, top_k: int, query_embedding: list[float] | None = None) -> list[dict[str, Any]]:
        if query_embedding is None:
            query_embedding = (await self.embedding_func([query], context="query"))[0]
        vector = np.asarray(query_embedding, np.float32)
        if self.namespace == PASSAGES:
            return await self._passages(query, top_k, vector)
        if await self._table() is None:
            return []
        values = Values(self._store.number)
        rows = await self._store.all(self.near_rows(values, vector, top_k), *values.values[1:])
        return [dict(row) for row in rows]

    finds_store = True

    @override
    async def find(self, search: Search, *beside: Any) -> Found:
        entities, relations, graph = beside
        if await entities._table() is None or await relations._table() is None:
            return Found([], [], [], Expansion(set(), {}, {}, {}, set(), {}))
        tables = graph if isinstance(graph, PostgresGraph) else None
        return await find(self._store, search, self, entities, relations, tables)

    @override
    async def nearest(
        self, question: Vectors, *, least: float, wanted: Filter, size: int
    ) -> AsyncIterator[list[tuple[str, float]]]:
        values = Values(self._store.number)
        sql = near_passages(values, np.asarray(question, np.float32), least, None)
        rows = await self._store.all(sql, *values.values[1:])
        for start in range(0, len(rows), size):
            yield [(row[1], row[2]) for row in rows[start : start + size]]

    @override
    async def worded(self, query: str, limit: int) -> list[str]:
        values = Values(self._store.number)
        sql = with_words(values, self._asked_text(query), limit)
        return [row[1] for row in await self._store.all(sql, *values.values[1:])] if sql else []

    @override
    async def held(self, terms: Collection[str]) -> dict[str, int]:
        words = {term: word for term in terms for word in words_in(term)[:1]}
        if lacking := [word for word in words.values() if word not in self._held]:
            rows = await self._store.all(HELD.format(store="$1", words="$2"), lacking)
            self.remember_held({row[0]: row[1] for row in rows})
        return {term: self._held[word] for term, word in words.items() if word in self._held}

    def remember_held(self, counts: Mapping[str, int]) -> None:
        """Keep how many passages have each of some words, as a search has told."""
        self._held.update(counts)

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        if not ids or await self._table() is None:
            return [None] * len(ids)
        rows: Any = await self.db.query(
            f"SELECT content, {self._columns()} FROM {self.table_name} AS stored"  # noqa: S608 (our own column names)
            " WHERE workspace = $1 AND id = ANY($2)",
            [self.workspace, ids],
            multirows=True,
        )
        found = {row["id"]: row for row in rows}
        return [found.get(key) for key in ids]

    @override
    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, Vectors]:
        if self.namespace == PASSAGES:
            sql = "SELECT id, vector::float4[] FROM crag.searched WHERE store = $1 AND id = ANY($2)"
            rows = await self._store.all(sql, ids)
        elif await self._table() is None:
            return {}
        else:
            rows = await self._store.database.all(
                f"SELECT id, content_vector::float4[] FROM {self.table_name} WHERE workspace = $1 AND id = ANY($2)",  # noqa: S608
                self.workspace,
                ids,
            )
        return {row[0]: np.asarray(row[1], np.float32) for row in rows}

    async def write(self, change: VectorChange) -> None:
        """Write rows with their vectors."""
        if await self._table() is None:
            return
        if change.removed:
            await self.db.execute(
                f"DELETE FROM {self.table_name} WHERE workspace = $1 AND id = ANY($2)",  # noqa: S608
                {"workspace": self.workspace, "ids": list(change.removed)},
            )
        now = datetime.now(UTC).replace(tzinfo=None)
        if change.updated:
            await self._update(change.updated, now)
        if change.written:
            await self._insert(change.written, change.vectors, now)

    async def _update(self, rows: Mapping[str, Row], now: datetime) -> None:
        """Write what a row says; its text and its vector stay."""
        ends = {"source_id": "src_id", "target_id": "tgt_id"}
        fields = {"entity_name": "entity_name"} if self.namespace == "entities" else ends
        columns = ("chunk_ids", "file_path", "update_time", *fields)
        changes = ", ".join(f"{column} = ${number}" for number, column in enumerate(columns, start=3))
        values = [
            (self.workspace, key, _sources(row), row.get("file_path"), now, *map(row.get, fields.values()))
            for key, row in rows.items()
        ]
        sql = f"UPDATE {self.table_name} SET {changes} WHERE workspace = $1 AND id = $2"  # noqa: S608 (our own names)
        await self._store.database.many(sql, values)

    async def _insert(self, rows: Mapping[str, Row], vectors: Vectors, now: datetime) -> None:
        prepare = {
            "chunks": self._upsert_chunks,
            "entities": self._upsert_entities,
            "relationships": self._upsert_relationships,
        }[self.namespace]
        values, sql = [], ""
        for (key, row), vector in zip(rows.items(), vectors, strict=True):
            sql, values_of_row = prepare({"source_id": "", **row, "__id__": key, "__vector__": vector.tolist()}, now)
            values.append(values_of_row)
        place = next(
            number
            for number, value in enumerate(values[0], start=1)
            if isinstance(value, list) and value and isinstance(value[0], float)
        )
        # There are fewer than ten times as many.
        await self._store.database.many(sql.replace(f"${place}", f"${place}::float4[]::vector"), values)

    def near_rows(self, values: Values, vector: Vectors, most: int) -> str:
        """The search for the nearest rows. Only while there is a table."""
        least = self.cosine_better_than_threshold
        table = self.namespace, self.table_name, self._columns(), self.workspace
        return near_rows(values, *table, vector, least, most)

    def passages(self, values: Values, query: str, vector: Vectors, most: int) -> dict[str, str]:
        """The searches for passages, `close` by vectors and `worded` by words. `ranking` joins them."""
        wide = 3 * most
        searches = {"close": near_passages(values, vector, self.cosine_better_than_threshold, wide)}
        if worded := with_words(values, self._asked_text(query), wide):
            searches["worded"] = worded
            searches["held"] = held_words(values, self._asked_text(query))
        return searches

    async def _passages(self, query: str, top_k: int, vector: Vectors) -> list[dict[str, Any]]:
        found = await find(self._store, Search(None, None, query, {query: vector}, 0, top_k), self, self, self, None)
        texts = {row[0]: row[1] for row in await self._store.all(_TEXTS, [key for key, _ in found.passages])}
        return [
            {"id": key, "content": texts[key], "file_path": "", "distance": cosine}
            for key, cosine in found.passages
            if texts.get(key) is not None
        ]

    def _columns(self) -> str:
        named = {"entities": "entity_name, ", "relationships": "source_id AS src_id, target_id AS tgt_id, "}
        named_by = named.get(self.namespace, "full_doc_id, ")
        return f"stored.id, {named_by}file_path, EXTRACT(EPOCH FROM create_time)::bigint AS created_at"

    async def _table(self) -> str | None:
        """LightRAG's table for the model that built the store; None while there is none."""
        if self._dimensions is None:
            self._dimensions = await self._store.value("SELECT dimensions FROM crag.store WHERE id = $1")
        if self._dimensions is None:
            return None
        self.table_name = vector_table(self._base, str(self.embedding_func.model_name), self._dimensions)
        return self.table_name

    async def make_tables(self, dimensions: int) -> None:
        """Make LightRAG's tables for vectors of this length, unless they are there."""
        await make_vector_tables(self._store.database, str(self.embedding_func.model_name), dimensions)

    async def make_indexes(self) -> None:
        """Make the indexes that a large workspace needs, unless they are there."""
        await make_near_indexes_of(self._store)


def _sources(row: Row) -> list[str]:
    return str(row.get("source_id", "")).split("<SEP>")
