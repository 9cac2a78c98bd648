"""Search passages, entities and relations in PostgreSQL, and make indexes for large workspaces.

Each large workspace has indexes of its own, so that neither it nor a small one beside it loses what an index of all
would pass over. Where one is missing, searches are exact and take longer.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import asyncpg
import orjson

from cragside.databases.gate import close_quietly
from cragside.databases.postgres.connections import CONNECT_SECONDS
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.verdict import varied
from cragside.ports.embedder import Vectors
from cragside.store.chunking import document_of_passage
from cragside.store.postgres.graph import EDGES_OF, PostgresGraph
from cragside.store.postgres.lightrag_tables import NAMESPACE_TABLE_MAP, vector_table
from cragside.store.postgres.schema import translating
from cragside.store.postgres.store import NOW, PostgresStore, since
from cragside.store.ranking import FEW_PASSAGES, PAIR_SHARE, RARE_SHARE, fused, quoted, words_in, words_of
from cragside.store.storages import Expansion, Found, Search, ordered

# ruff: noqa: S608 - statements are put together from names in this module, values are bound


# Up to so many vectors are compared with a question one by one, which is exact.
LARGE = 2_000
# Of vectors that are all about equally near to a question, pgvector's defaults miss half.
_CARE = "WITH (m = 32, ef_construction = 128)"
# pgvector cannot index longer ones.
_LONGEST = 4_000
_STORES = """SELECT id, key, embedding_model, dimensions FROM crag.store
    WHERE embedding_model IS NOT NULL AND dimensions <= $1 AND ($2::bigint IS NULL OR id = $2) ORDER BY id"""
_MADE = """SELECT indisvalid OR EXISTS (SELECT FROM pg_stat_progress_create_index WHERE index_relid = indexrelid)
    FROM pg_index WHERE indexrelid = to_regclass($1)"""
# Numbers of stores are never used again.
_LEFT = """SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relname ~ '^(near_passages|cragside_near_[a-z]+)_[0-9]+$'
    AND NOT EXISTS (SELECT FROM crag.store WHERE id = substring(relname from '[0-9]+$')::bigint)"""
# Until autovacuum has counted a table that has grown, which takes a minute, a search reads all edges of a workspace.
_OUTDATED = """SELECT relid::regclass::text FROM pg_stat_user_tables
    WHERE (schemaname = 'crag' OR relname LIKE 'lightrag\\_%') AND n_mod_since_analyze > 100 + n_live_tup / 10"""
# Whoever makes or drops an index waits for transactions of others. One of them may never end.
_LOCK_SECONDS = 10
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class _Index(NamedTuple):
    name: str
    table: str
    column: str
    condition: str
    dimensions: int


def index_of_passages(store: str) -> str:
    """The name of the index, where `store` is SQL for the store's number."""
    return f"'crag.near_passages_' || {store}"


def index_of_rows(namespace: str, store: str) -> str:
    """The name of the index of a vector table of LightRAG's, where `store` is SQL for the store's number."""
    return f"'cragside_near_{namespace}_' || {store}"


async def make_near_indexes_of(store: PostgresStore) -> None:
    """Make the missing indexes of a workspace if it is large. Raises `LedgerError`."""
    # So few passages hold no large number of relations either.
    few = LARGE // 10
    if await store.value("SELECT passages >= $2 FROM crag.extent WHERE store = $1", few):
        await make_near_indexes(store.database, store.number)


async def make_near_indexes(database: PostgresDatabase, store: int | None = None) -> int:
    """Make the missing indexes of all large workspaces, or of one, and drop those of removed ones. How many were made.

    Count the rows of tables that have grown, so that searches are planned for their size. Meanwhile others read and
    write. Raises `LedgerError`.
    """
    made = 0
    async with translating(), _alone(database) as connection:
        for (left,) in await _rows(connection, _LEFT):
            with suppress(asyncpg.PostgresError):  # the next one tries again
                await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {left}")
        for row in await _rows(connection, _STORES, _LONGEST, store):
            for index in _indexes(*row):
                if await _is_large(connection, index) and not await _value(connection, _MADE, index.name):
                    await _make(connection, index)
                    made += 1
        for (table,) in await _rows(connection, _OUTDATED):
            await connection.execute(f"ANALYZE (SKIP_LOCKED) {table}")
    return made


def _indexes(store: int, key: str, model: str, dimensions: int) -> list[_Index]:
    passages = _Index(f"crag.near_passages_{store}", "crag.searched", "vector", f"store = {store}", dimensions)
    rows = [
        _Index(
            f"cragside_near_{namespace}_{store}",
            vector_table(NAMESPACE_TABLE_MAP[namespace], model, dimensions),
            "content_vector",
            f"workspace = '{key}'",
            dimensions,
        )
        for namespace in ("entities", "relationships")
    ]
    return [passages, *rows]


