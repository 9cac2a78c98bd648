"""The documents of one workspace in its store."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from cragside.adapters.lightrag.adoption import adopt
from cragside.adapters.lightrag.catalogue import Entry, behind
from cragside.adapters.lightrag.chunking import Piece, cut, storable
from cragside.adapters.lightrag.schema import PARTED
from cragside.adapters.lightrag.store import Create, Find, Store, failing_as_unavailable
from cragside.adapters.lightrag.sweeping import sweep, sweep_if_free
from cragside.adapters.lightrag.versions import (
    cut_of,
    digest_of,
    enter_parts,
    make_current,
    retire,
    revert,
    want_enrichment,
)
from cragside.domain.document import SourceText
from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.indexing import (
    Acceptance,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Passage,
    Progress,
    Stored,
    Task,
)
from cragside.domain.memory_name import is_memory
from cragside.ports.library import Library


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

    async def check_writable(self) -> None:
        """Raises for a baked store."""
        self._refuse()

    async def document(self, document_id: str) -> DocumentRecord | None:
        """A document by its id."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.record(document_id) if store else None

    async def sourced(self, source: str) -> DocumentRecord | None:
        """The document of a source."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.sourced(storable(source)) if store else None

    async def named(self, name: str) -> list[DocumentRecord]:
        """All documents of a name, latest first."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.named(storable(name)) if store else []

    async def below(self, folder: str) -> list[DocumentRecord]:
        """All documents whose source lies below a folder, in the order of their sources."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.below(storable(folder)) if store else []

    async def unclaimed(self) -> list[DocumentRecord]:
        """All documents that have no source, only a name, in the order of names."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.all_unclaimed() if store else []

    async def move(self, document_id: str, *, source: str, name: str) -> DocumentRecord:
        """Give a document another source and another name; nothing is indexed again."""
        self._refuse()
        async with failing_as_unavailable():
            store = await self._find()
            if store is None:
                raise _unknown(document_id)
            return await move(store, document_id, storable(source), storable(name))

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
        """Forget a document: its text is gone at once, its share of the graph follows."""
        self._refuse()
        async with failing_as_unavailable():
            store = await self._find()
            if store is None:
                return False
            known = await forget(store, document_id)
            await sweep_if_free(store)
            return known

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

    async def stored(self) -> Stored:
        """How much is stored."""
        async with failing_as_unavailable():
            store = await self._find()
            return store.catalogue.stored() if store else Stored()


async def accept(
    store: Store, source: SourceText, *, enrich: bool, track: str, rename: bool, identifier: str = ""
) -> Acceptance:
    """See `Library.accept`. A new document gets `identifier` if that is given and no other document has it."""
    given, digest = await asyncio.to_thread(_prepared, source)
    if not rename:
        await adopt(store, given, digest)
    source = given if rename else _of_track(store, given, track)
    if (known := _known(store, source, digest, rename=rename)) is None:
        pieces, made = await asyncio.to_thread(pieces_of, store, source, digest)
        async with store.accepting():
            # Somebody else may have brought the same text, or taken the name, meanwhile.
            source = given if rename else _of_track(store, given, track)
            if (known := _known(store, source, digest, rename=rename)) is None:
                entry = Entry(identifier, digest, made, source, pieces, enrich, track)
                return _entered(store, entry, rename=rename)
    if enrich and any(part.enrichment == "none" for part in known.parts):
        async with store.accepting():
            with store.database.transaction() as connection:
                want_enrichment(store, connection, known.id)
        known = store.catalogue.record(known.id) or known
    if not rename:
        known = await _described(store, known, source, track)
    return Acceptance(known, "unchanged", store.catalogue.tasks(known.id))


def pieces_of(store: Store, source: SourceText, digest: str) -> tuple[list[Piece], str]:
    """A text's passages and what says which they are; for a thread of its own."""
    pieces = cut(source.text, source.marks, store.chunks, store.count_tokens)
    return pieces, cut_of(digest, pieces, store.part_passages)


async def delete(store: Store, document_id: str) -> bool:
    """Forget a document and what only it contributed to the graph, whoever is writing to that."""
    known = await forget(store, document_id)
    await sweep(store)  # also what an interrupted one has left
    return known


async def forget(store: Store, document_id: str) -> bool:
    """Make a document's text vanish. False when there is none."""
    async with store.accepting():
        known = store.catalogue.record(document_id) is not None
        if known:
            with store.database.transaction() as connection:
                retire(store, connection, "id = ?", document_id)
                store.catalogue.disown(connection, document_id)
    return known


async def go_back(store: Store, document_id: str) -> bool:
    """Give the current version of a document up for the one before it. False when there is none."""
    async with store.accepting():
        with store.database.transaction() as connection:
            reverted = revert(store, connection, document_id)
    if reverted:
        await sweep(store)
    return reverted


async def move(store: Store, document_id: str, source: str, name: str) -> DocumentRecord:
    """See `Library.move`."""
    async with store.accepting():
        other = store.catalogue.sourced(source)
        if other is not None and other.id != document_id:
            raise ValidationError(f"The document {other.id} has this source already. Forget it first.", field="source")
        if store.catalogue.record(document_id) is None:
            raise _unknown(document_id)
        with store.database.transaction() as connection:
            store.catalogue.claim(connection, document_id, source, name)
    moved = store.catalogue.record(document_id)
    if moved is None:
        raise _unknown(document_id)
    return moved


