"""The tables of the ledgers and the graphs of Apache AGE, and what failures of PostgreSQL mean to a ledger."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from cragside.databases.postgres.connections import FAILURES, meaning_of
from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.errors import LedgerError


@asynccontextmanager
async def translating() -> AsyncIterator[None]:
    """Raise failures of PostgreSQL as the ledger's own exception."""
    try:
        yield
    except FAILURES as error:
        raise LedgerError(*meaning_of(error)) from error


SCHEMA_VERSION = 1
# The advisory lock of whoever makes tables: any number that no other program is likely to take.
MIGRATING = 0x6372_6167
PREFERENCES_TABLE = """
CREATE TABLE crag.preference (workspace text COLLATE "C" PRIMARY KEY, changes jsonb NOT NULL);
"""
# A row of `store` is the content of a workspace. When a workspace is built anew, its name goes to another row.
# A row of `document` is one version of a document. Of each id one is `current`; the one before it is `replaced` while
# not all of the current one is embedded, and what is `gone` waits for its share of the graph to be taken out.
# A row of `outside` is what another database has of a store: its latest change's number, and whether some are lost.
# `journal` has the changes that are not written there yet, `dropped` what is still there of removed stores.
# `answer` has the passages of the answers of models that another database keeps.
# Names may be longer than what an index holds, so that some indexes hold a digest or a beginning.
TABLES = """
CREATE SCHEMA IF NOT EXISTS crag;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE crag.schema_version (version integer NOT NULL);
CREATE TABLE crag.store (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, workspace text COLLATE "C" NOT NULL UNIQUE,
    key text NOT NULL UNIQUE, storages text NOT NULL, state bigint NOT NULL DEFAULT 0, embedding_model text,
    dimensions integer, untidy boolean NOT NULL DEFAULT false);
CREATE TABLE crag.document (
    version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, id text COLLATE "C" NOT NULL,
    content_hash text NOT NULL, state text NOT NULL, name text COLLATE "C" NOT NULL, title text NOT NULL,
    file_type text NOT NULL, doc_type text NOT NULL, size bigint NOT NULL, characters bigint NOT NULL,
    created_at text NOT NULL, updated_at text NOT NULL, track text NOT NULL, enrich boolean NOT NULL,
    tier1 text NOT NULL, metadata text NOT NULL, marks text NOT NULL, text text NOT NULL,
    UNIQUE (store, id, content_hash));
CREATE UNIQUE INDEX document_current ON crag.document (store, id) WHERE state = 'current';
CREATE INDEX document_by_name ON crag.document (store, md5(name)) WHERE state = 'current';
CREATE INDEX document_by_time ON crag.document (store, updated_at, version) WHERE state = 'current';
CREATE INDEX document_by_hash ON crag.document (store, content_hash);
CREATE INDEX document_by_state ON crag.document (store, state) WHERE state <> 'current';
CREATE TABLE crag.origin (
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, document_id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL, PRIMARY KEY (store, document_id));
CREATE UNIQUE INDEX origin_by_source ON crag.origin (store, md5(source));
CREATE INDEX origin_by_folder ON crag.origin (store, left(source, 400));
CREATE TABLE crag.part (
    version bigint NOT NULL REFERENCES crag.document ON DELETE CASCADE, number integer NOT NULL, key text NOT NULL,
    first integer NOT NULL, last integer NOT NULL, embedded boolean NOT NULL, enrichment text NOT NULL,
    error text NOT NULL, tier3 text, enriched_at text, PRIMARY KEY (version, number));
CREATE TABLE crag.passage (
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, id text COLLATE "C" NOT NULL,
    version bigint NOT NULL, part integer NOT NULL, number integer NOT NULL, page integer, section text NOT NULL,
    tier2 text, tokens integer NOT NULL, text text, PRIMARY KEY (store, id));
CREATE INDEX passage_by_version ON crag.passage (version, number);
CREATE TABLE crag.mention (
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, kind text NOT NULL,
    name text COLLATE "C" NOT NULL, passage text COLLATE "C" NOT NULL);
CREATE UNIQUE INDEX mention_by_name ON crag.mention (store, kind, md5(name), passage);
CREATE INDEX mention_by_passage ON crag.mention (store, passage, kind);
CREATE TABLE crag.embedding (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, model text NOT NULL, text_hash bytea NOT NULL,
    document_id text COLLATE "C" NOT NULL, vector bytea NOT NULL, UNIQUE (store, model, text_hash));
CREATE INDEX embedding_by_document ON crag.embedding (store, document_id);
CREATE INDEX embedding_by_age ON crag.embedding (store, seq);
CREATE TABLE crag.answer (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, id text COLLATE "C" NOT NULL,
    passage text COLLATE "C" NOT NULL, UNIQUE (store, passage, id));
CREATE INDEX answer_by_id ON crag.answer (store, id);
CREATE TABLE crag.query (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, id text COLLATE "C" NOT NULL,
    text text NOT NULL, created_at text NOT NULL, UNIQUE (store, id));
CREATE INDEX query_by_age ON crag.query (store, seq);
CREATE SEQUENCE crag.epoch;
CREATE TABLE crag.lease (
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, name text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL, holder text NOT NULL, expires timestamptz NOT NULL, PRIMARY KEY (store, name));
CREATE TABLE crag.outside (
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, role text NOT NULL, seq bigint NOT NULL,
    lost boolean NOT NULL DEFAULT false, PRIMARY KEY (store, role));
CREATE TABLE crag.journal (
    store bigint NOT NULL, role text NOT NULL, seq bigint NOT NULL, id uuid NOT NULL DEFAULT gen_random_uuid(),
    change text NOT NULL, noted timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (store, role, seq),
    FOREIGN KEY (store, role) REFERENCES crag.outside ON DELETE CASCADE);
CREATE TABLE crag.dropped (key text NOT NULL, role text NOT NULL, PRIMARY KEY (key, role));
"""

