"""Write a store out of PostgreSQL, LightRAG's tables included, and take one in."""

from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from cragside.store.chunking import TEXTS, searched_text, searched_title
from cragside.store.errors import LedgerError
from cragside.store.exchange import (
    PASSAGE,
    Batches,
    EdgeRow,
    FactsRow,
    NodeRow,
    PassageRow,
    Read,
    Row,
    SearchText,
    ValueRow,
    VectorRow,
    Write,
    Writing,
    insert,
    read_rows,
)
from cragside.store.postgres.age_graph import EDGES, EQUAL, VERTICES, has_name, name_of, properties_of
from cragside.store.postgres.driver import SEARCHED, PostgresDriver
from cragside.store.postgres.lightrag_rows import ANSWERS, PASSAGES, TEXT, KeptValues, list_all, note_values, text_row
from cragside.store.postgres.lightrag_tables import NAMESPACE_TABLE_MAP, VECTORS, make_vector_tables, vector_table
from cragside.store.postgres.schema import AGE_STORAGE, graph_of, translating
from cragside.store.postgres.searching import make_near_indexes
from cragside.store.postgres.store import PostgresStore
from cragside.store.ranking import counted

# ruff: noqa: S608 - statements are put together from names in this module and of LightRAG's tables, values are bound


# LightRAG's namespaces of values, but for texts.
_VALUES = (ANSWERS, "full_entities", "full_relations", "entity_chunks", "relation_chunks")
# Statements that read have the store's number as `$1`. LightRAG's tables have its key.
_OWN = "workspace = (SELECT key FROM crag.store WHERE id = $1)"
_FACTS = "SELECT embedding_model, dimensions, untidy FROM crag.store WHERE id = $1"
_ENDS = {"entities": "'entity_name', entity_name", "relationships": "'src_id', source_id, 'tgt_id', target_id"}
_EPOCH = "extract(epoch FROM t.{0}_time)::bigint"
# A row of one of LightRAG's tables as its storages give it.
_JSON = f"""to_jsonb(t) - '{{{{workspace,id,return_value}}}}'::text[] || jsonb_build_object('_id', t.id,
    'create_time', {_EPOCH.format("create")}, 'update_time', {_EPOCH.format("update")}{{}})"""
_PASSAGES = f"""SELECT p.id, version, part, number, page, section, tier2,
    CASE WHEN t.id IS NOT NULL THEN ({_JSON.format("")})::text END
    FROM crag.passage AS p LEFT JOIN {NAMESPACE_TABLE_MAP[TEXTS]} AS t ON t.{_OWN} AND t.id = p.id
    WHERE store = $1 ORDER BY version, number"""
_SEARCHED = f"""SELECT s.id, p.text, part.key, t.file_path, document.title, document.name, vector_send(s.vector)
    FROM crag.searched AS s JOIN crag.passage AS p USING (store, id)
    JOIN crag.document ON document.version = p.version
    JOIN crag.part ON part.version = p.version AND part.number = p.part
    LEFT JOIN {NAMESPACE_TABLE_MAP[TEXTS]} AS t ON t.{_OWN} AND t.id = s.id WHERE s.store = $1 ORDER BY s.seq"""
# Of a store whose values are in another database.
_KEPT_PASSAGES = f"""SELECT passage.version, passage.part, passage.number, page, section, tier2, {TEXT}
    FROM {PASSAGES} WHERE passage.store = $1 ORDER BY passage.version, passage.number"""
_PARTS = "SELECT '{}', part.key, '' FROM crag.part JOIN crag.document USING (version) WHERE store = $1 ORDER BY 2"
_KEPT = (
    f"SELECT DISTINCT '{ANSWERS}', id, '' FROM crag.answer WHERE store = $1 ORDER BY id",
    _PARTS.format("full_entities"),
    _PARTS.format("full_relations"),
)
# Statements that read nodes and edges, and that write them: these have LightRAG's key of the workspace as `$1`, then
# the JSON.
_TABLES = (
    f"SELECT id, properties::text FROM lightrag_graph_nodes WHERE {_OWN} ORDER BY id",
    f"SELECT src_id, tgt_id, properties::text FROM lightrag_graph_edges WHERE {_OWN} ORDER BY 1, 2",
    "INSERT INTO lightrag_graph_nodes (workspace, id, properties) VALUES ($1, $3, $2::text::jsonb)",
    "INSERT INTO lightrag_graph_edges (workspace, src_id, tgt_id, properties) VALUES ($1, $3, $4, $2::text::jsonb)",
)
_AGE = (
    f"""SELECT {name_of("node")}, {properties_of("node")} FROM {VERTICES} AS node
        WHERE $1::bigint IS NOT NULL ORDER BY 1""",
    f"""SELECT least({name_of("a")}, {name_of("b")}), greatest({name_of("a")}, {name_of("b")}),
        {properties_of("edge")} FROM {EDGES} AS edge JOIN {VERTICES} AS a ON a.id {EQUAL} start_id
        JOIN {VERTICES} AS b ON b.id {EQUAL} end_id WHERE $1::bigint IS NOT NULL ORDER BY 1, 2""",
    f"""INSERT INTO {VERTICES} (properties)
        SELECT (jsonb_build_object('entity_id', $3::text) || $2::text::jsonb)::text::ag_catalog.agtype
        WHERE $1::text IS NOT NULL""",
    f"""INSERT INTO {EDGES} (start_id, end_id, properties) SELECT a.id, b.id, $2::text::ag_catalog.agtype
        FROM {VERTICES} AS a, {VERTICES} AS b
        WHERE $1::text IS NOT NULL AND {has_name("a", "$3")} AND {has_name("b", "$4")}""",
)
# PostgreSQL gives each field of the JSON the type of its column, and leaves out fields without one.
_DEFAULTS = '{{"llm_cache_list": [], "heading": {{}}, "sidecar": {{}}, "tokens": 0, "chunk_order_index": 0}}'
_ADD = f"""INSERT INTO {{table}} SELECT made.* FROM (SELECT $2::text::jsonb AS told OFFSET 0) AS row,
    jsonb_populate_record(NULL::{{table}}, '{_DEFAULTS}' || told || jsonb_build_object(
    'workspace', $1::text, 'id', $3::text, {{more}})) AS made"""
