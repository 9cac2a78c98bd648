"""LightRAG's collections and points in Qdrant, and what makes their writes safe to come late."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from qdrant_client import AsyncQdrantClient, models
from typing_extensions import override

from cragside.databases.qdrant import QdrantDatabase, QdrantFailure
from cragside.store.errors import LedgerError
from cragside.store.outside.vectors import ChangedRows, StoredRow, VectorTarget
from cragside.store.postgres.journal import CLOSED, FORGET_SECONDS, Fence, translating_failures

T = TypeVar("T")

# Earlier ones write under a condition as if there were none.
_OLDEST = (1, 16)
# A server takes 32 MiB at a time.
_AT_ONCE = 100
_READ_AT_ONCE = 500
_OWNER = "workspace_id"
# The number of the change that wrote a point.
_CHANGE = "cragside_change"
# When what is left of a removed point or store may go, in seconds.
GONE = "cragside_gone"
# As LightRAG makes them: one graph of neighbours for each workspace, none for all.
_LINKS = models.HnswConfigDiff(payload_m=16, m=0)
_INDEXES: Mapping[str, models.KeywordIndexParams | models.PayloadSchemaType] = {
    _OWNER: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    GONE: models.PayloadSchemaType.INTEGER,
}


class QdrantVectors(VectorTarget[QdrantDatabase]):
    """The vectors of all stores on a Qdrant server. Each request writes under the condition of `VectorTarget.put`."""

    product = "Qdrant"
    share = "its share in Qdrant"
    late = "Qdrant does not answer"
    prefix = "lightrag_vdb_"

    def __init__(self, database: QdrantDatabase) -> None:
        super().__init__(database)
        self._is_new_enough = False

    @property
    def tells_its_key(self) -> bool:
        """Return True if anybody on the way can read the key."""
        return self._database.address.tells_its_key

    @override
    async def server(self) -> str:
        version = (await self._run(lambda client: client.info())).version
        if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST:
            needed = ".".join(map(str, _OLDEST))
            raise LedgerError(f"Qdrant is older than {needed}", f"needs Qdrant {needed} or later; this is {version}")
        self._is_new_enough = True
        return version

    @override
    async def _write(self, key: str, this: Fence, change: dict[str, Any]) -> bool:
        if not self._is_new_enough:
            await self.server()
        return await super()._write(key, this, change)

    @override
    async def collections(self) -> list[str]:
        return [each.name for each in (await self._run(lambda client: client.get_collections())).collections]

    @override
    @translating_failures()
    async def make(self, collection: str, dimensions: int) -> None:
        async def make(client: AsyncQdrantClient) -> None:
            if not await client.collection_exists(collection):
                size = models.VectorParams(size=dimensions, distance=models.Distance.COSINE)
                await client.create_collection(collection, vectors_config=size, hnsw_config=_LINKS)

        async def index(client: AsyncQdrantClient) -> None:
            for field, kind in _INDEXES.items():
                await client.create_payload_index(collection, field_name=field, field_schema=kind, wait=True)

        try:
            await self._database.run(make)
        except QdrantFailure as error:
            if not error.is_conflict:  # another process has made it
                raise
        await self._run(index)

    @override
    @translating_failures()
    async def fence(self, collection: str, key: str) -> Fence:
        try:
            found = await self._database.run(lambda client: client.retrieve(collection, ids=[_fence_id(key)]))
        except QdrantFailure as error:
            if error.is_missing:
                return Fence()
            raise
        payload = (found[0].payload or {}) if found else {}
        return Fence(int(payload.get(_CHANGE, 0)), str(payload.get("cragside_id", "")))

    @override
    async def put(self, collection: str, key: str, this: Fence, rows: ChangedRows, dimensions: int) -> None:
        *others, last = list(_requests(key, this.seq, rows, dimensions)) or [[]]
        for operations in others:
            await self._send(collection, operations)
        await self._send(collection, [*last, _passed(key, this, dimensions), _forgotten()])

    @override
    async def remove_rows(self, collection: str, key: str) -> None:
        selected = models.FilterSelector(filter=_owned(key))
        await self._send(collection, [models.DeleteOperation(delete=selected)])

    @override
    async def nearest(
        self, collection: str, key: str, vector: Sequence[float], *, least: float, most: int
    ) -> list[dict[str, Any]]:
        async def ask(client: AsyncQdrantClient) -> list[models.ScoredPoint]:
            answer = await client.query_points(
                collection,
                query=list(vector),
                query_filter=_owned(key),
                limit=most,
                score_threshold=least,
                with_payload=True,
            )
            return answer.points

        return [{**_row(point), "distance": point.score} for point in await self._run(ask)]

    @override
    async def rows(
        self, collection: str, key: str, names: Sequence[str], *, vectors: bool = False
    ) -> dict[str, StoredRow]:
        async def ask(client: AsyncQdrantClient) -> list[models.Record]:
            ids = [point_id(key, name) for name in names]
            return await client.retrieve(collection, ids=ids, with_vectors=vectors)

        owned = [each for each in await self._run(ask) if (each.payload or {}).get(_OWNER) == key]
        return {each.row["id"]: each for each in map(_stored, owned)}

    @override
    async def all(self, collection: str, key: str) -> AsyncIterator[list[StoredRow]]:
        start: Any = None
        while True:

            async def ask(client: AsyncQdrantClient, start: Any = start) -> tuple[list[models.Record], Any]:
                return await client.scroll(
                    collection,
                    scroll_filter=_owned(key),
                    limit=_READ_AT_ONCE,
                    offset=start,
                    with_vectors=True,
                )

            found, start = await self._run(ask)
            if found:
                yield [_stored(each) for each in found]
            if start is None:
                return

    @override
    async def count(self, collection: str, key: str) -> int:
        counted = await self._run(lambda client: client.count(collection, count_filter=_owned(key), exact=True))
        return counted.count

    async def _run(self, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Make requests. Raises `LedgerError`."""
        async with translating_failures():
            return await self._database.run(work)

    async def _send(self, collection: str, operations: list[models.UpdateOperation]) -> None:
        """Send operations. They are not one transaction, but come one after another."""
        strong = models.WriteOrdering.STRONG
        await self._run(lambda client: client.batch_update_points(collection, operations, wait=True, ordering=strong))


