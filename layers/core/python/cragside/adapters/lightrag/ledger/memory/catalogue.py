"""The reads of a ledger in memory."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from typing_extensions import override

from cragside.adapters.lightrag.ledger.cutting import TEXTS, sections_in
from cragside.adapters.lightrag.ledger.entries import StoredPart, searched_title
from cragside.adapters.lightrag.ledger.memory.listing import ListedVersion
from cragside.adapters.lightrag.ledger.memory.mentions import MemoryMentions
from cragside.adapters.lightrag.ledger.memory.tables import Chunk, Version
from cragside.domain.dating import BEGINNING
from cragside.domain.document import SourceText
from cragside.domain.indexing import (
    LATEST,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Listing,
    Part,
    Passage,
    Progress,
    Task,
)
from cragside.domain.names import MOST_NAMESAKES, distinct_labels, in_full


class MemoryCatalogue(MemoryMentions):
    """Reads a store in memory."""

    @override
    async def record(self, document_id: str) -> DocumentRecord | None:
        return next(iter(self._records(lambda version: version.id == document_id)), None)

    @override
    async def sourced(self, source: str) -> DocumentRecord | None:
        return next(iter(self._records(lambda version: self._origin(version) == source)), None)

    @override
    async def named(self, name: str) -> list[DocumentRecord]:
        return self._records(lambda version: version.source.name == name, latest=True)

    @override
    async def below(self, folder: str) -> list[DocumentRecord]:
        inside = folder.rstrip("/") + "/"
        found = self._records(lambda version: self._memory.origins.get(version.id, "").startswith(inside))
        return sorted((each for each in found if each.source != inside), key=lambda record: record.source)

    @override
    async def twins(self, content_hash: str) -> list[DocumentRecord]:
        return self._records(lambda version: version.digest == content_hash)

    @override
    async def has_source(self, source: str) -> bool:
        return any(self._origin(version) == source for version in self._current())

    @override
    async def names(self) -> dict[str, str]:
        return {each.id: each.source.name for each in sorted(self._current(), key=lambda each: each.source.name)}

    @override
    async def labels(self, ids: Collection[str]) -> dict[str, str]:
        return {record.id: record.label for record in self._records(lambda version: version.id in ids)}

    @override
    async def page(
        self, limit: int, offset: int, status: DocumentStatus | None, track: str | None, listing: Listing = LATEST
    ) -> tuple[list[DocumentRecord], int]:
        listed = (
            ListedVersion(version, self._origin(version), self._unlabelled)
            for version in sorted(self._current(), key=lambda version: version.number)
            if track in (None, version.track)
        )
        found = listing.ordered(
            each for each in listed if listing.takes(each) and (status is None or each.status == status)
        )
        return self._labelled([each.version for each in found[offset : offset + limit]]), len(found)

    @override
    async def file_types(self) -> dict[str, int]:
        return dict(sorted(Counter(version.source.file_type for version in self._current()).items()))

    @override
    async def languages(self) -> dict[str | None, int]:
        tiers = (chunk.tier2 for version in self._current() for chunk in version.chunks.values())
        return dict(Counter(None if tier2 is None else tier2.get("language") or "" for tier2 in tiers))

    @override
    async def source(self, document_id: str) -> SourceText | None:
        version = self._version(document_id)
        return replace(version.source, source=self._origin(version)) if version else None

    @override
    async def passages(self, document_id: str, part: int | None) -> list[Passage]:
        version = self._version(document_id)
        chunks = version.chunks.values() if version else ()
        found = [self._passage(chunk) for chunk in chunks if part in (None, chunk.part)]
        return sorted(found, key=lambda passage: passage.index)

    @override
    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        texts, versions = self._memory.values[TEXTS], self._memory.versions
        found = [chunk for key in dict.fromkeys(ids) if key in texts and (chunk := self._memory.chunks.get(key))]
        found = [chunk for chunk in found if versions[chunk.version].state != "gone"]
        shown = [versions[number] for number in dict.fromkeys(chunk.version for chunk in found)]
        records = {
            version.number: replace(record, beginning=version.source.text[:BEGINNING])
            for version, record in zip(shown, self._labelled(shown), strict=True)
        }
        return {chunk.id: (records[chunk.version], self._passage(chunk)) for chunk in found}

    @override
    async def counts(self) -> dict[EnrichmentStatus, int]:
        counts = Counter[EnrichmentStatus]()
        for part in (part for version in self._current() for part in version.parts.values()):
            counts[part.enrichment] += part.last - part.first + 1
        return dict(counts)

    @override
    async def progress(self) -> Progress:
        documents, parts = Counter[str](), Counter[str]()
        for version in (version for version in self._current() if version.parts):
            held = version.parts.values()
            states = {part.enrichment for part in held}
            searchable = all(part.embedded for part in held)
            if self._unlabelled(version).status == "failed":
                documents["failed"] += 1
            elif searchable and states in ({"enriched"}, {"none"}):
                documents["done"] += 1
            else:
                documents["underway" if any(part.embedded for part in held) else "waiting"] += 1
            for part in held:
                parts["given_up"] += part.error != ""
                if not part.error:
                    parts["tasks"] += (not part.embedded) + (part.enrichment in ("pending", "processing"))
                    parts["processing"] += part.enrichment == "processing"
        return Progress(**documents, **parts)

    @override
    async def tasks(self, document_id: str | None = None) -> list[Task]:
        outdated = {version.id for version in self._memory.versions.values() if version.state != "current"}
        embed: list[Task] = []
        enrich: list[Task] = []
        for version in self._current(document_id):
            for number, part in sorted(version.parts.items()):
                task = Task(self._workspace, version.id, version.digest, number, "embed")
                if not part.embedded or (version.id in outdated and number == max(version.parts)):
                    embed.append(task)
                if part.enrichment in ("pending", "processing"):
                    enrich.append(replace(task, stage="enrich"))
        return embed + enrich

    @override
    async def sweeps(self, document_id: str | None = None) -> list[Task]:
        return [
            Task(self._workspace, version.id, version.digest, min(version.parts, default=0), "enrich")
            for version in self._memory.versions.values()
            if version.state == "gone" and document_id in (None, version.id)
        ]

    @override
    async def given_up(self) -> set[tuple[str, int]]:
        return {(each.id, number) for each in self._current() for number, part in each.parts.items() if part.error}

    @override
    async def part(self, task: Task) -> StoredPart | None:
        version = self._version(task.document_id)
        if version is None or version.digest != task.content_hash or task.part not in version.parts:
            return None
        return _stored(version, version.parts[task.part])

    @override
    async def chunk_ids(self, part: StoredPart) -> list[str]:
        version = self._memory.versions.get(part.version)
        chunks = (
            [chunk for chunk in version.chunks.values() if part.first <= chunk.number <= part.last] if version else []
        )
        return [chunk.id for chunk in sorted(chunks, key=lambda chunk: chunk.number)]

    @override
    async def being_enriched(self) -> list[Task]:
        return [
            Task(self._workspace, version.id, version.digest, number, "enrich")
            for version in self._current()
            for number, part in sorted(version.parts.items())
            if part.enrichment == "processing"
        ]

    @override
    async def gone(self) -> list[StoredPart]:
        gone = [version for version in self._memory.versions.values() if version.state == "gone"]
        return [_stored(version, part) for version in gone for _, part in sorted(version.parts.items())]

    def _current(self, document_id: str | None = None) -> list[Version]:
        versions = self._memory.versions.values()
        return [each for each in versions if each.state == "current" and document_id in (None, each.id)]

    def _version(self, document_id: str) -> Version | None:
        return next(iter(self._current(document_id)), None)

    def _origin(self, version: Version) -> str:
        return self._memory.origins.get(version.id, version.source.name)

    def _records(self, wanted: Callable[[Version], bool], *, latest: bool = False) -> list[DocumentRecord]:
        found = [version for version in self._current() if wanted(version)]
        if latest:
            found.sort(key=lambda version: (version.updated_at, version.number), reverse=True)
        return self._labelled(found)

    def _unlabelled(self, version: Version) -> DocumentRecord:
        return self._record(version, ())

    def _labelled(self, versions: Sequence[Version]) -> list[DocumentRecord]:
        namesakes: dict[str, set[str]] = {version.source.name: set() for version in versions}
        for each in self._current():
            if each.source.name in namesakes:
                namesakes[each.source.name].add(self._origin(each))
        return [self._record(version, namesakes[version.source.name]) for version in versions]

    def _record(self, version: Version, namesakes: Collection[str]) -> DocumentRecord:
        """A document. `namesakes` are the sources of all documents of its name."""
        source = version.source
        return DocumentRecord(
            id=version.id,
            name=source.name,
            title=source.title,
            file_type=source.file_type,
            doc_type=source.doc_type,
            content_hash=version.digest,
            size=source.size or 0,
            characters=len(source.text),
            created_at=version.created_at,
            updated_at=version.updated_at,
            track=version.track,
            tier1=source.tier1,
            metadata=source.metadata,
            parts=tuple(part for _, part in sorted(version.parts.items())),
            source=self._origin(version),
            label=self._label(version, namesakes),
        )

    def _label(self, version: Version, namesakes: Collection[str]) -> str:
        name, source = version.source.name, self._origin(version)
        if len(namesakes) > MOST_NAMESAKES:
            return in_full(name, source)
        return distinct_labels(name, {source, *namesakes}, taken=self._names_among)[source]

    def _names_among(self, names: Collection[str]) -> list[str]:
        return [version.source.name for version in self._current() if version.source.name in names]

    def _passage(self, chunk: Chunk) -> Passage:
        section, sections = sections_in(chunk.places)
        version = self._memory.versions[chunk.version]
        return Passage(
            id=chunk.id,
            document_id=version.id,
            part=chunk.part,
            index=chunk.number,
            text=self._memory.values[TEXTS].get(chunk.id, {}).get("content", ""),
            page=chunk.page,
            section=section,
            sections=sections,
            enrichment=version.parts[chunk.part].enrichment,
            tier2=chunk.tier2,
        )


def _stored(version: Version, part: Part) -> StoredPart:
    key, title = version.keys[part.number], searched_title(version.source.title, version.source.name)
    return StoredPart(version.number, part.number, key, part.first, part.last, part.embedded, part.enrichment, title)