_TIME = "to_timestamp(coalesce((told ->> '{}')::float8, 0)) AT TIME ZONE 'UTC'"
_VALUE = f"""'return_value', told -> 'return',
    'create_time', {_TIME.format("create_time")}, 'update_time', {_TIME.format("update_time")}"""
_VECTOR = f"""'source_id', told -> 'src_id', 'target_id', told -> 'tgt_id',
    'chunk_ids', string_to_array(coalesce(told ->> 'source_id', ''), '<SEP>'), 'content_vector', $4::text,
    'create_time', {_TIME.format("created_at")}, 'update_time', {_TIME.format("created_at")}"""


async def dump(store: PostgresStore, values: KeptValues | None = None) -> Batches:
    """Yield all rows of a store, as of one moment. Raises `LedgerError`.

    `values` is the database that has them, if it is another one. Nobody may write to it meanwhile.
    """
    async with translating(), store.database.snapshot() as connection:

        async def fetch(sql: str, most: int) -> AsyncIterator[list[Any]]:
            found = await connection.cursor(sql, store.number)
            while rows := await found.fetch(most):
                yield rows

        facts = await connection.fetchrow(_FACTS, store.number)
        if facts is None:
            raise LedgerError("there is no such store", "is not there")
        yield [FactsRow(*facts)]
        rows = read_rows(fetch, _reads(store, *facts[:2]))
        async for batch in rows if values is None else _with_values(rows, values, store.key):
            yield batch


def _reads(store: PostgresStore, model: str | None, dimensions: int | None) -> list[Read]:
    nodes, edges, *_ = _graph(store)
    reads = [Read(NodeRow, nodes), Read(EdgeRow, edges), Read(VectorRow, _SEARCHED, _passage_vector)]
    if store.is_outside("kv"):
        reads += [Read(PassageRow, _KEPT_PASSAGES, _kept_passage), *(Read(ValueRow, sql) for sql in _KEPT)]
    else:
        reads.append(Read(PassageRow, _PASSAGES))
        for namespace in _VALUES:
            value = _JSON.format(", 'return', t.return_value" if namespace == ANSWERS else "")
            sql = f"""SELECT '{namespace}', id, ({value})::text FROM {NAMESPACE_TABLE_MAP[namespace]} AS t
                WHERE {_OWN} ORDER BY create_time, id"""
            reads.append(Read(ValueRow, sql))
    if model is not None and dimensions is not None and not store.is_outside("vector"):
        for namespace, ends in _ENDS.items():
            value = f"""jsonb_build_object({ends}, 'content', content, 'file_path', file_path,
                'source_id', array_to_string(chunk_ids, '<SEP>'), 'created_at', {_EPOCH.format("create")})"""
            table = vector_table(NAMESPACE_TABLE_MAP[namespace], model, dimensions)
            sql = f"""SELECT '{namespace}', id, ({value})::text, vector_send(content_vector) FROM {table} AS t
                WHERE {_OWN} ORDER BY create_time, id"""
            reads.append(Read(VectorRow, sql, _vector))
    return reads


def _graph(store: PostgresStore) -> list[str]:
    statements = _AGE if store.storages["graph"] == AGE_STORAGE else _TABLES
    return [each.format(graph_of(store.key)) for each in statements]


async def _with_values(batches: Batches, values: KeptValues, key: str) -> Batches:
    """Put the values of another database into rows, and leave out those that it has not."""
    async for batch in batches:
        if not isinstance(batch[0], PassageRow | ValueRow):
            yield batch
            continue
        rows: Any = batch
        namespace = getattr(batch[0], "namespace", TEXTS)
        found = zip(rows, await values.read(key, namespace, [row.id for row in rows]), strict=True)
        if namespace == TEXTS:
            yield [row if kept is None or row.text is None else row._replace(text=kept.decode()) for row, kept in found]
        elif rows := [row._replace(value=kept.decode()) for row, kept in found if kept is not None]:
            yield rows


