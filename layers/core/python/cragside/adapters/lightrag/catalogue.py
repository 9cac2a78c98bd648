"""The documents, parts and passages of a store, as rows."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any
from urllib.parse import quote

from cragside.adapters.lightrag.chunking import Piece, storable
from cragside.adapters.lightrag.database import Database
from cragside.domain.document import Mark, SourceText
from cragside.domain.indexing import (
    DocumentKey,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Part,
    Passage,
    Progress,
    Stored,
    Task,
)
from cragside.domain.naming import in_full, told_apart

_FIELDS = (
    "version, id, name, title, file_type, doc_type, content_hash, size, characters, created_at, updated_at, track,"
    " tier1, metadata, source"
)
_DOCUMENT = "document LEFT JOIN origin ON origin.document_id = document.id"
_CURRENT = f"SELECT {_FIELDS} FROM {_DOCUMENT} WHERE state = 'current' AND {{}}"  # noqa: S608 (our own column names)
# Of a source, or without one and of that name.
_OF_SOURCE = """id IN (SELECT document_id FROM origin WHERE source = ?1 UNION ALL SELECT id FROM document
    WHERE state = 'current' AND name = ?1 AND NOT EXISTS (SELECT 1 FROM origin WHERE document_id = id))"""
# Of more documents of one name than that, each is told with its whole source: whoever brings one does not wait for all.
_MOST_NAMESAKES = 200
_NAMESAKES = f"SELECT source FROM {_DOCUMENT} WHERE state = 'current' AND name = ? LIMIT {_MOST_NAMESAKES + 1}"  # noqa: S608
_SHARED_NAMES = "SELECT name FROM document WHERE state = 'current' AND name IN ({}) GROUP BY name HAVING count(*) > 1"
# What `DocumentRecord.status` says, for choosing and counting.
_STATUS = """SELECT document.version, CASE
    WHEN max(enrichment = 'failed' OR (error <> '' AND NOT embedded)) THEN 'failed'
    WHEN NOT min(embedded) THEN 'pending' WHEN min(enrichment = 'enriched') THEN 'enriched'
    ELSE 'searchable' END AS status FROM document LEFT JOIN part USING (version) GROUP BY document.version"""
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
    WHERE state = 'current' AND {_OF_SOURCE}"""  # noqa: S608 (our own condition)
_PASSAGE = """SELECT chunk.id, chunk.part, chunk.number, chunk.page, chunk.section, chunk.tier2, part.enrichment,
    kv.value, document.version, document.id FROM chunk JOIN document USING (version)
    JOIN part ON part.version = chunk.version AND part.number = chunk.part
    LEFT JOIN kv ON kv.namespace = 'text_chunks' AND kv.id = chunk.id WHERE """


def stored_in(path: Path, keys: Collection[DocumentKey] = ()) -> Stored:
    """What `Catalogue.stored` says, of a store that is not opened for it. Raises `sqlite3.DatabaseError`.

    The counts and the `sizes` of the keys are read in one transaction, so that they fit together.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        documents, total = map(int, connection.execute(_STORED).fetchone())
        sizes = {key: size for key in keys if (size := _size_of(connection, key)) is not None}
        return Stored(documents, total, sizes)


def _size_of(connection: Connection, key: DocumentKey) -> int | None:
    """The bytes of the document that `Library.accept` would replace. None if it would make a new one, or in doubt."""
    source, track = storable(key.source), key.track
    try:
        if track and (own := connection.execute(_SIZES, (behind(source, track),)).fetchall()):
            found, tracks = own, {track}
        else:
            found, tracks = connection.execute(_SIZES, (source,)).fetchall(), {"", track}
    except sqlite3.OperationalError:
        return None  # the store of an older version: its documents get sources only when it is opened
    fits = not track or all(each in tracks for _, each in found)
    return min(int(size) for size, _ in found) if found and fits else None


def behind(source: str, track: str) -> str:
    """The source with its track behind it."""
    return source + storable(f"#{quote(track, safe='')}")


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of a version; `key` is LightRAG's name of it as a document."""

    version: int
    number: int
    key: str
    first: int
    last: int
    embedded: bool
    enrichment: EnrichmentStatus


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document. `key` is that of its first part, "" when it has none."""

    number: int
    state: str
    key: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A storable text that is to be a document's current version. `digest` says which text it is, `cut` which passages.

    A `digest` and a `cut` of another text, or of other passages, are different ones.
    """

    identifier: str
    digest: str
    cut: str
    source: SourceText
    pieces: Sequence[Piece]
    enrich: bool
    track: str = ""

    @property
    def key(self) -> str:
        """What the keys of its parts and passages begin with."""
        return f"{self.identifier}-{self.cut}"


