"""A share that another database has lost is named with that database."""

from typing import Any

import pytest

from cragside.store.outside.neo4j import Neo4jGraphs
from cragside.store.outside.qdrant import QdrantVectors
from cragside.store.outside.redis import RedisListing, RedisValues
from cragside.store.postgres.journal import ShareLost, Target


@pytest.mark.parametrize(
    ("target", "share"),
    [
        (Neo4jGraphs, "the graph in Neo4j"),
        (QdrantVectors, "its share in Qdrant"),
        (RedisValues, "its share in Redis"),
        (RedisListing, "its list of documents in Redis"),
    ],
)
def test_the_database_and_the_remedy_are_named(target: type[Target[Any]], share: str) -> None:
    lost = ShareLost(target.share)
    assert lost.reason == f"{share} was restored from a backup or emptied"
    assert str(lost).endswith(f"{lost.reason}. Run cragside repair.")
