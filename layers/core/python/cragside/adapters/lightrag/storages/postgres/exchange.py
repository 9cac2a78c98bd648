"""Writing a store out of PostgreSQL, LightRAG's tables included, and taking one in."""

# ruff: noqa: S608 - statements are put together from names in this module and of LightRAG's tables, values are bound

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import orjson

from cragside.adapters.lightrag.ledger.cutting import TEXTS
from cragside.adapters.lightrag.ledger.entries import searched_text, searched_title
from cragside.adapters.lightrag.ledger.exchange import (
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
    rows_at_once,
)
from cragside.adapters.lightrag.ledger.failures import LedgerError
from cragside.adapters.lightrag.ledger.postgres.answers import (
    ANSWERS,
    PASSAGES,
    TEXT,
    KeptValues,
    note_values,
    text_row,
)
from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.lightrag.ledger.postgres.listing import list_all
from cragside.adapters.lightrag.ledger.postgres.part_writes import SEARCHED
from cragside.adapters.lightrag.ledger.postgres.store import PostgresStore
from cragside.adapters.lightrag.ledger.postgres.words import counted
from cragside.adapters.lightrag.storages.postgres.graph_rows import graph_rows
from cragside.adapters.lightrag.storages.postgres.near_indexes import make_near_indexes
from cragside.adapters.lightrag.storages.postgres.tables import make_vector_tables, vector_table

_STORE = "SELECT embedding_model, dimensions, untidy FROM crag.store WHERE id = $1"
_TABLES = {
    "llm_response_cache": "lightrag_llm_cache",
    "full_entities": "lightrag_full_entities",
    "full_relations": "lightrag_full_relations",
    "entity_chunks": "lightrag_entity_chunks",
    "relation_chunks": "lightrag_relation_chunks",
}
_TEXTS = "lightrag_doc_chunks"
_VECTORS = {
    "chunks": "LIGHTRAG_VDB_CHUNKS",
    "entities": "LIGHTRAG_VDB_ENTITY",
    "relationships": "LIGHTRAG_VDB_RELATION",
}
_ENDS = {"entities": "'entity_name', entity_name", "relationships": "'src_id', source_id, 'tgt_id', target_id"}
_EPOCH = "extract(epoch FROM t.{0}_time)::bigint"
# A row of one of LightRAG's tables as its storages give it. `$2` is LightRAG's name of the workspace.
_JSON = f"""to_jsonb(t) - '{{{{workspace,id,return_value}}}}'::text[] || jsonb_build_object('_id', t.id,
    'create_time', {_EPOCH.format("create")}, 'update_time', {_EPOCH.format("update")}{{}})"""
_ANSWER = ", 'return', t.return_value"
_DOCUMENT = ", ".join(DocumentRow._fields)
_PART = "version, number, key, first, last, embedded, enrichment, error, part.tier3, enriched_at"
_PASSAGES = f"""SELECT p.id, version, part, number, page, section, tier2,
    CASE WHEN t.id IS NOT NULL THEN ({_JSON.format("")})::text END
    FROM crag.passage AS p LEFT JOIN {_TEXTS} AS t ON t.workspace = $2 AND t.id = p.id
    WHERE store = $1 ORDER BY version, number"""
_SEARCHED = f"""SELECT s.id, p.text, part.key, t.file_path, document.title, document.name, s.vector::float4[]
    FROM crag.searched AS s JOIN crag.passage AS p USING (store, id)
    JOIN crag.document ON document.version = p.version
    JOIN crag.part ON part.version = p.version AND part.number = p.part
    LEFT JOIN {_TEXTS} AS t ON t.workspace = $2 AND t.id = s.id WHERE s.store = $1 ORDER BY s.seq"""
_KEPT_PASSAGES = f"""SELECT passage.version, passage.part, passage.number, page, section, tier2, {TEXT}
    FROM {PASSAGES} WHERE passage.store = $1 AND $2::text IS NOT NULL ORDER BY passage.version, passage.number"""
_PARTS = """SELECT part.key FROM crag.part JOIN crag.document USING (version)
    WHERE store = $1 AND $2::text IS NOT NULL ORDER BY 1"""
# By namespaces, the ids of the values that another database has.
_KEPT = {
    ANSWERS: "SELECT DISTINCT id FROM crag.answer WHERE store = $1 AND $2::text IS NOT NULL ORDER BY id",
    "full_entities": _PARTS,
    "full_relations": _PARTS,
}
_KEYED = "$1::bigint IS NOT NULL AND workspace = $2"
_OF_STORE = "WHERE store = $1 AND $2::text IS NOT NULL"

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


async def dump(store: PostgresStore, values: KeptValues | None = None) -> Batches:
    """All rows of a store, as of one moment. Raises `LedgerError`.

    `values` is the database that has them, if it is another one. Nobody may write to it meanwhile.
    """
    async with translating(), store.database.snapshot() as connection:
        facts = await connection.fetchrow(_STORE, store.number)
        if facts is None:
            raise LedgerError("there is no such store", "is not there")
        model, dimensions, untidy = facts
        yield [FactsRow(model, dimensions, untidy)]
        for read in _reads(store, model, dimensions, values):
            found = await connection.cursor(read.sql, store.number, store.key)
            while rows := await found.fetch(rows_at_once(read.kind)):
                if batch := await read.make(rows):
                    yield batch


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
            self._vectors = {name: vector_table(base, model, dimensions) for name, base in _VECTORS.items()}

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
        await self._add_values(TEXTS, _TEXTS, [(row.id, row.text) for row in batch if row.text is not None])

    async def _values(self, batch: Any) -> None:
        for namespace in dict.fromkeys(row.namespace for row in batch):
            chosen = [(row.id, row.value) for row in batch if row.namespace == namespace]
            await self._add_values(namespace, _TABLES[namespace], chosen)

    async def _add_values(self, namespace: str, table: str, rows: list[tuple[str, str]]) -> None:
        if self._store.is_outside("kv"):
            told = {key: {"create_time": 0, "update_time": 0, **orjson.loads(value)} for key, value in rows}
            await note_values(self._store, namespace, told)
            return
        if namespace == ANSWERS:
            rows = [(key, _renamed(value, {"return": "return_value"})) for key, value in rows]
        await self._add_json(table, rows)

    async def _rows(self, batch: Any) -> None:
        for namespace in dict.fromkeys(row.namespace for row in batch):
            chosen = [row for row in batch if row.namespace == namespace]
            await self._add_searched([row for row in chosen if row.searched is not None])
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


