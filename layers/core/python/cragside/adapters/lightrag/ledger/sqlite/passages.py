"""The parts and passages of a ledger, and what is still to be done of them."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
from typing_extensions import override

from cragside.adapters.lightrag.ledger.cutting import sections_in
from cragside.adapters.lightrag.ledger.entries import StoredPart, behind, parsed, searched_title
from cragside.adapters.lightrag.ledger.sqlite.database import failure_of
from cragside.adapters.lightrag.ledger.sqlite.documents import DOCUMENT, FIELDS, OF_SOURCE, DocumentReads
from cragside.adapters.lightrag.storable import storable
from cragside.domain.dating import BEGINNING
from cragside.domain.indexing import DocumentKey, DocumentRecord, EnrichmentStatus, Passage, Progress, Stored, Task

# As `Progress` has it: first what each document's parts say together, then all of them.
_PROGRESS = """SELECT coalesce(sum(NOT failed AND NOT begun), 0), coalesce(sum(NOT failed AND begun AND NOT done), 0),
    coalesce(sum(NOT failed AND done), 0), coalesce(sum(failed), 0), coalesce(sum(tasks), 0),
    coalesce(sum(processing), 0), coalesce(sum(given_up), 0) FROM (
        SELECT max(embedded) AS begun,
            min(embedded) AND (min(enrichment = 'enriched') OR min(enrichment = 'none')) AS done,
            max(enrichment = 'failed' OR (error <> '' AND NOT embedded)) AS failed,
            sum(error = '' AND NOT embedded) + sum(error = '' AND enrichment IN ('pending', 'processing')) AS tasks,
            sum(error = '' AND enrichment = 'processing') AS processing,
            sum(error <> '') AS given_up
        FROM part JOIN document USING (version) WHERE state = 'current' GROUP BY version)"""
_STORED = """SELECT coalesce(sum(state = 'current'), 0), coalesce(sum(max(size, characters) + length(metadata)), 0)
    FROM document WHERE state <> 'gone'"""
_SIZES = f"""SELECT max(size, characters) + length(metadata), track FROM document
    WHERE state = 'current' AND {OF_SOURCE}"""
_PASSAGE = """SELECT chunk.id, chunk.part, chunk.number, chunk.page, chunk.section, chunk.tier2, part.enrichment,
    kv.value, document.version, document.id FROM chunk JOIN document USING (version)
    JOIN part ON part.version = chunk.version AND part.number = chunk.part
    LEFT JOIN kv ON kv.namespace = 'text_chunks' AND kv.id = chunk.id WHERE """
_BEGINNING = f"""SELECT substr(json_extract(kv.value, '$.content'), 1, {BEGINNING}) FROM chunk JOIN kv
    ON kv.namespace = 'text_chunks' AND kv.id = chunk.id WHERE chunk.version = document.version AND chunk.number = 0"""
_PART = "version, number, key, first, last, embedded, enrichment, title, name"
_MENTIONED = """SELECT mention.passage, mention.name FROM json_each(?) AS wanted
    CROSS JOIN mention ON mention.passage = wanted.value AND mention.kind = 'entity'"""
_MENTIONING = """SELECT document.id, document.name, min(document.created_at) FROM mention
    JOIN chunk ON chunk.id = mention.passage JOIN document ON document.version = chunk.version
    WHERE mention.kind = 'entity' AND mention.name = ? AND document.state <> 'gone'
    GROUP BY document.id ORDER BY min(document.created_at), document.name LIMIT ?"""
_NAMING = """SELECT chunk.id, count(*) OVER () FROM mention JOIN chunk ON chunk.id = mention.passage
    JOIN document ON document.version = chunk.version
    WHERE mention.kind = ? AND mention.name = ? AND document.state <> 'gone'
    ORDER BY document.created_at, document.version, chunk.number LIMIT ?"""


def stored_in(path: Path, keys: Collection[DocumentKey] = ()) -> Stored:
    """What `Ledger.stored` says, of a store that is not opened for it. Raises `LedgerError`.

    The counts and the `sizes` of the keys are read in one transaction, so that they fit together.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("BEGIN")
            documents, total = map(int, connection.execute(_STORED).fetchone())
            sizes = {key: size for key in keys if (size := _size_of(connection, key)) is not None}
            return Stored(documents, total, sizes)
    except sqlite3.Error as error:
        raise failure_of(error) from error


