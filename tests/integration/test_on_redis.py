"""Values and the list of documents in Redis, beside a ledger in PostgreSQL."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.entrypoints.component_checks import FOR_OPERATORS, examine_components
from cragside.settings import Settings, load_settings
from tests.integration.test_lightrag_server import GONE, KEEPER, SWAN, asked, models, rows
from tests.services.backends import migrated
from tests.services.lightrag_on_redis import LightRagOnRedis

pytestmark = pytest.mark.services
__all__ = ["models"]

ON_REDIS: dict[str, Any] = {"kv_storage": "RedisKVStorage", "doc_status_storage": "RedisDocStatusStorage"}


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    with migrated(request.getfixturevalue("postgres")) as uri:
        yield uri


def opened(home: Path, database: str, redis: str, **more: Any) -> Container:
    return Container(Settings(home=home, postgres_uri=SecretStr(database), redis_uri=SecretStr(redis), **more))


@pytest.fixture
async def container(tmp_path: Path, database: str, redis_database: str) -> AsyncIterator[Container]:
    container = opened(tmp_path, database, redis_database, **ON_REDIS)
    yield container
    await container.close()


@pytest.fixture
async def client(redis_database: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_database, decode_responses=True) as client:
        yield client


async def everything(client: Redis) -> dict[str, str]:
    """All texts in Redis by their keys."""
    keys = sorted([key async for key in client.scan_iter(_type="STRING")])
    return dict(zip(keys, await client.mget(keys), strict=True)) if keys else {}


async def index(container: Container, **texts: str) -> None:
    """Have documents indexed, with their share of the graph."""
    workspace = await container.workspaces.open("a-b.C_9")
    await workspace.passages.save_documents([SourceText(f"{name}.md", text) for name, text in texts.items()])


async def key_of(container: Container) -> str:
    """LightRAG's name of the workspace."""
    return (await (await container.workspaces.open("a-b.C_9")).passages.status()).lightrag_workspace


async def test_lightrags_server_shows_what_cragside_has_indexed_and_nothing_that_was_deleted(
    container: Container, database: str, redis_database: str, client: Redis, models: str, started: Any
) -> None:
    await index(container, keeper=KEEPER, swan=SWAN, gone=GONE)
    workspace = await container.workspaces.open("a-b.C_9")
    (gone,) = await workspace.documents.named("gone.md")
    assert any("Otterburn" in text for text in (await everything(client)).values())
    await workspace.documents.delete(gone.id)
    assert not any("Otterburn" in text for text in (await everything(client)).values())
    assert await rows(database, "SELECT id FROM lightrag_doc_chunks UNION SELECT id FROM lightrag_doc_status") == []

    embedder = WordLlamaEmbedder()
    model, key = (embedder.name, embedder.dimensions), await key_of(container)
    server = started("lightrag-server", lambda: LightRagOnRedis(database, key, models, model, redis_database))
    page = await asked(server, "/documents/paginated", {"page": 1, "page_size": 10})
    listed = {(each["file_path"], each["status"], each["chunks_count"]) for each in page["documents"]}
    assert listed == {("keeper.md", "processed", 1), ("swan.md", "processed", 1)}
    counts = (await asked(server, "/documents/status_counts"))["status_counts"]
    assert counts["processed"] == 2

    low, high = ["Grace Darling"], ["lighthouse"]
    question = {"query": "Grace Darling lighthouse", "mode": "mix", "ll_keywords": low, "hl_keywords": high}
    answer = (await asked(server, "/query/data", question))["data"]
    assert "Grace Darling" in {each["entity_name"] for each in answer["entities"]}
    assert [(each["content"], each["file_path"]) for each in answer["chunks"]] == [(KEEPER, "keeper.md")]


