"""The documents of one workspace in its store."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from sqlite3 import Connection
from urllib.parse import quote

from cragside.adapters.lightrag.chunking import Piece, cut, storable
from cragside.adapters.lightrag.store import Create, Find, Store, failing_as_unavailable
from cragside.adapters.lightrag.sweeping import retire, sweep
from cragside.domain.document import SourceText
from cragside.domain.indexing import (
    Acceptance,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Passage,
    Progress,
    Task,
)
from cragside.ports.library import Library

_ADD_TEXT = "INSERT OR IGNORE INTO kv VALUES ('text_chunks', ?, ?)"


class LightRagLibrary(Library):
    """Knows nothing while `find` gives no store. `create` makes one. `refuse` raises for a baked store."""

    def __init__(self, find: Find, create: Create, refuse: Callable[[], None]) -> None:
        self._find = find
        self._create = create
        self._refuse = refuse

    async def accept(
        self, source: SourceText, *, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        """Take a text in, cut on a thread of its own."""
        self._refuse()
        async with failing_as_unavailable():
            return await accept(await self._create(), source, enrich=enrich, track=track, rename=rename)

    async def document(self, document_id: str) -> DocumentRecord | None:
        """A document by its id."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.record("id", document_id) if store else None

    async def named(self, name: str) -> DocumentRecord | None:
        """A document by its name."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.record("name", storable(name)) if store else None

    async def documents(
        self, *, limit: int = 100, offset: int = 0, status: DocumentStatus | None = None, track: str | None = None
    ) -> tuple[list[DocumentRecord], int]:
        """A page of documents, latest first, and how many there are in all."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.page(limit, offset, status, track) if store else ([], 0)

    async def source(self, document_id: str) -> SourceText | None:
        """The whole text as it was accepted."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.source(document_id) if store else None

    async def passages(self, document_id: str, part: int | None = None) -> list[Passage]:
        """A document's passages in their order, or those of one part."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.passages(document_id, part) if store else []

    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Passages with their documents; missing ones are left out."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.passages_by_id(ids) if store else {}

    async def delete(self, document_id: str) -> bool:
        """Forget a document: its text cannot be found from the first commit on, the graph follows."""
        self._refuse()
        async with failing_as_unavailable():
            store = await self._find()
            return await delete(store, document_id) if store else False

    async def restart(
        self, document_id: str | None = None, *, force: bool = False, failures: bool = True
    ) -> list[Task]:
        """Tasks for what is not done yet; with `force` for everything."""
        self._refuse()
        async with failing_as_unavailable():
            store = await self._find()
            return await restart(store, document_id, force=force, failures=failures) if store else []

    async def progress(self) -> Progress:
        """How far all documents have come."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.progress() if store else Progress()

    async def counts(self) -> dict[EnrichmentStatus, int]:
        """How many passages are in each state of enrichment."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.counts() if store else {}


async def accept(store: Store, source: SourceText, *, enrich: bool, track: str, rename: bool) -> Acceptance:
    """See `Library.accept`."""
    digest = _digest(source)
    if (known := _known(store, source, digest, rename=rename)) is None:
        pieces = await asyncio.to_thread(cut, storable(source.text), source.marks, store.chunks, store.count_tokens)
        async with store.accepting():
            # Somebody else may have brought the same text meanwhile.
            if (known := _known(store, source, digest, rename=rename)) is None:
                return _entered(store, source, digest, pieces, enrich=enrich, track=track, rename=rename)
    if enrich and any(part.enrichment == "none" for part in known.parts):
        async with store.accepting():
            _want_enrichment(store, known.id)
        known = store.catalogue.record("id", known.id) or known
    other = known.name if known.name != storable(source.name) else ""
    if not other:
        known = await _described(store, known, source)
    return Acceptance(known, "unchanged", store.catalogue.tasks(known.id), known=other)


async def delete(store: Store, document_id: str) -> bool:
    """See `Library.delete`."""
    async with store.accepting():
        known = store.catalogue.record("id", document_id) is not None
        if known:
            with store.database.transaction() as connection:
                retire(store, connection, "id = ?", document_id)
    await sweep(store)  # also what an interrupted one has left
    return known