_IS_NOTED = """SELECT true FROM pg_attribute
    WHERE attrelid = 'crag.journal'::regclass AND attname = 'noted' AND NOT attisdropped"""


async def complete(database: PostgresDatabase) -> None:
    """Add what tables of this format lack that an earlier version made, in a transaction.

    It needs the journal for itself. Whoever waits for that keeps others waiting, so that it is given up soon.
    """
    if not await tells_since_when(database):
        await database.value("SET LOCAL lock_timeout = '1s'")
        await database.value("ALTER TABLE crag.journal ADD COLUMN noted timestamptz NOT NULL DEFAULT now()")
        await database.value("SET LOCAL lock_timeout TO DEFAULT")


async def tells_since_when(database: PostgresDatabase) -> bool:
    """Return True if the journal has the time of each change. Those of earlier versions do not."""
    return bool(await database.value(_IS_NOTED))


async def version_of(database: PostgresDatabase) -> int:
    """Return the number of the tables' format, 0 without tables."""
    if await database.value("SELECT to_regclass('crag.schema_version')") is None:
        return 0
    return int(await database.value("SELECT max(version) FROM crag.schema_version") or 0)


def check_version(version: int | None) -> None:
    """Raise `LedgerError` for tables that this program does not know."""
    if (found := version or 0) != SCHEMA_VERSION:
        remedy = "Run cragside migrate" if found < SCHEMA_VERSION else "Update cragside"
        why = f"its tables have format {found}, and this version of cragside reads format {SCHEMA_VERSION}. {remedy}"
        raise LedgerError(why, f"cannot be used: {why}")


async def record_version(database: PostgresDatabase) -> None:
    """Note that the tables have this program's format."""
    await database.value("INSERT INTO crag.schema_version VALUES ($1)", SCHEMA_VERSION)


# What searches of passages read: words, vectors, and the counts of BM25. A word is stored as `NUMBER:word` with its
# store's number ahead, so that the index of words leads to the passages of one store alone. Triggers keep the counts
# right, whoever writes. Rows hold a vector and the words of a passage. Searches read both, so that they stay in the row
# up to 8 KB.
SEARCH_TABLES = """
CREATE TABLE crag.searched (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, store bigint NOT NULL, id text COLLATE "C" NOT NULL,
    words tsvector NOT NULL, often jsonb NOT NULL, length integer NOT NULL, vector vector NOT NULL, UNIQUE (store, id),
    FOREIGN KEY (store, id) REFERENCES crag.passage (store, id) ON DELETE CASCADE) WITH (toast_tuple_target = 8160);
CREATE INDEX searched_by_word ON crag.searched USING gin (words) WITH (fastupdate = off);
CREATE TABLE crag.extent (
    store bigint PRIMARY KEY REFERENCES crag.store ON DELETE CASCADE,
    passages bigint NOT NULL, length bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE crag.word (
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, word text COLLATE "C" NOT NULL,
    passages bigint NOT NULL, PRIMARY KEY (store, word)) WITH (fillfactor = 80);

CREATE FUNCTION crag.count_searched() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    -- When a whole store is deleted, its counts go with it.
    INSERT INTO crag.extent
        SELECT store, sign * count(*), sign * sum(length) FROM changed JOIN crag.store ON store.id = changed.store
        GROUP BY store ORDER BY store
        ON CONFLICT (store) DO UPDATE SET
            passages = extent.passages + excluded.passages, length = extent.length + excluded.length;
    -- In order, so that two transactions do not wait for each other.
    INSERT INTO crag.word
        SELECT store, substr(lexeme, strpos(lexeme, ':') + 1), sign * count(*)
        FROM changed JOIN crag.store ON store.id = changed.store CROSS JOIN LATERAL unnest(words)
        GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (store, word) DO UPDATE SET passages = word.passages + excluded.passages;
    IF sign < 0 THEN
        DELETE FROM crag.word WHERE passages = 0 AND (store, word) IN (
            SELECT store, substr(lexeme, strpos(lexeme, ':') + 1) FROM changed CROSS JOIN LATERAL unnest(words));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_written AFTER INSERT ON crag.searched REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION crag.count_searched();
CREATE TRIGGER count_deleted AFTER DELETE ON crag.searched REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION crag.count_searched();
"""