async def test_a_workspace_that_is_built_anew_or_removed_leaves_nothing_behind(
    container: Container, database: str, redis_database: str, client: Redis, tmp_path: Path
) -> None:
    await index(container, keeper=KEEPER)
    first = await key_of(container)
    await container.workspaces.reindex("a-b.C_9", lambda _: None)
    second = await key_of(container)
    assert first != second
    assert {key.partition("_")[0] for key in await everything(client)} == {second}
    assert any(KEEPER in json.loads(text).get("content", "") for text in (await everything(client)).values())
    await container.close()

    back = opened(tmp_path, database, redis_database)
    with pytest.raises(ConfigurationError, match="was built with RedisKVStorage, but RAG_KV_STORAGE is PGKVStorage"):
        await key_of(back)
    await back.workspaces.reindex("a-b.C_9", lambda _: None)
    assert await everything(client) == {}
    (row,) = await rows(database, "SELECT file_path FROM lightrag_doc_status")
    assert row["file_path"] == "keeper.md"
    await back.close()

    again = opened(tmp_path, database, redis_database, **ON_REDIS)
    await again.workspaces.reindex("a-b.C_9", lambda _: None)
    assert await rows(database, "SELECT id FROM lightrag_doc_chunks UNION SELECT id FROM lightrag_doc_status") == []
    assert await everything(client) != {}
    assert await again.workspaces.remove("a-b.C_9")
    assert await everything(client) == {}
    await again.close()


async def test_a_redis_that_was_emptied_is_found_and_repaired(container: Container, client: Redis) -> None:
    await index(container, keeper=KEEPER)
    assert await container.workspaces.disagreement("a-b.C_9") == ""
    await client.flushdb()
    assert "emptied" in await container.workspaces.disagreement("a-b.C_9")
    workspace = await container.workspaces.open("a-b.C_9")
    with pytest.raises(ServiceUnavailable, match="cragside repair"):
        await index(container, swan=SWAN)
    assert await workspace.documents.named("keeper.md")
    await container.workspaces.reindex("a-b.C_9", lambda _: None)
    assert await container.workspaces.disagreement("a-b.C_9") == ""
    assert any(KEEPER in text for text in (await everything(client)).values())


@pytest.mark.waits("outage")
async def test_what_was_indexed_while_redis_was_away_reaches_it_afterwards(
    tmp_path: Path, database: str, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cragside.databases import gate
    from tests.services.redis_server import RedisServer

    monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.2)
    server = started("redis", RedisServer)
    container = opened(tmp_path, database, server.uri, **ON_REDIS)
    await index(container, keeper=KEEPER)
    workspace = await container.workspaces.open("a-b.C_9")
    await asyncio.to_thread(server.stop)
    accepted = await workspace.documents.accept(SourceText("swan.md", SWAN))
    assert [each.name for each in await workspace.documents.named("swan.md")] == ["swan.md"]
    await asyncio.to_thread(server.start)
    await asyncio.sleep(gate.PAUSE_SECONDS)
    for task in accepted.tasks:
        if task.stage == "embed":
            await workspace.work.embed(task)
    async with Redis.from_url(server.uri, decode_responses=True) as client:
        kept = await everything(client)
    assert any(SWAN in text for text in kept.values())
    assert "swan.md" in {json.loads(text).get("file_path") for key, text in kept.items() if "_doc_status:" in key}
    await container.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"RAG_KV_STORAGE": "RedisKVStorage"}, "RAG_KV_STORAGE is RedisKVStorage, which needs REDIS_URI"),
        ({"RAG_DOC_STATUS_STORAGE": "RedisDocStatusStorage", "REDIS_URI": "redis://h"}, "which needs POSTGRES_URI"),
    ],
)
def test_a_storage_without_its_database_is_an_error(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_settings(given)


def test_a_wrong_address_is_an_error_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="REDIS_URI: begin it with redis://") as error:
        opened(tmp_path, "postgresql://u:p@127.0.0.1/x", "http://:hush@redis", **ON_REDIS)
    assert "hush" not in str(error.value)


async def test_doctor_names_a_redis_that_was_emptied_and_one_that_forgets(container: Container, client: Redis) -> None:
    await index(container, swan=SWAN)
    found = {each.component: each for each in await examine_components(container, FOR_OPERATORS)}
    assert (found["redis"].state, "workspaces" in found) == ("ok", False)
    await client.flushdb()
    found = {each.component: each for each in await examine_components(container, FOR_OPERATORS)}
    assert found["workspaces"].remedy == "Run `cragside repair`."
    policy = (await client.config_get("maxmemory-policy"))["maxmemory-policy"]
    await client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        found = {each.component: each for each in await examine_components(container, FOR_OPERATORS)}
        assert "noeviction" in found["redis"].remedy
    finally:
        await client.config_set("maxmemory-policy", policy)
