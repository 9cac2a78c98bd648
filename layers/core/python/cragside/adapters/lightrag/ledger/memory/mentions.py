"""What a ledger in memory tells of the passages that name entities and relations."""

from collections import Counter
from collections.abc import Sequence

from typing_extensions import override

from cragside.adapters.lightrag.ledger.memory.leasing import MemoryLeasing


class MemoryMentions(MemoryLeasing):
    """Reads which passages name what."""

    @override
    async def mentions(self, names: Sequence[str]) -> dict[str, int]:
        counts = Counter(name for name, _ in self._memory.mentions["entity"])
        return {name: counts[name] for name in names if counts[name]}

    @override
    async def mentioned_by(self, passage_ids: Sequence[str]) -> list[tuple[str, str]]:
        return [(passage, name) for name, passage in self._memory.mentions["entity"] if passage in passage_ids]

    @override
    async def fading(self, kind: str, names: Sequence[str]) -> dict[str, bool]:
        versions = self._memory.versions.values()
        gone = {key for version in versions if version.state == "gone" for key in version.chunks}
        named = [each for each in self._memory.mentions[kind] if each[0] in names]
        stay = {name for name, passage in named if passage not in gone}
        return {name: name in stay for name, passage in named if passage in gone}

    @override
    async def passages_naming(self, kind: str, name: str, limit: int) -> tuple[list[str], int]:
        named = [passage for known, passage in self._memory.mentions[kind] if known == name]
        chunks = [chunk for key in named if (chunk := self._memory.chunks.get(key))]
        versions = self._memory.versions
        there = [chunk for chunk in chunks if versions[chunk.version].state != "gone"]
        there.sort(key=lambda chunk: (versions[chunk.version].created_at, chunk.version, chunk.number))
        return [chunk.id for chunk in there[:limit]], len(there)

    @override
    async def mentioning(self, name: str, limit: int) -> list[tuple[str, str, str]]:
        passages = [passage for known, passage in self._memory.mentions["entity"] if known == name]
        versions = [self._memory.versions[chunk.version] for key in passages if (chunk := self._memory.chunks.get(key))]
        found: dict[str, tuple[str, str, str]] = {}
        for version in sorted(versions, key=lambda version: version.created_at):
            if version.state != "gone":
                found.setdefault(version.id, (version.id, version.source.name, version.created_at))
        return sorted(found.values(), key=lambda each: (each[2], each[1]))[:limit]
