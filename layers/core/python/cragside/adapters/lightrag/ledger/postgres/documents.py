"""The documents of a ledger, read out of their rows."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from typing_extensions import override

from cragside.adapters.lightrag.ledger.entries import parsed, parsed_metadata
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.postgres.choosing import FILE_TYPES, LANGUAGES, STATUS, chosen
from cragside.adapters.lightrag.ledger.postgres.store import PostgresStore
from cragside.adapters.lightrag.ledger.sql_rows import (
    PART_COLUMNS,
    label_of,
    parts_by_version,
    record_of,
    sources_by_name,
)
from cragside.domain.document import Mark, SourceText
from cragside.domain.indexing import LATEST, DocumentRecord, DocumentStatus, Listing
from cragside.domain.names import MOST_NAMESAKES, distinct_labels, in_full, names_below

# In the order of `record_of`.
FIELDS = (
    "document.version, document.id, document.name, title, file_type, doc_type, content_hash, size, characters,"
    " created_at, updated_at, track, tier1, metadata, origin.source"
)
DOCUMENT = "crag.document LEFT JOIN crag.origin ON origin.store = document.store AND document_id = document.id"
_CURRENT = f"SELECT {FIELDS} FROM {DOCUMENT} WHERE document.store = $1 AND state = 'current'"
# Of a source, or without one and of that name.
OF_SOURCE = """document.id IN (
    SELECT document_id FROM crag.origin WHERE store = $1 AND md5(source) = md5($2) AND source = $2
    UNION ALL SELECT id FROM crag.document AS nameless
    WHERE store = $1 AND state = 'current' AND md5(name) = md5($2) AND name = $2
    AND NOT EXISTS (SELECT 1 FROM crag.origin WHERE origin.store = $1 AND document_id = nameless.id))"""
_NAMED = "md5(document.name) = md5($2) AND document.name = $2"
_NAMESAKES = f"""SELECT origin.source FROM {DOCUMENT}
    WHERE document.store = $1 AND state = 'current' AND {_NAMED} LIMIT {MOST_NAMESAKES + 1}"""
_OF_NAMES = """SELECT name, count(*) FROM crag.document WHERE store = $1 AND state = 'current'
    AND md5(name) = ANY(SELECT md5(each) FROM unnest($2::text[]) AS each) AND name = ANY($2) GROUP BY name"""
_PARTS = f"""SELECT {PART_COLUMNS} FROM crag.part
    JOIN crag.document USING (version) WHERE store = $1 AND version = ANY($2) ORDER BY version, number"""
_SOURCE = f"""SELECT name, text, title, file_type, doc_type, size, marks, tier1, metadata, origin.source FROM {DOCUMENT}
    WHERE document.store = $1 AND state = 'current' AND document.id = $2"""


class DocumentReads(Ledger):
    """Reads whole documents."""

    def __init__(self, store: PostgresStore, workspace: str) -> None:
        self._store = store
        self._workspace = workspace

    @override
    async def record(self, document_id: str) -> DocumentRecord | None:
        return next(iter(await self._chosen("document.id = $2", document_id)), None)

    @override
    async def sourced(self, source: str) -> DocumentRecord | None:
        return next(iter(await self._chosen(OF_SOURCE, source)), None)

    @override
    async def named(self, name: str) -> list[DocumentRecord]:
        return await self._chosen(f"{_NAMED} ORDER BY updated_at DESC, document.version DESC", name)

    @override
    async def below(self, folder: str) -> list[DocumentRecord]:
        inside = folder.rstrip("/")
        between = "left(origin.source, 400) >= left($2, 400) AND left(origin.source, 400) <= left($3, 400)"
        return await self._chosen(
            f"{between} AND origin.source > $2 AND origin.source < $3 ORDER BY origin.source",
            f"{inside}/",
            f"{inside}0",
        )

    @override
    async def twins(self, content_hash: str) -> list[DocumentRecord]:
        return await self._chosen("content_hash = $2", content_hash)

    @override
    async def has_source(self, source: str) -> bool:
        return await self._store.one(f"{_CURRENT} AND {OF_SOURCE}", source) is not None

    @override
    async def names(self) -> dict[str, str]:
        rows = await self._store.all(
            "SELECT id, name FROM crag.document WHERE store = $1 AND state = 'current' ORDER BY name"
        )
        return {row[0]: row[1] for row in rows}

    @override
    async def labels(self, ids: Collection[str]) -> dict[str, str]:
        rows = await self._store.all(f"{_CURRENT} AND document.id = ANY($2)", list(ids))
        labels = await self._labels(rows, await self._shared_names(rows))
        return {row[1]: label_of(row, labels) for row in rows}

    @override
    async def page(
        self, limit: int, offset: int, status: DocumentStatus | None, track: str | None, listing: Listing = LATEST
    ) -> tuple[list[DocumentRecord], int]:
        versions, counted, values = chosen(listing, status, track)
        limits = f"LIMIT ${len(values) + 2} OFFSET ${len(values) + 3}"
        async with self._store.snapshot():
            shown = [row[0] for row in await self._store.all(f"{versions} {limits}", *values, limit, offset)]
            rows = {row[0]: row for row in await self._store.all(f"{_CURRENT} AND document.version = ANY($2)", shown)}
            total = await self._store.value(counted, *values)
            return await self._records([rows[version] for version in shown]), int(total)

    @override
    async def file_types(self) -> dict[str, int]:
        return {str(kind): int(count) for kind, count in await self._store.all(FILE_TYPES)}

    @override
    async def languages(self) -> dict[str | None, int]:
        return {language: int(count) for language, count in await self._store.all(LANGUAGES)}

    @override
    async def source(self, document_id: str) -> SourceText | None:
        row = await self._store.one(_SOURCE, document_id)
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

    async def _statuses(self) -> dict[str, int]:
        rows = await self._store.all(f"SELECT status, count(*) FROM ({STATUS}) AS told GROUP BY status")
        return {str(status): int(count) for status, count in rows}

    async def _chosen(self, condition: str, *values: Any) -> list[DocumentRecord]:
        return await self._records(await self._store.all(f"{_CURRENT} AND {condition}", *values))

    async def _records(self, rows: Sequence[Sequence[Any]]) -> list[DocumentRecord]:
        return [record for _, record in await self._with_rows(rows)]

    async def _with_rows(self, rows: Sequence[Sequence[Any]]) -> list[tuple[Sequence[Any], DocumentRecord]]:
        if not rows:
            return []
        parts = await self._store.all(_PARTS, [row[0] for row in rows])
        return await self._joined(rows, parts, await self._shared_names(rows))

    async def _joined(
        self, rows: Sequence[Sequence[Any]], parts: Iterable[Sequence[Any]], shared: Collection[str]
    ) -> list[tuple[Sequence[Any], DocumentRecord]]:
        """Documents with their parts. `shared` are the names that several documents have."""
        of_version, labels = parts_by_version(parts), await self._labels(rows, shared)
        return [(row, record_of(row, of_version.get(row[0], ()), labels)) for row in rows]

    async def _shared_names(self, rows: Sequence[Sequence[Any]]) -> set[str]:
        names = list({row[2] for row in rows})
        return {name for name, count in await self._store.all(_OF_NAMES, names) if count > 1}

    async def _labels(self, rows: Sequence[Sequence[Any]], shared: Collection[str]) -> dict[str, dict[str, str]]:
        return {
            name: await self._told_apart(name, wanted)
            if name in shared or len(wanted) > 1
            else dict.fromkeys(wanted, name)
            for name, wanted in sources_by_name(rows).items()
        }

    async def _told_apart(self, name: str, wanted: Collection[str]) -> dict[str, str]:
        namesakes = {source or name for (source,) in await self._store.all(_NAMESAKES, name)}
        if len(namesakes) > MOST_NAMESAKES:
            return {source: in_full(name, source) for source in wanted}
        longer = {each for source in {*wanted, *namesakes} for each in names_below(source)}
        taken = {row[0] for row in await self._store.all(_OF_NAMES, list(longer))}
        return distinct_labels(
            name, {*wanted, *namesakes}, taken=lambda asked: [each for each in asked if each in taken]
        )
