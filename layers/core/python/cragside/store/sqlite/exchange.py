"""Write a store out of its SQLite file, and take one in."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

from cragside.ports.clock import Clock
from cragside.store.chunking import TEXTS, searched_text, searched_title
from cragside.store.exchange import (
    PASSAGE,
    Batches,
    EdgeRow,
    FactsRow,
    NodeRow,
    PassageRow,
    Read,
    SearchText,
    ValueRow,
    VectorRow,
    Write,
    Writing,
    insert,
    read_rows,
)
from cragside.store.sqlite.database import FILE_NAME, Database, failure_of
from cragside.store.sqlite.driver import SqliteDriver, has_text
from cragside.store.sqlite.schema import UNTIDY, check_format
from cragside.store.sqlite.translation import translated


def _vector(namespace: str, key: str, value: str, vector: bytes, *passage: str | None) -> VectorRow:
    content, title, name = (each or "" for each in passage)
    searched = searched_text(searched_title(title, name), content) if has_text(namespace) else None
    return VectorRow(namespace, key, value, vector, searched)


_FACTS = f"""SELECT (SELECT value FROM meta WHERE key = 'embedding_model'), (SELECT length(vector) / 4 FROM vector
    LIMIT 1), EXISTS (SELECT 1 FROM meta WHERE key = '{UNTIDY}')"""  # noqa: S608 (our own text)
_PASSAGES = f"""SELECT chunk.id, version, part, number, page, section, tier2, kv.value FROM chunk
    LEFT JOIN kv ON kv.namespace = '{TEXTS}' AND kv.id = chunk.id ORDER BY version, number"""  # noqa: S608 (our own)
_VECTORS = """SELECT namespace, vector.id, value, vector, json_extract(value, '$.content'), title,
    document.name FROM vector LEFT JOIN chunk ON chunk.id = vector.id LEFT JOIN document USING (version) ORDER BY seq"""
_READ = (
    Read(FactsRow, _FACTS),
    Read(PassageRow, _PASSAGES),
    Read(ValueRow, f"SELECT namespace, id, value FROM kv WHERE namespace <> '{TEXTS}' ORDER BY rowid"),  # noqa: S608
    Read(NodeRow, "SELECT id, value FROM node ORDER BY rowid"),
    Read(EdgeRow, "SELECT source, target, value FROM edge ORDER BY rowid"),
    Read(VectorRow, _VECTORS, _vector),
)
_ADD_VALUE = "INSERT INTO kv VALUES (?, ?, ?)"
_NEXT = "SELECT coalesce(max(seq), 0) + 1 FROM vector"
_ADD_VECTOR = """INSERT INTO vector (seq, namespace, id, source, target, vector, value)
    VALUES (?1, ?2, ?3, coalesce(json_extract(?4, '$.entity_name'), json_extract(?4, '$.src_id')),
    json_extract(?4, '$.tgt_id'), ?5, ?4)"""


async def dump(folder: Path) -> Batches:
    """Yield all rows of a folder's store, as of one moment. Raises `LedgerError`."""
    place = f"{(folder / FILE_NAME).resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(place, uri=True, isolation_level=None)) as connection:
            check_format(connection)
            connection.execute("BEGIN")

            async def fetch(sql: str, most: int) -> AsyncIterator[list[Any]]:
                found = connection.execute(translated(sql))
                while rows := found.fetchmany(most):
                    yield rows

            async for batch in read_rows(fetch, _READ):
                yield batch
    except sqlite3.Error as error:
        raise failure_of(error) from error


async def load(folder: Path, batches: Batches, search_text: SearchText, clock: Clock) -> None:
    """Write rows into a folder's store, which is empty and which nobody else uses. Raises `LedgerError`."""
    database = Database.acquire(folder)
    try:
        writing = _writing(database, search_text, clock)
        async for batch in batches:
            with database.transaction():
                await writing.write(batch)
    finally:
        database.release()


def _writing(database: Database, search_text: SearchText, clock: Clock) -> Writing:
    driver, many = SqliteDriver(database, clock), database.many

    def rows(sql: str) -> Write:
        async def write(batch: Any) -> None:
            many(sql, batch)

        return write

    async def facts(batch: Any) -> None:
        model, _, untidy = batch[0]
        told = ("embedding_model", model), (UNTIDY, "copied" if untidy else None)
        many("INSERT INTO meta VALUES (?, ?)", [fact for fact in told if fact[1]])

    async def passages(batch: Any) -> None:
        await driver.many(insert("passage", PASSAGE), [row[:-1] for row in batch])
        many(_ADD_VALUE, [(TEXTS, row.id, row.text) for row in batch if row.text is not None])

    async def vectors(batch: Any) -> None:
        numbered = list(enumerate(batch, start=database.one(_NEXT)[0]))
        many(_ADD_VECTOR, [(number, *row[:4]) for number, row in numbered])
        searched = [(number, search_text(row.searched)) for number, row in numbered if row.searched is not None]
        many("INSERT INTO passage (rowid, terms) VALUES (?, ?)", searched)

    own = {
        FactsRow: facts,
        PassageRow: passages,
        ValueRow: rows(_ADD_VALUE),
        NodeRow: rows("INSERT INTO node VALUES (?, ?, 0)"),
        EdgeRow: rows("INSERT INTO edge VALUES (?, ?, ?)"),
        VectorRow: vectors,
    }
    return Writing(driver, own)
