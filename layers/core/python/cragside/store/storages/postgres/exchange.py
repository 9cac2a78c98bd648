"""Taking a store into PostgreSQL, LightRAG's tables included."""

# ruff: noqa: S608 - statements are put together from names in this module and of LightRAG's tables, values are bound

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from cragside.store.ledger.entries import TEXTS
from cragside.store.ledger.exchange import (
    Batch,
    Batches,
    DocumentRow,
    EdgeRow,
    EmbeddingRow,
    FactsRow,
    MentionRow,
    NodeRow,
    OriginRow,
    PartRow,
    PassageRow,
    QueryRow,
    Row,
    SearchText,
    ValueRow,
    VectorRow,
)
from cragside.store.ledger.postgres.answers import (
    ANSWERS,
    note_values,
)
from cragside.store.ledger.postgres.driver import SEARCHED
from cragside.store.ledger.postgres.listing import list_all
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.ledger.postgres.words import counted
from cragside.store.storages.postgres.graph_rows import graph_rows
from cragside.store.storages.postgres.near_indexes import make_near_indexes
from cragside.store.storages.postgres.tables import make_vector_tables, vector_table

# LightRAG's tables by namespaces.
TABLES = {
    "llm_response_cache": "lightrag_llm_cache",
    "full_entities": "lightrag_full_entities",
    "full_relations": "lightrag_full_relations",
    "entity_chunks": "lightrag_entity_chunks",
    "relation_chunks": "lightrag_relation_chunks",
}
TEXTS_TABLE = "lightrag_doc_chunks"
VECTORS = {
    "chunks": "LIGHTRAG_VDB_CHUNKS",
    "entities": "LIGHTRAG_VDB_ENTITY",
    "relationships": "LIGHTRAG_VDB_RELATION",
}
_DOCUMENT = ", ".join(DocumentRow._fields)
# `$1` is the store's number, or LightRAG's name of the workspace in LightRAG's tables.
_WRITE: dict[type[Row], str] = {
    OriginRow: "INSERT INTO crag.origin VALUES ($1, $2, $3)",
    MentionRow: "INSERT INTO crag.mention VALUES ($1, $2, $3, $4)",
    EmbeddingRow: "INSERT INTO crag.embedding (store, model, text_hash, document_id, vector)"
    " VALUES ($1, $2, $3, $4, $5)",
    QueryRow: "INSERT INTO crag.query (store, id, text, created_at) VALUES ($1, $2, $3, $4)",
}
_ADD_DOCUMENT = f"""INSERT INTO crag.document (store, {_DOCUMENT.removeprefix("version, ")})
    VALUES ($1, {", ".join(f"${number}" for number in range(2, 19))}) RETURNING version"""
_ADD_PART = "INSERT INTO crag.part VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_ADD_PASSAGE = "INSERT INTO crag.passage VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
# PostgreSQL gives each field of the JSON the type of its column, and leaves out fields without one.
_TIME = "'{0}_time', to_timestamp(coalesce(($3::text::jsonb ->> '{0}_time')::float8, 0)) AT TIME ZONE 'UTC'"
_ADD_JSON = f"""INSERT INTO {{0}} SELECT made.* FROM jsonb_populate_record(NULL::{{0}},
    '{{{{"llm_cache_list": [], "heading": {{{{}}}}, "sidecar": {{{{}}}}}}}}' || $3::text::jsonb || jsonb_build_object(
    'workspace', $1::text, 'id', $2::text, {_TIME.format("create")}, {_TIME.format("update")})) AS made"""


async def load(store: PostgresStore, batches: Batches, search_text: SearchText) -> None:
    """Write rows into a store that is empty and that nobody else uses. Raises `LedgerError`."""
    writing, noted = _Writing(store, search_text), store.journal.noted
    async for batch in batches:
        async with store.note():
            await writing.write(batch)
        if store.journal.noted != noted:
            noted = store.journal.noted
            await store.catch_up()
    async with store.note():
        await list_all(store)
    await store.catch_up()
    await make_near_indexes(store.database, store.number)