class _Read(NamedTuple):
    """A statement, and what makes rows of some of its results."""

    kind: type[Row]
    sql: str
    make: Callable[[list[Any]], Awaitable[Batch]]


def _read(kind: type[Row], sql: str, make: Callable[..., Row] | None = None) -> _Read:
    async def made(rows: list[Any]) -> Batch:
        return [(make or kind)(*row) for row in rows]

    return _Read(kind, sql, made)


def _reads(store: PostgresStore, model: str | None, dimensions: int | None, values: KeptValues | None) -> list[_Read]:
    """The statements for all rows but the first, in the order of their kinds."""
    graph = graph_rows(store.storages["graph"], store.key)
    reads = [
        _read(DocumentRow, f"SELECT {_DOCUMENT} FROM crag.document {_OF_STORE} ORDER BY version"),
        _read(OriginRow, f"SELECT document_id, source FROM crag.origin {_OF_STORE}"),
        _read(PartRow, f"SELECT {_PART} FROM crag.part JOIN crag.document USING (version) {_OF_STORE} ORDER BY 1, 2"),
    ]
    reads += _table_values() if values is None else _kept_values(store, values)
    reads += [
        _read(NodeRow, graph.nodes),
        _read(EdgeRow, graph.edges),
        _read(VectorRow, _SEARCHED, _passage_vector),
    ]
    if model is not None and dimensions is not None:
        for namespace, ends in _ENDS.items():
            value = f"""jsonb_build_object({ends}, 'content', content, 'file_path', file_path,
                'source_id', array_to_string(chunk_ids, '<SEP>'), 'created_at', {_EPOCH.format("create")})"""
            table = vector_table(_VECTORS[namespace], model, dimensions)
            sql = f"""SELECT '{namespace}', id, ({value})::text, content_vector::float4[] FROM {table} AS t
                WHERE {_KEYED} ORDER BY create_time, id"""
            reads.append(_read(VectorRow, sql, _vector))
    return [
        *reads,
        _read(MentionRow, f"SELECT kind, name, passage FROM crag.mention {_OF_STORE}"),
        _read(
            EmbeddingRow,
            f"SELECT model, text_hash, document_id, vector FROM crag.embedding {_OF_STORE} ORDER BY seq",
        ),
        _read(QueryRow, f"SELECT id, text, created_at FROM crag.query {_OF_STORE} ORDER BY seq"),
    ]


def _table_values() -> list[_Read]:
    """Texts and other values in LightRAG's tables."""
    reads = [_read(PassageRow, _PASSAGES)]
    for namespace, table in _TABLES.items():
        value = _JSON.format(_ANSWER if namespace == ANSWERS else "")
        sql = f"SELECT '{namespace}', id, ({value})::text FROM {table} AS t WHERE {_KEYED} ORDER BY create_time, id"
        reads.append(_read(ValueRow, sql))
    return reads


def _kept_values(store: PostgresStore, values: KeptValues) -> list[_Read]:
    """Texts in the ledger, and other values in another database."""

    def kept(namespace: str, sql: str) -> _Read:
        async def made(rows: list[Any]) -> Batch:
            ids = [row[0] for row in rows]
            found = await values.read(store.key, namespace, ids)
            return [
                ValueRow(namespace, each, value.decode())
                for each, value in zip(ids, found, strict=True)
                if value is not None
            ]

        return _Read(ValueRow, sql, made)

    async def passages(rows: list[Any]) -> Batch:
        ids = [row[6] for row in rows if row[7] is not None]
        found = dict(zip(ids, await values.read(store.key, TEXTS, ids), strict=True))
        return [_kept_passage(found.get(row[6]), *row) for row in rows]

    return [_Read(PassageRow, _KEPT_PASSAGES, passages)] + [kept(*each) for each in _KEPT.items()]


def _kept_passage(kept: bytes | None, *row: Any) -> PassageRow:
    version, part, number, page, section, tier2, *text = row
    if kept is None and text[1] is not None:
        kept = orjson.dumps(text_row(*text))
    return PassageRow(text[0], version, part, number, page, section, tier2, None if kept is None else kept.decode())


def _passage_vector(*row: Any) -> VectorRow:
    key, text, part, path, title, name, vector = row
    path = quote(name, safe="") if path is None else path
    value = orjson.dumps({"content": text, "full_doc_id": part, "file_path": path}).decode()
    return VectorRow("chunks", key, value, _bytes(vector), searched_text(searched_title(title, name), text or ""))


def _vector(namespace: str, key: str, value: str, vector: list[float]) -> VectorRow:
    return VectorRow(namespace, key, value, _bytes(vector), None)


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


def _bytes(vector: list[float]) -> bytes:
    return np.asarray(vector, np.float32).tobytes()
