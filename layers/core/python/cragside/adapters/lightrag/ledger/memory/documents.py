"""The versions of a document in memory: which one is current, and what becomes of the one before it."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from cragside.adapters.lightrag.ledger.cutting import TEXTS, parts_of
from cragside.adapters.lightrag.ledger.entries import Entry, json_of, searched_title, title_of
from cragside.adapters.lightrag.ledger.memory.catalogue import MemoryCatalogue
from cragside.adapters.lightrag.ledger.memory.tables import FORGOTTEN, PASSAGES, Chunk, Version
from cragside.adapters.lightrag.storable import storable
from cragside.domain.document import SourceText
from cragside.domain.indexing import Part


class MemoryDocuments(MemoryCatalogue):
    """Writes documents and their versions. No write is interrupted, so each is seen whole or not at all."""

    @override
    async def enter(self, entry: Entry) -> None:
        self._check_leases()
        version = self._make_current(entry)
        if entry.enrich:
            _want_enrichment(version)
        self._claim(entry.identifier, entry.source.source, entry.source.name)

    @override
    async def retire(self, document_id: str) -> bool:
        self._check_leases()
        known = self._version(document_id) is not None
        if known:
            self._retire(each for each in self._memory.versions.values() if each.id == document_id)
            self._memory.origins.pop(document_id, None)
        return known

    @override
    async def claim(self, document_id: str, source: str, name: str) -> None:
        self._check_leases()
        self._claim(document_id, source, name)

    @override
    async def describe(self, document_id: str, source: SourceText, track: str) -> None:
        self._check_leases()
        if version := self._version(document_id):
            self._embed_again_if_retitled(version, source)
        self._claim(document_id, source.source, source.name)
        if version:
            metadata = json.loads(json_of(source.metadata))
            version.source = replace(version.source, title=title_of(source), metadata=metadata)
            version.track, version.updated_at = track, now()

    @override
    async def want_enrichment(self, document_id: str) -> None:
        self._check_leases()
        if version := self._version(document_id):
            version.enrich = True
            _want_enrichment(version)
            self._memory.changes += 1

    @override
    async def requeue(self, document_id: str | None, *, force: bool) -> None:
        self._check_leases()
        for version in self._current(document_id):
            version.enrich = version.enrich or force
            for part in list(version.parts.values()):
                self._set(version, part.number, error="")
                if force or part.enrichment in ("failed", "processing"):
                    embedded = part.embedded and not force
                    self._set(version, part.number, enrichment="pending", embedded=embedded)

    @override
    async def drop_swept(self) -> None:
        self._check_leases()
        for version in list(self._memory.versions.values()):
            if version.state == "gone" and not version.parts:
                del self._memory.versions[version.number]
        self._memory.untidy = True

    def _make_current(self, entry: Entry) -> Version:
        versions = [each for each in self._memory.versions.values() if each.id == entry.identifier]
        created_at = min((each.created_at for each in versions if each.state != "gone"), default=now())
        self._put_aside(entry.identifier)
        known = next((each for each in versions if each.digest == entry.digest), None)
        if known is not None:
            if known.state == "replaced":
                return self._update(known, entry, created_at)
            if known.keys.get(min(known.parts, default=0)) == f"{entry.key}-0":
                return self._add_parts(self._update(known, entry, created_at), entry)
            # Its share of the graph is still to be taken out, by the passages that it had.
            known.digest = f"{known.digest}-{known.number}"
        number = self._memory.next_number()
        added = Version(number, entry.identifier, entry.digest, entry.source, "", "", "", enrich=False)
        self._memory.versions[number] = added
        return self._add_parts(self._update(added, entry, created_at), entry)

    def _put_aside(self, document_id: str) -> None:
        """A version that was never complete has nothing to serve until the new one is."""
        if current := self._version(document_id):
            if current.parts and all(part.embedded for part in current.parts.values()):
                current.state = "replaced"
                self._forget_kept(document_id)
            else:
                self._retire([current])

    def _update(self, version: Version, entry: Entry, created_at: str) -> Version:
        source = entry.source
        self._embed_again_if_retitled(version, source)
        version.source = replace(
            source,
            title=title_of(source),
            size=len(source.text.encode()) if source.size is None else source.size,
            marks=tuple(replace(mark, section=storable(mark.section)) for mark in source.marks),
            tier1=json.loads(json_of(source.tier1)),
            metadata=json.loads(json_of(source.metadata)),
        )
        version.state, version.track, version.enrich = "current", entry.track, entry.enrich
        version.created_at, version.updated_at = created_at, now()
        return version

    def _add_parts(self, version: Version, entry: Entry) -> Version:
        """Enter a version's parts and their passages; those parts that are there are the same and stay."""
        for cut in parts_of(entry):
            part = Part(cut.number, cut.first, cut.last, enrichment="pending" if entry.enrich else "none")
            version.parts.setdefault(cut.number, part)
            version.keys.setdefault(cut.number, cut.key)
            for each in cut.passages:
                chunk = Chunk(each.id, version.number, cut.number, each.number, each.page, each.places)
                version.chunks[each.id] = self._memory.chunks[each.id] = chunk
                self._memory.values[TEXTS][each.id] = each.text
        self._memory.changes += 1
        return version

    def _retire(self, versions: Iterable[Version]) -> None:
        """Forget the texts of versions. What remains are the keys by which their share of the graph is found."""
        for version in [each for each in versions if each.state != "gone"]:
            if version.state == "current":
                self._forget_kept(version.id)
            version.state = "gone"
            self._erase(version.chunks)
            for chunk in version.chunks.values():
                chunk.places, chunk.tier2 = "", None
            for part in list(version.parts.values()):
                version.parts[part.number] = Part(part.number, part.first, part.last)
            version.source = FORGOTTEN
            self._memory.changes += 1

    def _erase(self, ids: Iterable[str]) -> None:
        self._memory.erase_vectors(PASSAGES, ids)
        for key in ids:
            self._memory.values[TEXTS].pop(key, None)

    def _forget_kept(self, document_id: str) -> None:
        kept = self._memory.kept
        self._memory.kept = {key: value for key, value in kept.items() if value[0] != document_id}

    def _claim(self, document_id: str, source: str, name: str) -> None:
        self._memory.origins[document_id] = source
        for version in self._memory.versions.values():
            if version.id == document_id and version.state != "gone":
                text = version.source
                version.source = replace(text, name=name, title=name if text.title == text.name else text.title)
        self._memory.changes += 1

    def _embed_again_if_retitled(self, version: Version, source: SourceText) -> None:
        before = searched_title(version.source.title, version.source.name)
        if before != searched_title(title_of(source), source.name):
            for number in list(version.parts):
                self._set(version, number, embedded=False)

    def _set(self, version: Version, number: int, **changes: Any) -> None:
        version.parts[number] = replace(version.parts[number], **changes)
        self._memory.changes += 1


def _want_enrichment(version: Version) -> None:
    for part in list(version.parts.values()):
        if part.enrichment == "none":
            version.parts[part.number] = replace(part, enrichment="pending")


def now() -> str:
    """The time, in ISO 8601 and UTC."""
    return datetime.now(UTC).isoformat()
