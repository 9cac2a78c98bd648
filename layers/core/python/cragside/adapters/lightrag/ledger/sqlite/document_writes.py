"""The versions of a document: which one is current, and what becomes of the one before it."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from datetime import UTC, datetime
from sqlite3 import Connection

from typing_extensions import override

from cragside.adapters.lightrag.ledger.cutting import TEXTS, parts_of
from cragside.adapters.lightrag.ledger.entries import Entry, json_of, searched_title, title_of
from cragside.adapters.lightrag.ledger.failures import LedgerDamaged
from cragside.adapters.lightrag.ledger.sql_rows import columns_of
from cragside.adapters.lightrag.ledger.sqlite.leasing import Leasing
from cragside.adapters.lightrag.ledger.sqlite.schema import UNTIDY
from cragside.adapters.lightrag.ledger.sqlite.values import erase_values
from cragside.adapters.lightrag.ledger.sqlite.vectors import erase_vectors
from cragside.domain.document import SourceText

_ADD_TEXT = f"INSERT OR REPLACE INTO kv VALUES ('{TEXTS}', ?, ?)"
_WANT_ENRICHMENT = "UPDATE part SET enrichment = 'pending' WHERE version = ? AND enrichment = 'none'"
_VERSION = """SELECT version, state, coalesce((SELECT key FROM part WHERE part.version = document.version
    ORDER BY number LIMIT 1), '') FROM document WHERE id = ? AND content_hash = ?"""
# The versions of a document that are current, of one document or, without an id, of all.
_CHOSEN = "version IN (SELECT version FROM document WHERE state = 'current' AND (?1 IS NULL OR id = ?1))"


class DocumentWrites(Leasing):
    """Writes documents and their versions."""

    @override
    async def enter(self, entry: Entry) -> None:
        if damage := self._database.damage:
            raise LedgerDamaged(damage, "is damaged")
        with self._transaction() as connection:
            version = self._make_current(connection, entry)
            if entry.enrich:
                connection.execute(_WANT_ENRICHMENT, (version,))
            self._claim(connection, entry.identifier, entry.source.source, entry.source.name)
        await self._database.keep()

    @override
    async def retire(self, document_id: str) -> bool:
        known = self._record(document_id) is not None
        if known:
            with self._transaction() as connection:
                self._retire(connection, "id = ?", document_id)
                disown(connection, document_id)
            await self._database.keep()
        return known

    @override
    async def claim(self, document_id: str, source: str, name: str) -> None:
        with self._transaction() as connection:
            self._claim(connection, document_id, source, name)
        await self._database.keep()

    @override
    async def describe(self, document_id: str, source: SourceText, track: str) -> None:
        with self._transaction() as connection:
            current = "SELECT version FROM document WHERE id = ? AND state = 'current'"
            for (version,) in connection.execute(current, (document_id,)).fetchall():
                _embed_again_if_retitled(connection, version, source)
            self._claim(connection, document_id, source.source, source.name)
            connection.execute(
                "UPDATE document SET title = ?, metadata = ?, track = ?, updated_at = ?"
                " WHERE id = ? AND state = 'current'",
                (title_of(source), json_of(source.metadata), track, datetime.now(UTC).isoformat(), document_id),
            )
        await self._database.keep()

    @override
    async def want_enrichment(self, document_id: str) -> None:
        with self._transaction() as connection:
            row = connection.execute(
                "UPDATE document SET enrich = 1 WHERE id = ? AND state = 'current' RETURNING version", (document_id,)
            ).fetchone()
            if row is not None:
                connection.execute(_WANT_ENRICHMENT, row)
        await self._database.keep()

    @override
    async def requeue(self, document_id: str | None, *, force: bool) -> None:
        changes = [
            f"part SET error = '' WHERE {_CHOSEN}",
            f"part SET enrichment = 'pending' WHERE {_CHOSEN} AND enrichment IN ('failed', 'processing')",
        ]
        if force:
            changes += [
                f"part SET embedded = 0, enrichment = 'pending' WHERE {_CHOSEN}",
                "document SET enrich = 1 WHERE state = 'current' AND (?1 IS NULL OR id = ?1)",
            ]
        with self._transaction() as connection:
            for change in changes:
                connection.execute(f"UPDATE {change}", (document_id,))
        await self._database.keep()

    @override
    async def drop_swept(self) -> None:
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM document WHERE state = 'gone' AND version NOT IN (SELECT version FROM part)"
            )
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, hex(randomblob(8)))", (UNTIDY,))

    def _make_current(self, connection: Connection, entry: Entry) -> int:
        created_at = self._created_at(entry.identifier)
        self._put_aside(connection, entry.identifier)
        known = connection.execute(_VERSION, (entry.identifier, entry.digest)).fetchone()
        if known is not None:
            version, state, key = known
            if state == "replaced":
                return _update(connection, version, entry, created_at)
            if key == f"{entry.key}-0":
                _update(connection, version, entry, created_at)
                return _add_parts(connection, version, entry)
            # Its share of the graph is still to be taken out, by the passages that it had.
            aside = "UPDATE document SET content_hash = content_hash || '-' || version WHERE version = ?"
            connection.execute(aside, (version,))
        return _add_parts(connection, _add(connection, entry, created_at), entry)

    def _put_aside(self, connection: Connection, identifier: str) -> None:
        """A version that was never complete has nothing to serve until the new one is."""
        current = self._record(identifier)
        if current is not None and current.searchable and current.parts:
            replaced = "UPDATE document SET state = 'replaced' WHERE id = ? AND state = 'current'"
            connection.execute(replaced, (identifier,))
        else:
            self._retire(connection, "state = 'current' AND id = ?", identifier)

    def _created_at(self, document_id: str) -> str | None:
        """When a document that is there was accepted first."""
        earliest = "SELECT min(created_at) FROM document WHERE id = ? AND state <> 'gone'"
        row = self._database.one(earliest, (document_id,))
        return None if row[0] is None else str(row[0])

    def _retire(self, connection: Connection, where: str, document_id: str) -> None:
        """Make versions `gone`: nothing of their text is kept but the keys by which their share of the graph is
        found."""
        chosen = f"SELECT version FROM document WHERE state <> 'gone' AND {where}"
        for (version,) in connection.execute(chosen, (document_id,)).fetchall():
            ids = [row[0] for row in connection.execute("SELECT id FROM chunk WHERE version = ?", (version,))]
            self._erase_passages(connection, ids)
            connection.execute("UPDATE chunk SET section = '', tier2 = NULL WHERE version = ?", (version,))
            connection.execute(
                "UPDATE part SET embedded = 0, enrichment = 'none', error = '', tier3 = NULL, enriched_at = NULL"
                " WHERE version = ?",
                (version,),
            )
            connection.execute(
                "UPDATE document SET state = 'gone', text = '', title = '', tier1 = '{}', metadata = '{}', marks = '[]'"
                " WHERE version = ?",
                (version,),
            )

    def _erase_passages(self, connection: Connection, ids: list[str]) -> None:
        erase_vectors(self._database, connection, "chunks", ids)
        erase_values(connection, TEXTS, ids)

    @staticmethod
    def _claim(connection: Connection, document_id: str, source: str, name: str) -> None:
        connection.execute(
            "INSERT INTO origin VALUES (?, ?) ON CONFLICT (document_id) DO UPDATE SET source = excluded.source",
            (document_id, source),
        )
        connection.execute(
            "UPDATE document SET title = iif(title = name, ?1, title), name = ?1"
            " WHERE id = ?2 AND state <> 'gone' AND name <> ?1",
            (name, document_id),
        )


def disown(connection: Connection, document_id: str) -> None:
    """Leave the source of a document that is deleted to whoever brings it next."""
    connection.execute("DELETE FROM origin WHERE document_id = ?", (document_id,))


def _add(connection: Connection, entry: Entry, created_at: str | None) -> int:
    facts = columns_of(entry, created_at)
    names, marks = ", ".join(facts), ", ".join("?" * len(facts))
    added = connection.execute(
        f"INSERT INTO document (id, content_hash, {names}) VALUES (?, ?, {marks})",
        (entry.identifier, entry.digest, *facts.values()),
    )
    return int(added.lastrowid or 0)


def _update(connection: Connection, version: int, entry: Entry, created_at: str | None) -> int:
    """Make a version that is there the current one, with what was said of it this time."""
    _embed_again_if_retitled(connection, version, entry.source)
    facts = columns_of(entry, created_at)
    changes = ", ".join(f"{name} = ?" for name in facts)
    connection.execute(f"UPDATE document SET {changes} WHERE version = ?", (*facts.values(), version))
    return version


def _embed_again_if_retitled(connection: Connection, version: int, source: SourceText) -> None:
    title, name = connection.execute("SELECT title, name FROM document WHERE version = ?", (version,)).fetchone()
    if searched_title(title, name) != searched_title(title_of(source), source.name):
        connection.execute("UPDATE part SET embedded = 0 WHERE version = ?", (version,))


def _add_parts(connection: Connection, version: int, entry: Entry) -> int:
    """Enter a version's parts and their passages; those that are there are the same and stay."""
    parts: list[tuple[object, ...]] = []
    chunks: list[tuple[object, ...]] = []
    texts: list[tuple[str, str]] = []
    enrichment = "pending" if entry.enrich else "none"
    for part in parts_of(entry):
        parts.append((version, part.number, part.key, part.first, part.last, enrichment))
        for each in part.passages:
            chunks.append((each.id, version, part.number, each.number, each.page, each.places))
            texts.append((each.id, json.dumps(each.text, ensure_ascii=False)))
    connection.executemany("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?, ?, 0, ?, '', NULL, NULL)", parts)
    connection.executemany("INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?, ?, ?, NULL)", chunks)
    connection.executemany(_ADD_TEXT, texts)
    return version