async def go_back(store: Store, document_id: str) -> bool:
    """Give the current version of a document up for the one before it. False when there is none."""
    async with store.accepting():
        with store.database.transaction() as connection:
            before = "SELECT 1 FROM document WHERE id = ? AND state = 'replaced'"
            if connection.execute(before, (document_id,)).fetchone() is None:
                return False
            retire(store, connection, "state = 'current' AND id = ?", document_id)
            connection.execute(
                "UPDATE document SET state = 'current' WHERE id = ? AND state = 'replaced'", (document_id,)
            )
    await sweep(store)
    return True


def copy_tiers(old: Store, fresh: Store, document_id: str) -> None:
    """Give the parts and passages of a document what another store knows of the same ones."""
    passages = [(json.dumps(dict(p.tier2)), p.id) for p in old.catalogue.passages(document_id, None) if p.tier2]
    record = old.catalogue.record("id", document_id)
    parts = [(json.dumps(dict(p.tier3)), document_id, p.number) for p in record.parts if p.tier3] if record else []
    with fresh.database.transaction() as connection:
        connection.executemany("UPDATE chunk SET tier2 = ? WHERE id = ?", passages)
        connection.executemany(
            "UPDATE part SET tier3 = json_patch(?, coalesce(tier3, '{}'))"
            " WHERE version = (SELECT version FROM document WHERE id = ?) AND number = ?",
            parts,
        )
        if record:
            connection.execute(
                "UPDATE document SET created_at = ?, updated_at = ?, track = ? WHERE id = ?",
                (record.created_at, record.updated_at, record.track, document_id),
            )


async def restart(store: Store, document_id: str | None, *, force: bool, failures: bool) -> list[Task]:
    """See `Library.restart`."""
    await cut_uncut(store)
    if not (failures or force):
        # What is being done stays so: whoever does it begins by saying it again.
        given_up = store.catalogue.given_up()
        return [task for task in store.catalogue.tasks(document_id) if (task.document_id, task.part) not in given_up]
    chosen = "version IN (SELECT version FROM document WHERE state = 'current' AND (?1 IS NULL OR id = ?1))"
    statements = [
        f"UPDATE part SET error = '' WHERE {chosen}",  # noqa: S608 (our own condition)
        f"UPDATE part SET enrichment = 'pending' WHERE {chosen} AND enrichment IN ('failed', 'processing')",  # noqa: S608
    ]
    if force:
        statements += [
            f"UPDATE part SET embedded = 0, enrichment = 'pending' WHERE {chosen}",  # noqa: S608
            "UPDATE document SET enrich = 1 WHERE state = 'current' AND (?1 IS NULL OR id = ?1)",
        ]
    async with store.accepting():
        with store.database.transaction() as connection:
            for statement in statements:
                connection.execute(statement, (document_id,))
    return store.catalogue.tasks(document_id)


async def cut_uncut(store: Store) -> None:
    """Cut texts whose indexing an older version began and did not end."""
    for identifier in store.catalogue.uncut():
        source = store.catalogue.source(identifier)
        if source is None:
            continue
        pieces = await asyncio.to_thread(cut, source.text, source.marks, store.chunks, store.count_tokens)
        async with store.accepting():
            if identifier in store.catalogue.uncut():
                with store.database.transaction() as connection:
                    _enter(store, connection, identifier, _digest(source), source, pieces, enrich=True, track="")


def identifier_of(name: str) -> str:
    """The id of the document of a name."""
    return "doc-" + hashlib.md5(storable(name).encode(), usedforsecurity=False).hexdigest()


def _digest(source: SourceText) -> str:
    """Equal for texts that make the same passages, pages and sections."""
    marks = [[mark.start, mark.page, mark.section] for mark in source.marks]
    facts = storable(source.text).strip() + (json.dumps(marks) if marks else "")
    return hashlib.sha256(facts.encode()).hexdigest()


