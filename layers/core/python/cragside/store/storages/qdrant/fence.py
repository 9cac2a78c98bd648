"""Writes of the journal's changes to Qdrant, in order and once each."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from qdrant_client import AsyncQdrantClient, models
from typing_extensions import override

from cragside.databases.qdrant import QdrantDatabase, QdrantFailure
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.postgres.journal import ChangesMissing, Outside
from cragside.store.storages.qdrant import points
from cragside.store.storages.qdrant.changes import unpacked
from cragside.store.storages.qdrant.points import NAMESPACES, collection_of

T = TypeVar("T")

# Earlier ones write under a condition as if there were none.
_OLDEST = (1, 16)
# A server takes 32 MiB at a time.
_AT_ONCE = 100
_READ_AT_ONCE = 500
# Whatever a stopped writer still has to write comes before this. Qdrant compares numbers as floats.
_NEVER_AGAIN = 2**53


class _Fence(NamedTuple):
    """The latest change of a store that a collection has: its number and its id."""

    seq: int
    change: str


class FencedVectors(Outside):
    """The vectors of all stores on a Qdrant server, in LightRAG's collections.

    A change is not one transaction there. Each point has the number of the change that wrote it, and no earlier change
    writes over it. So a change can be written again, and whoever was stopped halfway changes nothing when it wakes up.
    """

    def __init__(self, database: QdrantDatabase) -> None:
        self._database = database
        self._is_new_enough = False

    @property
    def address(self) -> str:
        """Return the address of the server."""
        return str(self._database.address)

    @property
    def tells_its_key(self) -> bool:
        """Return True if anybody on the way can read the key."""
        return self._database.address.tells_its_key

    async def server(self) -> str:
        """The server's version. Raises `LedgerError`, also for one that is too old."""
        version = (await self.run(lambda client: client.info())).version
        if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST:
            needed = ".".join(map(str, _OLDEST))
            raise LedgerError(f"Qdrant is older than {needed}", f"needs Qdrant {needed} or later; this is {version}")
        self._is_new_enough = True
        return version

    async def run(self, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Make requests; see `QdrantDatabase.run`. Raises `LedgerError`."""
        try:
            return await self._database.run(work)
        except QdrantFailure as error:
            raise LedgerError(error.reason, error.unusable) from error

    async def nearest(
        self, collection: str, key: str, vector: Sequence[float], *, least: float, most: int
    ) -> list[dict[str, Any]]:
        """The rows of a store with cosines of at least `least` as their `distance`, nearest first."""

        async def ask(client: AsyncQdrantClient) -> list[models.ScoredPoint]:
            answer = await client.query_points(
                collection,
                query=list(vector),
                query_filter=points.owned(key),
                limit=most,
                score_threshold=least,
                with_payload=True,
            )
            return answer.points

        found = await self.run(ask)
        found.sort(key=lambda point: (-point.score, str((point.payload or {}).get("id"))))
        return [{**_row(point), "distance": point.score} for point in found]

    async def rows(self, collection: str, key: str, names: Sequence[str]) -> list[dict[str, Any] | None]:
        """Rows in the order of their ids."""

        async def ask(client: AsyncQdrantClient) -> list[models.Record]:
            return await client.retrieve(collection, ids=[points.point_id(key, name) for name in names])

        found = {row["id"]: row for each in await self.run(ask) if (row := _row(each)).get(points.OWNER) == key}
        return [found.get(name) for name in names]

    async def vectors(self, collection: str, key: str, names: Sequence[str]) -> dict[str, list[float]]:
        """The vectors of those rows that are there."""

        async def ask(client: AsyncQdrantClient) -> list[models.Record]:
            ids = [points.point_id(key, name) for name in names]
            return await client.retrieve(collection, ids=ids, with_vectors=True)

        found = [(_row(each), each.vector) for each in await self.run(ask)]
        return {row["id"]: vector for row, vector in found if row.get(points.OWNER) == key}  # type: ignore[misc]

    async def all(self, collection: str, key: str) -> AsyncIterator[list[tuple[dict[str, Any], list[float]]]]:
        """All rows of a store with their vectors, in batches."""
        start: Any = None
        while True:

            async def ask(client: AsyncQdrantClient, start: Any = start) -> tuple[list[models.Record], Any]:
                return await client.scroll(
                    collection,
                    scroll_filter=points.owned(key),
                    limit=_READ_AT_ONCE,
                    offset=start,
                    with_vectors=True,
                )

            found, start = await self.run(ask)
            if found:
                yield [(_row(each), each.vector) for each in found]  # type: ignore[misc]  # they have one
            if start is None:
                return

    async def count(self, collection: str, key: str) -> int:
        """Count the rows of a store."""
        counted = await self.run(lambda client: client.count(collection, count_filter=points.owned(key), exact=True))
        return counted.count

    @override
    async def write(self, key: str, seq: int, change_id: UUID, change: dict[str, Any]) -> bool:
        """See the base. Another writer that is faster leaves nothing to do."""
        if not self._is_new_enough:
            await self.server()
        suffix, dimensions, rows = change["suffix"], change["dimensions"], change["rows"]
        collections = {namespace: collection_of(namespace, suffix) for namespace in NAMESPACES}
        if seq == 1:
            await asyncio.gather(*(self._make(name, dimensions) for name in collections.values()))
        this = _Fence(seq, str(change_id))
        fences = await self._fences(key, collections.values())
        if any(fence.seq >= seq and fence != this for fence in fences):
            return False
        if any(fence.seq < seq - 1 for fence in fences):
            raise ChangesMissing("Qdrant lacks earlier changes", "has older vectors in Qdrant")

        async def write(namespace: str, name: str) -> None:
            *others, last = _batches(key, seq, rows.get(namespace, {}), dimensions)
            for batch in others:
                await self._write(name, batch)
            await self._write(name, [*last, points.passed(key, *this, dimensions), points.forgotten()])

        lacking = [each for each, fence in zip(collections.items(), fences, strict=True) if fence != this]
        await asyncio.gather(*(write(*each) for each in lacking))
        fences = await self._fences(key, collections.values())
        if any(fence.seq == _NEVER_AGAIN for fence in fences):
            # The store was removed meanwhile.
            await asyncio.gather(*(self._remove(name, key) for name in collections.values()))
        return all(fence == this for fence in fences)

    @override
    async def applied(self, key: str) -> int:
        """See the base. A change is there once all collections have it."""
        by_model: dict[str, list[int]] = {}
        for namespace, suffix in await self._models():
            (fence,) = await self._fences(key, [collection_of(namespace, suffix)])
            by_model.setdefault(suffix, []).append(fence.seq)
        return max((min(seqs) for seqs in by_model.values() if len(seqs) == len(NAMESPACES)), default=0)

    @override
    async def drop(self, key: str) -> None:
        for namespace, suffix in await self._models():
            name = collection_of(namespace, suffix)
            if (await self._fences(key, [name]))[0].seq == 0:
                continue
            dimensions = int(suffix.rpartition("_")[2].removesuffix("d"))
            await self._write(name, [points.passed(key, _NEVER_AGAIN, "", dimensions, closed=True)])
            await self._remove(name, key)

    @override
    async def close(self) -> None:
        await self._database.close()

    async def _models(self) -> list[tuple[str, str]]:
        """LightRAG's collections, by their namespaces and what tells their model."""
        listed = await self.run(lambda client: client.get_collections())
        starts = {namespace: f"{points.PREFIX}{namespace}_" for namespace in NAMESPACES}
        return [
            (namespace, each.name.removeprefix(start))
            for each in listed.collections
            for namespace, start in starts.items()
            if each.name.startswith(start)
        ]

    async def _make(self, name: str, dimensions: int) -> None:
        """Make a collection as LightRAG does, unless it is there."""

        async def make(client: AsyncQdrantClient) -> None:
            if not await client.collection_exists(name):
                size = models.VectorParams(size=dimensions, distance=models.Distance.COSINE)
                await client.create_collection(name, vectors_config=size, hnsw_config=points.LINKS)

        async def index(client: AsyncQdrantClient) -> None:
            for field, kind in points.INDEXES.items():
                await client.create_payload_index(name, field_name=field, field_schema=kind, wait=True)

        try:
            await self._database.run(make)
        except QdrantFailure as error:
            if not error.is_conflict:  # another process has made it
                raise LedgerError(error.reason, error.unusable) from error
        await self.run(index)

    async def _fences(self, key: str, collections: Iterable[str]) -> list[_Fence]:
        return list(await asyncio.gather(*(self._fence(key, name) for name in collections)))

    async def _fence(self, key: str, collection: str) -> _Fence:
        try:
            found = await self._database.run(lambda client: client.retrieve(collection, ids=[points.fence_id(key)]))
        except QdrantFailure as error:
            if error.is_missing:
                return _Fence(0, "")
            raise LedgerError(error.reason, error.unusable) from error
        payload = (found[0].payload or {}) if found else {}
        return _Fence(int(payload.get(points.CHANGE, 0)), str(payload.get("cragside_id", "")))

    async def _write(self, collection: str, operations: list[models.UpdateOperation]) -> None:
        """They are not one transaction, but come one after another."""
        strong = models.WriteOrdering.STRONG
        await self.run(lambda client: client.batch_update_points(collection, operations, wait=True, ordering=strong))

    async def _remove(self, collection: str, key: str) -> None:
        selected = models.FilterSelector(filter=points.owned(key))
        await self._write(collection, [models.DeleteOperation(delete=selected)])


def _batches(key: str, seq: int, rows: Mapping[str, Any], dimensions: int) -> Iterator[list[models.UpdateOperation]]:
    """Split the changes of a namespace into requests that the server takes: at least one, the last is small."""
    for chosen in _batched(rows.get("removed", ())):
        yield [points.removed(key, seq, chosen, dimensions)]
    for chosen in _batched(rows.get("updated", {}).items()):
        yield [points.updated(key, seq, name, row) for name, row in chosen]
    for chosen in _batched(rows.get("written", {}).items()):
        yield [points.written(key, seq, {name: (row, unpacked(vector)) for name, (row, vector) in chosen})]
    if not any(rows.values()):
        yield []


def _batched(rows: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(rows)
    while chosen := list(islice(waiting, _AT_ONCE)):
        yield chosen


def _row(point: models.Record | models.ScoredPoint) -> dict[str, Any]:
    return dict(point.payload or {})
