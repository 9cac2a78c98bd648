"""Connections to Neo4j break, are refused and are used up, and heal by themselves."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from cragside.bootstrap import Container
from cragside.databases import gate
from cragside.databases.neo4j import CONNECT_SECONDS, Neo4jDatabase, Neo4jFailure, Run
from cragside.databases.server_addresses import Neo4jAddress
from cragside.domain.document import SourceText
from cragside.domain.hops import request_id
from cragside.settings import Settings
from tests.services.backends import migrated
from tests.services.neo4j_server import Neo4jServer
from tests.services.way import Way

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres

ONE = "RETURN 1"
FOREVER = "UNWIND range(1, 1000000000000) AS number RETURN count(number)"


@pytest.fixture
async def way(neo4j: "Neo4j") -> AsyncIterator[Way]:
    async with Way(urlsplit(neo4j.uri).port or 0) as way:
        yield way


def through(way: Way, neo4j: "Neo4j") -> str:
    """The address of Neo4j by this way."""
    user, password = neo4j.auth
    return f"bolt://{user}:{password}@127.0.0.1:{way.port}"


@pytest.fixture
async def shared(way: Way, neo4j: "Neo4j") -> AsyncIterator[Neo4jDatabase]:
    database = Neo4jDatabase(Neo4jAddress.parse(through(way, neo4j)), most=3)
    yield database
    await database.close()


async def test_nothing_connects_before_the_first_statement(shared: Neo4jDatabase, way: Way) -> None:
    assert way.accepted == 0
    assert await shared.rows(ONE) == [[1]]
    assert way.accepted == 1


async def test_a_statement_tells_neo4j_which_request_it_is_for(shared: Neo4jDatabase) -> None:
    mine = "SHOW TRANSACTIONS YIELD metaData, currentQuery WHERE metaData.request = $request RETURN metaData"
    token = request_id.set("JKJaXmPLvHcESHA=")

    async def work(run: Run) -> list[Any]:
        return await run(mine, request="JKJaXmPLvHcESHA=")

    try:
        for found in (await shared.rows(mine, request="JKJaXmPLvHcESHA="), await shared.write(work)):
            assert found[0]["metaData"] == {"app": "cragside", "request": "JKJaXmPLvHcESHA="}
    finally:
        request_id.reset(token)


async def test_more_callers_than_connections_wait_for_each_other(shared: Neo4jDatabase, way: Way) -> None:
    assert await asyncio.gather(*(shared.rows(ONE) for _ in range(50))) == [[[1]]] * 50
    assert 0 < way.most <= 3


async def test_a_statement_after_all_connections_broke_succeeds(shared: Neo4jDatabase, way: Way) -> None:
    async def work(run: Run) -> object:
        return await run(ONE)

    for statement in (lambda: shared.rows(ONE), lambda: shared.write(work)):
        await asyncio.gather(*(shared.rows(ONE) for _ in range(3)))
        way.cut()
        assert [await statement() for _ in range(4)] == [[[1]]] * 4


async def test_a_failed_request_closes_no_connection_of_another(shared: Neo4jDatabase, way: Way) -> None:
    begun, others_failed = asyncio.Event(), asyncio.Event()
    attempts = 0

    async def slow(run: Run) -> object:
        nonlocal attempts
        attempts += 1
        await run(ONE)
        begun.set()
        await others_failed.wait()
        return await run(ONE)

    async def cut_off(run: Run) -> None:
        await run(ONE)
        way.cut(but=before)
        await run(ONE)

    waiting = asyncio.create_task(shared.write(slow))
    await begun.wait()
    before = way.connections
    with pytest.raises(Neo4jFailure, match="SyntaxError"):
        await shared.rows("RETURN")
    with pytest.raises(Neo4jFailure, match="does not answer"):
        await shared.write(cut_off)
    others_failed.set()
    assert await waiting == [[1]]
    assert attempts == 1


async def test_a_silent_server_is_given_up_soon_and_then_left_alone(
    shared: Neo4jDatabase, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 1000.0)
    way.silent = True
    async with asyncio.timeout(3 * CONNECT_SECONDS):
        for failed in await asyncio.gather(*(shared.rows(ONE) for _ in range(20)), return_exceptions=True):
            assert isinstance(failed, Neo4jFailure)
    tried = way.accepted
    assert tried <= 3 + 1  # a connection each, and a sign of life
    for _ in range(20):
        with pytest.raises(Neo4jFailure, match="does not answer"):
            await shared.rows(ONE)
    assert way.accepted == tried

    # After the pause, one read tries the server, and asks for a sign of life. The others don't wait for it.
    shared._gate._next_try = 0.0
    await asyncio.gather(*(shared.rows(ONE) for _ in range(20)), return_exceptions=True)
    assert way.accepted <= tried + 2
    way.silent = False
    shared._gate._next_try = 0.0
    assert await shared.rows(ONE) == [[1]]
    assert await shared.rows(ONE) == [[1]]


async def test_a_server_that_hangs_is_given_up_soon_and_then_left_alone_until_it_goes_on(
    started: Callable[[str, Callable[[], Neo4jServer]], Neo4jServer],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = started("neo4j", Neo4jServer)
    database = Neo4jDatabase(Neo4jAddress.parse(server.uri), most=2)

    async def work(run: Run) -> object:
        return await run(ONE)

    await asyncio.gather(database.rows(ONE), database.write(work))
    server.pause()
    for statement in (lambda: database.rows(ONE), lambda: database.write(work)):
        monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.0)
        async with asyncio.timeout(gate.SILENCE_SECONDS + gate.SIGN_SECONDS + 1):
            with pytest.raises(Neo4jFailure, match="does not answer"):
                await statement()
        monkeypatch.setattr(gate, "PAUSE_SECONDS", 1000.0)
    with suppress(Neo4jFailure):
        await database.rows(ONE)
    async with asyncio.timeout(0.5):
        for statement in (lambda: database.rows(ONE), lambda: database.write(work)):
            with pytest.raises(Neo4jFailure, match="does not answer"):
                await statement()
    server.resume()
    database._gate._next_try = 0.0
    assert await database.rows(ONE) == [[1]]
    assert await database.write(work) == [[1]]

    server.kill()
    with pytest.raises(Neo4jFailure, match="does not answer"):
        await database.rows(ONE)
    assert [each for each in caplog.records if each.name.startswith("neo4j")] == []
    await database.close()


async def test_slow_statements_that_their_callers_drop_take_the_graph_from_nobody(shared: Neo4jDatabase) -> None:
    async def dropped() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(shared.rows(FOREVER), CONNECT_SECONDS + 0.5)

    await asyncio.gather(dropped(), dropped())
    assert await shared.rows(ONE) == [[1]]


async def test_a_write_to_a_silent_server_is_given_up_soon(shared: Neo4jDatabase, way: Way) -> None:
    way.silent = True

    async def work(run: Run) -> object:
        return await run(ONE)

    async with asyncio.timeout(3 * CONNECT_SECONDS):
        with pytest.raises(Neo4jFailure, match="does not answer"):
            await shared.write(work)


async def test_a_wrong_password_is_tried_once_in_a_while(neo4j: "Neo4j", way: Way) -> None:
    # Neo4j locks a user out for a while after three wrong passwords.
    address = replace(Neo4jAddress.parse(through(way, neo4j)), user="nobody")
    refused = Neo4jDatabase(address, most=3)
    for _ in range(5):
        with pytest.raises(Neo4jFailure, match="user or the password"):
            await refused.rows(ONE)
    assert way.accepted == 1
    await refused.close()


async def test_a_statement_that_takes_too_long_is_given_up(neo4j: "Neo4j") -> None:
    hasty = Neo4jDatabase(Neo4jAddress.parse(neo4j.uri), most=1, statement_seconds=0.2)

    async def work(run: Run) -> object:
        return await run(FOREVER)

    for slow in (hasty.rows(FOREVER), hasty.write(work), hasty.execute(FOREVER)):
        with pytest.raises(Neo4jFailure, match=r"TimedOut|does not answer"):
            await slow
    assert await hasty.execute(ONE) is None
    await hasty.close()


def test_a_second_event_loop_works_and_closing_leaves_nothing_open(neo4j: "Neo4j") -> None:
    database = Neo4jDatabase(Neo4jAddress.parse(neo4j.uri), most=2)

    async def ask(*, last: bool) -> object:
        rows = await asyncio.gather(*(database.rows(ONE) for _ in range(4)))
        if last:
            await database.close()
        return rows

    gc.collect()  # what other tests left
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert asyncio.run(ask(last=True)) == [[[1]]] * 4
        gc.collect()
    assert [each for each in told if "neo4j" in str(each.message).lower()] == []
    for last in (False, True):
        assert asyncio.run(ask(last=last)) == [[[1]]] * 4


async def test_after_a_restart_of_the_server_requests_succeed_again(
    started: Callable[[str, Callable[[], Neo4jServer]], Neo4jServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Neo4j may be back before the next try is due.
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.0)
    server = started("neo4j", Neo4jServer)
    database = Neo4jDatabase(Neo4jAddress.parse(server.uri), most=2)
    assert await database.rows(ONE) == [[1]]
    await asyncio.to_thread(server.stop)
    with pytest.raises(Neo4jFailure, match="does not answer"):
        await database.rows(ONE)
    await asyncio.to_thread(server.start)
    await database.execute(ONE)
    assert await database.rows(ONE) == [[1]]
    await database.close()


async def test_without_neo4j_documents_come_and_go_and_are_found_and_nothing_is_lost(
    postgres: "Postgres", neo4j: "Neo4j", way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.5)
    with migrated(postgres) as uri:
        settings = Settings(home=tmp_path, postgres_uri=SecretStr(uri), neo4j_uri=SecretStr(through(way, neo4j)))
        container = Container(settings)
        workspace = await container.workspaces.open("w")
        library = workspace.documents

        async def bring(name: str, text: str) -> None:
            await container.queue.send((await library.accept(SourceText(name, text))).tasks)

        async def found(question: str) -> str:
            return " ".join(each.content for each in await workspace.passages.retrieve(question, limit=8))

        await bring("swan.md", "Joseph Swan lit the first house by electric light. Lord Armstrong met Joseph Swan.")
        await bring("gone.md", "Zebedee Quill hid the silver spoon below the Clock Tower of Otterburn.")
        await container.worker().run(until_idle=True)
        way.silent = True
        assert "Joseph Swan" in await found("Who lit the first house?")
        way.shut()
        way.silent = False

        assert "Joseph Swan" in await found("Who lit the first house?")
        await bring("keeper.md", "Grace Darling kept the Longstone Lighthouse together with William Darling.")
        for delivery in await container.queue.receive(limit=10, wait=0):
            assert (await container.attempts.handle(delivery, wait=False)).outcome == "done"
        (delivery,) = await container.queue.receive(limit=10, wait=0)
        waits = await container.attempts.handle(delivery, wait=False)
        assert (waits.outcome, waits.unavailable) == ("retried", True)
        assert await library.counts() == {"enriched": 2, "pending": 1}
        assert "Grace Darling" in await found("Who kept the lighthouse?")

        (gone,) = await library.named("gone.md")
        assert await library.delete(gone.id)
        assert "Zebedee" not in await found("Who hid the silver spoon?")

        await way.open()
        await container.worker().run(until_idle=True)
        assert await library.counts() == {"enriched": 2}
        entities = {each.name for each in await workspace.graph.search("", limit=50)}
        assert {"Joseph Swan", "Grace Darling"} <= entities
        assert "Zebedee Quill" not in entities
        assert await container.queue.dead() == []
        await container.workspaces.remove("w")
        await container.close()


@pytest.mark.attack("noisy neighbours")
@pytest.mark.waits("contention")
async def test_slow_questions_of_one_workspace_leave_connections_to_the_others(
    postgres: "Postgres", neo4j: "Neo4j", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with migrated(postgres) as uri:
        given = {"postgres_uri": SecretStr(uri), "neo4j_uri": SecretStr(neo4j.uri), "neo4j_connections": 4}
        container = Container(Settings(home=tmp_path, **given))
        for name in ("slow", "other"):
            text = SourceText("swan.md", "Joseph Swan lit the first house by electric light. Lord Armstrong saw it.")
            await (await container.workspaces.open(name)).passages.save_documents([text])
        await container.backend.sweep(tmp_path)
        slow, other = await container.workspaces.open("slow"), await container.workspaces.open("other")
        label = (await slow.passages.status()).lightrag_workspace
        rows, begun = Neo4jDatabase.rows, asyncio.Semaphore(0)

        async def delayed(self: Neo4jDatabase, cypher: str, **values: Any) -> list[Any]:
            if label in cypher:
                begun.release()
                return await rows(self, FOREVER)
            return await rows(self, cypher, **values)

        monkeypatch.setattr(Neo4jDatabase, "rows", delayed)
        asked = [asyncio.create_task(slow.graph.entity("Joseph Swan", connections=5, documents=5)) for _ in range(6)]
        async with asyncio.timeout(30):
            for _ in range(2):
                await begun.acquire()
        await asyncio.sleep(0.5)
        async with asyncio.timeout(8):
            assert await other.graph.entity("Joseph Swan", connections=5, documents=5) is not None
        for each in asked:
            each.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await container.close()
