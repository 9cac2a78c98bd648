"""The adapter on the real SearXNG: what it finds, and each way in which it fails."""

import pytest

from cragside.adapters.searxng import SearxngSearch
from cragside.domain.errors import ServiceUnavailable
from tests.services.searxng import RESULTS, Engine, SearxngServer

pytestmark = pytest.mark.real_searxng


async def rewrite(query, model):
    return query


@pytest.fixture(scope="module")
def engine():
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def server(engine, servers):
    with servers.private("searxng", lambda: SearxngServer(engine)) as server:
        yield server


@pytest.fixture
async def search(server, engine):
    engine.status = 200
    engine.results = list(RESULTS)
    search = SearxngSearch(server.url, rewrite)
    yield search
    await search.close()


async def test_results_are_cleaned_and_in_order(search):
    assert await search.search("who designed the eiffel tower?") == [
        {
            "title": "Eiffel Tower",
            "url": "https://tower.example/eiffel",
            "content": "The company of Gustave Eiffel designed & built the tower from 1887 to 1889.",
        },
        dict(RESULTS[1]),
    ]


async def test_an_external_bang_is_searched_as_words(search):
    assert len(await search.search("!!g eiffel tower")) == 2


async def test_nothing_found_is_an_empty_list(search, engine):
    engine.results = []
    assert await search.search("tower") == []


@pytest.mark.parametrize("status", [500, 403, 429])
async def test_an_engine_that_fails_is_an_outage(search, engine, status):
    engine.status = status
    with pytest.raises(ServiceUnavailable, match="loopback"):
        await search.search("tower")


async def test_an_engine_that_recovers_is_used_again_at_once(search, engine):
    engine.status = 500
    with pytest.raises(ServiceUnavailable):
        await search.search("tower")
    engine.status = 200
    assert len(await search.search("tower")) == 2


async def test_json_that_is_not_enabled_is_explained(engine, started):
    server = started("searxng", lambda: SearxngServer(engine, formats=["html"]))
    search = SearxngSearch(server.url, rewrite)
    try:
        with pytest.raises(ServiceUnavailable, match="Add json to search"):
            await search.search("tower")
    finally:
        await search.close()


async def test_a_searxng_that_dies_is_an_outage(engine, started):
    server = started("searxng", lambda: SearxngServer(engine))
    search = SearxngSearch(server.url, rewrite)
    try:
        engine.status = 200
        await search.search("tower")
        server.stop()
        with pytest.raises(ServiceUnavailable, match="does not answer"):
            await search.search("tower")
    finally:
        await search.close()