async def _is_large(connection: asyncpg.Connection, index: _Index) -> bool:
    if await _value(connection, "SELECT to_regclass($1)", index.table) is None:
        return False
    few = f"SELECT 1 FROM {index.table} WHERE {index.condition} LIMIT {LARGE}"
    return bool(await _value(connection, f"SELECT count(*) = {LARGE} FROM ({few}) AS few"))


async def _make(connection: asyncpg.Connection, index: _Index) -> None:
    # One that a process began and did not end is of no use.
    await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}")
    # Another process may begin it at the same moment.
    with suppress(asyncpg.DuplicateTableError, asyncpg.UniqueViolationError):
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY {index.name.rpartition('.')[2]} ON {index.table}"
            f" USING hnsw (({index.column}::halfvec({index.dimensions})) halfvec_cosine_ops)"
            f" {_CARE} WHERE {index.condition}"
        )


@asynccontextmanager
async def _alone(database: PostgresDatabase) -> AsyncIterator[asyncpg.Connection]:
    """A connection beside the pool's, which may take minutes. A process has one of them at a time."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        given = (await database.addresses.current()).arguments()
        connection = await asyncpg.connect(**given, statement_cache_size=0, timeout=CONNECT_SECONDS)
        try:
            if not database.is_pooled:  # a pooler would give the session to others
                await connection.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
            yield connection
        finally:
            await close_quietly("PostgreSQL", connection.close())


async def _rows(connection: asyncpg.Connection, sql: str, *values: object) -> list[asyncpg.Record]:
    # A pooler may run what is not in a transaction in another session than the one that has prepared it.
    async with connection.transaction():
        return list(await connection.fetch(sql, *values))


async def _value(connection: asyncpg.Connection, sql: str, *values: object) -> object:
    ((value,),) = await _rows(connection, sql, *values) or ((None,),)
    return value


# ruff: noqa: S608 - statements are put together from names in this module, values are bound


# The formula of FTS5, by which SQLite ranks: k1 = 1.2, b = 0.75. What `sought` says of words is said here as well.
# `store + 0`: the index of words leads to the store's passages by itself; that of stores would only cost time.
_BM25 = """
WITH known AS (
    SELECT word, asked, word.passages::float8 AS holders, extent.passages::float8 AS passages,
        extent.length::float8 / extent.passages AS mean,
        sum(word.passages) OVER (ORDER BY word.passages, word COLLATE "C") AS together
    FROM unnest({words}::text[], {asked}::text[]) AS each (word, asked)
    JOIN crag.word USING (word) JOIN crag.extent USING (store) WHERE store = {store}),
weighing AS (
    SELECT word, asked, asked::tsquery AS query, mean, together,
        greatest(ln((passages - holders + 0.5) / (holders + 0.5)), 1e-6) AS weight,
        passages <= {few} OR together <= greatest({share} * passages, {few}) OR together - holders < {most} AS rare
    FROM known WHERE passages <= {few} OR holders <= passages / 2 OR together = holders),
chosen AS (
    SELECT string_agg(CASE WHEN rare THEN asked ELSE asked || '&(' || (
        SELECT string_agg(other.asked, '|') FROM weighing AS other WHERE other.together > word.together
            AND other.weight + word.weight >= {pair} * (SELECT min(weight) FROM weighing WHERE rare))
        || ')' END, '|')::tsquery AS query
    FROM weighing AS word)
SELECT seq, (SELECT id FROM crag.searched WHERE searched.seq = best.seq) AS id, score FROM (
    SELECT seq, (
        SELECT sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / mean)))
        FROM (SELECT weight, mean, coalesce((often ->> word)::float8, 1) AS times
            FROM weighing WHERE words @@ query OFFSET 0) AS held) AS score
    FROM (SELECT seq, words, often, length::float8 FROM crag.searched
        WHERE words @@ (SELECT query FROM chosen) AND store + 0 = {store} OFFSET 0) AS found
    ORDER BY score DESC, seq LIMIT {most}) AS best ORDER BY score DESC, seq"""


HELD = "SELECT word, passages FROM crag.word WHERE store = {store} AND word = ANY({words})"


class Values:
    """The values of a statement, each with the mark by which its text names it."""

    def __init__(self, store: int) -> None:
        self.values: list[Any] = [store]
        self.store = "$1::bigint"

    def mark(self, value: Any, kind: str) -> str:
        """Add a value of a type of PostgreSQL's."""
        self.values.append(value)
        return f"${len(self.values)}::{kind}"

    def vector(self, vector: Vectors) -> str:
        """Add a vector."""
        return self.mark(vector.tolist(), "float4[]")