# The nearest of the rows that `condition` chooses: exactly, or by an index of their own where it is there. Names and
# conditions are text of ours. An index finds candidates by vectors of half precision; their cosines are exact all the
# same. A vector of zeros has the cosine 0. Without a limit all rows are compared, because an index stops early.
# Without OFFSET 0, a cosine would be computed where it is compared, where it is shown and where it is sorted by.
SEARCH_TABLES += """
CREATE FUNCTION crag.nearest(
    source text, seq text, vectors text, condition text, by_index text,
    question float4[], threshold float8, most integer)
    RETURNS TABLE (found_seq bigint, found text, cosine float8) LANGUAGE plpgsql STABLE ROWS 30 AS $$
DECLARE
    rows text := format('%s WHERE %s', source, condition);
BEGIN
    IF most IS NOT NULL AND EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(by_index) AND indisvalid) THEN
        PERFORM set_config('hnsw.iterative_scan', 'strict_order', true),
            set_config('hnsw.ef_search', least(1000, 40 + 6 * most)::text, true);
        rows := format('(SELECT * FROM %s ORDER BY %s::halfvec(%s) <=> $1::vector::halfvec LIMIT $3 + 10) AS near',
            rows, vectors, cardinality(question));
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT seq, id, cosine FROM (
            SELECT %s AS seq, id::text, coalesce(nullif(1 - (%s <=> $1::vector), ''NaN''), 0) AS cosine
            FROM %s OFFSET 0) AS compared
        WHERE cosine >= $2 ORDER BY cosine DESC, seq, id LIMIT $3', seq, vectors, rows)
        USING question, threshold, most;
END $$;
"""

# LightRAG's class for them.
AGE_STORAGE = "PGGraphStorage"
# LightRAG's labels.
_LABELS = ("create_vlabel", "base"), ("create_elabel", "DIRECTED")
ENTITY = """ag_catalog.agtype_access_operator({}.properties, '"entity_id"'::ag_catalog.agtype)"""
# LightRAG's names of indexes, so that its server makes no others. Its own are not unique: two writers could make two
# vertices of an entity.
_INDEXES = (
    'CREATE UNIQUE INDEX entity_p_idx ON {0}."base" (id)',
    f'CREATE UNIQUE INDEX entity_idx_node_id ON {{0}}."base" ({ENTITY.format("base")})',
    'CREATE UNIQUE INDEX directed_seid_idx ON {0}."DIRECTED" (start_id, end_id)',
    'CREATE INDEX directed_eid_idx ON {0}."DIRECTED" (end_id)',
)


def graph_of(key: str) -> str:
    """LightRAG's name of the graph of a workspace that it knows by this key.

    Keys are lower-case letters and digits, so that the name needs no quotes, and no other key has the same one.
    """
    return f"{key}_chunk_entity_relation"


async def install_age(connection: asyncpg.Connection, extension: str = "age") -> None:
    """Make the extension in the database, unless it is there. Raises `LedgerError`: no AGE, or no right to make it."""
    if not await connection.fetchval("SELECT true FROM pg_available_extensions WHERE name = $1", extension):
        missing = "needs the extension AGE for PGGraphStorage, which this PostgreSQL server does not have"
        raise LedgerError("the server has no AGE", f"{missing}. Install it there, or unset RAG_GRAPH_STORAGE")
    try:
        await connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
    except asyncpg.InsufficientPrivilegeError as error:
        remedy = f"have a superuser run CREATE EXTENSION {extension}; in this database, then run cragside migrate again"
        raise LedgerError("AGE is missing", f"needs the extension AGE for PGGraphStorage: {remedy}") from error


async def make_graph(database: PostgresDatabase, key: str) -> None:
    """Make an empty graph. Within a transaction."""
    name = graph_of(key)
    async with database.connection() as connection:
        await connection.execute(f"SELECT ag_catalog.create_graph('{name}')")
        for function, label in _LABELS:
            await connection.execute(f"SELECT ag_catalog.{function}('{name}', '{label}')")
        for index in _INDEXES:
            await connection.execute(index.format(name))


async def drop_graph(database: PostgresDatabase, key: str) -> None:
    """Drop a graph."""
    await database.value(f"SELECT ag_catalog.drop_graph('{graph_of(key)}', true)")
