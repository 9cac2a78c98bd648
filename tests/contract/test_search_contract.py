"""Promises of every `SearchService`, checked on the fake and on SearXNG's, with a stub and the real server."""

import pytest

from cragside.adapters.embedded.rewrite import search_query
from cragside.adapters.searxng.search import SearxngSearch
from cragside.domain.errors import ServiceUnavailable
from tests.fakes import FakeSearch
from tests.services.searxng import Engine, SearxngServer
from tests.services.stub_searxng import StubSearxng

PAGES = (
    {"title": "Eiffel Tower", "url": "https://tower.example/eiffel", "content": "Gustave Eiffel's company built it."},
    {"title": "Tour Eiffel – Größe", "url": "https://tour.example/?q=é", "content": "東京タワーより低い 🗼"},
)


async def rewrite(query, model):
    return search_query(query)


@pytest.fixture(scope="module")
def real_searxng(servers):
    engine = Engine()
    with servers.private("searxng", lambda: SearxngServer(engine)) as running:
        yield running.url, engine
    engine.close()


@pytest.fixture(params=["fake", "stub", pytest.param("real", marks=pytest.mark.real_searxng)])
async def world(request):
    """A function that makes a search over given pages, or over an engine that fails when given none but None."""
    opened = []

    async def fake(pages):
        return FakeSearch(*pages) if pages is not None else FakeSearch(failure=ServiceUnavailable("search", "down"))

    async def stub(pages):
        server = await StubSearxng(*(pages or ())).__aenter__()
        if pages is None:
            server.body["unresponsive_engines"] = [["loopback", "HTTP error"]]
        search = SearxngSearch(server.url, rewrite)
        opened.append((search, server))
        return search

    async def real(pages):
        url, engine = request.getfixturevalue("real_searxng")
        engine.status = 200 if pages is not None else 500
        engine.results = list(pages or ())
        search = SearxngSearch(url, rewrite)
        opened.append((search, None))
        return search

    yield {"fake": fake, "stub": stub, "real": real}[request.param]
    for search, server in opened:
        await search.close()
        if server is not None:
            await server.__aexit__()


async def test_results_have_title_url_and_content_best_first(world):
    search = await world(PAGES)
    found = await search.search("eiffel tower")
    assert [result["title"] for result in found] == [page["title"] for page in PAGES]
    assert all(set(result) == {"title", "url", "content"} for result in found)
    assert all(isinstance(value, str) and value for result in found for value in result.values())


async def test_a_search_without_results_is_an_empty_list(world):
    assert await (await world(())).search("eiffel tower") == []


async def test_an_engine_that_fails_is_an_outage_and_not_an_empty_list(world):
    search = await world(None)
    with pytest.raises(ServiceUnavailable) as failure:
        await search.search("eiffel tower")
    assert failure.value.component == "search"
    assert failure.value.retryable


@pytest.mark.parametrize(
    "query", ["!!g tower", "東京タワー", "🗼", "\"'<>&%00;--", "tower\x00\ntower", "\ud800 tower", "x" * 5000]
)
async def test_odd_queries_are_searched_like_any_other(world, query):
    assert len(await (await world(PAGES)).search(query)) == 2


async def test_a_rewritten_query_is_one_searchable_line(world):
    search = await world(PAGES)
    query = await search.transform_query("Could you tell me who built the Eiffel tower?", model="none")
    assert query.strip()
    assert "\n" not in query
    assert len(await search.search(query)) == 2
