"""The preference store port: a file and PostgreSQL keep the same contract."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.local.preferences import PreferenceFile
from cragside.adapters.postgres_preferences import PostgresPreferences
from cragside.application.preferences import PreferenceStore, WorkspacePreferences
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.preferences import Preferences
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


async def test_what_is_known_without_waiting_is_what_the_store_has(make: Make) -> None:
    store = make()
    assert store.at_hand("coast") in (None, {})
    await store.change("coast", {"chunk_tokens": 500})
    assert store.at_hand("coast") in (None, {"chunk_tokens": 500})
    assert await store.changes("coast") == store.at_hand("coast") == {"chunk_tokens": 500}


async def test_a_workspace_does_not_see_the_changes_of_another(make: Make) -> None:
    store = make()
    await store.change("coast", {"chunk_tokens": 500})
    assert await store.changes("inland") == {}


async def test_another_process_has_them_too(make: Make) -> None:
    await make().change("coast", {"chunk_tokens": 500})
    assert await make().changes("coast") == {"chunk_tokens": 500}


async def test_a_change_is_checked_together_with_the_changes_of_others(make: Make) -> None:
    await make().change("coast", {"chunk_tokens": 600, "similarity_results": 4})
    checked: list[Mapping[str, Any]] = []
    changed = await make().change("coast", {"chunk_overlap_tokens": 300, "similarity_results": None}, checked.append)
    assert checked == [changed] == [{"chunk_tokens": 600, "chunk_overlap_tokens": 300}]


async def test_a_change_that_the_check_refuses_changes_nothing(make: Make) -> None:
    def refuse(_: Mapping[str, Any]) -> None:
        raise ValidationError("No.", field="chunk_tokens")

    store = make()
    await store.change("coast", {"chunk_tokens": 600})
    for workspace in ("coast", "inland"):
        with pytest.raises(ValidationError, match="No"):
            await store.change(workspace, {"chunk_tokens": 700}, refuse)
    for each in (store, make()):
        assert (await each.changes("coast"), await each.changes("inland")) == ({"chunk_tokens": 600}, {})


async def test_two_servers_that_change_one_half_of_a_pair_each_make_no_invalid_pair(make: Make) -> None:
    defaults = Preferences(1000, 200, 5, None, "similarity")
    one, other, third = (WorkspacePreferences(defaults, make()) for _ in range(3))
    first, second = await asyncio.gather(
        one.change("coast", {"chunk_tokens": 600}),
        other.change("coast", {"chunk_overlap_tokens": 700}),
        return_exceptions=True,
    )
    refused, saved = (first, second) if isinstance(first, ValidationError) else (second, first)
    assert isinstance(refused, ValidationError)
    assert refused.message == "chunk_overlap_tokens has to be smaller than chunk_tokens."
    assert await third.of("coast") == saved != defaults


async def test_a_damaged_file_is_not_written_over(tmp_path: Path) -> None:
    saved = tmp_path / ".settings.json"
    saved.write_text('{"inland": {"chunk_tokens": 600}')
    with pytest.raises(ServiceUnavailable, match=r"damaged\. Restore \.settings\.json from a backup"):
        await PreferenceFile(tmp_path).change("coast", {"chunk_tokens": 500})
    assert saved.read_text() == '{"inland": {"chunk_tokens": 600}'
