"""The steps of indexing a part, each of which is one transaction."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any

import orjson
from typing_extensions import override

from cragside.adapters.lightrag.ledger.changes import (
    ChangeGuard,
    GraphChange,
    MentionChange,
    OnceGone,
    Row,
    VectorChange,
    WhileCurrent,
)
from cragside.adapters.lightrag.ledger.entries import StoredPart, searched_text
from cragside.adapters.lightrag.ledger.sql_rows import ERROR_OF_EMBEDDING, ERROR_OF_ENRICHING
from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.ledger.sqlite.document_writes import DocumentWrites
from cragside.adapters.lightrag.ledger.sqlite.values import erase_values, write_values
from cragside.adapters.lightrag.ledger.sqlite.vectors import SearchText, erase_vectors, write_vectors
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.ports.embedder import Vectors

# Edges come after their nodes, and count themselves.
_PUT_NODE = "INSERT INTO node VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET value = excluded.value"
_PUT_EDGE = "INSERT INTO edge VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"


class PartWrites(DocumentWrites):
    """Writes parts: their states, their vectors and their share of the graph."""

    def __init__(self, database: Database, workspace: str, search_text: SearchText) -> None:
        super().__init__(database, workspace)
        self._search_text = search_text

    @override
    async def begin_enrichment(self, part: StoredPart) -> None:
        self._set(part, f"enrichment = 'processing', error = {ERROR_OF_EMBEDDING}")

    @override
    async def mark_failed(self, part: StoredPart, stage: str, reason: str) -> None:
        self._set(part, "error = ?" if stage == "embed" else "enrichment = 'failed', error = ?", reason)

    @override
    async def give_back(self, part: StoredPart) -> None:
        self._set(part, "enrichment = iif(enrichment = 'processing', 'pending', enrichment)")

    @override
    async def annotate(
        self, part: StoredPart, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None
    ) -> None:
        described = [(json.dumps(dict(tier)), key) for key, tier in zip(self._chunk_ids(part), tier2, strict=True)]
        with self._transaction() as connection:
            connection.executemany("UPDATE chunk SET tier2 = ? WHERE id = ?", described)
            if tier3 is not None:
                connection.execute(
                    "UPDATE part SET tier3 = ? WHERE version = ? AND number = ?",
                    (json.dumps(dict(tier3)), part.version, part.number),
                )

    @override
    async def enter_vectors(
        self, task: Task, part: StoredPart, rows: Mapping[str, Row], vectors: Vectors, model: str
    ) -> None:
        with self._transaction() as connection:
            self._check_model(model)
            _bind(connection, model)
            write_vectors(self._database, connection, "chunks", rows, vectors, self._words_with(part.title))
            connection.execute(
                f"UPDATE part SET embedded = 1, error = {ERROR_OF_ENRICHING} WHERE version = ? AND number = ?",
                (part.version, part.number),
            )
            waiting = connection.execute("SELECT 1 FROM part WHERE version = ? AND NOT embedded", (part.version,))
            if waiting.fetchone() is None:
                self._retire(connection, "state = 'replaced' AND id = ?", task.document_id)

    @override
    async def apply(self, change: GraphChange, guard: ChangeGuard, model: str) -> bool:
        with self._transaction() as connection:
            self._check_model(model)
            if isinstance(guard, WhileCurrent) and not _mark_enriched(connection, guard):
                return False
            if isinstance(guard, WhileCurrent):
                _bind(connection, model)
            if isinstance(guard, OnceGone) and not self._remove(connection, guard.part):
                return False
            _write_graph(connection, change)
            for namespace, changed in change.vectors.items():
                self._write_vectors(connection, namespace, changed)
            for namespace, values in change.values.items():
                erase_values(connection, namespace, [key for key, value in values.items() if value is None])
                written = {key: value for key, value in values.items() if value is not None}
                write_values(self._database, connection, namespace, written)
            for mentions in change.mentions:
                _write_mentions(connection, mentions)
            return True

    @override
    async def naming(self, kind: str, name: str, going: Collection[str], most: int) -> list[str]:
        marks = ",".join("?" * len(going))
        where = "SELECT passage FROM mention WHERE kind = ? AND name = ? AND passage"
        these = self._database.all(f"{where} IN ({marks})", (kind, name, *going))
        others = self._database.all(f"{where} NOT IN ({marks}) ORDER BY passage LIMIT ?", (kind, name, *going, most))
        return [row[0] for row in (*these, *others)]

    @override
    async def embedding_model(self) -> str | None:
        return self._database.meta("embedding_model")

    def _words_with(self, title: str) -> SearchText:
        return lambda text: self._search_text(searched_text(title, text))

    def _set(self, part: StoredPart, changes: str, *values: str) -> None:
        with self._transaction() as connection:
            connection.execute(
                f"UPDATE part SET {changes} WHERE version = ? AND number = ?", (*values, part.version, part.number)
            )

    def _check_model(self, model: str) -> None:
        """The next try opens the store anew."""
        if self._database.meta("embedding_model") not in (None, model):
            raise ServiceUnavailable(
                "knowledge_base", "The store has been built anew with another embedding model meanwhile."
            )

    def _remove(self, connection: Connection, part: StoredPart) -> bool:
        """Remove the rows of a part whose version is gone. False when it is not."""
        state = "SELECT 1 FROM document WHERE version = ? AND state = 'gone'"
        if connection.execute(state, (part.version,)).fetchone() is None:
            return False
        self._erase_passages(connection, self._chunk_ids(part))
        here = (part.version, part.number)
        connection.execute("DELETE FROM chunk WHERE version = ? AND part = ?", here)
        connection.execute("DELETE FROM part WHERE version = ? AND number = ?", here)
        return True

    def _write_vectors(self, connection: Connection, namespace: str, change: VectorChange) -> None:
        erase_vectors(self._database, connection, namespace, change.removed)
        connection.executemany(
            "UPDATE vector SET value = ? WHERE namespace = ? AND id = ?",
            [(orjson.dumps(row).decode(), namespace, key) for key, row in change.updated.items()],
        )
        write_vectors(self._database, connection, namespace, change.written, change.vectors)


def _bind(connection: Connection, model: str) -> None:
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('embedding_model', ?)", (model,))


def _mark_enriched(connection: Connection, guard: WhileCurrent) -> bool:
    """A version that went meanwhile must not come back into the graph."""
    row = connection.execute(
        f"UPDATE part SET enrichment = 'enriched', enriched_at = ?, error = {ERROR_OF_EMBEDDING},"
        " tier3 = json_set(coalesce(tier3, '{}'), '$.extraction', json(?)) WHERE version = ? AND number = ? AND"
        " version IN (SELECT version FROM document WHERE state = 'current') RETURNING 1",
        (datetime.now(UTC).isoformat(), json.dumps(dict(guard.tally)), guard.part.version, guard.part.number),
    )
    return row.fetchone() is not None


def _write_graph(connection: Connection, change: GraphChange) -> None:
    nodes, edges = change.nodes.items(), change.edges.items()
    connection.executemany("DELETE FROM edge WHERE source = ? AND target = ?", [ends for ends, row in edges if not row])
    connection.executemany("DELETE FROM node WHERE id = ?", [(name,) for name, row in nodes if not row])
    connection.executemany(_PUT_NODE, [(name, orjson.dumps(row).decode()) for name, row in nodes if row])
    connection.executemany(_PUT_EDGE, [(*ends, orjson.dumps(row).decode()) for ends, row in edges if row])


def _write_mentions(connection: Connection, change: MentionChange) -> None:
    connection.executemany(
        "DELETE FROM mention WHERE passage = ? AND kind = ?", [(each, change.kind) for each in change.without_passages]
    )
    connection.executemany(
        "DELETE FROM mention WHERE kind = ? AND name = ?", [(change.kind, name) for name in change.without_names]
    )
    connection.executemany(
        "INSERT OR IGNORE INTO mention VALUES (?, ?, ?)", [(change.kind, *mention) for mention in change.added]
    )
