"""Writing a store in memory out, and taking one in."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import cast

import numpy as np
import orjson

from cragside.adapters.lightrag.ledger.cutting import TEXTS
from cragside.adapters.lightrag.ledger.entries import json_of, parsed, parsed_metadata, searched_text, searched_title
from cragside.adapters.lightrag.ledger.exchange import (
    Batches,
    DocumentRow,
    EdgeRow,
    EmbeddingRow,
    FactsRow,
    MentionRow,
    NodeRow,
    OriginRow,
    PartRow,
    PassageRow,
    QueryRow,
    Row,
    SearchText,
    ValueRow,
    VectorRow,
)
from cragside.adapters.lightrag.ledger.memory.tables import FORGOTTEN, PASSAGES, Chunk, MemoryTables, Values, Version
from cragside.domain.document import DocType, Mark, SourceText
from cragside.domain.indexing import EnrichmentStatus, Part
from cragside.domain.query import Query


async def dump(memory: MemoryTables) -> Batches:
    """All rows of a store, as of one moment."""
    for row in list(_rows(memory)):
        yield [row]


async def load(memory: MemoryTables, workspace: str, batches: Batches, search_text: SearchText) -> None:
    """Write rows into a store that is empty."""
    async for batch in batches:
        for row in batch:
            _write(memory, workspace, row, search_text)
    memory.changes += 1


def _rows(memory: MemoryTables) -> Iterator[Row]:
    dimensions = next((len(row.vector) for rows in memory.rows.values() for row in rows.values()), None)
    yield FactsRow(memory.model, dimensions, memory.untidy)
    versions = list(memory.versions.values())
    yield from map(_document, versions)
    yield from (OriginRow(*each) for each in memory.origins.items())
    for version in versions:
        yield from (_part(version, part) for part in version.parts.values())
    for version in versions:
        yield from (_passage(chunk, memory.values[TEXTS]) for chunk in version.chunks.values())
    for namespace, values in list(memory.values.items()):
        if namespace != TEXTS:
            yield from (ValueRow(namespace, key, orjson.dumps(value).decode()) for key, value in values.items())
    yield from (NodeRow(name, orjson.dumps(row).decode()) for name, row in memory.nodes.items())
    yield from (EdgeRow(*ends, orjson.dumps(row).decode()) for ends, row in memory.edges.items())
    yield from _vectors(memory)
    for kind, mentions in memory.mentions.items():
        yield from (MentionRow(kind, *each) for each in mentions)
    for (model, text_hash), (document_id, vector) in memory.kept.items():
        yield EmbeddingRow(model, text_hash, document_id, vector.astype(np.float32).tobytes())
    yield from (QueryRow(each.id, each.text, each.created_at.isoformat()) for each in memory.queries.values())


def _document(version: Version) -> DocumentRow:
    source = version.source
    marks = [[mark.start, mark.page, mark.section, *([True] if mark.apart else [])] for mark in source.marks]
    gone = version.state == "gone"
    return DocumentRow(
        version=version.number,
        id=version.id,
        content_hash=version.digest,
        state=version.state,
        name=source.name,
        title="" if gone else source.title,
        file_type=source.file_type,
        doc_type=source.doc_type,
        size=source.size or 0,
        characters=len(source.text),
        created_at=version.created_at,
        updated_at=version.updated_at,
        track=version.track,
        enrich=version.enrich,
        tier1=json_of(source.tier1),
        metadata=json_of(source.metadata),
        marks=json.dumps(marks),
        text="" if gone else source.text,
    )


def _part(version: Version, part: Part) -> PartRow:
    return PartRow(
        version.number,
        part.number,
        version.keys[part.number],
        part.first,
        part.last,
        part.embedded,
        part.enrichment,
        part.error,
        None if part.tier3 is None else json.dumps(dict(part.tier3)),
        part.enriched_at,
    )


def _passage(chunk: Chunk, texts: Values) -> PassageRow:
    tier2 = None if chunk.tier2 is None else json.dumps(dict(chunk.tier2))
    text = orjson.dumps(texts[chunk.id]).decode() if chunk.id in texts else None
    return PassageRow(chunk.id, chunk.version, chunk.part, chunk.number, chunk.page, chunk.places, tier2, text)


def _vectors(memory: MemoryTables) -> Iterator[VectorRow]:
    rows = [(row.number, name, key, row) for name, rows in memory.rows.items() for key, row in rows.items()]
    for _, namespace, key, row in sorted(rows, key=lambda each: each[0]):
        searched = None
        if namespace == PASSAGES:
            source = memory.versions[memory.chunks[key].version].source
            searched = searched_text(searched_title(source.title, source.name), row.row.get("content", ""))
        yield VectorRow(namespace, key, orjson.dumps(dict(row.row)).decode(), row.vector.tobytes(), searched)


def _write(memory: MemoryTables, workspace: str, row: Row, search_text: SearchText) -> None:
    match row:
        case FactsRow():
            memory.model, memory.untidy = row.embedding_model, row.untidy
        case DocumentRow():
            memory.versions[row.version] = _version(row)
            memory.reserve(row.version)
        case OriginRow():
            memory.origins[row.document_id] = row.source
        case PartRow():
            _add_part(memory.versions[row.version], row)
        case PassageRow():
            tier2 = None if row.tier2 is None else parsed(row.tier2)
            chunk = Chunk(row.id, row.version, row.part, row.number, row.page, row.section, tier2)
            memory.chunks[row.id] = memory.versions[row.version].chunks[row.id] = chunk
            if row.text is not None:
                memory.values[TEXTS][row.id] = orjson.loads(row.text)
        case ValueRow():
            memory.values[row.namespace][row.id] = orjson.loads(row.value)
        case NodeRow():
            memory.nodes[row.id] = orjson.loads(row.value)
        case EdgeRow():
            memory.put_edge((row.source, row.target), orjson.loads(row.value))
        case VectorRow():
            vector = np.frombuffer(row.vector, np.float32)[None, :]
            searched = row.searched or ""
            memory.write_vectors(
                row.namespace, {row.id: orjson.loads(row.value)}, vector, lambda _: search_text(searched)
            )
        case MentionRow():
            memory.mentions[row.kind][row.name, row.passage] = None
        case EmbeddingRow():
            memory.kept[row.model, row.text_hash] = row.document_id, np.frombuffer(row.vector, np.float32)
        case QueryRow():
            memory.queries[row.id] = Query(row.id, row.text, workspace, datetime.fromisoformat(row.created_at))


def _version(row: DocumentRow) -> Version:
    source = (
        FORGOTTEN
        if row.state == "gone"
        else SourceText(
            name=row.name,
            text=row.text,
            title=row.title,
            file_type=row.file_type,
            doc_type=cast(DocType, row.doc_type),
            size=row.size,
            marks=tuple(Mark(*mark) for mark in json.loads(row.marks)),
            tier1=parsed(row.tier1),
            metadata=parsed_metadata(row.metadata),
        )
    )
    times = row.created_at, row.updated_at
    state = row.state
    return Version(row.version, row.id, row.content_hash, source, *times, row.track, row.enrich, state)  # type: ignore[arg-type]


def _add_part(version: Version, row: PartRow) -> None:
    tier3 = None if row.tier3 is None else parsed(row.tier3)
    version.parts[row.number] = Part(
        row.number,
        row.first,
        row.last,
        row.embedded,
        cast(EnrichmentStatus, row.enrichment),
        row.error,
        tier3,
        row.enriched_at,
    )
    version.keys[row.number] = row.key
