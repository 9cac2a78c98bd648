"""Retrieval from PostgreSQL and Neo4j: few round trips, and the same answers as one question after another."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from cragside.domain.query import Mode
from cragside.entrypoints.http.app import create_app
from cragside.store import reading, repository
from cragside.store.engine import Engine
from cragside.store.lightrag import QueryParam
from cragside.store.open_store import Store
from tests.services.filled_store import Filled, filled, questions

# With AGE and Neo4j, the graph is asked in a statement of its own.
GRAPHS = {"postgres": ("PGTableGraphStorage", 2), "postgres_age": ("PGGraphStorage", 3), "neo4j": ("Neo4JStorage", 3)}
SERVERS = {name: ("postgres", "neo4j") if name == "neo4j" else (name,) for name in GRAPHS}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.services(*SERVERS[name])) for name in GRAPHS])
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def most(server: str) -> int:
    """As many round trips as a retrieval may take."""
    return GRAPHS[server][1]


@pytest.fixture
async def store(server: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Filled]:
    running, *graphs = (request.getfixturevalue(name) for name in SERVERS[server])
    async with filled(running, tmp_path, GRAPHS[server][0], *graphs) as opened:
        yield opened


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The ids of the passages that LightRAG has picked, in each of its runs."""
    runs: list[list[str]] = []

    def noting(choose: Callable[..., Awaitable[list[str]]]) -> Callable[..., Awaitable[list[str]]]:
        async def note(*arguments: Any) -> list[str]:
            ids = await choose(*arguments)
            runs.append(ids)
            return ids

        return note

    monkeypatch.setattr(reading, "_picked", noting(reading._picked))
    monkeypatch.setattr(Engine, "choice", noting(Engine.choice))
    return runs


async def one_after_another(
    store: Store, query: str, parameters: QueryParam, search: reading.Search, _: reading.Found
) -> tuple[list[str], reading.Known]:
    """LightRAG asks the storages by itself."""
    with store.embedder.made(search.vectors):
        return await reading._picked(store.reader, query, parameters), {}


async def test_a_retrieval_takes_few_round_trips(store: Filled, most: int) -> None:
    first, *others = questions()
    await store.retrieve(first)
    for question in others:
        with store.database.counted() as statements:
            assert await store.retrieve(question)
        assert len(statements) <= most, statements


@pytest.mark.parametrize("server", [pytest.param("neo4j", marks=pytest.mark.services("postgres", "neo4j"))])
async def test_neo4j_is_asked_once_before_the_last_question_to_postgresql(store: Filled) -> None:
    first, *others = questions()
    await store.retrieve(first)
    for question in others:
        with store.database.counted() as statements:
            assert await store.retrieve(question)
        assert [each.startswith("Neo4j: ") for each in statements] == [False, True, False]


async def test_another_process_that_writes_costs_no_further_round_trip(store: Filled, most: int) -> None:
    await store.retrieve("Who opened the bridge?")
    await store.database.value("UPDATE crag.store SET state = state + 1 RETURNING 1")
    with store.database.counted() as statements:
        await store.retrieve("Who opened the bridge?")
    assert len(statements) <= most, statements


async def test_the_graph_around_the_passages_takes_no_round_trip_for_each_of_them(
    store: Filled, most: int, server: str
) -> None:
    # A graph in Neo4j is compared with the journal.
    comparing = 2 if server == "neo4j" else 0
    transport = httpx.ASGITransport(create_app(store.container))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        for number, question in enumerate(questions()):
            with store.database.counted() as statements:
                found = (await http.post("/query/data", json={"query": question, "mode": "mix"})).json()["data"]
            assert len(found["chunks"]) == 8
            assert len(found["entities"]) > 8
            if number:
                assert len(statements) <= most + 7 + comparing, statements


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_what_is_fetched_ahead_gives_the_same_answers(
    store: Filled, mode: Mode, chosen: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: dict[int, list[Any]] = {}
    # With little room, LightRAG leaves out some of the passages that it has picked: it has to see their texts.
    little = 3_500 if mode == "naive" else 5_500
    for room, asked in ((30_000, [*questions(), "xyzzy?"]), (little, questions()[:3])):
        monkeypatch.setattr(repository, "QueryParam", partial(QueryParam, max_total_tokens=room))
        with monkeypatch.context() as without:
            without.setattr(reading, "_ahead", one_after_another)
            plain[room] = [(await store.retrieve(question, mode), chosen[-1]) for question in asked]
        for question, (documents, ids) in zip(asked, plain[room], strict=True):
            chosen.clear()
            assert await store.retrieve(question, mode) == documents
            assert chosen[-1] == ids
            # It runs twice where texts decide, and where another mode is tried after nothing was found.
            assert len(chosen) == 1 or room < 30_000 or not chosen[0]
    roomy, cramped = (sum(len(ids) for _, ids in plain[room][:3]) for room in plain)
    assert roomy > cramped > 0


async def test_passages_that_are_gone_leave_their_places_to_others(store: Filled, chosen: list[list[str]]) -> None:
    # The graph names passages until their document is swept from it.
    question = questions()[0]
    best = (await store.retrieve(question))[0].metadata["documentId"]
    before = chosen[-1]
    await store.database.value("UPDATE crag.document SET state = 'gone' WHERE id = $1 RETURNING 1", best)
    found = await store.retrieve(question)
    assert best not in {document.metadata["documentId"] for document in found}
    assert len(chosen[-1]) == len(before)
    assert any(key.startswith(best) for key in before)
    assert not any(key.startswith(best) for key in chosen[-1])
