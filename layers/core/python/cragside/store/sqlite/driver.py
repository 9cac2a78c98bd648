"""Run a ledger's statements on one SQLite file, translated from PostgreSQL's words.

No coroutine here suspends within a transaction: other tasks of the process use the same connection."""

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Self

import orjson
from typing_extensions import override

from cragside.databases.lease_holders import is_gone
from cragside.domain.indexing import DocumentKey, Stored
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.embedder import Vectors
from cragside.store.chunking import TEXTS, CutPart
from cragside.store.documents import PARTS, SHARED_NAMES, stored_of
from cragside.store.driver import HELD, Changed, Driver, GraphChange, Row, Sizes
from cragside.store.errors import Lease, LeaseLost, StoreRemoved
from cragside.store.passages import FOUND, OWNERS
from cragside.store.sqlite.database import Database, failure_of, rows_apart
from cragside.store.sqlite.schema import UNTIDY
from cragside.store.sqlite.translation import bound, translated
from cragside.store.sqlite.upkeep import Checkup, Tidying


def write_values(database: Database, namespace: str, data: Mapping[str, dict[str, Any]]) -> None:
    """Write values with the time of their creation and change."""
    now = int(time.time())
    rows = database.within("SELECT id FROM kv WHERE namespace = ? AND id IN ({})", data, [namespace])
    known = {row[0] for row in rows}
    for key, value in data.items():
        if namespace.endswith(TEXTS):
            value.setdefault("llm_cache_list", [])
        if key not in known:
            value["create_time"] = now
        value["update_time"] = now
        value["_id"] = key
    database.many(
        "INSERT INTO kv VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        [(namespace, key, orjson.dumps(value).decode()) for key, value in data.items()],
    )


def erase_values(database: Database, namespace: str, ids: Iterable[str]) -> None:
    """Remove values; missing ones are no error."""
    database.many("DELETE FROM kv WHERE namespace = ? AND id = ?", [(namespace, key) for key in ids])


def has_text(namespace: str) -> bool:
    """Return True if full-text search finds the rows of a namespace too."""
    return namespace.endswith("chunks")


_PUT_VECTOR = "INSERT INTO vector (namespace, id, source, target, vector, value) VALUES (?, ?, ?, ?, ?, ?)"


def write_vectors(
    database: Database, namespace: str, rows: Mapping[str, Row], vectors: Vectors, searched: Sequence[str] = ()
) -> None:
    """Write rows with their vectors. `searched` is what full-text search sees of passages."""
    # A fresh sequence number for each written row tells every reader's index what is new.
    erase_vectors(database, namespace, list(rows))
    written = [
        (
            namespace,
            key,
            row.get("entity_name", row.get("src_id")),
            row.get("tgt_id"),
            vector.tobytes(),
            orjson.dumps(row).decode(),
        )
        for (key, row), vector in zip(rows.items(), vectors, strict=True)
    ]
    database.many(_PUT_VECTOR, written)
    if has_text(namespace):
        found = database.within("SELECT id, seq FROM vector WHERE namespace = ? AND id IN ({})", rows, [namespace])
        numbers = dict(found)
        words = searched or [""] * len(rows)
        terms = [(numbers[key], each) for key, each in zip(rows, words, strict=True)]
        database.many("INSERT INTO passage (rowid, terms) VALUES (?, ?)", terms)


def erase_vectors(database: Database, namespace: str, ids: Sequence[str]) -> None:
    """Remove rows; missing ones are no error."""
    found = database.within("SELECT seq FROM vector WHERE namespace = ? AND id IN ({})", ids, [namespace])
    numbers = [(row[0],) for row in found]
    database.many("DELETE FROM vector WHERE seq = ?", numbers)
    if has_text(namespace):
        database.many("DELETE FROM passage WHERE rowid = ?", numbers)
    database.vector_writes[namespace] += 1


# ruff: noqa: S608 - statements are put together from names in this module, values are bound


# What a model said of a version's passages. CROSS JOIN keeps this order: otherwise SQLite pairs every answer of the
# store with every text.
ANSWERS = """SELECT DISTINCT kept.namespace, kept.id, kept.value FROM chunk
    CROSS JOIN kv AS text ON text.namespace = 'text_chunks' AND text.id = chunk.id
    CROSS JOIN json_each(text.value, '$.llm_cache_list') AS named
    CROSS JOIN kv AS kept ON kept.namespace = 'llm_response_cache' AND kept.id = named.value WHERE chunk.version = ?"""
_PASSAGES = "SELECT id, part, number, page, section, tier2 FROM chunk WHERE version = ?"
_TEXTS = """SELECT namespace, kv.id, json_set(value, '$.llm_cache_list', json('[]')) FROM kv
    JOIN chunk ON chunk.id = kv.id WHERE namespace = 'text_chunks' AND version = ?"""
