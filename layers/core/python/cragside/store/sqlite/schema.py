"""The tables of a store, and how a store's file is made and recognised."""

import os
import re
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

from cragside.databases.private_files import make_file
from cragside.store.errors import StoreFormatError

SCHEMA_VERSION = 3
# The key in `meta` of a store in which something was forgotten whose disk is not given back yet.
UNTIDY = "untidy"

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE kv (namespace TEXT NOT NULL, id TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (namespace, id));
CREATE TABLE doc_status (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    file_path TEXT, track_id TEXT, content_hash TEXT, duplicate_of TEXT, value TEXT NOT NULL);
CREATE INDEX doc_status_by_status ON doc_status (status, created_at, id);
CREATE INDEX doc_status_by_file ON doc_status (file_path);
CREATE INDEX doc_status_by_track ON doc_status (track_id);
CREATE INDEX doc_status_by_hash ON doc_status (content_hash, created_at, id);
CREATE TABLE node (id TEXT PRIMARY KEY, value TEXT NOT NULL, degree INTEGER NOT NULL);
CREATE INDEX node_by_degree ON node (degree DESC, id);
CREATE TABLE edge (source TEXT NOT NULL, target TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (source, target));
CREATE INDEX edge_by_target ON edge (target);
CREATE TRIGGER edge_added AFTER INSERT ON edge BEGIN
    UPDATE node SET degree = degree + 1 WHERE id IN (new.source, new.target); END;
CREATE TRIGGER edge_removed AFTER DELETE ON edge BEGIN
    UPDATE node SET degree = degree - 1 WHERE id IN (old.source, old.target); END;
CREATE TABLE vector (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, id TEXT NOT NULL,
    source TEXT, target TEXT, vector BLOB NOT NULL, value TEXT NOT NULL, UNIQUE (namespace, id));
CREATE INDEX vector_by_source ON vector (namespace, source);
CREATE INDEX vector_by_target ON vector (namespace, target);
CREATE VIRTUAL TABLE passage USING fts5 (terms);
CREATE VIRTUAL TABLE passage_term USING fts5vocab (passage, row);
CREATE TABLE query (id TEXT PRIMARY KEY, text TEXT NOT NULL, created_at TEXT NOT NULL);
"""
# A row of `document` is one version of a document. Of each id one is `current`; the one before it is `replaced` while
# not all of the current one is embedded, and what is `gone` waits for its share of the graph to be taken out.
CATALOGUE = """
CREATE TABLE document (
    version INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, content_hash TEXT NOT NULL, state TEXT NOT NULL,
    name TEXT NOT NULL, title TEXT NOT NULL, file_type TEXT NOT NULL, doc_type TEXT NOT NULL, size INTEGER NOT NULL,
    characters INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, track TEXT NOT NULL,
    enrich INTEGER NOT NULL, tier1 TEXT NOT NULL, metadata TEXT NOT NULL, marks TEXT NOT NULL, text TEXT NOT NULL,
    UNIQUE (id, content_hash));
CREATE UNIQUE INDEX document_current ON document (id) WHERE state = 'current';
CREATE INDEX document_by_name ON document (name) WHERE state = 'current';
CREATE INDEX document_by_time ON document (updated_at, version) WHERE state = 'current';
CREATE INDEX document_by_hash ON document (content_hash);
CREATE INDEX document_by_track ON document (track);
CREATE INDEX document_by_state ON document (state) WHERE state <> 'current';
CREATE TABLE part (
    version INTEGER NOT NULL, number INTEGER NOT NULL, key TEXT NOT NULL UNIQUE, first INTEGER NOT NULL,
    last INTEGER NOT NULL, embedded INTEGER NOT NULL, enrichment TEXT NOT NULL, error TEXT NOT NULL, tier3 TEXT,
    enriched_at TEXT, PRIMARY KEY (version, number)) WITHOUT ROWID;
CREATE TABLE chunk (
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, part INTEGER NOT NULL, number INTEGER NOT NULL, page INTEGER,
    section TEXT NOT NULL, tier2 TEXT) WITHOUT ROWID;
CREATE INDEX chunk_by_version ON chunk (version, number);
CREATE TABLE mention (
    kind TEXT NOT NULL, name TEXT NOT NULL, passage TEXT NOT NULL, PRIMARY KEY (kind, name, passage)) WITHOUT ROWID;
CREATE INDEX mention_by_passage ON mention (passage, kind);
CREATE INDEX node_by_name ON node (lower(id));
DROP INDEX edge_by_target;
CREATE INDEX edge_by_source ON edge (source, json_extract(value, '$.weight') DESC, target);
CREATE INDEX edge_by_target ON edge (target, json_extract(value, '$.weight') DESC, source);
CREATE TABLE embedding (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, text_hash BLOB NOT NULL, document_id TEXT NOT NULL,
    vector BLOB NOT NULL, UNIQUE (model, text_hash));
CREATE INDEX embedding_by_document ON embedding (document_id);
"""
# The source of each document. A document that an older version of cragside took in has none until it is brought again:
# its name stands for its source.
ORIGIN = "CREATE TABLE origin (document_id TEXT PRIMARY KEY, source TEXT NOT NULL UNIQUE) WITHOUT ROWID"
# Not part of the format: a store of an older version gets it when it is opened, and a baked one has none.
LEASE = (
    "CREATE TABLE IF NOT EXISTS lease (epoch INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " holder TEXT NOT NULL, expires REAL NOT NULL)"
)
_NAMES = frozenset(re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", _TABLES + CATALOGUE + ORIGIN))


def make_store(path: Path) -> None:
    """Make an empty store, whole or not at all, unless something has its place. Raises `OSError`, `sqlite3.Error`."""
    if os.path.lexists(path):
        return
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    make_file(scratch)
    try:
        with closing(sqlite3.connect(scratch, isolation_level=None)) as connection:
            # It has to be said before there are tables.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            _create(connection)
        _publish(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an open store to this version's format. Raises `sqlite3.DatabaseError` for what is no store."""
    if "lease" not in _tables(connection):
        connection.execute(LEASE)


def check_format(connection: sqlite3.Connection) -> None:
    """Raises `StoreFormatError` for another version's store, `sqlite3.DatabaseError` when a table is missing."""
    version, tables = version_of(connection), _tables(connection)
    if version != SCHEMA_VERSION:
        older = "Remove the workspace and ingest its documents again, or bake the store again"
        remedy = older if version < SCHEMA_VERSION else "Use the version that made it"
        raise StoreFormatError(
            f"it has format {version}, and this version of cragside reads format {SCHEMA_VERSION}. {remedy}"
        )
    if missing := sorted(_NAMES - tables):
        raise sqlite3.DatabaseError(f"the table {missing[0]} is missing")


def version_of(connection: sqlite3.Connection) -> int:
    """Return the number of the format, 0 for a file without tables."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version_of(connection) == 0:
            if _tables(connection):
                raise sqlite3.DatabaseError("it is a database of something else")
            for statement in (_TABLES + CATALOGUE + ORIGIN).split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('generation', hex(randomblob(8)))")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _tables(connection: sqlite3.Connection) -> set[str]:
    kept = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        " UNION ALL SELECT name FROM sqlite_temp_master WHERE type = 'table'"
    )
    return {row[0] for row in kept}


def _publish(scratch: Path, path: Path) -> None:
    """Give a file its name, unless another process was faster."""
    try:
        path.hardlink_to(scratch)
    except FileExistsError:
        return
    except OSError:  # a disk without such links
        if not os.path.lexists(path):
            scratch.rename(path)
