"""Moving exchanges of older versions into memory, and documents into a store that is built anew."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from collections.abc import Sequence

from typing_extensions import override

from cragside.adapters.lightrag.ledger.entries import Accepted, Suspect
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.sqlite.document_writes import disown
from cragside.adapters.lightrag.ledger.sqlite.notes import Notes
from cragside.adapters.lightrag.ledger.sqlite.schema import APART, PARTED

# What memory took in has this metadata and no track. What came by LightRAG's routes has a track that only these give.
_SUSPECTS = """
SELECT id, name, text, track, metadata FROM document WHERE state = 'current'
AND (track GLOB 'insert_*' OR track = '' AND json_extract(metadata, '$.kind') = 'conversation') ORDER BY version
"""
_COLUMNS = (
    "id, content_hash, state, name, title, file_type, doc_type, size, characters, created_at, updated_at, track,"
    " enrich, tier1, metadata, marks, text"
)


class Copying(Notes):
    """Takes documents and exchanges from one store to another."""

    @override
    async def is_parted(self) -> bool:
        return self._database.meta(APART) is not None

    @override
    async def suspects(self) -> list[Suspect]:
        rows = self._database.all(_SUSPECTS)
        return [Suspect(key, name, text, track, json.loads(metadata)) for key, name, text, track, metadata in rows]

    @override
    async def part_with(self, document_ids: Sequence[str], *, last: bool) -> None:
        with self._transaction() as connection:
            for identifier in document_ids:
                self._retire(connection, "id = ?", identifier)
                disown(connection, identifier)
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (PARTED + identifier,))
            if last:
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (APART,))

    @override
    async def has_parted_with(self, document_id: str) -> bool:
        return self._database.meta(PARTED + document_id) is not None

    @override
    async def accepted(self, document_id: str) -> Accepted | None:
        row = self._database.one(
            "SELECT track, enrich, created_at, updated_at FROM document WHERE state = 'current' AND id = ?",
            (document_id,),
        )
        return None if row is None else Accepted(row[0], bool(row[1]), row[2], row[3])

    @override
    async def backdate(self, document_id: str, created_at: str, updated_at: str) -> None:
        with self._transaction() as connection:
            connection.execute(
                "UPDATE document SET created_at = ?, updated_at = ? WHERE state = 'current' AND id = ?",
                (created_at, updated_at, document_id),
            )

    @override
    async def copy_facts_from(self, other: Ledger) -> None:
        old = on_sqlite(other)._database
        facts = old.all("SELECT key, value FROM meta WHERE key = ? OR key GLOB ?", (APART, f"{PARTED}*"))
        queries = old.all("SELECT id, text, created_at FROM query ORDER BY rowid")
        with self._transaction() as connection:
            # A store whose exchanges are still beside its documents is parted when it is opened, built anew or not.
            connection.execute("DELETE FROM meta WHERE key = ?", (APART,))
            connection.executemany("INSERT INTO meta VALUES (?, ?)", facts)
            connection.executemany("INSERT INTO query VALUES (?, ?, ?)", queries)

    @override
    async def copy_document_from(self, other: Ledger, document_id: str) -> None:
        old = on_sqlite(other)._database
        current = f"SELECT version, {_COLUMNS} FROM document WHERE state = 'current' AND id = ?"
        version, *row = old.one(current, (document_id,))
        parts = old.all(
            "SELECT number, key, first, last, enrichment, CASE WHEN embedded THEN error ELSE '' END, tier3, enriched_at"
            " FROM part WHERE version = ?",
            (version,),
        )
        chunks = old.all("SELECT id, part, number, page, section, tier2 FROM chunk WHERE version = ?", (version,))
        texts = old.all(
            "SELECT namespace, kv.id, json_set(value, '$.llm_cache_list', json('[]')) FROM kv"
            " JOIN chunk ON chunk.id = kv.id WHERE namespace = 'text_chunks' AND version = ?",
            (version,),
        )
        origins = old.all("SELECT document_id, source FROM origin WHERE document_id = ?", (document_id,))
        with self._transaction() as connection:
            marks = ", ".join("?" * len(row))
            added = connection.execute(f"INSERT INTO document ({_COLUMNS}) VALUES ({marks})", row).lastrowid
            connection.executemany(
                "INSERT INTO part VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?)", [(added, *part) for part in parts]
            )
            connection.executemany(
                "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)", [(chunk[0], added, *chunk[1:]) for chunk in chunks]
            )
            connection.executemany("INSERT INTO kv VALUES (?, ?, ?)", texts)
            connection.executemany("INSERT INTO origin VALUES (?, ?)", origins)
            # The graph is empty yet.
            connection.execute(
                "UPDATE part SET enrichment = 'pending' WHERE version = ? AND enrichment = 'enriched'", (added,)
            )


def on_sqlite(ledger: Ledger) -> Copying:
    """The ledger, which has to be one on SQLite."""
    if not isinstance(ledger, Copying):
        raise TypeError("A ledger on SQLite takes over another one on SQLite alone.")
    return ledger
