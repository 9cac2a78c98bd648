"""Take documents into a workspace, list, move and remove them."""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TypeVar

from cragside.domain.document import SourceText
from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.indexing import (
    LATEST,
    Acceptance,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Listing,
    Passage,
    Progress,
    Task,
)
from cragside.domain.names import is_memory
from cragside.store.chunking import Chunker, Entry, Piece, behind, cut, cut_of, digest_of, json_of, storable, title_of
from cragside.store.errors import StoreRemoved, failing_as_unavailable
from cragside.store.ledger import Ledger
from cragside.store.open_store import Store, StoreAccess
from cragside.store.part_indexer import sweep_if_free


async def accept(store: Store, source: SourceText, *, enrich: bool, track: str, rename: bool) -> Acceptance:
    """Take a text in, as `Library.accept` promises. Raises `StoreRemoved` if the store is gone meanwhile."""
    given, digest = await asyncio.to_thread(_prepared, source)
    source = given if rename else await _of_track(store, given, track)
    if (known := await _known(store, source, digest, rename=rename)) is None:
        pieces, made = await asyncio.to_thread(_pieces_of, store, await store.chunker(), source, digest)
        async with store.accepting() as ledger:
            # Somebody else may have brought the same text, or taken the name, meanwhile.
            source = given if rename else await _of_track(store, given, track)
            if (known := await _known(store, source, digest, rename=rename)) is None:
                entry = Entry("", digest, made, source, pieces, store.part_passages, enrich, track)
                entered = await _entered(store, ledger, entry, rename=rename)
        if known is None:
            # Without the lease: what others enter meanwhile is kept with it.
            await store.ledger.driver.keep()
            return entered
    if enrich and any(part.enrichment == "none" for part in known.parts):
        async with store.accepting() as ledger:
            await ledger.want_enrichment(known.id)
        known = await store.ledger.record(known.id) or known
    if not rename:
        known = await _described(store, known, source, track)
    return Acceptance(known, "unchanged", await store.ledger.tasks(known.id))


def identifier_of(source: str, *, memory: bool = False) -> str:
    """Derive the id of a new document from its source, or in a memory that of a new exchange."""
    return ("mem-" if memory else "doc-") + hashlib.md5(storable(source).encode(), usedforsecurity=False).hexdigest()


def _pieces_of(store: Store, chunker: Chunker, source: SourceText, digest: str) -> tuple[list[Piece], str]:
    """Cut a text into passages. Return them with the key of this cut. It runs in a thread of its own."""
    has_tables = source.doc_type != "code"
    pieces = cut(source.text, source.marks, chunker, store.count_tokens, has_tables=has_tables)
    return pieces, cut_of(digest, pieces, store.part_passages)


async def _free_identifier(store: Store, source: str) -> str:
    """Find an id for a new document. A moved document keeps the id that it got from its first source."""
    memory = is_memory(store.workspace)
    identifier, number = identifier_of(source, memory=memory), 1
    while await store.ledger.record(identifier) is not None:
        number += 1
        identifier = identifier_of(f"{source}\n{number}", memory=memory)
    return identifier


def _prepared(source: SourceText) -> tuple[SourceText, str]:
    """Return the text as it can be stored, and its digest. It runs in a thread of its own."""
    source = replace(source, name=storable(source.name), source=storable(source.source), text=storable(source.text))
    return source, digest_of(source)


async def _known(store: Store, source: SourceText, digest: str, *, rename: bool) -> DocumentRecord | None:
    """Find the document that holds the text already. With `rename`, its source may have got a number."""
    known = await store.ledger.sourced(source.source)
    if known is not None and known.content_hash == digest and known.parts:
        return known
    if not rename or known is None:
        return None
    stem, suffix = _stem_and_suffix(source.source)
    numbered = re.compile(rf"{re.escape(stem)} \(\d+\){re.escape(suffix)}")
    return next((twin for twin in await store.ledger.twins(digest) if numbered.fullmatch(twin.source)), None)


async def _of_track(store: Store, source: SourceText, track: str) -> SourceText:
    """Append the track to source and name when the source is of another track's document."""
    if not track:
        return source
    longer = replace(source, name=behind(source.name, track), source=behind(source.source, track))
    while (own := await store.ledger.sourced(longer.source)) and own.track != track:
        # Somebody's own source looks like one with a track behind it.
        longer = replace(longer, name=behind(longer.name, track), source=behind(longer.source, track))
    if own:
        return longer
    known = await store.ledger.sourced(source.source)
    return longer if known and known.track not in ("", track) else source


