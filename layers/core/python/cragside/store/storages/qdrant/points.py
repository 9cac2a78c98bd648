"""LightRAG's collections and points in Qdrant, and what makes their writes safe to come late."""

import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any
from uuid import UUID

from qdrant_client import models

NAMESPACES = ("chunks", "entities", "relationships")
PREFIX = "lightrag_vdb_"
OWNER = "workspace_id"
# The number of the change that wrote a point.
CHANGE = "cragside_change"
# When what is left of a removed point or store may go, in seconds.
GONE = "cragside_gone"
# No writer is stopped for longer than a week.
FORGET_SECONDS = 7 * 24 * 3600
# As LightRAG makes them: one graph of neighbours for each workspace, none for all.
LINKS = models.HnswConfigDiff(payload_m=16, m=0)
INDEXES: Mapping[str, models.KeywordIndexParams | models.PayloadSchemaType] = {
    OWNER: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    GONE: models.PayloadSchemaType.INTEGER,
}


def collection_of(namespace: str, suffix: str) -> str:
    """LightRAG's name of a collection for the vectors of a model."""
    return f"{PREFIX}{namespace}_{suffix}"


def point_id(key: str, name: str) -> str:
    """LightRAG's id of a point: a UUID of version 4 out of a hash of the workspace and the row's own id."""
    return UUID(bytes=sha256(f"{key}{name}".encode()).digest()[:16], version=4).hex


def fence_id(key: str) -> str:
    """The id of the point that tells which change of a store was the latest one."""
    return point_id("cragside fence ", key)


def owned(key: str) -> models.Filter:
    """The points of a store."""
    return models.Filter(must=[models.FieldCondition(key=OWNER, match=models.MatchValue(value=key))])


def written(key: str, seq: int, rows: Mapping[str, tuple[Mapping[str, Any], list[float]]]) -> models.UpdateOperation:
    """Write rows with their vectors, except where a later change was written."""
    points = [
        models.PointStruct(
            id=point_id(key, name),
            vector=vector,
            payload={**row, "id": name, OWNER: key, CHANGE: seq},
        )
        for name, (row, vector) in rows.items()
    ]
    return _upsert(points, seq)


def updated(key: str, seq: int, name: str, row: Mapping[str, Any]) -> models.UpdateOperation:
    """Write what a row says; its vector stays."""
    this = models.HasIdCondition(has_id=[point_id(key, name)])
    chosen = models.Filter(must=[this, *(owned(key).must or [])], must_not=[_since(seq)])
    payload = {**row, CHANGE: seq}
    payload.pop("created_at", None)
    return models.SetPayloadOperation(set_payload=models.SetPayload(payload=payload, filter=chosen))


def removed(key: str, seq: int, names: Iterable[str], dimensions: int) -> models.UpdateOperation:
    """Write over rows what belongs to no workspace. A plain removal would let a late writer bring them back."""
    left = {CHANGE: seq, GONE: int(time.time())}
    nothing = _nothing(dimensions)
    return _upsert([models.PointStruct(id=point_id(key, name), vector=nothing, payload=left) for name in names], seq)


def passed(key: str, seq: int, change_id: str, dimensions: int, *, closed: bool = False) -> models.UpdateOperation:
    """Note which change of a store was the latest one."""
    payload = {"cragside_fence": key, CHANGE: seq, "cragside_id": change_id}
    if closed:
        payload[GONE] = int(time.time())
    return _upsert([models.PointStruct(id=fence_id(key), vector=_nothing(dimensions), payload=payload)], seq)


def forgotten() -> models.UpdateOperation:
    """Remove what is left of points that were removed long ago."""
    old = models.FieldCondition(key=GONE, range=models.Range(lt=int(time.time()) - FORGET_SECONDS))
    return models.DeleteOperation(delete=models.FilterSelector(filter=models.Filter(must=[old])))


def _upsert(points: list[models.PointStruct], seq: int) -> models.UpdateOperation:
    condition = models.Filter(must_not=[_since(seq)])
    return models.UpsertOperation(upsert=models.PointsList(points=points, update_filter=condition))


def _since(seq: int) -> models.FieldCondition:
    return models.FieldCondition(key=CHANGE, range=models.Range(gte=seq))


def _nothing(dimensions: int) -> list[float]:
    # Of zeros, there is no cosine.
    return [1.0] + [0.0] * (dimensions - 1)
