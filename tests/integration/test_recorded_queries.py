"""Queries in PostgreSQL are recorded in one round trip, in the store that the workspace has by then."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cragside.domain.query import Query
from tests.embedded_workspaces import store_of
from tests.services.filled_store import Filled, backend_on, container_on, filled, questions
from tests.services.postgres import Postgres
from tests.services.statements import CountingDatabase

pytestmark = pytest.mark.services("postgres")
VECTORS = """SELECT 'toast_tuple_target=8160' = ANY(reloptions), pg_relation_size(reltoastrelid) FROM pg_class
    WHERE relkind = 'r' AND relname LIKE 'lightrag\\_vdb\\_%'"""


@pytest.fixture
async def store(postgres: Postgres, tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(postgres, tmp_path) as opened:
        yield opened


async def recorded(store: Filled, *ids: str) -> list[str]:
    repository = (await store.container.workspaces.open("default")).passages
    return [key for key in ids if await repository.get_query(key)]


async def test_a_prompt_costs_a_retrieval_and_one_statement_more(store: Filled) -> None:
    for question in questions():  # each storage asks for the length of its vectors once
        await store.container.enricher.enrich({"prompt": f"/rag {question}"})
    for number, question in enumerate(questions()):
        with store.database.counted() as statements:
            await store.container.enricher.enrich({"prompt": f"/rag {question}", "id": f"q{number}"})
        # Preferences are read every two seconds. A new connection asks PostgreSQL for its types.
        assert len([sql for sql in statements if "crag." in sql and "crag.preference" not in sql]) == 3, statements
    keys = [f"q{number}" for number in range(len(questions()))]
    assert await recorded(store, *keys) == keys


async def test_the_oldest_are_forgotten_and_a_repeated_one_counts_once(store: Filled) -> None:
    ledger = (await store_of(store.container.workspaces, "default")).ledger
    for key in ("a", "b", "c", "c", "d", "d"):
        await ledger.save_query(Query(key, "what?"), most=3)
    assert await recorded(store, "a", "b", "c", "d") == ["b", "c", "d"]
    await ledger.save_query(Query("b", "what then?"), most=3)
    assert await recorded(store, "b", "c", "d") == ["b", "c", "d"]
    await ledger.save_query(Query("e", "what?"), most=1)
    assert await recorded(store, "b", "c", "d", "e") == ["e"]


async def test_those_of_one_moment_are_all_recorded(store: Filled) -> None:
    repository = (await store.container.workspaces.open("default")).passages
    keys = [f"q{number}" for number in range(20)]
    await asyncio.gather(*(repository.save_query(Query(key, "what?")) for key in keys))
    assert await recorded(store, *keys) == keys


async def test_a_store_that_another_process_has_rebuilt_or_removed(store: Filled, tmp_path: Path) -> None:
    repository = (await store.container.workspaces.open("default")).passages
    await repository.save_query(Query("before", "what?"))
    database = CountingDatabase(store.database.addresses, most=3)
    backend = backend_on(database, "PGTableGraphStorage", None)
    other = container_on(backend, tmp_path)
    await other.workspaces.reindex("default", lambda _: None)
    await repository.save_query(Query("after", "what?"))
    assert await recorded(store, "before", "after") == ["before", "after"]
    await other.workspaces.remove("default")
    await repository.save_query(Query("removed", "what?"))
    assert await store.database.value("SELECT count(*) FROM crag.query") == 0
    assert await other.workspaces.names() == []
    await other.close()
    await backend.close()


async def test_vectors_stay_in_their_rows(store: Filled) -> None:
    rows = [tuple(row) for row in await store.database.all(VECTORS)]
    assert rows == [(True, 0)] * 3