async def _entered(store: Store, ledger: Ledger, entry: Entry, *, rename: bool) -> Acceptance:
    known = await store.ledger.sourced(entry.source.source)
    if known and rename:
        number = await _free_number(store, entry.source.source)
        name, source = _numbered(entry.source.name, number), _numbered(entry.source.source, number)
        entry = replace(entry, source=replace(entry.source, name=name, source=source))
    changed = known is not None and not rename
    if known and changed:
        identifier = known.id
    else:
        identifier = await _free_identifier(store, entry.source.source)
    entry = replace(entry, identifier=identifier)
    await ledger.enter(entry)
    record = await store.ledger.record(entry.identifier)
    assert record is not None  # noqa: S101 (it was just written)
    return Acceptance(record, "changed" if changed else "new", await store.ledger.tasks(entry.identifier))


async def _described(store: Store, known: DocumentRecord, source: SourceText, track: str) -> DocumentRecord:
    """Give the document the title and the metadata of the source, and the track if there is one."""
    track = track or known.track
    if known.track == track and _is_described(known, source):
        return known
    async with store.accepting() as ledger:
        await ledger.describe(known.id, source, track)
    return await store.ledger.record(known.id) or known


def _is_described(record: DocumentRecord, source: SourceText) -> bool:
    """Return True if the document has the name, the title and the metadata of the source."""
    known = (record.name, record.title, record.metadata)
    return known == (source.name, title_of(source), json.loads(json_of(source.metadata)))


async def _free_number(store: Store, source: str) -> int:
    """Find a number with which nobody has the source, in steps that grow with the number's length."""

    async def is_taken(number: int) -> bool:
        return await store.ledger.has_source(_numbered(source, number))

    taken, free = 1, 2
    while await is_taken(free):
        taken, free = free, free * 2
    while free - taken > 1:
        between = (taken + free) // 2
        taken, free = (between, free) if await is_taken(between) else (taken, between)
    return free


def _numbered(name: str, number: int) -> str:
    stem, suffix = _stem_and_suffix(name)
    return f"{stem} ({number}){suffix}"


def _stem_and_suffix(name: str) -> tuple[str, str]:
    suffix = PurePosixPath(name).suffix
    return (name.removesuffix(suffix), suffix) if suffix else (name, "")


Read = TypeVar("Read")


