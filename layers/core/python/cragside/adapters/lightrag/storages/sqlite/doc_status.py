"""LightRAG's document status storage on SQLite, which LightRAG has to have; documents are in the catalogue (ADR 8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import orjson
from lightrag.base import (
    CURSOR_END,
    CURSOR_START,
    CursorAfter,
    CursorPosition,
    DocProcessingStatus,
    DocSchedulingRecord,
    DocStatus,
    DocStatusPage,
    DocStatusStorage,
    SourceAbsent,
    SourceConflict,
    SourceResolution,
    SourceUnique,
)
from lightrag.exceptions import StorageControlPlaneError, StorageRecordNotFoundError

from cragside.adapters.lightrag.ledger.sqlite.database import Database

_UPSERT = (
    "INSERT INTO doc_status VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET status = excluded.status,"
    " created_at = excluded.created_at, updated_at = excluded.updated_at, file_path = excluded.file_path,"
    " track_id = excluded.track_id, content_hash = excluded.content_hash, duplicate_of = excluded.duplicate_of,"
    " value = excluded.value"
)
_SORTABLE = {"created_at", "updated_at", "id", "file_path"}


@final
@dataclass
class SqliteDocStatusStorage(DocStatusStorage):
    """Each call is a transaction, so nothing waits for `index_done_callback`."""

    supports_strict_point_reads: ClassVar[bool] = True

    async def initialize(self) -> None:
        """Open the workspace's file."""
        self._db = Database.acquire(self.global_config["working_dir"])

    async def finalize(self) -> None:
        """Give the file back."""
        self._db.release()

    async def index_done_callback(self) -> None:
        """Nothing to do: every write is committed already."""

    async def get_by_id(self, id: str) -> dict[str, Any] | None:  # noqa: A002 (LightRAG's name)
        """The row, or None."""
        return (await self.get_by_ids([id]))[0]

    async def get_by_id_strict(self, id: str) -> dict[str, Any] | None:  # noqa: A002 (LightRAG's name)
        """The row, or None when it certainly is not there."""
        return await self.get_by_id(id)

    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        """Rows in the order of the ids, None for the missing."""
        found = self._by_ids(ids)
        return [found.get(key) for key in ids]

    async def filter_keys(self, keys: set[str]) -> set[str]:
        """The keys that are not there."""
        return set(keys) - {row[0] for row in self._db.within("SELECT id FROM doc_status WHERE id IN ({})", keys)}

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Write rows."""
        with self._db.transaction() as connection:
            connection.executemany(_UPSERT, [_columns(key, row) for key, row in data.items()])

    async def update_doc_status_fields(self, doc_id: str, fields: dict[str, Any], *, missing_ok: bool = False) -> None:
        """Change some fields of one row. `created_at` cannot be changed; an unknown row raises unless `missing_ok`."""
        if "created_at" in fields:
            raise ValueError("created_at is what documents are scheduled by and cannot be changed")
        with self._db.transaction() as connection:
            row = connection.execute("SELECT value FROM doc_status WHERE id = ?", (doc_id,)).fetchone()
            if row is None:
                if missing_ok:
                    return
                raise StorageRecordNotFoundError(doc_id)
            connection.execute(_UPSERT, _columns(doc_id, {**orjson.loads(row[0]), **fields}))

    async def delete(self, ids: list[str]) -> None:
        """Remove rows; missing ones are no error."""
        with self._db.transaction() as connection:
            connection.executemany("DELETE FROM doc_status WHERE id = ?", [(key,) for key in ids])

    async def is_empty(self) -> bool:
        """True when no document is known."""
        return self._db.one("SELECT 1 FROM doc_status LIMIT 1") is None

    async def drop(self) -> dict[str, str]:
        """Remove all rows."""
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM doc_status")
        return {"status": "success", "message": "data dropped"}

    async def get_status_counts(self) -> dict[str, int]:
        """How many documents are in each status."""
        counts = {status.value: 0 for status in DocStatus}
        counts.update(dict(self._db.all("SELECT status, count(*) FROM doc_status GROUP BY status")))
        return counts

    async def get_all_status_counts(self) -> dict[str, int]:
        """The same, with their sum under `all`."""
        counts = await self.get_status_counts()
        return {**counts, "all": sum(counts.values())}

    async def count_docs_by_statuses(self, statuses: list[DocStatus], *, strict: bool = True) -> int:
        """How many documents are in any of the statuses."""
        counts = await self.get_status_counts()
        return sum(counts[status.value] for status in set(statuses))

    async def get_docs_by_statuses(
        self, statuses: list[DocStatus], strict: bool = False
    ) -> dict[str, DocProcessingStatus]:
        """All documents in any of the statuses."""
        rows = self._db.within(
            "SELECT id, value FROM doc_status WHERE status IN ({})", [status.value for status in set(statuses)]
        )
        return {key: _processing(orjson.loads(value)) for key, value in rows}

    async def get_docs_by_statuses_page(
        self,
        statuses: list[DocStatus],
        *,
        limit: int,
        position: CursorPosition = CURSOR_START,
        strict: bool = False,
    ) -> DocStatusPage:
        """A page in the order of creation; `next_position is CURSOR_END` ends the sweep."""
        if limit <= 0:
            raise ValueError(f"a page needs a positive limit, not {limit}")
        if not statuses or position is CURSOR_END:
            return DocStatusPage(docs={}, next_position=CURSOR_END)
        marks = ",".join("?" * len(statuses))
        after = _position(position) if isinstance(position, CursorAfter) else ("", "")
        rows = self._db.all(
            f"SELECT id, value, created_at FROM doc_status WHERE status IN ({marks})"  # noqa: S608 (marks only)
            " AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?",
            (*[status.value for status in statuses], *after, limit),
        )
        docs = {key: self._scheduling_record_from_raw(key, orjson.loads(value)) for key, value, _ in rows}
        if len(rows) < limit:
            return DocStatusPage(docs=docs, next_position=CURSOR_END)
        last_key, _, last_created = rows[-1]
        return DocStatusPage(docs=docs, next_position=CursorAfter(orjson.dumps([last_created, last_key]).decode()))

    async def get_docs_by_ids(self, doc_ids: Sequence[str], *, strict: bool = False) -> dict[str, DocSchedulingRecord]:
        """What scheduling needs of those documents that are there."""
        return {key: self._scheduling_record_from_raw(key, row) for key, row in self._by_ids(doc_ids).items()}

    async def get_full_docs_by_ids(
        self, doc_ids: Sequence[str], *, strict: bool = False
    ) -> dict[str, DocProcessingStatus]:
        """Those documents that are there, whole."""
        return {key: _processing(row) for key, row in self._by_ids(doc_ids).items()}

    async def get_docs_by_track_id(self, track_id: str) -> dict[str, DocProcessingStatus]:
        """The documents of one enqueue call."""
        rows = self._db.all("SELECT id, value FROM doc_status WHERE track_id = ?", (track_id,))
        return {key: _processing(orjson.loads(value)) for key, value in rows}

    async def get_docs_paginated(
        self,
        status_filter: DocStatus | None = None,
        status_filters: list[DocStatus] | None = None,
        page: int = 1,
        page_size: int = 50,
        sort_field: str = "updated_at",
        sort_direction: str = "desc",
    ) -> tuple[list[tuple[str, DocProcessingStatus]], int]:
        """A page (10 to 200 documents, from 1) without lists of chunks, and the count of all that match."""
        statuses = self.resolve_status_filter_values(status_filter, status_filters) or {s.value for s in DocStatus}
        order = sort_field if sort_field in _SORTABLE else "updated_at"
        direction = "ASC" if sort_direction.lower() == "asc" else "DESC"
        size = min(max(page_size, 10), 200)
        where = f"FROM doc_status WHERE status IN ({','.join('?' * len(statuses))})"
        total = self._db.one(f"SELECT count(*) {where}", tuple(statuses))[0]
        rows = self._db.all(
            f"SELECT id, value {where} ORDER BY {order} {direction}, id LIMIT ? OFFSET ?",
            (*statuses, size, (max(page, 1) - 1) * size),
        )
        return [(key, _processing({**orjson.loads(value), "chunks_list": []})) for key, value in rows], total

    async def get_doc_by_file_path(self, file_path: str) -> dict[str, Any] | None:
        """The row of a file, or None."""
        row = self._db.one("SELECT value FROM doc_status WHERE file_path = ? ORDER BY created_at, id", (file_path,))
        return None if row is None else orjson.loads(row[0])

    async def get_doc_by_file_basename(self, basename: str) -> tuple[str, dict[str, Any]] | None:
        """The row that owns a file name, with its id, or None."""
        rows = self._owners(basename, 1)
        return (rows[0][0], orjson.loads(rows[0][1])) if rows else None

    async def get_doc_by_content_hash(
        self, content_hash: str, *, exclude_doc_id: str | None = None
    ) -> tuple[str, dict[str, Any]] | None:
        """The earliest row with this content that is neither `exclude_doc_id` nor a record of being its duplicate."""
        row = self._db.one(
            "SELECT id, value FROM doc_status WHERE content_hash = ? AND id IS NOT ? AND"
            " (? IS NULL OR duplicate_of IS NOT ?) ORDER BY created_at, id LIMIT 1",
            (content_hash, exclude_doc_id, exclude_doc_id, exclude_doc_id),
        )
        return None if row is None else (row[0], orjson.loads(row[1]))

    async def resolve_doc_source_strict(self, canonical_source_key: str) -> SourceResolution:
        """Whether no row, one row or several own a file name."""
        rows = self._owners(canonical_source_key, 2)
        if not rows:
            return SourceAbsent()
        if len(rows) == 1:
            key, value = rows[0]
            return SourceUnique(doc_id=key, doc=self._scheduling_record_from_raw(key, orjson.loads(value)))
        return SourceConflict(candidate_count=None, sample_doc_ids=tuple(sorted(row[0] for row in rows)))

    def _by_ids(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        rows = self._db.within("SELECT id, value FROM doc_status WHERE id IN ({})", ids)
        return {key: orjson.loads(value) for key, value in rows}

    def _owners(self, file_name: str, limit: int) -> list[Any]:
        if not file_name or file_name == "unknown_source":
            return []
        return self._db.all(
            "SELECT id, value FROM doc_status WHERE file_path = ? AND duplicate_of IS NULL"
            " ORDER BY created_at, id LIMIT ?",
            (file_name, limit),
        )


def _columns(key: str, row: dict[str, Any]) -> tuple[Any, ...]:
    row.setdefault("chunks_list", [])
    metadata = row.get("metadata") or {}
    status = row["status"]
    created = row.get("created_at") or ""
    return (
        key,
        status.value if isinstance(status, DocStatus) else status,
        created,
        row.get("updated_at") or created,
        row.get("file_path"),
        row.get("track_id"),
        row.get("content_hash"),
        # An empty string still marks a duplicate whose original is not named.
        metadata.get("original_doc_id", "") if metadata.get("is_duplicate") else None,
        orjson.dumps(row).decode(),
    )


def _processing(row: dict[str, Any]) -> DocProcessingStatus:
    row.pop("content", None)
    row["file_path"] = row.get("file_path") or "no-file-path"
    row.setdefault("metadata", {})
    row.setdefault("error_msg", None)
    return DocProcessingStatus.from_stored({**row, "status": DocStatus(row["status"])})


def _position(cursor: CursorAfter) -> tuple[str, str]:
    try:
        created, key = orjson.loads(cursor.opaque)
    except (ValueError, TypeError) as error:
        raise StorageControlPlaneError(f"not a cursor of this storage: {cursor.opaque!r}") from error
    return str(created), str(key)
