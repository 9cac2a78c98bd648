"""Rows of documents and parts, as every ledger in SQL has them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cragside.adapters.lightrag.ledger.entries import Entry, json_of, parsed, parsed_metadata, title_of
from cragside.adapters.lightrag.storable import storable
from cragside.domain.indexing import DocumentRecord, Part

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
    """The columns of a version, but for those of its document and of its text."""
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
    """The parts of each version, from rows of `PART_COLUMNS`."""
    parts: dict[int, list[Part]] = {}
    for version, number, first, last, embedded, enrichment, error, tier3, enriched_at in rows:
        known = None if tier3 is None else parsed(tier3)
        part = Part(number, first, last, bool(embedded), enrichment, error, known, enriched_at)
        parts.setdefault(version, []).append(part)
    return parts


def sources_by_name(rows: Iterable[Sequence[Any]]) -> dict[str, set[str]]:
    """The sources of documents by their names, from rows as `record_of` reads them."""
    sources: dict[str, set[str]] = {}
    for row in rows:
        name, source = row[2], row[14]
        sources.setdefault(name, set()).add(source or name)
    return sources


def record_of(row: Sequence[Any], parts: Iterable[Part], labels: Mapping[str, Mapping[str, str]]) -> DocumentRecord:
    """A document. `labels` has the label of each source of each name.

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
    """The label of the document of such a row."""
    name, source = row[2], row[14]
    return labels[name][source or name]