def near_passages(values: Values, vector: Vectors, least: float, most: int | None) -> str:
    """The nearest passages: `found_seq`, `found` (the id) and `cosine`, nearest first."""
    named = f"'store = ' || {values.store}, {index_of_passages(values.store)}"
    asked = f"{values.vector(vector)}, {values.mark(least, 'float8')}, {values.mark(most, 'integer')}"
    return f"SELECT found_seq, found, cosine FROM crag.nearest('crag.searched', 'seq', 'vector', {named}, {asked})"


def near_rows(
    values: Values,
    namespace: str,
    table: str,
    columns: str,
    workspace: str,
    vector: Vectors,
    least: float,
    most: int,
) -> str:
    """The nearest rows of a table of LightRAG's: these columns and `distance`, nearest first."""
    own = values.mark(workspace, "text")
    named = f"format('workspace = %L', {own}), {index_of_rows(namespace, values.store)}"
    asked = f"{values.vector(vector)}, {values.mark(least, 'float8')}, {values.mark(most, 'integer')}"
    # OFFSET 0 has each row looked up by its key, whatever the planner believes of a workspace that has just grown.
    return (
        f"SELECT {columns}, cosine AS distance"
        f" FROM crag.nearest('{table}', '0::bigint', 'content_vector', {named}, {asked}) CROSS JOIN LATERAL"
        f" (SELECT * FROM {table} WHERE workspace = {own} AND id = found OFFSET 0) AS stored"
        " ORDER BY cosine DESC, found"
    )


def with_words(values: Values, searched: str, most: int) -> str | None:
    """The passages that rank best by words: `seq`, `id` and `score`. None if there are no words."""
    words = list(dict.fromkeys(words_in(" ".join(words_of(searched)))))
    if not words:
        return None
    return _BM25.format(
        words=values.mark(words, "text[]"),
        asked=values.mark([quoted(word, values.values[0]) for word in words], "text[]"),
        store=values.store,
        few=FEW_PASSAGES,
        share=RARE_SHARE,
        pair=PAIR_SHARE,
        most=values.mark(most, "integer"),
    )


def held_words(values: Values, searched: str) -> str:
    """Count the passages that have each word: `word` and `passages`. Words that none has are left out."""
    words = words_in(" ".join(words_of(searched)))
    return HELD.format(store=values.store, words=values.mark(words, "text[]"))


def ranking(near: Sequence[Any], lexical: Sequence[Any], most: int) -> list[tuple[str, float]]:
    """The passages of both searches with their cosines, best first. Rows are (seq, id, cosine or score)."""
    cosine = {row[0]: row[2] for row in near}
    ids = {row[0]: row[1] for row in (*near, *lexical)}
    ranked = fused(cosine, {row[0]: row[2] for row in lexical}) if lexical else list(cosine)
    chosen = varied(ranked, most, lambda seq: document_of_passage(ids[seq]))
    return [(ids[seq], cosine.get(seq, 0.0)) for seq in chosen]


# ruff: noqa: S608 - statements are put together from names in this module, values are bound


# What a part of the statement finds if the query's mode leaves it out.
_NO_ENTITY = "SELECT NULL::text AS entity_name WHERE false"
_NO_RELATION = "SELECT NULL::text AS src_id, NULL::text AS tgt_id WHERE false"
_GRAPH = """,
asked AS MATERIALIZED (
    SELECT entity_name::text AS name FROM entity UNION SELECT src_id FROM relation UNION SELECT tgt_id FROM relation),
near AS MATERIALIZED (
    SELECT entity_name::text AS name, other, side FROM entity CROSS JOIN LATERAL {edges} AS edge),
pair AS MATERIALIZED (
    SELECT CASE side WHEN 1 THEN name ELSE other END AS source, CASE side WHEN 1 THEN other ELSE name END AS target
        FROM near
    UNION SELECT least(src_id COLLATE "C", tgt_id COLLATE "C"), greatest(src_id COLLATE "C", tgt_id COLLATE "C")
        FROM relation),
counted AS MATERIALIZED (SELECT entity_name::text AS name FROM entity UNION SELECT name FROM near
    UNION SELECT other FROM near)
"""
# There are few names, which the planner cannot know: OFFSET 0 keeps it from reading all of a table.
_NODES = """SELECT node.* FROM asked CROSS JOIN LATERAL (
    SELECT id, properties FROM lightrag_graph_nodes WHERE {own} AND id = name OFFSET 0) AS node"""