class Catalogue:
    """Reads and writes the catalogue's tables. Writes happen within a transaction of the caller's."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    def record(self, document_id: str) -> DocumentRecord | None:
        """The current document of an `id`."""
        return next(iter(self._chosen("id = ?", document_id)), None)

    def sourced(self, source: str) -> DocumentRecord | None:
        """The current document of a source."""
        return next(iter(self._chosen(_OF_SOURCE, source)), None)

    def named(self, name: str) -> list[DocumentRecord]:
        """The current documents of a name, latest first."""
        return self._chosen("name = ? ORDER BY updated_at DESC, version DESC", name)

    def unclaimed(self, name: str) -> DocumentRecord | None:
        """The current document of a name that nobody has given a source."""
        return next(iter(self._chosen("name = ? AND source IS NULL", name)), None)

    def all_unclaimed(self) -> list[DocumentRecord]:
        """The current documents that nobody has given a source, in the order of their names."""
        return self._chosen("source IS NULL ORDER BY name, id")

    def below(self, folder: str) -> list[DocumentRecord]:
        """The current documents whose sources lie below a folder, in the order of their sources."""
        inside = folder.rstrip("/")
        return self._chosen("source > ? AND source < ? ORDER BY source", f"{inside}/", f"{inside}0")  # "0" follows "/"

    def twins(self, content_hash: str) -> list[DocumentRecord]:
        """The current documents with this content."""
        return self._chosen("content_hash = ?", content_hash)

    def has_source(self, source: str) -> bool:
        """Whether a current document has this source."""
        return self._database.one(_CURRENT.format(_OF_SOURCE), (source,)) is not None

    def labels(self, ids: Collection[str]) -> dict[str, str]:
        """What the current documents of these ids are called where they are listed."""
        rows = list(self._database.within(_CURRENT.format("id IN ({})"), ids))
        labels = self._labels(rows)
        return {row[1]: labels[row[0]] for row in rows}

    def page(
        self, limit: int, offset: int, status: DocumentStatus | None, track: str | None
    ) -> tuple[list[DocumentRecord], int]:
        """Current documents, latest first, and how many there are."""
        conditions: list[str] = ["state = 'current'"]
        values: list[str] = []
        if status is not None:
            conditions.append(f"version IN (SELECT version FROM ({_STATUS}) WHERE status = ?)")  # noqa: S608
            values.append(status)
        if track is not None:
            conditions.append("track = ?")
            values.append(track)
        where = " AND ".join(conditions)
        with self._database.snapshot():
            latest = "ORDER BY updated_at DESC, version DESC LIMIT ? OFFSET ?"
            sql = f"SELECT {_FIELDS} FROM {_DOCUMENT} WHERE {where} {latest}"  # noqa: S608
            rows = self._database.all(sql, (*values, limit, offset))
            total = self._database.one(f"SELECT count(*) FROM document WHERE {where}", values)[0]  # noqa: S608
            return self._records(rows), int(total)

    def statuses(self) -> dict[str, int]:
        """How many current documents are in each status."""
        rows = self._database.all(
            f"SELECT status, count(*) FROM document JOIN ({_STATUS}) USING (version) WHERE state = 'current'"  # noqa: S608
            " GROUP BY status"
        )
        return {str(status): int(count) for status, count in rows}

    def source(self, document_id: str) -> SourceText | None:
        """The whole text of a current document."""
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
            tier1=json.loads(tier1),
            metadata=json.loads(metadata),
            source=origin or name,
        )

    def passages(self, document_id: str, part: int | None) -> list[Passage]:
        """The passages of a current document in their order."""
        narrowed = "" if part is None else " AND chunk.part = ?"
        rows = self._database.all(
            f"{_PASSAGE} document.id = ? AND document.state = 'current'{narrowed} ORDER BY chunk.number",
            (document_id,) if part is None else (document_id, part),
        )
        return [_passage(row) for row in rows]

    def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Passages of any version with their documents."""
        rows = list(self._database.within(f"{_PASSAGE} chunk.id IN ({{}})", dict.fromkeys(ids)))
        versions = {row[8] for row in rows}
        found = self._database.within(
            f"SELECT {_FIELDS} FROM {_DOCUMENT} WHERE state <> 'gone' AND version IN ({{}})",  # noqa: S608
            versions,
        )
        records = {row[0]: record for row, record in self._with_rows(list(found))}
        return {row[0]: (records[row[8]], _passage(row)) for row in rows if row[8] in records and row[7] is not None}

    def counts(self) -> dict[EnrichmentStatus, int]:
        """How many passages of current documents are in each state of enrichment."""
        rows = self._database.all(
            "SELECT enrichment, sum(last - first + 1) FROM part JOIN document USING (version) WHERE state = 'current'"
            " GROUP BY enrichment"
        )
        return dict(rows)

    def stored(self) -> Stored:
        """How many current documents there are, and the bytes of all texts, replaced ones included until they go."""
        documents, size = map(int, self._database.one(_STORED))
        return Stored(documents, size)

    def progress(self) -> Progress:
        """How far current documents have come."""
        return Progress(*self._database.one(_PROGRESS) or ())

    def tasks(self, document_id: str | None = None) -> list[Task]:
        """What is still to be done of current documents, embedding first."""
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

    def sweeps(self, document_id: str | None = None) -> list[Task]:
        """Void tasks of versions that are gone: whoever gets one takes them out of the graph."""
        rows = self._database.all(
            "SELECT id, content_hash, coalesce(min(number), 0) FROM document LEFT JOIN part USING (version)"
            " WHERE state = 'gone' AND (?1 IS NULL OR id = ?1) GROUP BY version ORDER BY version",
            (document_id,),
        )
        return [Task(self._workspace, row[0], row[1], row[2], "enrich") for row in rows]

    def given_up(self) -> set[tuple[str, int]]:
        """The ids of current documents, and the numbers of their parts, that failed."""
        rows = self._database.all(
            "SELECT document.id, number FROM part JOIN document USING (version) WHERE state = 'current' AND error <> ''"
        )
        return {(row[0], row[1]) for row in rows}

    def part(self, task: Task) -> StoredPart | None:
        """The part of a task, None when its version is not the current one."""
        row = self._database.one(
            "SELECT version, number, key, first, last, embedded, enrichment FROM part JOIN document USING (version)"
            " WHERE id = ? AND content_hash = ? AND state = 'current' AND number = ?",
            (task.document_id, task.content_hash, task.part),
        )
        return None if row is None else _stored(row)

    def chunk_ids(self, part: StoredPart) -> list[str]:
        """The ids of a part's passages in their order."""
        rows = self._database.all(
            "SELECT id FROM chunk WHERE version = ? AND number BETWEEN ? AND ? ORDER BY number",
            (part.version, part.first, part.last),
        )
        return [row[0] for row in rows]

    def gone(self) -> list[StoredPart]:
        """The parts of all versions that are to be removed."""
        rows = self._database.all(
            "SELECT version, number, key, first, last, embedded, enrichment FROM part JOIN document USING (version)"
            " WHERE state = 'gone' ORDER BY version, number"
        )
        return [_stored(row) for row in rows]

    def uncut(self) -> dict[str, int]:
        """The ids of current documents without parts, with the numbers of their versions."""
        rows = self._database.all(
            "SELECT id, version FROM document WHERE state = 'current' AND version NOT IN (SELECT version FROM part)"
        )
        return dict(rows)

    def created_at(self, document_id: str) -> str | None:
        """When a document that is there was accepted first."""
        row = self._database.one(
            "SELECT min(created_at) FROM document WHERE id = ? AND state <> 'gone'", (document_id,)
        )
        return None if row[0] is None else str(row[0])

    def version(self, document_id: str, content_hash: str) -> Version | None:
        """A version of a document, whatever its state."""
        row = self._database.one(
            "SELECT version, state, coalesce((SELECT key FROM part WHERE part.version = document.version"
            " ORDER BY number LIMIT 1), '') FROM document WHERE id = ? AND content_hash = ?",
            (document_id, content_hash),
        )
        return None if row is None else Version(*row)

    def add(self, connection: Connection, entry: Entry, created_at: str | None) -> int:
        """Add a version, which is the current one; its number."""
        facts = _facts(entry, created_at)
        names, marks = ", ".join(facts), ", ".join("?" * len(facts))
        added = connection.execute(
            f"INSERT INTO document (id, content_hash, {names}) VALUES (?, ?, {marks})",  # noqa: S608 (our own names)
            (entry.identifier, entry.digest, *facts.values()),
        )
        return int(added.lastrowid or 0)

    def update(self, connection: Connection, version: int, entry: Entry, created_at: str | None) -> None:
        """Make a version that is there the current one, with what was said of it this time."""
        facts = _facts(entry, created_at)
        changes = ", ".join(f"{name} = ?" for name in facts)
        connection.execute(
            f"UPDATE document SET {changes} WHERE version = ?",  # noqa: S608 (our own column names)
            (*facts.values(), version),
        )

    def describe(self, connection: Connection, document_id: str, source: SourceText, track: str) -> None:
        """Give a current document the name, the title and the metadata of the source, and the track."""
        self.claim(connection, document_id, source.source, source.name)
        connection.execute(
            "UPDATE document SET title = ?, metadata = ?, track = ?, updated_at = ? WHERE id = ? AND state = 'current'",
            (_title(source), _json(source.metadata), track, datetime.now(UTC).isoformat(), document_id),
        )

    def is_described(self, record: DocumentRecord, source: SourceText) -> bool:
        """Whether the document has the name, the title and the metadata of the source."""
        told = (record.name, record.title, record.metadata)
        return told == (source.name, _title(source), json.loads(_json(source.metadata)))

    def claim(self, connection: Connection, document_id: str, source: str, name: str) -> None:
        """Give a document a source and a name; a title that was nothing but its name goes with that.

        All of its versions get them: one of them may become the current one again.
        """
        connection.execute(
            "INSERT INTO origin VALUES (?, ?) ON CONFLICT (document_id) DO UPDATE SET source = excluded.source",
            (document_id, source),
        )
        connection.execute(
            "UPDATE document SET title = iif(title = name, ?1, title), name = ?1"
            " WHERE id = ?2 AND state <> 'gone' AND name <> ?1",
            (name, document_id),
        )

    def disown(self, connection: Connection, document_id: str) -> None:
        """Leave the source of a document that is deleted to whoever brings it next."""
        connection.execute("DELETE FROM origin WHERE document_id = ?", (document_id,))

    def add_parts(self, connection: Connection, version: int, entry: Entry, size: int) -> dict[str, tuple[str, Piece]]:
        """Enter a version's parts of `size` passages and their passages; those that are there are the same and stay.

        Returns the part's key and the passage by the ids of the passages.
        """
        entered: dict[str, tuple[str, Piece]] = {}
        parts: list[tuple[object, ...]] = []
        chunks: list[tuple[object, ...]] = []
        enrichment = "pending" if entry.enrich else "none"
        for number, first in enumerate(range(0, len(entry.pieces), size)):
            pieces = entry.pieces[first : first + size]
            part_key = f"{entry.key}-{number}"
            parts.append((version, number, part_key, first, first + len(pieces) - 1, enrichment))
            for order, piece in enumerate(pieces):
                chunk = f"{part_key}-chunk-{order:03d}"
                entered[chunk] = part_key, piece
                chunks.append((chunk, version, number, first + order, piece.page, _places(piece)))
        connection.executemany("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?, ?, 0, ?, '', NULL, NULL)", parts)
        connection.executemany("INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?, ?, ?, NULL)", chunks)
        return entered

    def _chosen(self, condition: str, *values: Any) -> list[DocumentRecord]:
        return self._records(self._database.all(_CURRENT.format(condition), values))

    def _records(self, rows: Sequence[Sequence[Any]]) -> list[DocumentRecord]:
        return [record for _, record in self._with_rows(rows)]

    def _with_rows(self, rows: Sequence[Sequence[Any]]) -> list[tuple[Sequence[Any], DocumentRecord]]:
        parts: dict[int, list[Part]] = {}
        for version, number, first, last, embedded, enrichment, error, tier3, enriched_at in self._database.within(
            "SELECT version, number, first, last, embedded, enrichment, error, tier3, enriched_at FROM part"
            " WHERE version IN ({}) ORDER BY version, number",
            [row[0] for row in rows],
        ):
            known = None if tier3 is None else json.loads(tier3)
            part = Part(number, first, last, bool(embedded), enrichment, error, known, enriched_at)
            parts.setdefault(version, []).append(part)
        labels = self._labels(rows)
        return [(row, _record(row, parts.get(row[0], ()), labels[row[0]])) for row in rows]

    def _labels(self, rows: Sequence[Sequence[Any]]) -> dict[int, str]:
        """What the documents are called where they are listed, by the numbers of their versions."""
        sources: dict[str, set[str]] = {}
        for _, _, name, *_, source in rows:
            sources.setdefault(name, set()).add(source or name)
        shared = {name for (name,) in self._database.within(_SHARED_NAMES, sources)}
        labels = {
            name: self._told_apart(name, wanted) if name in shared or len(wanted) > 1 else dict.fromkeys(wanted, name)
            for name, wanted in sources.items()
        }
        return {row[0]: labels[row[2]][row[-1] or row[2]] for row in rows}

    def _told_apart(self, name: str, wanted: Collection[str]) -> dict[str, str]:
        namesakes = [source or name for (source,) in self._database.all(_NAMESAKES, (name,))]
        if len(namesakes) > _MOST_NAMESAKES:
            return {source: in_full(name, source) for source in wanted}
        return told_apart(name, {*wanted, *namesakes}, taken=self._names_among)

    def _names_among(self, names: Collection[str]) -> list[str]:
        """Those that a current document is called."""
        rows = self._database.within("SELECT name FROM document WHERE state = 'current' AND name IN ({})", names)
        return [row[0] for row in rows]


