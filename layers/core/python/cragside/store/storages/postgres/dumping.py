"""Writing a store out of PostgreSQL, LightRAG's tables included."""

# ruff: noqa: S608 - statements are put together from names in this module and of LightRAG's tables, values are bound

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import orjson

from cragside.store.ledger.entries import TEXTS, searched_text, searched_title
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
    ValueRow,
    VectorRow,
    rows_at_once,
)
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.postgres.answers import (
    ANSWERS,
    PASSAGES,
    TEXT,
    KeptValues,
    text_row,
)
from cragside.store.ledger.postgres.failing import translating
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.postgres.exchange import TABLES, TEXTS_TABLE, VECTORS
from cragside.store.storages.postgres.graph_rows import graph_rows
from cragside.store.storages.postgres.tables import vector_table

_STORE = "SELECT embedding_model, dimensions, untidy FROM crag.store WHERE id = $1"
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
    FROM crag.passage AS p LEFT JOIN {TEXTS_TABLE} AS t ON t.workspace = $2 AND t.id = p.id
    WHERE store = $1 ORDER BY version, number"""
_SEARCHED = f"""SELECT s.id, p.text, part.key, t.file_path, document.title, document.name, s.vector::float4[]
    FROM crag.searched AS s JOIN crag.passage AS p USING (store, id)
    JOIN crag.document ON document.version = p.version
    JOIN crag.part ON part.version = p.version AND part.number = p.part
    LEFT JOIN {TEXTS_TABLE} AS t ON t.workspace = $2 AND t.id = s.id WHERE s.store = $1 ORDER BY s.seq"""
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
    if model is not None and dimensions is not None and not store.is_outside("vector"):
        for namespace, ends in _ENDS.items():
            value = f"""jsonb_build_object({ends}, 'content', content, 'file_path', file_path,
                'source_id', array_to_string(chunk_ids, '<SEP>'), 'created_at', {_EPOCH.format("create")})"""
            table = vector_table(VECTORS[namespace], model, dimensions)
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
    for namespace, table in TABLES.items():
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


def _bytes(vector: list[float]) -> bytes:
    return np.asarray(vector, np.float32).tobytes()
