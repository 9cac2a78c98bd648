"""One SQLite file: the tables of a workspace and the connection that all its storages share."""

import asyncio
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from cragside.adapters.lightrag.migration import add_catalogue, add_origins

FILE_NAME = "store.sqlite3"
SCHEMA_VERSION = 3
# A baked store of this version is read as it is: none of its documents has an origin.
_BEFORE_ORIGINS = 2
# How long a write waits for another process's commit; whole writers take turns at a lock file.
BUSY_MILLISECONDS = 5_000
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.002, 0.05
# SQLite's limit on bound parameters is 32,766 since 3.32; a smaller batch keeps statements reusable.
BATCH = 500

_SCHEMA = """
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
CREATE TRIGGER document_outdated AFTER UPDATE OF state ON document WHEN old.state = 'current' AND new.state <> 'current'
BEGIN DELETE FROM embedding WHERE document_id = old.id; END;
"""


# The source of each document. A document that an older version of cragside took in has none until it is brought again:
# its name stands for its source.
ORIGIN = "CREATE TABLE origin (document_id TEXT PRIMARY KEY, source TEXT NOT NULL UNIQUE) WITHOUT ROWID"


class StoreFormatError(Exception):
    """The file is not a store of this version."""


class Database:
    """The shared connection of one store file. Used on one thread, that of the event loop.

    WAL with `synchronous=NORMAL`: a killed process loses nothing that was committed, a power cut at most the last
    commits, and neither leaves a torn file. A file opened with `read_only` is taken for one that nobody changes: there
    are no locks, nothing beside it is made, and neither file nor folder has to be writable.
    """

    _open: ClassVar[dict[Path, "Database"]] = {}

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._users = 0
        self._opened = uuid.uuid4().hex
        self._beside = 0
        self._connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro&immutable=1" if read_only else path,
            uri=read_only,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_MILLISECONDS / 1000,
        )
        try:
            self._connection.execute("PRAGMA cache_size = -32000")
            if read_only:
                # There may be nowhere to put temporary files.
                self._connection.execute("PRAGMA temp_store = MEMORY")
                if self._version() == _BEFORE_ORIGINS:
                    self._connection.execute(ORIGIN.replace("CREATE TABLE", "CREATE TEMP TABLE"))
                else:
                    self._check_version()
            else:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._migrate()
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def acquire(cls, folder: str | Path, *, read_only: bool = False) -> "Database":
        """The database of a folder, as whoever acquired it first opened it; each acquire needs its `release`."""
        path = (Path(folder) / FILE_NAME).resolve()
        database = cls._open.get(path)
        if database is None:
            database = cls._open[path] = cls(path, read_only=read_only)
        database._users += 1
        return database

    def release(self) -> None:
        """Give the connection back; the last one closes it."""
        self._users -= 1
        if self._users == 0:
            self._open.pop(self.path, None)
            self._connection.close()

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        return self._connection.execute(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first row of a query, or None."""
        return self._connection.execute(sql, parameters).fetchone()

    def within(self, sql: str, values: Iterable[Any], before: Sequence[Any] = ()) -> Iterator[Any]:
        """Rows of a query with `IN ({})` over any number of values, or of pairs of them for `VALUES {}`.

        `before` are the parameters ahead of the values.
        """
        pending = list(values)
        for start in range(0, len(pending), BATCH):
            batch = pending[start : start + BATCH]
            if isinstance(batch[0], tuple):
                marks, flat = ",".join(["(?, ?)"] * len(batch)), [part for pair in batch for part in pair]
            else:
                marks, flat = ",".join("?" * len(batch)), batch
            yield from self.all(sql.format(marks), [*before, *flat])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything or nothing. Must not be held across an `await`."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    async def turn(self) -> None:
        """Wait while another process is writing, at most as long as a write would wait, and leave the event loop free.

        Whoever writes then does so before the next `await`.
        """
        ends, pause = time.monotonic() + BUSY_MILLISECONDS / 1000, _FIRST_PAUSE_SECONDS
        while not self._free() and time.monotonic() < ends:
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _free(self) -> bool:
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            # Anything else is for the write itself to tell.
            return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        return True

    def write_at_once(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Write without waiting for anybody: for the event loop of a server. Raises `sqlite3.OperationalError`.

        It is for notes beside the content: this connection's `state` stays.
        """
        before = self._connection.total_changes
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            for sql, parameters in statements:
                self._connection.execute(sql, parameters)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
            self._beside += self._connection.total_changes - before

    def replace_by(self, folder: Path) -> None:
        """Take over another folder's database, at once and for every process that reads this one."""
        with closing(sqlite3.connect(folder / FILE_NAME)) as source:
            source.backup(self._connection)

    def generation(self) -> str:
        """Changes when the whole content was replaced."""
        return str(self.meta("generation"))

    def data_version(self) -> int:
        """Changes whenever another connection has written."""
        return int(self.one("PRAGMA data_version")[0])

    def state(self) -> str:
        """Another one after each write, by this connection or any other."""
        return f"{self._opened}-{self.data_version()}-{self._connection.total_changes - self._beside}"

    def meta(self, key: str) -> str | None:
        """A fact about the store, such as the embedding model that built it."""
        row = self.one("SELECT value FROM meta WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Remember a fact about the store."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _migrate(self) -> None:
        if self._version() == 0:
            with self.transaction() as connection:
                # Another process may have created the schema while this one waited for the lock.
                if self._version() == 0:
                    for statement in (_SCHEMA + CATALOGUE + ORIGIN).split(";\n"):
                        connection.execute(statement)
                    connection.execute("INSERT INTO meta VALUES ('generation', hex(randomblob(8)))")
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        if self._version() == 1:
            with self.transaction() as connection:
                if self._version() == 1:
                    add_catalogue(connection, CATALOGUE + ORIGIN)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        if self._version() == _BEFORE_ORIGINS:
            with self.transaction() as connection:
                if self._version() == _BEFORE_ORIGINS:
                    add_origins(connection, ORIGIN)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._check_version()

    def _check_version(self) -> None:
        if (version := self._version()) != SCHEMA_VERSION:
            remedy = " Bake it again." if version < SCHEMA_VERSION else ""
            raise StoreFormatError(
                f"the store has format {version}, and this version of cragside reads format {SCHEMA_VERSION}.{remedy}"
            )

    def _version(self) -> int:
        return int(self.one("PRAGMA user_version")[0])