_ADD_PASSAGE = "INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD_TEXT = f"INSERT OR REPLACE INTO kv VALUES ('{TEXTS}', ?, ?)"
# Edges come after their nodes, and count themselves.
_PUT_NODE = "INSERT INTO node VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET value = excluded.value"
_PUT_EDGE = "INSERT INTO edge VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
# Longer than any lease.
_LONGEST_SECONDS = 120
_HELD = translated(HELD)
_SIZES = "SELECT (SELECT count(*) FROM passage), (SELECT count(*) FROM node), (SELECT count(*) FROM edge)"


class SqliteDriver(Driver):
    """Statements for one workspace, on the connection that LightRAG's storages share."""

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self.database = database
        self._clock = clock
        self._checkup = Checkup(database, clock)
        self._tidying = Tidying(database)

    @property
    @override
    def place(self) -> str:
        return str(self.database.path)

    @property
    @override
    def read_only(self) -> bool:
        return self.database.read_only

    @override
    async def all(self, sql: str, *values: Any) -> list[Any]:
        return self.database.all(*bound(sql, values))

    @override
    async def all_aside(self, sql: str, *values: Any) -> list[Any]:
        return await rows_apart(self.database, *bound(sql, values))

    @override
    async def one(self, sql: str, *values: Any) -> Any:
        return self.database.one(*bound(sql, values))

    @override
    async def many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self.database.many(translated(sql), rows)

    @override
    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        with self.database.transaction():
            yield

    @override
    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        with self.database.snapshot():
            yield

    @override
    async def keep(self) -> None:
        await self.database.keep()

    @override
    async def show(self, changed: Changed) -> None:
        """Nobody else reads the file."""

    @override
    def note_lost_lease(self) -> None:
        """Figures are of servers."""

    @override
    async def state(self) -> str:
        return self.database.state()

    @override
    def state_at_hand(self) -> str:
        return self.database.state()

    @override
    async def generation(self) -> str:
        return self.database.generation()

    @override
    @asynccontextmanager
    async def sizes(self) -> AsyncIterator[Sizes]:
        with self.database.snapshot():
            passages, entities, relations = self.database.one(_SIZES)
            yield Sizes(passages, entities, relations, size=_size_of(self.database.path))

    @override
    async def replace_by(self, other: Self, leases: Sequence[Lease]) -> None:
        def check(content: Connection) -> None:
            for lease in leases:
                if content.execute(f"SELECT 1 FROM lease WHERE {_HELD}", _key(lease)).fetchone() is None:
                    raise LeaseLost

        self.database.replace_by(other.database, check)

    @override
    async def catch_up(self) -> None:
        """No other database has a share of it."""

    @override
    async def catch_up_graph(self) -> None:
        """The graph is in the file too."""

    @override
    async def flush(self) -> None:
        self.database.flush()

    @property
    @override
    def reported_damage(self) -> str:
        return self.database.damage

    @override
    async def damage(self, *, whole: bool = False) -> str:
        return await self._checkup.damage(whole=whole)

    @override
    def tidy(self) -> None:
        self._tidying.ask()

    @override
    async def is_untidy(self) -> bool:
        return self.database.meta(UNTIDY) is not None

    @property
    @override
    def is_tidying(self) -> bool:
        return self._tidying.busy

    @override
    async def close(self) -> None:
        await self._tidying.close()
        await self._checkup.close()

    @override
    def release(self) -> None:
        self.database.release()

    @override
    async def mark_untidy(self) -> None:
        self.database.all("INSERT OR REPLACE INTO meta VALUES (?, hex(randomblob(8)))", (UNTIDY,))

    @override
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Each taking is a row of its own, and its number is the epoch; returning deletes the row."""
        await self.database.turn()
        now = self._clock.time()
        with self.database.note() as connection:
            # Whoever removes a workspace holds its leases until the file is away.
            if self.database.is_removed():
                raise StoreRemoved
            row = connection.execute("SELECT holder, expires FROM lease WHERE name = ?", (name,)).fetchone()
            if row and row[0] != holder and _is_current(row[0], row[1], now):
                return None
            put = "INSERT OR REPLACE INTO lease (name, holder, expires) VALUES (?, ?, ?)"
            return Lease(name, holder, connection.execute(put, (name, holder, now + seconds)).lastrowid or 0)

    @override
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        if not await self.database.turn():
            return True  # nobody else can take it either while somebody writes for so long
        with self.database.note() as connection:
            renew = f"UPDATE lease SET expires = ?4 WHERE {_HELD}"
            return connection.execute(renew, (*_key(lease), self._clock.time() + seconds)).rowcount > 0

    @override
    async def return_lease(self, lease: Lease) -> None:
        await self.database.turn()
        with self.database.note() as connection:
            connection.execute(f"DELETE FROM lease WHERE {_HELD}", _key(lease))

    @override
    async def embedding_model(self) -> str | None:
        return self.database.meta("embedding_model")

    @override
    async def stored_dimensions(self) -> int | None:
        stored = self.database.one("SELECT length(vector) / 4 FROM vector LIMIT 1")
        return int(stored[0]) if stored else None

    @override
    async def bind(self, model: str, dimensions: int | None) -> None:
        self.database.all("INSERT OR IGNORE INTO meta VALUES ('embedding_model', ?)", (model,))

    @override
    async def passages_with_documents(
        self, ids: Sequence[str]
    ) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any], Collection[str]]:
        found = await self.all(FOUND, ids)
        owners = await self.all(OWNERS, list({row[8] for row in found}))
        parts = await self.all(PARTS, [row[0] for row in owners])
        shared = await self.all(SHARED_NAMES, list({row[2] for row in owners}))
        return found, owners, parts, {row[0] for row in shared}

    @override
    async def add_passages(self, version: int, parts: Sequence[CutPart]) -> None:
        passages = [(part.number, each) for part in parts for each in part.passages]
        rows = [(each.id, version, part, each.number, each.page, each.places, None) for part, each in passages]
        self.database.many(_ADD_PASSAGE, rows)
        self.database.many(_ADD_TEXT, [(each.id, json.dumps(each.text, ensure_ascii=False)) for _, each in passages])

    @override
    async def erase_texts(self, ids: Sequence[str]) -> None:
        erase_vectors(self.database, "chunks", ids)
        erase_values(self.database, TEXTS, ids)

    @override
    async def copy_passages(self, old: Self, old_version: int, version: int) -> None:
        passages, texts, answers = (old.database.all(sql, (old_version,)) for sql in (_PASSAGES, _TEXTS, ANSWERS))
        self.database.many(_ADD_PASSAGE, [(key, version, *facts) for key, *facts in passages])
        self.database.many("INSERT OR IGNORE INTO kv VALUES (?, ?, ?)", [*texts, *answers])

    @override
    async def write_passage_vectors(self, rows: Mapping[str, Row], searched: Sequence[str], vectors: Vectors) -> None:
        write_vectors(self.database, "chunks", rows, vectors, searched)

    @override
    async def change_graph(self, change: GraphChange, model: str) -> None:
        nodes, edges, many = change.nodes.items(), change.edges.items(), self.database.many
        many("DELETE FROM edge WHERE source = ? AND target = ?", [ends for ends, row in edges if not row])
        many("DELETE FROM node WHERE id = ?", [(name,) for name, row in nodes if not row])
        many(_PUT_NODE, [(name, orjson.dumps(row).decode()) for name, row in nodes if row])
        many(_PUT_EDGE, [(*ends, orjson.dumps(row).decode()) for ends, row in edges if row])
        for namespace, changed in change.vectors.items():
            erase_vectors(self.database, namespace, changed.removed)
            updated = [(orjson.dumps(row).decode(), namespace, key) for key, row in changed.updated.items()]
            many("UPDATE vector SET value = ? WHERE namespace = ? AND id = ?", updated)
            write_vectors(self.database, namespace, changed.written, changed.vectors)
        for namespace, values in change.values.items():
            erase_values(self.database, namespace, [key for key, value in values.items() if value is None])
            written = {key: value for key, value in values.items() if value is not None}
            write_values(self.database, namespace, written)

    @override
    async def save_query(self, key: str, text: str, created_at: str, most: int) -> None:
        self.database.write_at_once(
            ("INSERT OR REPLACE INTO query VALUES (?, ?, ?)", (key, text, created_at)),
            ("DELETE FROM query WHERE rowid <= (SELECT max(rowid) FROM query) - ?", (most,)),
        )


def _is_current(holder: object, expires: object, now: float) -> bool:
    """Return True if a lease still runs. One that ends too far in the future, by a wrong clock, does not."""
    runs = isinstance(expires, float | int) and now < expires <= now + _LONGEST_SECONDS
    return runs and not is_gone(str(holder))


def _size_of(path: Path) -> int:
    """Measure a store's file in bytes, with those beside it that wait to be written into it."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _key(lease: Lease) -> tuple[str, str, int]:
    return lease.name, lease.holder, lease.epoch


def stored_in(path: Path, keys: Collection[DocumentKey] = ()) -> Stored:
    """Measure a store as `Backend.stored` does. Counts and sizes are of one moment. Raises `LedgerError`."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("BEGIN")

            async def read(sql: str, *values: Any) -> list[Any]:
                return connection.execute(*bound(sql, values)).fetchall()

            return _ended(stored_of(read, keys))
    except sqlite3.Error as error:
        raise failure_of(error) from error


def _ended(coroutine: Coroutine[Any, Any, Stored]) -> Stored:
    """Return the result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("A statement on SQLite waits for something.")