class Library:
    """Stores documents, their progress and their passages. Changes are durable when a call returns.

    A workspace without a store has no documents. Accepting one makes the store. Failures of the store raise
    `ServiceUnavailable("knowledge_base", ...)`.
    """

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def accept(
        self, source: SourceText, *, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        """Take a text in and cut it into passages and parts; nothing is embedded yet.

        The same source with another text replaces the document once the new text is searchable. With the same text it
        is `unchanged`, and takes name, title, metadata and track from this call. It has tasks only if it is unfinished
        or its title has changed, because titles are searched. The same text from another source is a separate
        document, whatever its name. So is a text with another track: the track is appended to its name and source.

        With `rename`, a source that already has another text gets a number, and so does the name. Nothing is replaced.
        """
        self._access.check_writable()
        async with failing_as_unavailable():
            while True:
                try:
                    return await accept(await self._access.create(), source, enrich=enrich, track=track, rename=rename)
                except StoreRemoved:
                    continue  # the document belongs into the workspace that has the name now

    async def check_writable(self) -> None:
        """Raises `ReadOnlyStore`, as `accept` would, where nothing can be taken in."""
        self._access.check_writable()

    async def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document by its id."""
        return await self._read(lambda ledger: ledger.record(document_id), None)

    async def sourced(self, source: str) -> DocumentRecord | None:
        """Return the document of a source."""
        return await self._read(lambda ledger: ledger.sourced(storable(source)), None)

    async def named(self, name: str) -> list[DocumentRecord]:
        """Return all documents of a name, latest first."""
        return await self._read(lambda ledger: ledger.named(storable(name)), [])

    async def below(self, folder: str) -> list[DocumentRecord]:
        """Find the documents whose source lies below a folder, given by its absolute path, ordered by source."""
        return await self._read(lambda ledger: ledger.below(storable(folder)), [])

    async def move(self, document_id: str, *, source: str, name: str) -> DocumentRecord:
        """Give a document another source and another name. Its id, text, passages and vectors stay as they are.

        Raises `NotFound` for an unknown document, and `ValidationError` when another document has the source.
        """
        self._access.check_writable()
        async with failing_as_unavailable():
            store = await self._access.existing()
            if store is None:
                raise _unknown(document_id)
            async with store.accepting() as ledger:
                other = await ledger.sourced(storable(source))
                if other is not None and other.id != document_id:
                    raise ValidationError(
                        f"The document {other.id} has this source already. Forget it first.", field="source"
                    )
                if await ledger.record(document_id) is None:
                    raise _unknown(document_id)
                await ledger.claim(document_id, storable(source), storable(name))
            if (moved := await store.ledger.record(document_id)) is None:
                raise _unknown(document_id)
            return moved

    async def documents(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        status: DocumentStatus | None = None,
        track: str | None = None,
        listing: Listing = LATEST,
    ) -> tuple[list[DocumentRecord], int]:
        """Return a page of documents, by default the latest first, and how many there are in all."""
        asked = replace(listing, search=storable(listing.search))
        return await self._read(lambda ledger: ledger.page(limit, offset, status, track, asked), ([], 0))

    async def file_types(self) -> dict[str, int]:
        """Count the documents of each type of file, in the order of the types."""
        return await self._read(lambda ledger: ledger.file_types(), {})

    async def languages(self) -> dict[str | None, int]:
        """Count the passages of each language; see `domain.languages`."""
        return await self._read(lambda ledger: ledger.languages(), {})

    async def source(self, document_id: str) -> SourceText | None:
        """Return the whole text as it was accepted."""
        return await self._read(lambda ledger: ledger.source(document_id), None)

    async def passages(self, document_id: str, part: int | None = None) -> list[Passage]:
        """Return a document's passages in their order, or those of one part."""
        return await self._read(lambda ledger: ledger.passages(document_id, part), [])

    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Return passages with their documents; missing ones are left out."""
        return await self._read(lambda ledger: ledger.passages_by_id(ids), {})

    async def delete(self, document_id: str) -> bool:
        """Forget a document. False when there is none.

        Its text and its passages are gone at once. What only it contributed to the graph is removed at once, or by a
        task of `restart` while somebody else writes to the graph.
        """
        self._access.check_writable()
        async with failing_as_unavailable():
            store = await self._access.existing()
            if store is None:
                return False
            async with store.accepting() as ledger:
                known = await ledger.retire(document_id)
            await sweep_if_free(store)
            return known

    async def restart(
        self, document_id: str | None = None, *, force: bool = False, failures: bool = True
    ) -> list[Task]:
        """Return the tasks of unfinished and failed work; with `force` of all work. None means all documents.

        Their parts become pending. Without `failures`, parts that were given up stay so, and the tasks include removing
        from the graph what deleted documents left there.
        """
        self._access.check_writable()
        async with failing_as_unavailable():
            store = await self._access.existing()
            if store is None:
                return []
            if not (failures or force):
                return await unfinished(store.ledger, document_id)
            async with store.accepting() as ledger:
                await ledger.requeue(document_id, force=force)
            return await store.ledger.tasks(document_id)

    async def progress(self) -> Progress:
        """Tell how far the indexing of all documents is."""
        return await self._read(lambda ledger: ledger.progress(), Progress())

    async def counts(self) -> dict[EnrichmentStatus, int]:
        """Count the passages in each state of enrichment."""
        return await self._read(lambda ledger: ledger.counts(), {})

    async def _read(self, read: Callable[[Ledger], Awaitable[Read]], nothing: Read) -> Read:
        async with failing_as_unavailable():
            store = await self._access.existing()
            return await read(store.ledger) if store else nothing


async def unfinished(ledger: Ledger, document_id: str | None = None) -> list[Task]:
    """Return the tasks that are left, without those given up. None means all documents.

    Parts in progress stay so: their worker marks them again when it begins.
    """
    given_up = await ledger.given_up()
    wanted = [task for task in await ledger.tasks(document_id) if (task.document_id, task.part) not in given_up]
    return wanted + await ledger.sweeps(document_id)


def _unknown(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id} in this workspace.")