def _known(store: Store, source: SourceText, digest: str, *, rename: bool) -> DocumentRecord | None:
    """The document that holds the text already, under its own name or, for a name that is new, under another."""
    named = store.catalogue.record("name", storable(source.name))
    if named is not None and named.content_hash == digest and named.parts:
        return named
    return store.catalogue.twin(digest) if named is None or rename else None


def _entered(
    store: Store, source: SourceText, digest: str, pieces: Sequence[Piece], *, enrich: bool, track: str, rename: bool
) -> Acceptance:
    named = store.catalogue.record("name", storable(source.name))
    name = _free_name(store, source.name) if rename and named else source.name
    identifier = named.id if named and not rename else identifier_of(name)
    with store.database.transaction() as connection:
        if named and not rename:
            # A version that was never complete has nothing to serve until the new one is.
            if named.searchable and named.parts:
                connection.execute(
                    "UPDATE document SET state = 'replaced' WHERE id = ? AND state = 'current'", (identifier,)
                )
            else:
                retire(store, connection, "id = ? AND state = 'current'", identifier)
        _enter(store, connection, identifier, digest, source, pieces, enrich=enrich, track=track, name=name)
    record = store.catalogue.record("id", identifier)
    assert record is not None  # noqa: S101 (it was just written)
    changed = named is not None and not rename
    return Acceptance(record, "changed" if changed else "new", store.catalogue.tasks(identifier))


def _enter(
    store: Store,
    connection: Connection,
    identifier: str,
    digest: str,
    source: SourceText,
    pieces: Sequence[Piece],
    *,
    enrich: bool,
    track: str,
    name: str | None = None,
) -> None:
    name = storable(name or source.name)
    created = connection.execute("SELECT min(created_at) FROM document WHERE id = ? AND state <> 'gone'", (identifier,))
    version = store.catalogue.add(
        connection,
        identifier,
        digest,
        source,
        name=name,
        enrich=enrich,
        track=track,
        created_at=created.fetchone()[0],
    )
    key = f"{identifier}-{digest[:12]}"
    entered = store.catalogue.add_parts(connection, version, key, pieces, store.part_passages, enrich=enrich)
    if enrich:
        connection.execute(
            "UPDATE part SET enrichment = 'pending' WHERE version = ? AND enrichment = 'none'", (version,)
        )
    path = quote(name, safe="")
    connection.executemany(
        _ADD_TEXT,
        [
            (chunk, json.dumps(_text_chunk(chunk, part_key, piece, number, path), ensure_ascii=False))
            for number, (chunk, (part_key, piece)) in enumerate(entered.items())
        ],
    )


def _text_chunk(chunk: str, part_key: str, piece: Piece, number: int, path: str) -> dict[str, object]:
    return {
        "_id": chunk,
        "content": piece.text,
        "tokens": piece.tokens,
        "chunk_order_index": number,
        "full_doc_id": part_key,
        "file_path": path,
        "llm_cache_list": [],
    }


async def _described(store: Store, known: DocumentRecord, source: SourceText) -> DocumentRecord:
    """The document with the title and the metadata of the source."""
    if store.catalogue.is_described(known, source):
        return known
    async with store.accepting():
        with store.database.transaction() as connection:
            store.catalogue.describe(connection, known.id, source)
    return store.catalogue.record("id", known.id) or known


def _want_enrichment(store: Store, document_id: str) -> None:
    with store.database.transaction() as connection:
        connection.execute("UPDATE document SET enrich = 1 WHERE id = ? AND state = 'current'", (document_id,))
        connection.execute(
            "UPDATE part SET enrichment = 'pending' WHERE enrichment = 'none' AND version ="
            " (SELECT version FROM document WHERE id = ? AND state = 'current')",
            (document_id,),
        )


def _free_name(store: Store, name: str) -> str:
    path = PurePosixPath(name)
    stem, suffix = (name[: -len(path.suffix)], path.suffix) if path.suffix else (name, "")
    number = 2
    while store.catalogue.record("name", storable(f"{stem} ({number}){suffix}")) is not None:
        number += 1
    return f"{stem} ({number}){suffix}"