class _Writing:
    def __init__(self, store: PostgresStore, search_text: SearchText) -> None:
        self._store = store
        self._database = store.database
        self._number = store.number
        self._key = store.key
        graph = graph_rows(store.storages["graph"], store.key)
        self._write = {**_WRITE, NodeRow: graph.add_node, EdgeRow: graph.add_edge}
        self._search_text = search_text
        # The tables of vectors, by namespaces, and this database's numbers of versions.
        self._vectors: dict[str, str] = {}
        self._versions: dict[int, int] = {}

    async def write(self, batch: Batch) -> None:
        kind = type(batch[0])
        if statement := self._write.get(kind):
            first = self._key if kind in (NodeRow, EdgeRow) else self._number
            await self._database.many(statement, [(first, *_jsonable(row)) for row in batch])
        else:
            await self._others[kind](self, batch)

    async def _facts(self, batch: Any) -> None:
        model, dimensions, untidy = batch[0]
        await self._database.value(
            "UPDATE crag.store SET embedding_model = $2, dimensions = $3, untidy = $4 WHERE id = $1",
            self._number, model, dimensions, untidy,
        )  # fmt: skip
        if model is not None and dimensions is not None:
            await make_vector_tables(self._database, model, dimensions)
            self._vectors = {name: vector_table(base, model, dimensions) for name, base in VECTORS.items()}

    async def _documents(self, batch: Any) -> None:
        for old, *facts in batch:
            self._versions[old] = await self._database.value(_ADD_DOCUMENT, self._number, *facts)

    async def _parts(self, batch: Any) -> None:
        await self._database.many(_ADD_PART, [(self._versions[row.version], *row[1:]) for row in batch])

    async def _passages(self, batch: Any) -> None:
        rows = []
        for row in batch:
            text = {} if row.text is None else orjson.loads(row.text)
            own = (self._versions[row.version], *row[2:7], text.get("tokens", 0), text.get("content"))
            rows.append((self._number, row.id, *own))
        await self._database.many(_ADD_PASSAGE, rows)
        await self._add_values(TEXTS, TEXTS_TABLE, [(row.id, row.text) for row in batch if row.text is not None])

    async def _values(self, batch: Any) -> None:
        for namespace in dict.fromkeys(row.namespace for row in batch):
            chosen = [(row.id, row.value) for row in batch if row.namespace == namespace]
            await self._add_values(namespace, TABLES[namespace], chosen)

    async def _add_values(self, namespace: str, table: str, rows: list[tuple[str, str]]) -> None:
        if self._store.is_outside("kv"):
            values = {key: {"create_time": 0, "update_time": 0, **orjson.loads(value)} for key, value in rows}
            await note_values(self._store, namespace, values)
            return
        if namespace == ANSWERS:
            rows = [(key, _renamed(value, {"return": "return_value"})) for key, value in rows]
        await self._add_json(table, rows)

    async def _rows(self, batch: Any) -> None:
        for namespace in dict.fromkeys(row.namespace for row in batch):
            chosen = [row for row in batch if row.namespace == namespace]
            await self._add_searched([row for row in chosen if row.searched is not None])
            if self._store.is_outside("vector"):
                continue
            table = self._vectors[namespace]
            await self._add_json(table, [(row.id, _vector_json(row.value)) for row in chosen])
            await self._database.many(
                f"UPDATE {table} SET content_vector = $3::float4[]::vector WHERE workspace = $1 AND id = $2",
                [(self._key, row.id, _floats(row.vector)) for row in chosen],
            )

    async def _add_searched(self, rows: list[VectorRow]) -> None:
        if rows:
            words = (counted(self._search_text(row.searched or ""), self._number) for row in rows)
            vectors = [f"[{','.join(map(repr, _floats(row.vector)))}]" for row in rows]
            columns = map(list, zip(*words, strict=True))
            await self._database.value(SEARCHED, self._number, [row.id for row in rows], *columns, vectors)

    async def _add_json(self, table: str, rows: list[tuple[str, str]]) -> None:
        await self._database.many(_ADD_JSON.format(table), [(self._key, key, _storable(value)) for key, value in rows])

    _others: "dict[type[Row], Callable[[_Writing, Any], Any]]" = {  # noqa: RUF012 (never changed)
        FactsRow: _facts,
        DocumentRow: _documents,
        PartRow: _parts,
        PassageRow: _passages,
        ValueRow: _values,
        VectorRow: _rows,
    }


def _vector_json(value: str) -> str:
    """A row as the table of its namespace has it."""
    row = orjson.loads(value)
    sources = str(row.pop("source_id", "")).split("<SEP>")
    ends = {"source_id": row.get("src_id"), "target_id": row.get("tgt_id")}
    passage = {"tokens": 0, "chunk_order_index": 0}
    created = row.get("created_at") or 0
    return orjson.dumps(
        {**passage, **row, **ends, "chunk_ids": sources, "create_time": created, "update_time": created}
    ).decode()


def _renamed(value: str, names: dict[str, str]) -> str:
    return orjson.dumps({names.get(name, name): each for name, each in orjson.loads(value).items()}).decode()


def _jsonable(row: Row) -> tuple[Any, ...]:
    return (*row[:-1], _storable(row[-1])) if isinstance(row, NodeRow | EdgeRow) else row


def _storable(value: str) -> str:
    """JSON without the one character that PostgreSQL cannot hold."""
    return value if "\\u0000" not in value else orjson.dumps(_without_nul(orjson.loads(value))).decode()


def _without_nul(value: Any) -> Any:
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    return value.replace("\0", " ") if isinstance(value, str) else value


def _floats(vector: bytes) -> list[float]:
    floats: list[float] = np.frombuffer(vector, np.float32).tolist()
    return floats