def point_id(key: str, name: str) -> str:
    """Return LightRAG's id of a point: a UUID of version 4 out of a hash of the workspace and the row's own id."""
    return UUID(bytes=sha256(f"{key}{name}".encode()).digest()[:16], version=4).hex


def _fence_id(key: str) -> str:
    return point_id("cragside fence ", key)


def _owned(key: str) -> models.Filter:
    """Select the points of a store."""
    return models.Filter(must=[models.FieldCondition(key=_OWNER, match=models.MatchValue(value=key))])


def _requests(key: str, seq: int, rows: ChangedRows, dimensions: int) -> Iterator[list[models.UpdateOperation]]:
    """Split the rows of a change into requests that the server takes."""
    for removed in _batched(rows.removed):
        # Written over with what belongs to no workspace: a plain removal would let a late writer bring the row back.
        left, nothing = {_CHANGE: seq, GONE: int(time.time())}, _nothing(dimensions)
        yield [_upsert([_point(key, name, nothing, left) for name in removed], seq)]
    for updated in _batched(rows.updated.items()):
        yield [_updated(key, seq, name, row) for name, row in updated]
    for written in _batched(rows.written.items()):
        own = {_OWNER: key, _CHANGE: seq}
        yield [_upsert([_point(key, name, vector, {**row, "id": name, **own}) for name, (row, vector) in written], seq)]


def _point(key: str, name: str, vector: list[float], payload: dict[str, Any]) -> models.PointStruct:
    return models.PointStruct(id=point_id(key, name), vector=vector, payload=payload)


def _updated(key: str, seq: int, name: str, row: Mapping[str, Any]) -> models.UpdateOperation:
    """Write what a row says; its vector stays, and the time of its making."""
    this = models.HasIdCondition(has_id=[point_id(key, name)])
    chosen = models.Filter(must=[this, *(_owned(key).must or [])], must_not=[_since(seq)])
    payload = {**row, _CHANGE: seq}
    payload.pop("created_at", None)
    return models.SetPayloadOperation(set_payload=models.SetPayload(payload=payload, filter=chosen))


def _passed(key: str, this: Fence, dimensions: int) -> models.UpdateOperation:
    """Set the fence of a store."""
    payload: dict[str, Any] = {"cragside_fence": key, _CHANGE: this.seq, "cragside_id": this.change}
    if this == CLOSED:
        payload[GONE] = int(time.time())
    return _upsert([_point("cragside fence ", key, _nothing(dimensions), payload)], this.seq)


def _forgotten() -> models.UpdateOperation:
    """Remove what is left of points that were removed long ago."""
    old = models.FieldCondition(key=GONE, range=models.Range(lt=int(time.time()) - FORGET_SECONDS))
    return models.DeleteOperation(delete=models.FilterSelector(filter=models.Filter(must=[old])))


def _upsert(points: list[models.PointStruct], seq: int) -> models.UpdateOperation:
    condition = models.Filter(must_not=[_since(seq)])
    return models.UpsertOperation(upsert=models.PointsList(points=points, update_filter=condition))


def _since(seq: int) -> models.FieldCondition:
    return models.FieldCondition(key=_CHANGE, range=models.Range(gte=seq))


def _nothing(dimensions: int) -> list[float]:
    # Of zeros, there is no cosine.
    return [1.0] + [0.0] * (dimensions - 1)


def _batched(rows: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(rows)
    while chosen := list(islice(waiting, _AT_ONCE)):
        yield chosen


def _row(point: models.Record | models.ScoredPoint) -> dict[str, Any]:
    """Return the row of LightRAG's, without what is noted beside it."""
    return {name: value for name, value in (point.payload or {}).items() if name not in (_OWNER, _CHANGE)}


def _stored(point: models.Record) -> StoredRow:
    return StoredRow(_row(point), point.vector or [])  # type: ignore[arg-type]  # a list of floats