def _size_of(connection: sqlite3.Connection, key: DocumentKey) -> int | None:
    """The bytes of the document that `Library.accept` would replace. None if it would make a new one, or in doubt."""
    source, track = storable(key.source), key.track
    if track and (own := connection.execute(_SIZES, (behind(source, track),)).fetchall()):
        found, tracks = own, {track}
    else:
        found, tracks = connection.execute(_SIZES, (source,)).fetchall(), {"", track}
    fits = not track or all(each in tracks for _, each in found)
    return min(int(size) for size, _ in found) if found and fits else None


_FADING = """WITH gone AS MATERIALIZED (SELECT chunk.id FROM document JOIN chunk USING (version) WHERE state = 'gone')
    SELECT DISTINCT name, EXISTS (SELECT 1 FROM mention AS other WHERE other.kind = ?1 AND other.name = mention.name
        AND other.passage NOT IN (SELECT id FROM gone))
    FROM mention WHERE kind = ?1 AND passage IN (SELECT id FROM gone)
    AND name IN (SELECT value FROM json_each(?2))"""


class PassageReads(DocumentReads):
    """Reads parts, their passages and their tasks."""

    @override
    async def passages(self, document_id: str, part: int | None) -> list[Passage]:
        narrowed = "" if part is None else " AND chunk.part = ?"
        rows = self._database.all(
            f"{_PASSAGE} document.id = ? AND document.state = 'current'{narrowed} ORDER BY chunk.number",
            (document_id,) if part is None else (document_id, part),
        )
        return [_passage(row) for row in rows]

    @override
    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        rows = list(self._database.within(f"{_PASSAGE} chunk.id IN ({{}})", dict.fromkeys(ids)))
        versions = {row[8] for row in rows}
        found = self._database.within(
            f"SELECT {FIELDS}, ({_BEGINNING}) FROM {DOCUMENT} WHERE state <> 'gone' AND version IN ({{}})",
            versions,
        )
        records = {row[0]: record for row, record in self._with_rows(list(found))}
        return {row[0]: (records[row[8]], _passage(row)) for row in rows if row[8] in records and row[7] is not None}

    @override
    async def counts(self) -> dict[EnrichmentStatus, int]:
        rows = self._database.all(
            "SELECT enrichment, sum(last - first + 1) FROM part JOIN document USING (version) WHERE state = 'current'"
            " GROUP BY enrichment"
        )
        return dict(rows)

    @override
    async def progress(self) -> Progress:
        return Progress(*self._database.one(_PROGRESS) or ())

    @override
    async def tasks(self, document_id: str | None = None) -> list[Task]:
        rows = self._database.all(
            "SELECT document.id, content_hash, number, embedded, enrichment,"
            " last = (SELECT max(last) FROM part AS other WHERE other.version = part.version) AND EXISTS"
            " (SELECT 1 FROM document AS older WHERE older.id = document.id AND older.state <> 'current')"
            " FROM part JOIN document USING (version) WHERE state = 'current' AND (?1 IS NULL OR document.id = ?1)"
            " ORDER BY version, number",
            (document_id,),
        )
        embed = [row for row in rows if not row[3] or row[5]]
        enrich = [row for row in rows if row[4] in ("pending", "processing")]
        return [Task(self._workspace, row[0], row[1], row[2], "embed") for row in embed] + [
            Task(self._workspace, row[0], row[1], row[2], "enrich") for row in enrich
        ]

    @override
    async def sweeps(self, document_id: str | None = None) -> list[Task]:
        rows = self._database.all(
            "SELECT id, content_hash, coalesce(min(number), 0) FROM document LEFT JOIN part USING (version)"
            " WHERE state = 'gone' AND (?1 IS NULL OR id = ?1) GROUP BY version ORDER BY version",
            (document_id,),
        )
        return [Task(self._workspace, row[0], row[1], row[2], "enrich") for row in rows]

    @override
    async def given_up(self) -> set[tuple[str, int]]:
        rows = self._database.all(
            "SELECT document.id, number FROM part JOIN document USING (version) WHERE state = 'current' AND error <> ''"
        )
        return {(row[0], row[1]) for row in rows}

    @override
    async def part(self, task: Task) -> StoredPart | None:
        row = self._database.one(
            f"SELECT {_PART} FROM part JOIN document USING (version)"
            " WHERE id = ? AND content_hash = ? AND state = 'current' AND number = ?",
            (task.document_id, task.content_hash, task.part),
        )
        return None if row is None else _stored(row)

    @override
    async def chunk_ids(self, part: StoredPart) -> list[str]:
        return self._chunk_ids(part)

    def _chunk_ids(self, part: StoredPart) -> list[str]:
        rows = self._database.all(
            "SELECT id FROM chunk WHERE version = ? AND number BETWEEN ? AND ? ORDER BY number",
            (part.version, part.first, part.last),
        )
        return [row[0] for row in rows]

    @override
    async def being_enriched(self) -> list[Task]:
        rows = self._database.all(
            "SELECT id, content_hash, number FROM part JOIN document USING (version)"
            " WHERE state = 'current' AND enrichment = 'processing'"
        )
        return [Task(self._workspace, row[0], row[1], row[2], "enrich") for row in rows]

    @override
    async def gone(self) -> list[StoredPart]:
        rows = self._database.all(
            f"SELECT {_PART} FROM part JOIN document USING (version) WHERE state = 'gone' ORDER BY version, number"
        )
        return [_stored(row) for row in rows]

    @override
    async def mentions(self, names: Sequence[str]) -> dict[str, int]:
        sql = "SELECT name, count(*) FROM mention WHERE kind = 'entity' AND name IN ({}) GROUP BY name"
        return dict(self._database.within(sql, names))

    @override
    async def mentioned_by(self, passage_ids: Sequence[str]) -> list[tuple[str, str]]:
        return self._database.all(_MENTIONED, (orjson.dumps(passage_ids).decode(),))

    @override
    async def fading(self, kind: str, names: Sequence[str]) -> dict[str, bool]:
        rows = self._database.all(_FADING, (kind, orjson.dumps(names).decode()))
        return {name: bool(stays) for name, stays in rows}

    @override
    async def passages_naming(self, kind: str, name: str, limit: int) -> tuple[list[str], int]:
        rows = self._database.all(_NAMING, (kind, name, limit))
        return [row[0] for row in rows], rows[0][1] if rows else 0

    @override
    async def mentioning(self, name: str, limit: int) -> list[tuple[str, str, str]]:
        return self._database.all(_MENTIONING, (name, limit))


def _stored(row: Sequence[Any]) -> StoredPart:
    version, number, key, first, last, embedded, enrichment, title, name = row
    return StoredPart(version, number, key, first, last, bool(embedded), enrichment, searched_title(title, name))


def _passage(row: Sequence[Any]) -> Passage:
    identifier, part, number, page, places, tier2, enrichment, value, _, document_id = row
    section, sections = sections_in(places)
    return Passage(
        id=identifier,
        document_id=document_id,
        part=part,
        index=number,
        text="" if value is None else parsed(value)["content"],
        page=page,
        section=section,
        sections=sections,
        enrichment=enrichment,
        tier2=None if tier2 is None else parsed(tier2),
    )