_EDGES = """SELECT edge.* FROM pair CROSS JOIN LATERAL (SELECT src_id, tgt_id, properties FROM lightrag_graph_edges
    WHERE {own} AND src_id = source COLLATE "default" AND tgt_id = target COLLATE "default" OFFSET 0) AS edge"""
_DEGREES = """SELECT name, (SELECT count(*) FROM lightrag_graph_edges WHERE {own} AND src_id = name)
    + (SELECT count(*) FROM lightrag_graph_edges WHERE {own} AND tgt_id = name) AS degree FROM counted"""


class Searches(Protocol):
    """A vector storage, whose searches may be parts of a statement."""

    def near_rows(self, values: Values, vector: Vectors, most: int) -> str:
        """The search for the nearest rows."""

    def passages(self, values: Values, query: str, vector: Vectors, most: int) -> dict[str, str]:
        """The searches for passages: `close` by vectors and, if there are words, `worded`; `held` counts these."""

    def remember_held(self, counts: Mapping[str, int]) -> None:
        """Keep what `held` tells."""


async def find(
    store: PostgresStore,
    search: Search,
    chunks: Searches,
    entities: Searches,
    relations: Searches,
    graph: PostgresGraph | None,
) -> Found:
    """Search as `VectorStorage.find` does, while the store has vectors."""
    values = Values(store.number)
    parts = {
        "entity": _NO_ENTITY
        if search.entities is None
        else entities.near_rows(values, search.vectors[search.entities], search.related),
        "relation": _NO_RELATION
        if search.relations is None
        else relations.near_rows(values, search.vectors[search.relations], search.related),
    }
    if search.passages is not None:
        parts |= chunks.passages(values, search.passages, search.vectors[search.passages], search.most)
    shown = {name: f"SELECT * FROM {name}" for name in parts}
    shown["store"] = NOW.format(workspace=values.mark(store.workspace, "text"))
    beside = ""
    if graph is not None:
        beside, more = _expanded(values, graph)
        shown |= more
    ahead = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in parts.items())
    columns = ", ".join(f"(SELECT json_agg(shown) FROM ({sql}) AS shown) AS {name}" for name, sql in shown.items())
    row = await store.one(f"SELECT * FROM (WITH {ahead}{beside} SELECT {columns}) AS told", *values.values[1:])
    found: dict[str, list[dict[str, Any]]] = {name: orjson.loads(rows or "[]") for name, rows in row.items()}
    chunks.remember_held({row["word"]: row["passages"] for row in found.get("held", ())})
    near, lexical = ([tuple(each.values()) for each in found.get(name, ())] for name in ("close", "worded"))
    return Found(
        found["entity"],
        found["relation"],
        ranking(near, lexical, search.most),
        None if graph is None else _expansion(found, graph),
        since(next(iter(found["store"]), None)),
    )


def _expanded(values: Values, graph: PostgresGraph) -> tuple[str, dict[str, str]]:
    """The parts of the statement that read the graph, and what they show."""
    own = f"workspace = {values.mark(graph.workspace, 'text')} AND namespace = {values.mark(graph.namespace, 'text')}"
    edges = EDGES_OF.format(own=own, node="entity_name::text", most=values.mark(graph.edges_per_node, "integer"))
    shown = {
        "around": 'SELECT name, other FROM near ORDER BY name, side, other COLLATE "C"',
        "nodes": _NODES.format(own=own),
        "edges": _EDGES.format(own=own),
        "degrees": _DEGREES.format(own=own),
    }
    return _GRAPH.format(edges=edges), shown


def _expansion(found: dict[str, list[dict[str, Any]]], graph: PostgresGraph) -> Expansion:
    names = [row["entity_name"] for row in found["entity"]]
    ends = [(row["src_id"], row["tgt_id"]) for row in found["relation"]]
    near: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    for row in found["around"]:
        near[row["name"]].append((row["name"], row["other"]))
    return Expansion(
        asked={*names, *(name for pair in ends for name in pair)},
        nodes={row["id"]: graph._node_props(row["id"], row["properties"]) for row in found["nodes"]},
        near=near,
        degrees={row["name"]: row["degree"] for row in found["degrees"]},
        pairs={ordered(*edge) for edges in near.values() for edge in edges} | {ordered(*pair) for pair in ends},
        edges={(row["src_id"], row["tgt_id"]): row["properties"] for row in found["edges"]},
    )
