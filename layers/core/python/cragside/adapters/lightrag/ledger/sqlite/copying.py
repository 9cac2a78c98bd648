"""Copying documents into a store that is built anew."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from typing_extensions import override

from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.sqlite.notes import Notes

_COLUMNS = (
    "id, content_hash, state, name, title, file_type, doc_type, size, characters, created_at, updated_at, track,"
    " enrich, tier1, metadata, marks, text"
)

# What a model said of a version's passages. CROSS JOIN keeps this order: otherwise SQLite pairs every answer of the
# store with every text.
ANSWERS = """SELECT DISTINCT kept.namespace, kept.id, kept.value FROM chunk
    CROSS JOIN kv AS text ON text.namespace = 'text_chunks' AND text.id = chunk.id
    CROSS JOIN json_each(text.value, '$.llm_cache_list') AS named
    CROSS JOIN kv AS kept ON kept.namespace = 'llm_response_cache' AND kept.id = named.value WHERE chunk.version = ?"""


class Copying(Notes):
    """Takes documents and exchanges from one store to another."""

    @override
    async def copy_facts_from(self, other: Ledger) -> None:
        old = on_sqlite(other)._database
        queries = old.all("SELECT id, text, created_at FROM query ORDER BY rowid")
        with self._transaction() as connection:
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
        answers = old.all(ANSWERS, (version,))
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
            connection.executemany("INSERT OR IGNORE INTO kv VALUES (?, ?, ?)", [*texts, *answers])
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