def _stored(row: Sequence[Any]) -> StoredPart:
    version, number, key, first, last, embedded, enrichment = row
    return StoredPart(version, number, key, first, last, bool(embedded), enrichment)


def _record(row: Sequence[Any], parts: Iterable[Part], label: str) -> DocumentRecord:
    _, identifier, name, title, file_type, doc_type, digest, size, characters, created, updated, track, *more = row
    tier1, metadata, source = more
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
        tier1=json.loads(tier1),
        metadata=json.loads(metadata),
        parts=tuple(parts),
        source=source or name,
        label=label,
    )


def _places(piece: Piece) -> str:
    """How a passage's section is cited and, if that is not the only one, which ones it goes through: one a line."""
    alone = piece.sections in ((), (piece.section,))
    return storable(piece.section if alone else "\n".join((piece.section, *piece.sections)))


def _passage(row: Sequence[Any]) -> Passage:
    identifier, part, number, page, places, tier2, enrichment, value, _, document_id = row
    section, *sections = places.split("\n")
    return Passage(
        id=identifier,
        document_id=document_id,
        part=part,
        index=number,
        text="" if value is None else json.loads(value)["content"],
        page=page,
        section=section,
        sections=tuple(sections or filter(None, [section])),
        enrichment=enrichment,
        tier2=None if tier2 is None else json.loads(tier2),
    )


def _facts(entry: Entry, created_at: str | None) -> dict[str, object]:
    """What a version's row says, but for whose version of which text it is."""
    source, now = entry.source, datetime.now(UTC).isoformat()
    return {
        "state": "current",
        "name": source.name,
        "title": _title(source),
        "file_type": source.file_type,
        "doc_type": source.doc_type,
        "size": len(source.text.encode()) if source.size is None else source.size,
        "characters": len(source.text),
        "created_at": created_at or now,
        "updated_at": now,
        "track": entry.track,
        "enrich": int(entry.enrich),
        "tier1": _json(source.tier1),
        "metadata": _json(source.metadata),
        "marks": json.dumps([[mark.start, mark.page, storable(mark.section)] for mark in source.marks]),
        "text": source.text,
    }


def _title(source: SourceText) -> str:
    return storable(source.title or source.name)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), default=str)
