"""Takes a text into a store: finds its document, gives it a name, and cuts it into passages."""

import asyncio
import hashlib
import json
import re
from dataclasses import replace
from pathlib import PurePosixPath

from cragside.domain.document import SourceText
from cragside.domain.indexing import Acceptance, DocumentRecord
from cragside.domain.names import is_memory
from cragside.store.chunking import Chunker, cut
from cragside.store.indexing.versions import cut_of, digest_of
from cragside.store.ledger.entries import Entry, Piece, behind, json_of, title_of
from cragside.store.ledger.ledger import Ledger
from cragside.store.storable import storable
from cragside.store.store import Store


async def accept(store: Store, source: SourceText, *, enrich: bool, track: str, rename: bool) -> Acceptance:
    """See `Library.accept`."""
    given, digest = await asyncio.to_thread(_prepared, source)
    source = given if rename else await _of_track(store, given, track)
    if (known := await _known(store, source, digest, rename=rename)) is None:
        pieces, made = await asyncio.to_thread(_pieces_of, store, await store.chunker(), source, digest)
        async with store.accepting() as ledger:
            # Somebody else may have brought the same text, or taken the name, meanwhile.
            source = given if rename else await _of_track(store, given, track)
            if (known := await _known(store, source, digest, rename=rename)) is None:
                entry = Entry("", digest, made, source, pieces, store.part_passages, enrich, track)
                return await _entered(store, ledger, entry, rename=rename)
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
