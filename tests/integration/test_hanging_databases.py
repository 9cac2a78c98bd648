"""A database outside of PostgreSQL that hangs takes nothing with it that is in PostgreSQL."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from pydantic import SecretStr

from cragside.bootstrap import Container
from cragside.composition.store_files import Copies
from cragside.databases import gate
from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Stored
from cragside.entrypoints.component_checks import FOR_OPERATORS, examine_components
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings
from tests.services.backends import migrated
from tests.services.neo4j_server import Neo4jServer
from tests.services.redis_server import RedisServer

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

SWAN = "Joseph Swan lit the first house by electric light. Lord Armstrong met Joseph Swan."
KEEPER = "Grace Darling kept the Longstone Lighthouse together with William Darling."
QUESTION = {"query": "Who lit the first house?", "mode": "mix"}
# A silent server is given up after 3 seconds. The rest is the work itself, on a slow machine.
SOON = 8.0


@asynccontextmanager
async def served(home: Path, postgres: "Postgres", **more: Any) -> AsyncIterator[tuple[Container, httpx.AsyncClient]]:
    with migrated(postgres) as uri:
        given = {"kv_storage": "RedisKVStorage", "doc_status_storage": "RedisDocStatusStorage", **more}
        container = Container(Settings(home=home, postgres_uri=SecretStr(uri), workspace="w", **given))
        transport = httpx.ASGITransport(create_app(container))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as http:
            workspace = await container.workspaces.open("w")
            texts = [SourceText("swan.md", SWAN), SourceText("keeper.md", KEEPER)]
            await workspace.passages.save_documents(texts)
            yield container, http
        await container.close()


async def waiting(container: Container) -> int:
    """Count the changes in the journal."""
    from cragside.store.backends.postgres import PostgresBackend

    backend = container.backend
    assert isinstance(backend, PostgresBackend)
    return int(await backend._database.value("SELECT count(*) FROM crag.journal"))


async def timed(request: Any) -> tuple[httpx.Response, float]:
    began = time.monotonic()
    return await request, time.monotonic() - began


async def test_questions_and_the_graph_are_answered_while_redis_hangs(
    postgres: "Postgres", started: Any, tmp_path: Path
) -> None:
    redis = started("redis", RedisServer)
    async with served(tmp_path, postgres, redis_uri=SecretStr(redis.uri)) as (container, http):
        library = (await container.workspaces.open("w")).documents
        redis.pause()
        (gone,) = await library.named("keeper.md")
        answer, seconds = await timed(http.delete(f"/v1/documents/{gone.id}"))
        assert (answer.status_code, seconds < SOON) == (204, True), (answer.text, seconds)
        assert await waiting(container) > 0
        known = await (await container.workspaces.open("w")).passages.status()
        assert known.waiting_changes == await waiting(container)
        found = {each.component: each for each in await examine_components(container, FOR_OPERATORS)}
        assert (found["redis"].state, found["store"].state) == ("error", "warning")
        assert f"{known.waiting_changes} changes waiting" in found["store"].detail
        for request in (http.post("/query/data", json=QUESTION), http.get("/graph/entity/Joseph Swan")):
            answer, seconds = await timed(request)
            assert (answer.status_code, seconds < 3.0) == (200, True), (answer.text, seconds)
            assert "Joseph Swan" in answer.text
            assert "Darling" not in answer.text
        redis.resume()


@pytest.mark.parametrize("which", ["redis", "neo4j"])
async def test_a_copy_is_refused_in_either_direction_and_changes_nothing_while_a_database_hangs(
    postgres: "Postgres", started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    server = started(which, RedisServer if which == "redis" else Neo4jServer)
    roles = {} if which == "redis" else {"kv_storage": None, "doc_status_storage": None}
    given = {f"{which}_uri": SecretStr(server.uri), **roles}
    async with served(tmp_path / "shared", postgres, **given) as (container, _):
        files = Container(Settings(home=tmp_path / "files", workspace="w"))
        await (await files.workspaces.open("other")).passages.save_documents([SourceText("swan.md", SWAN)])
        server.pause()
        for source, target, name in ((container, files, "w"), (files, container, "other")):
            with pytest.raises(ServiceUnavailable, match="does not answer"):
                async with asyncio.timeout(30):
                    await Copies(source, target).copy(name, replace=True, progress=lambda _: None)
        assert await files.workspaces.stored("w") == Stored()
        assert "other" not in await container.workspaces.names()
        server.resume()
        monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.0)
        for target in container.backend._journal.targets.values():  # type: ignore[attr-defined]
            target._database._gate._next_try = 0.0
        for source, target, name, count in ((container, files, "w", 2), (files, container, "other", 1)):
            assert await Copies(source, target).copy(name, replace=True, progress=lambda _: None) == count
        await container.backend.sweep(tmp_path)
        assert await waiting(container) == 0
        await files.close()


@pytest.mark.waits("silence")
async def test_a_text_is_deleted_at_once_while_redis_and_neo4j_hang_and_there_afterwards(
    postgres: "Postgres",
    started: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    redis, neo4j = started("redis", RedisServer), started("neo4j", Neo4jServer)
    uris = {"redis_uri": SecretStr(redis.uri), "neo4j_uri": SecretStr(neo4j.uri)}
    async with served(tmp_path, postgres, **uris) as (container, http):
        library = (await container.workspaces.open("w")).documents
        assert await waiting(container) == 0
        (swan,), (keeper,) = await library.named("swan.md"), await library.named("keeper.md")
        redis.pause()
        neo4j.pause()
        monkeypatch.setattr(gate, "PAUSE_SECONDS", 1000.0)
        caplog.set_level(logging.WARNING)
        answer, seconds = await timed(http.delete(f"/v1/documents/{keeper.id}"))
        assert (answer.status_code, seconds < SOON) == (204, True), (answer.text, seconds)
        assert "waits to be written" in caplog.text
        await asyncio.sleep(gate.SILENCE_SECONDS + gate.SIGN_SECONDS)
        answer, seconds = await timed(http.delete(f"/v1/documents/{swan.id}"))
        assert (answer.status_code, seconds < 2.0) == (204, True), (answer.text, seconds)
        assert await waiting(container) > 0
        redis.resume()
        neo4j.resume()
        monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.0)
        for role in ("kv", "graph"):
            container.backend._journal.targets[role]._database._gate._next_try = 0.0  # type: ignore[attr-defined]
        await container.worker().run(until_idle=True)
        await library.accept(SourceText("last.md", SWAN))
        assert await waiting(container) == 0
        assert [each for each in caplog.records if each.name.startswith("neo4j")] == []