async def restart(store: Store, document_id: str | None, *, force: bool, failures: bool) -> list[Task]:
    """See `Library.restart`."""
    await cut_uncut(store)
    if not (failures or force):
        # What is being done stays so: whoever does it begins by saying it again.
        given_up = store.catalogue.given_up()
        wanted = [task for task in store.catalogue.tasks(document_id) if (task.document_id, task.part) not in given_up]
        return wanted + store.catalogue.sweeps(document_id)
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
        record = store.catalogue.record(identifier)
        if source is None or record is None:
            continue
        pieces, made = await asyncio.to_thread(pieces_of, store, source, record.content_hash)
        entry = Entry(identifier, record.content_hash, made, source, pieces, enrich=True)
        async with store.accepting():
            if (version := store.catalogue.uncut().get(identifier)) is not None:
                with store.database.transaction() as connection:
                    enter_parts(store, connection, version, entry)


def identifier_of(source: str, *, memory: bool = False) -> str:
    """The id that a new document of a source gets, or in a memory a new exchange, unless another one has it."""
    return ("mem-" if memory else "doc-") + hashlib.md5(storable(source).encode(), usedforsecurity=False).hexdigest()


def _free_identifier(store: Store, source: str) -> str:
    """An id for a new document. A document that was moved keeps the id that it got from its first source."""
    memory = is_memory(store.workspace)
    identifier, number = identifier_of(source, memory=memory), 1
    while not _is_free(store, identifier):
        number += 1
        identifier = identifier_of(f"{source}\n{number}", memory=memory)
    return identifier


def _is_free(store: Store, identifier: str) -> bool:
    """Nothing in the store has the id, nor has an exchange that left it for memory and kept its id."""
    return store.catalogue.record(identifier) is None and store.database.meta(PARTED + identifier) is None


def _prepared(source: SourceText) -> tuple[SourceText, str]:
    """The text as it can be stored, and its digest; for a thread of its own."""
    source = replace(source, name=storable(source.name), source=storable(source.source), text=storable(source.text))
    return source, digest_of(source)


def _known(store: Store, source: SourceText, digest: str, *, rename: bool) -> DocumentRecord | None:
    """The document that holds the text already. With `rename`, its source may have got a number."""
    known = store.catalogue.sourced(source.source)
    if known is not None and known.content_hash == digest and known.parts:
        return known
    if not rename or known is None:
        return None
    stem, suffix = _stem_and_suffix(source.source)
    numbered = re.compile(rf"{re.escape(stem)} \(\d+\){re.escape(suffix)}")
    return next((twin for twin in store.catalogue.twins(digest) if numbered.fullmatch(twin.source)), None)


def _of_track(store: Store, source: SourceText, track: str) -> SourceText:
    """The text, with its track behind its source and its name when the source is of another track's document."""
    if not track:
        return source
    longer = replace(source, name=behind(source.name, track), source=behind(source.source, track))
    while (own := store.catalogue.sourced(longer.source)) and own.track != track:
        # Somebody's own source looks like one with a track behind it.
        longer = replace(longer, name=behind(longer.name, track), source=behind(longer.source, track))
    if own:
        return longer
    known = store.catalogue.sourced(source.source)
    return longer if known and known.track not in ("", track) else source


def _entered(store: Store, entry: Entry, *, rename: bool) -> Acceptance:
    known = store.catalogue.sourced(entry.source.source)
    if known and rename:
        number = _free_number(store, entry.source.source)
        name, source = _numbered(entry.source.name, number), _numbered(entry.source.source, number)
        entry = replace(entry, source=replace(entry.source, name=name, source=source))
    changed = known is not None and not rename
    if known and changed:
        identifier = known.id
    elif entry.identifier and _is_free(store, entry.identifier):
        identifier = entry.identifier
    else:
        identifier = _free_identifier(store, entry.source.source)
    entry = replace(entry, identifier=identifier)
    with store.database.transaction() as connection:
        make_current(store, connection, entry)
        store.catalogue.claim(connection, identifier, entry.source.source, entry.source.name)
    record = store.catalogue.record(entry.identifier)
    assert record is not None  # noqa: S101 (it was just written)
    return Acceptance(record, "changed" if changed else "new", store.catalogue.tasks(entry.identifier))


async def _described(store: Store, known: DocumentRecord, source: SourceText, track: str) -> DocumentRecord:
    """The document with the title and the metadata of the source, and with the track if there is one."""
    track = track or known.track
    if known.track == track and store.catalogue.is_described(known, source):
        return known
    async with store.accepting():
        with store.database.transaction() as connection:
            store.catalogue.describe(connection, known.id, source, track)
    return store.catalogue.record(known.id) or known


def _free_number(store: Store, source: str) -> int:
    """A number with which nobody has the source, in steps that grow with the number's length."""

    def is_taken(number: int) -> bool:
        return store.catalogue.has_source(_numbered(source, number))

    taken, free = 1, 2
    while is_taken(free):
        taken, free = free, free * 2
    while free - taken > 1:
        between = (taken + free) // 2
        taken, free = (between, free) if is_taken(between) else (taken, between)
    return free


def _numbered(name: str, number: int) -> str:
    stem, suffix = _stem_and_suffix(name)
    return f"{stem} ({number}){suffix}"


def _unknown(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id} in this workspace.")


def _stem_and_suffix(name: str) -> tuple[str, str]:
    suffix = PurePosixPath(name).suffix
    return (name.removesuffix(suffix), suffix) if suffix else (name, "")
