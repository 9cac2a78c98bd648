"""A store that is partly in another database, in a process that has no address of that one."""

from pathlib import Path
from typing import Any

import pytest

from cragside.store.errors import LedgerError
from cragside.store.outside import graph, vectors
from cragside.store.postgres.journal import Journal
from cragside.store.postgres.lightrag_rows import values_of
from cragside.store.postgres.store import PostgresStore

STORAGES = {"kv": "RedisKVStorage", "vector": "QdrantVectorDBStorage", "graph": "Neo4JStorage"}


class Tables:
    """PostgreSQL, where the latest change of each share is the first one, and none is waiting."""

    def of(self, _: str) -> "Tables":
        return self

    async def all(self, *_: Any) -> list[tuple[Any, ...]]:
        return [(role, 1, False, None) for role in STORAGES]


@pytest.fixture
def store() -> PostgresStore:
    tables: Any = Tables()
    store = PostgresStore(tables, Path("w"), Journal(tables, {}), 1, "")
    store.storages = STORAGES
    return store


@pytest.mark.parametrize(
    ("database_of", "setting"),
    [
        (graph.target_of, "RAG_GRAPH_STORAGE"),
        (vectors.target_of, "RAG_VECTOR_STORAGE"),
        (values_of, "RAG_KV_STORAGE"),
    ],
)
def test_whoever_needs_the_other_database_is_told_the_setting(
    store: PostgresStore, database_of: Any, setting: str
) -> None:
    with pytest.raises(LedgerError, match="whose address is not set") as error:
        database_of(store)
    assert setting in error.value.unusable


async def test_nobody_takes_the_store_to_agree_with_a_database_that_was_not_asked(store: PostgresStore) -> None:
    with pytest.raises(LedgerError, match="whose address is not set"):
        await store.catch_up()
