"""The preference store port: a file and PostgreSQL keep the same contract."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cragside.adapters.local.preferences import PreferenceFile
from cragside.adapters.postgres.address import PostgresAddress
from cragside.adapters.postgres.database import PostgresDatabase
from cragside.adapters.postgres.preferences import PostgresPreferences
from cragside.ports.preference_store import PreferenceStore
from tests.services.backends import migrated

Make = Callable[[], PreferenceStore]


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.services("postgres"))])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    if request.param == "file":
        yield lambda: PreferenceFile(tmp_path)
        return
    with migrated(request.getfixturevalue("postgres")) as uri:
        database = PostgresDatabase(PostgresAddress.parse(uri), most=2)
        yield lambda: PostgresPreferences(database)


async def test_a_workspace_without_changes_has_none(make: Make) -> None:
    assert await make().changes("coast") == {}


async def test_changes_add_up_and_none_takes_one_back(make: Make) -> None:
    store = make()
    await store.change("coast", {"chunk_tokens": 500, "similarity_threshold": 0.25})
    await store.change("coast", {"chunk_tokens": 600, "similarity_strategy": "mmr"})
    await store.change("coast", {"similarity_threshold": None})
    assert await store.changes("coast") == {"chunk_tokens": 600, "similarity_strategy": "mmr"}


async def test_a_workspace_does_not_see_the_changes_of_another(make: Make) -> None:
    store = make()
    await store.change("coast", {"chunk_tokens": 500})
    assert await store.changes("inland") == {}


async def test_another_process_has_them_too(make: Make) -> None:
    await make().change("coast", {"chunk_tokens": 500})
    assert await make().changes("coast") == {"chunk_tokens": 500}
