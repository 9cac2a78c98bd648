"""The documents of a ledger, read out of their rows."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from collections.abc import Collection, Sequence
from typing import Any

from typing_extensions import override

from cragside.adapters.lightrag.ledger.entries import parsed, parsed_metadata
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.sql_rows import (
    PART_COLUMNS,
    label_of,
    parts_by_version,
    record_of,
    sources_by_name,
)
from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.ledger.sqlite.listing import FILE_TYPES, LANGUAGES, STATUS, chosen
from cragside.domain.document import Mark, SourceText
from cragside.domain.indexing import LATEST, DocumentRecord, DocumentStatus, Listing
from cragside.domain.names import MOST_NAMESAKES, distinct_labels, in_full

FIELDS = (
    "version, id, name, title, file_type, doc_type, content_hash, size, characters, created_at, updated_at, track,"
    " tier1, metadata, source"
)
DOCUMENT = "document LEFT JOIN origin ON origin.document_id = document.id"
_CURRENT = f"SELECT {FIELDS} FROM {DOCUMENT} WHERE state = 'current' AND {{}}"
# Of a source, or without one and of that name.
OF_SOURCE = """id IN (SELECT document_id FROM origin WHERE source = ?1 UNION ALL SELECT id FROM document
    WHERE state = 'current' AND name = ?1 AND NOT EXISTS (SELECT 1 FROM origin WHERE document_id = id))"""
_NAMESAKES = f"SELECT source FROM {DOCUMENT} WHERE state = 'current' AND name = ? LIMIT {MOST_NAMESAKES + 1}"
_SHARED_NAMES = "SELECT name FROM document WHERE state = 'current' AND name IN ({}) GROUP BY name HAVING count(*) > 1"


class DocumentReads(Ledger):
    """Reads whole documents."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    @override
    async def record(self, document_id: str) -> DocumentRecord | None:
        return self._record(document_id)

    @override
    async def sourced(self, source: str) -> DocumentRecord | None:
        return next(iter(self._chosen(OF_SOURCE, source)), None)

    @override
    async def named(self, name: str) -> list[DocumentRecord]:
        return self._chosen("name = ? ORDER BY updated_at DESC, version DESC", name)

    @override
    async def below(self, folder: str) -> list[DocumentRecord]:
        inside = folder.rstrip("/")
        return self._chosen("source > ? AND source < ? ORDER BY source", f"{inside}/", f"{inside}0")  # "0" follows "/"

    @override
    async def twins(self, content_hash: str) -> list[DocumentRecord]:
        return self._chosen("content_hash = ?", content_hash)

    @override
    async def has_source(self, source: str) -> bool:
        return self._database.one(_CURRENT.format(OF_SOURCE), (source,)) is not None

    @override
    async def names(self) -> dict[str, str]:
        return dict(self._database.all("SELECT id, name FROM document WHERE state = 'current' ORDER BY name"))

    @override
    async def labels(self, ids: Collection[str]) -> dict[str, str]:
        rows = list(self._database.within(_CURRENT.format("id IN ({})"), ids))
        labels = self._labels(rows)
        return {row[1]: label_of(row, labels) for row in rows}

    @override
    async def page(
        self, limit: int, offset: int, status: DocumentStatus | None, track: str | None, listing: Listing = LATEST
    ) -> tuple[list[DocumentRecord], int]:
        versions, counted, values = chosen(listing, status, track)
        with self._database.snapshot():
            if listing.search:  # reading all that it finds costs less than searching twice
                found = [row[0] for row in self._database.all(versions, values)]
                shown, total = found[offset : offset + limit], len(found)
            else:
                shown = [row[0] for row in self._database.all(f"{versions} LIMIT ? OFFSET ?", (*values, limit, offset))]
                total = int(self._database.one(counted, values)[0])
            rows = {row[0]: row for row in self._database.within(_CURRENT.format("version IN ({})"), shown)}
            return self._records([rows[version] for version in shown]), total

    @override
    async def file_types(self) -> dict[str, int]:
        return dict(self._database.all(FILE_TYPES))

    @override
    async def languages(self) -> dict[str | None, int]:
        return dict(self._database.all(LANGUAGES))

    @override
    async def source(self, document_id: str) -> SourceText | None:
        row = self._database.one(
            "SELECT name, text, title, file_type, doc_type, size, marks, tier1, metadata, source FROM document"
            " LEFT JOIN origin ON document_id = id WHERE state = 'current' AND id = ?",
            (document_id,),
        )
        if row is None:
            return None
        name, text, title, file_type, doc_type, size, marks, tier1, metadata, origin = row
        return SourceText(
            name=name,
            text=text,
            title=title,
            file_type=file_type,
            doc_type=doc_type,
            size=size,
            marks=tuple(Mark(*mark) for mark in json.loads(marks)),
            tier1=parsed(tier1),
            metadata=parsed_metadata(metadata),
            source=origin or name,
        )

    def _record(self, document_id: str) -> DocumentRecord | None:
        return next(iter(self._chosen("id = ?", document_id)), None)

    def _statuses(self) -> dict[str, int]:
        rows = self._database.all(
            f"SELECT status, count(*) FROM document JOIN ({STATUS}) USING (version) WHERE state = 'current'"
            " GROUP BY status"
        )
        return {str(status): int(count) for status, count in rows}

    def _chosen(self, condition: str, *values: Any) -> list[DocumentRecord]:
        return self._records(self._database.all(_CURRENT.format(condition), values))

    def _records(self, rows: Sequence[Sequence[Any]]) -> list[DocumentRecord]:
        return [record for _, record in self._with_rows(rows)]

    def _with_rows(self, rows: Sequence[Sequence[Any]]) -> list[tuple[Sequence[Any], DocumentRecord]]:
        sql = f"SELECT {PART_COLUMNS} FROM part WHERE version IN ({{}}) ORDER BY version, number"
        parts, labels = parts_by_version(self._database.within(sql, [row[0] for row in rows])), self._labels(rows)
        return [(row, record_of(row, parts.get(row[0], ()), labels)) for row in rows]

    def _labels(self, rows: Sequence[Sequence[Any]]) -> dict[str, dict[str, str]]:
        sources = sources_by_name(rows)
        shared = {name for (name,) in self._database.within(_SHARED_NAMES, sources)}
        return {
            name: self._told_apart(name, wanted) if name in shared or len(wanted) > 1 else dict.fromkeys(wanted, name)
            for name, wanted in sources.items()
        }

    def _told_apart(self, name: str, wanted: Collection[str]) -> dict[str, str]:
        namesakes = [source or name for (source,) in self._database.all(_NAMESAKES, (name,))]
        if len(namesakes) > MOST_NAMESAKES:
            return {source: in_full(name, source) for source in wanted}
        return distinct_labels(name, {*wanted, *namesakes}, taken=self._names_among)

    def _names_among(self, names: Collection[str]) -> list[str]:
        rows = self._database.within("SELECT name FROM document WHERE state = 'current' AND name IN ({})", names)
        return [row[0] for row in rows]
