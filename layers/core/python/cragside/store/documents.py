"""The documents of a ledger: their rows, lists of them, and their sizes."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cragside.domain.document import Mark, SourceText
from cragside.domain.indexing import (
    LATEST,
    STATUSES,
    DocumentKey,
    DocumentRecord,
    DocumentSort,
    DocumentStatus,
    Listing,
    Part,
    Stored,
)
from cragside.domain.names import MOST_NAMESAKES, distinct_labels, in_full, names_below
from cragside.store.chunking import Entry, behind, json_of, parsed, parsed_metadata, storable, title_of
from cragside.store.driver import Driver

# A part has one error. A stage that succeeds clears its own error and keeps that of the other stage.
ERROR_OF_EMBEDDING = "CASE WHEN embedded OR enrichment = 'failed' THEN '' ELSE error END"
ERROR_OF_ENRICHING = "CASE enrichment WHEN 'failed' THEN error ELSE '' END"
# Documents with their sources.
DOCUMENT = "crag.document LEFT JOIN crag.origin ON origin.store = document.store AND document_id = document.id"
# The columns of a part that `parts_by_version` reads.
PART_COLUMNS = "version, number, first, last, embedded, enrichment, error, tier3, enriched_at"
# Tier 1 contains this text if a part of the file was not read. Databases refuse JSON that Python writes, such as half a
# surrogate pair. In a text within it, the quotation marks have backslashes.
PARTLY_READ = '"unread": "'


def columns_of(entry: Entry, created_at: str | None) -> dict[str, object]:
    """Return the columns of a version, but for those of its document and of its text."""
    source, now = entry.source, datetime.now(UTC).isoformat()
    return {
        "state": "current",
        "name": source.name,
        "title": title_of(source),
        "file_type": source.file_type,
        "doc_type": source.doc_type,
        "size": len(source.text.encode()) if source.size is None else source.size,
        "characters": len(source.text),
        "created_at": created_at or now,
        "updated_at": now,
        "track": entry.track,
        "enrich": entry.enrich,
        "tier1": json_of(source.tier1),
        "metadata": json_of(source.metadata),
        "marks": json.dumps(
            [[mark.start, mark.page, storable(mark.section), *([True] if mark.apart else [])] for mark in source.marks]
        ),
        "text": source.text,
    }


def parts_by_version(rows: Iterable[Sequence[Any]]) -> dict[int, list[Part]]:
    """Return the parts of each version, from rows of `PART_COLUMNS`."""
    parts: dict[int, list[Part]] = {}
    for version, number, first, last, embedded, enrichment, error, tier3, enriched_at in rows:
        known = None if tier3 is None else parsed(tier3)
        part = Part(number, first, last, bool(embedded), enrichment, error, known, enriched_at)
        parts.setdefault(version, []).append(part)
    return parts


def sources_by_name(rows: Iterable[Sequence[Any]]) -> dict[str, set[str]]:
    """Return the sources of documents by their names, from rows as `record_of` reads them."""
    sources: dict[str, set[str]] = {}
    for row in rows:
        name, source = row[2], row[14]
        sources.setdefault(name, set()).add(source or name)
    return sources


def record_of(row: Sequence[Any], parts: Iterable[Part], labels: Mapping[str, Mapping[str, str]]) -> DocumentRecord:
    """Make a document of a row. `labels` has the label of each source of each name.

    The row has the version's number, id, name, title, file type, document type, hash, size, characters, both times,
    track, tier 1, metadata, the source or None, and where it was read the beginning of the text.
    """
    _, identifier, name, title, file_type, doc_type, digest, size, characters, created, updated, track, *more = row
    tier1, metadata, source, *beginning = more
    return DocumentRecord(
        id=identifier,
        name=name,
        title=title,
        file_type=file_type,
        doc_type=doc_type,
        content_hash=digest,
        size=size,
        characters=characters,
        created_at=created,
        updated_at=updated,
        track=track,
        tier1=parsed(tier1),
        metadata=parsed_metadata(metadata),
        parts=tuple(parts),
        source=source or name,
        label=label_of(row, labels),
        beginning=(beginning[0] or "") if beginning else "",
    )


def label_of(row: Sequence[Any], labels: Mapping[str, Mapping[str, str]]) -> str:
    """Return the label of the document of such a row."""
    name, source = row[2], row[14]
    return labels[name][source or name]


# Returns true if any part of a document failed, as `DocumentRecord.status` has it.
FAILED = "bool_or(enrichment = 'failed' OR (error <> '' AND NOT embedded))"
# What `DocumentRecord.status` says of the parts of a document.
_CASE = f"""CASE WHEN {FAILED} THEN 'failed'
    WHEN NOT bool_and(embedded) THEN 'pending' WHEN bool_and(enrichment = 'enriched') THEN 'enriched'
    ELSE 'searchable' END"""
STATUS = f"""SELECT document.version, {_CASE} AS status FROM crag.document LEFT JOIN crag.part USING (version)
    WHERE store = $1 AND state = 'current' GROUP BY document.version"""
_OWN_STATUS = f"(SELECT {_CASE} FROM crag.part WHERE part.version = document.version)"
FILE_TYPES = """SELECT file_type, count(*) FROM crag.document WHERE store = $1 AND state = 'current'
    GROUP BY file_type ORDER BY file_type COLLATE "C" """
# A pattern finds the field where the JSON of a name is none to PostgreSQL, such as half a surrogate pair.
LANGUAGES = """SELECT CASE WHEN tier2 IS NOT NULL
    THEN coalesce(substring(tier2 FROM '"language": "([a-z]+)"'), '') END AS language, count(*)
    FROM crag.passage JOIN crag.document ON document.version = passage.version
    WHERE passage.store = $1 AND document.state = 'current' GROUP BY 1"""
_PLACES = " ".join(f"WHEN '{status}' THEN {place}" for place, status in enumerate(STATUSES))
# The database's own collation may know the case of 26 letters only.
_LOWER = 'lower({} COLLATE "und-x-icu")'
_KEYS: dict[DocumentSort, str] = {
    "added": 'created_at COLLATE "C"',
    "changed": "updated_at",
    "name": f'{_LOWER.format("name")} COLLATE "C"',
    "file_type": 'file_type COLLATE "C"',
    "passages": "(SELECT coalesce(max(last) + 1, 0) FROM crag.part WHERE part.version = document.version)",
    "status": f"CASE {_OWN_STATUS} {_PLACES} END",
}
# No text that can be stored has the character between the three. As a query, the wanted text is lowered once.
_SEARCHED = "name || chr(31) || title || chr(31) || coalesce(source, name)"
_MENTIONED = f"strpos({_LOWER.format(f'({_SEARCHED})')}, (SELECT {_LOWER.format('$2::text')})) > 0"


class Chosen(NamedTuple):
    """The versions of a list in their order, still without LIMIT and OFFSET, and their number.

    The number of the store is `$1`, and the values follow.
    """

    versions: str
    total: str
    values: list[Any]


def chosen(listing: Listing, status: DocumentStatus | None, track: str | None) -> Chosen:
    """Return the statements for a list of documents."""
    tables, conditions, values = "crag.document", ["document.store = $1", "state = 'current'"], list[Any]()
    if listing.search:
        tables = DOCUMENT
        values.append(listing.search)
        conditions.append(_MENTIONED)
    if listing.unread:
        conditions.append(f"strpos(tier1, '{PARTLY_READ}') > 0")
    for column, value in ((_OWN_STATUS, status), ("track", track), ("file_type", listing.file_type)):
        if value is not None:
            values.append(value)
            conditions.append(f"{column} = ${len(values) + 1}")
    where, way = " AND ".join(conditions), "DESC" if listing.reverse else "ASC"
    order = f"ORDER BY {_KEYS[listing.sort]} {way}, version {way}"
    versions = f"SELECT version FROM {tables} WHERE {where} {order}"
    return Chosen(versions, f"SELECT count(*) FROM {tables} WHERE {where}", values)


# In the order of `record_of`.
FIELDS = (
    "document.version, document.id, document.name, title, file_type, doc_type, content_hash, size, characters,"
    " created_at, updated_at, track, tier1, metadata, origin.source"
)
_CURRENT = f"SELECT {FIELDS} FROM {DOCUMENT} WHERE document.store = $1 AND state = 'current'"
_OF_VERSIONS = f"{_CURRENT} AND document.version = ANY($2)"
# Of a source, or without one and of that name.
OF_SOURCE = """document.id IN (
    SELECT document_id FROM crag.origin WHERE store = $1 AND md5(source) = md5($2) AND source = $2
    UNION ALL SELECT id FROM crag.document AS nameless
    WHERE store = $1 AND state = 'current' AND md5(name) = md5($2) AND name = $2
    AND NOT EXISTS (SELECT 1 FROM crag.origin WHERE origin.store = $1 AND document_id = nameless.id))"""
_NAMED = "md5(document.name) = md5($2) AND document.name = $2"
_NAMESAKES = f"""SELECT origin.source FROM {DOCUMENT}
    WHERE document.store = $1 AND state = 'current' AND {_NAMED} LIMIT {MOST_NAMESAKES + 1}"""
_OF_NAMES = """SELECT name FROM crag.document WHERE store = $1 AND state = 'current'
    AND md5(name) = ANY(SELECT md5(each) FROM unnest($2::text[]) AS each) AND name = ANY($2) GROUP BY name"""
SHARED_NAMES = f"{_OF_NAMES} HAVING count(*) > 1"
PARTS = f"""SELECT {PART_COLUMNS} FROM crag.part
    WHERE version IN (SELECT version FROM crag.document WHERE store = $1) AND version = ANY($2)
    ORDER BY version, number"""
_SOURCE = f"""SELECT name, text, title, file_type, doc_type, size, marks, tier1, metadata, origin.source FROM {DOCUMENT}
    WHERE document.store = $1 AND state = 'current' AND document.id = $2"""


class DocumentReads:
    """Reads whole documents."""

    def __init__(self, driver: Driver, workspace: str) -> None:
        self.driver = driver
        self._workspace = workspace

    async def record(self, document_id: str) -> DocumentRecord | None:
        """Return the current document of an `id`."""
        return next(iter(await self._chosen("document.id = $2", document_id)), None)

    async def sourced(self, source: str) -> DocumentRecord | None:
        """Return the current document of a source."""
        return next(iter(await self._chosen(OF_SOURCE, source)), None)

    async def named(self, name: str) -> list[DocumentRecord]:
        """List the current documents of a name, latest first."""
        return await self._chosen(f"{_NAMED} ORDER BY updated_at DESC, document.version DESC", name)

    async def below(self, folder: str) -> list[DocumentRecord]:
        """List the current documents whose sources lie below a folder, in the order of their sources."""
        inside = folder.rstrip("/")
        between = "left(origin.source, 400) >= left($2, 400) AND left(origin.source, 400) <= left($3, 400)"
        return await self._chosen(
            f"{between} AND origin.source > $2 AND origin.source < $3 ORDER BY origin.source",
            f"{inside}/",
            f"{inside}0",
        )

    async def twins(self, content_hash: str) -> list[DocumentRecord]:
        """List the current documents with this content."""
        return await self._chosen("content_hash = $2", content_hash)

    async def has_source(self, source: str) -> bool:
        """Return True if a current document has this source."""
        return await self.driver.one(f"{_CURRENT} AND {OF_SOURCE}", source) is not None

    async def names(self) -> dict[str, str]:
        """Return the names of all current documents by their ids, in the order of the names."""
        rows = await self.driver.all(
            "SELECT id, name FROM crag.document WHERE store = $1 AND state = 'current' ORDER BY name"
        )
        return {row[0]: row[1] for row in rows}

    async def labels(self, ids: Collection[str]) -> dict[str, str]:
        """Return the labels by which lists show the current documents of these ids."""
        rows = await self.driver.all(f"{_CURRENT} AND document.id = ANY($2)", list(ids))
        labels = await self._labels(rows, await self._shared_names(rows))
        return {row[1]: label_of(row, labels) for row in rows}

    async def page(
        self, limit: int, offset: int, status: DocumentStatus | None, track: str | None, listing: Listing = LATEST
    ) -> tuple[list[DocumentRecord], int]:
        """Current documents in the order of the list, and how many there are."""
        versions, counted, values = chosen(listing, status, track)
        async with self.driver.snapshot():
            if listing.search:  # reading all that it finds costs less than searching twice
                found = [row[0] for row in await self.driver.all(versions, *values)]
                shown, total = found[offset : offset + limit], len(found)
            else:
                limits = f"LIMIT ${len(values) + 2} OFFSET ${len(values) + 3}"
                shown = [row[0] for row in await self.driver.all(f"{versions} {limits}", *values, limit, offset)]
                total = int(await self.driver.value(counted, *values))
            rows = {row[0]: row for row in await self.driver.all(_OF_VERSIONS, shown)}
            return await self._records([rows[version] for version in shown]), total

    async def file_types(self) -> dict[str, int]:
        """Count the current documents of each type of file, in the order of the types."""
        return {str(kind): int(count) for kind, count in await self.driver.all(FILE_TYPES)}

    async def languages(self) -> dict[str | None, int]:
        """Count the passages of current documents in each language; see `domain.languages`."""
        return {language: int(count) for language, count in await self.driver.all_aside(LANGUAGES)}

    async def source(self, document_id: str) -> SourceText | None:
        """Return the whole text of a current document."""
        row = await self.driver.one(_SOURCE, document_id)
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
        rows = await self.driver.all(f"SELECT status, count(*) FROM ({STATUS}) AS statuses GROUP BY status")
        return {str(status): int(count) for status, count in rows}

    async def _chosen(self, condition: str, *values: Any) -> list[DocumentRecord]:
        return await self._records(await self.driver.all(f"{_CURRENT} AND {condition}", *values))

    async def _records(self, rows: Sequence[Sequence[Any]]) -> list[DocumentRecord]:
        if not rows:
            return []
        parts = await self.driver.all(PARTS, [row[0] for row in rows])
        return [record for _, record in await self._joined(rows, parts, await self._shared_names(rows))]

    async def _joined(
        self, rows: Sequence[Sequence[Any]], parts: Iterable[Sequence[Any]], shared: Collection[str]
    ) -> list[tuple[Sequence[Any], DocumentRecord]]:
        """Documents with their parts. `shared` are the names that several documents have."""
        of_version, labels = parts_by_version(parts), await self._labels(rows, shared)
        return [(row, record_of(row, of_version.get(row[0], ()), labels)) for row in rows]

    async def _shared_names(self, rows: Sequence[Sequence[Any]]) -> set[str]:
        names = list({row[2] for row in rows})
        return {row[0] for row in await self.driver.all(SHARED_NAMES, names)}

    async def _labels(self, rows: Sequence[Sequence[Any]], shared: Collection[str]) -> dict[str, dict[str, str]]:
        return {
            name: await self._told_apart(name, wanted)
            if name in shared or len(wanted) > 1
            else dict.fromkeys(wanted, name)
            for name, wanted in sources_by_name(rows).items()
        }

    async def _told_apart(self, name: str, wanted: Collection[str]) -> dict[str, str]:
        namesakes = {source or name for (source,) in await self.driver.all(_NAMESAKES, name)}
        if len(namesakes) > MOST_NAMESAKES:
            return {source: in_full(name, source) for source in wanted}
        longer = {each for source in {*wanted, *namesakes} for each in names_below(source)}
        taken = {row[0] for row in await self.driver.all(_OF_NAMES, list(longer))}
        return distinct_labels(
            name, {*wanted, *namesakes}, taken=lambda asked: [each for each in asked if each in taken]
        )


# Reads all rows of a statement.
Read = Callable[..., Awaitable[list[Any]]]

_SIZE = "greatest(size, characters) + length(metadata)"
_STORED = f"""SELECT count(*) FILTER (WHERE state = 'current'), coalesce(sum({_SIZE}), 0)::bigint
    FROM crag.document WHERE store = $1 AND state <> 'gone'"""
_SIZES = f"""SELECT {_SIZE}, track FROM {DOCUMENT}
    WHERE document.store = $1 AND state = 'current' AND {OF_SOURCE}"""


async def stored_of(read: Read, keys: Collection[DocumentKey]) -> Stored:
    """Measure a store as `Backend.stored` does, without the changes that wait for other databases."""
    ((documents, total),) = await read(_STORED)
    sizes = {key: size for key in keys if (size := await _size_of(read, key)) is not None}
    return Stored(documents, total, sizes)


async def _size_of(read: Read, key: DocumentKey) -> int | None:
    """Measure the document that `Library.accept` would replace, in bytes. None if it would make one, or in doubt."""
    source, track = storable(key.source), key.track
    if track and (own := await read(_SIZES, behind(source, track))):
        found, tracks = own, {track}
    else:
        found, tracks = await read(_SIZES, source), {"", track}
    fits = not track or all(each in tracks for _, each in found)
    return min(int(size) for size, _ in found) if found and fits else None