def _kept_passage(*row: Any) -> PassageRow:
    version, part, number, page, section, tier2, key, content, *facts = row
    text = None if content is None else orjson.dumps(text_row(key, content, *facts)).decode()
    return PassageRow(key, version, part, number, page, section, tier2, text)


def _passage_vector(*row: Any) -> VectorRow:
    key, text, part, path, title, name, vector = row
    path = quote(name, safe="") if path is None else path
    value = orjson.dumps({"content": text, "full_doc_id": part, "file_path": path}).decode()
    searched = searched_text(searched_title(title, name), text or "")
    return _vector("chunks", key, value, vector, searched)


def _vector(namespace: str, key: str, value: str, sent: bytes, searched: str | None = None) -> VectorRow:
    """Make a row of a vector as pgvector sends it: two short numbers, and its own with the highest byte first."""
    return VectorRow(namespace, key, value, np.frombuffer(sent, ">f4", offset=4).astype("<f4").tobytes(), searched)


async def load(store: PostgresDriver, batches: Batches, search_text: SearchText) -> None:
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


class _Writing(Writing):
    def __init__(self, store: PostgresDriver, search_text: SearchText) -> None:
        self._store = store
        self._database = store.database
        self._search_text = search_text
        # The tables of vectors by namespaces, once the model is known.
        self._vector_tables: dict[str, str] = {}
        own: dict[type[Row], Write] = {
            FactsRow: self._facts,
            PassageRow: self._passages,
            ValueRow: self._values,
            NodeRow: self._graph_rows,
            EdgeRow: self._graph_rows,
            VectorRow: self._vectors,
        }
        super().__init__(store, own)

    async def _facts(self, batch: Any) -> None:
        model, dimensions, untidy = batch[0]
        await self._store.execute(
            "UPDATE crag.store SET embedding_model = $2, dimensions = $3, untidy = $4 WHERE id = $1",
            model, dimensions, untidy,
        )  # fmt: skip
        if model is not None and dimensions is not None:
            await make_vector_tables(self._database, model, dimensions)
            self._vector_tables = {name: vector_table(NAMESPACE_TABLE_MAP[name], model, dimensions) for name in VECTORS}

    async def _passages(self, batch: Any) -> None:
        texts = [{} if row.text is None else orjson.loads(row.text) for row in batch]
        told = [(text.get("tokens", 0), text.get("content")) for text in texts]
        rows = [(*row[:-1], *own) for row, own in zip(batch, told, strict=True)]
        await self._store.many(insert("passage", (*PASSAGE, "tokens", "text")), rows)
        await self._add_values(TEXTS, [(row.text, row.id) for row in batch if row.text is not None])

    async def _values(self, batch: Any) -> None:
        for namespace, rows in _by_namespace(batch).items():
            await self._add_values(namespace, [(row.value, row.id) for row in rows])

    async def _add_values(self, namespace: str, rows: list[tuple[str, str]]) -> None:
        if self._store.is_outside("kv"):
            values = {key: {"create_time": 0, "update_time": 0, **orjson.loads(value)} for value, key in rows}
            await note_values(self._store, namespace, values)
        else:
            await self._add(_ADD.format(table=NAMESPACE_TABLE_MAP[namespace], more=_VALUE), rows)

    async def _graph_rows(self, batch: Any) -> None:
        sql = _graph(self._store)[2 if isinstance(batch[0], NodeRow) else 3]
        await self._add(sql, [(row.value, *row[:-1]) for row in batch])

    async def _vectors(self, batch: Any) -> None:
        for namespace, rows in _by_namespace(batch).items():
            # The shortest numbers that give the same vectors again.
            numbers = (np.frombuffer(row.vector, np.float32) for row in rows)
            vectors = [orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY).decode() for each in numbers]
            if rows[0].searched is not None:
                words = (counted(self._search_text(row.searched), self._store.number) for row in rows)
                columns = map(list, zip(*words, strict=True))
                await self._store.execute(SEARCHED, [row.id for row in rows], *columns, vectors)
            if not self._store.is_outside("vector"):
                sql = _ADD.format(table=self._vector_tables[namespace], more=_VECTOR)
                await self._add(sql, [(row.value, row.id, each) for row, each in zip(rows, vectors, strict=True)])

    async def _add(self, sql: str, rows: Iterable[tuple[str, ...]]) -> None:
        """Run a statement of LightRAG's tables for rows, whose JSON comes first."""
        await self._database.many(sql, [(self._store.key, _storable(value), *row) for value, *row in rows])


def _by_namespace(batch: Any) -> dict[str, list[Any]]:
    return {name: [row for row in batch if row.namespace == name] for name in {row.namespace: None for row in batch}}


def _storable(value: str) -> str:
    """Return JSON without the one character that PostgreSQL cannot hold."""
    return value if "\\u0000" not in value else orjson.dumps(_without_nul(orjson.loads(value))).decode()


def _without_nul(value: Any) -> Any:
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    return value.replace("\0", " ") if isinstance(value, str) else value
