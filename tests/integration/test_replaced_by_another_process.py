"""A search notices that another process has replaced or removed the store, though it does not ask beforehand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.store import part_indexer
from cragside.store.errors import StoreRemoved
from cragside.store.library import accept
from tests.embedded_workspaces import store_of
from tests.services.filled_store import Filled, backend_on, container_on, filled, questions
from tests.services.postgres import Postgres
from tests.services.statements import CountingDatabase

pytestmark = pytest.mark.services("postgres")
QUESTION = questions()[0]


@pytest.fixture
async def store(postgres: Postgres, tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(postgres, tmp_path) as opened:
        assert await opened.retrieve(QUESTION)
        yield opened


@asynccontextmanager
async def another(store: Filled, home: Path) -> AsyncIterator[Filled]:
    """Another process on the same database."""
    database = CountingDatabase(store.database.addresses, most=3)
    backend = backend_on(database, "PGTableGraphStorage", None)
    container = container_on(backend, home)
    yield Filled(container, database)
    await container.close()
    await backend.close()


async def found_by(process: Filled) -> list[str]:
    return [document.id for document in await process.retrieve(QUESTION)]


async def test_a_rebuilt_store_is_searched_at_once(store: Filled, tmp_path: Path) -> None:
    async with another(store, tmp_path) as other:
        await other.container.workspaces.reindex("default", lambda _: None)
        rebuilt = await found_by(other)
    assert rebuilt
    assert await found_by(store) == rebuilt
    with store.database.counted() as statements:
        assert await found_by(store) == rebuilt
    assert len(statements) == 2


async def test_a_removed_store_answers_nothing(store: Filled, tmp_path: Path) -> None:
    async with another(store, tmp_path) as other:
        assert await other.container.workspaces.remove("default")
    assert await store.retrieve(QUESTION) == []
    assert await store.retrieve(QUESTION) == []


async def test_a_new_store_of_the_name_is_searched_instead(store: Filled, tmp_path: Path) -> None:
    async with another(store, tmp_path) as other:
        await other.container.workspaces.remove("default")
        repository = (await other.container.workspaces.open("default")).passages
        await repository.save_documents([SourceText("new.txt", f"{QUESTION} Nobody but this new text knows.")])
    assert {found.title for found in await store.retrieve(QUESTION)} == {"new.txt"}


async def test_concurrent_questions_all_see_the_new_store(store: Filled, tmp_path: Path) -> None:
    async with another(store, tmp_path) as other:
        await other.container.workspaces.reindex("default", lambda _: None)
        rebuilt = await found_by(other)
    assert rebuilt
    answers = await asyncio.gather(*(found_by(store) for _ in range(20)))
    assert all(answer == rebuilt for answer in answers)


async def test_a_request_that_has_the_old_store_writes_nothing_into_the_new_one(store: Filled, tmp_path: Path) -> None:
    container = store.container
    old = await store_of(container.workspaces, "default")
    async with another(store, tmp_path) as other:
        await other.container.workspaces.reindex("default", lambda _: None)
    fresh = await container.backend.open_ledger(container.folder / "default", "default", search_text=str.lower)
    with pytest.raises(StoreRemoved):
        await accept(
            old, SourceText("new.txt", "Nobody but this new text knows."), enrich=False, track="", rename=False
        )
    assert await fresh.named("new.txt") == []
    fresh.driver.release()


async def test_a_store_whose_reindex_fails_writes_to_lightrags_tables_as_before(
    store: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> int:
        raise ServiceUnavailable("knowledge_base", "The model is away.")

    monkeypatch.setattr(part_indexer, "rebuild", failing)
    with pytest.raises(ServiceUnavailable, match="away"):
        await store.container.workspaces.reindex("default", lambda _: None)
    repository = (await store.container.workspaces.open("default")).passages
    await repository.save_documents([SourceText("new.txt", "Nobody but this new text knows.")])
    for table in ("lightrag_doc_chunks", "lightrag_doc_status"):
        assert await store.database.value(f"SELECT count(*) FROM {table} WHERE file_path = 'new.txt'") == 1
