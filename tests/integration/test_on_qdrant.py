"""LightRAG's vectors in Qdrant, beside a ledger in PostgreSQL.

The engine is the one inside Qdrant's client, behind HTTP: see `tests.services.qdrant_server`.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.entrypoints.component_checks import FOR_OPERATORS, examine_components
from cragside.settings import Settings, load_settings
from tests.integration.test_lightrag_server import GONE, KEEPER, SWAN, asked, models, rows
from tests.services.backends import migrated
from tests.services.lightrag_on_qdrant import LightRagOnQdrant
from tests.services.qdrant_server import LastingStandIn, QdrantStandIn

pytestmark = pytest.mark.services
__all__ = ["models"]

ON_QDRANT = {"vector_storage": "QdrantVectorDBStorage"}
NAMESPACES = ("chunks", "entities", "relationships")
WORKSPACE = "a-b.C_9"
QUESTION = "Who kept the Longstone Lighthouse?"


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    with migrated(request.getfixturevalue("postgres")) as uri:
        yield uri


def opened(home: Path, database: str, qdrant: str, **more: Any) -> Container:
    return Container(Settings(home=home, postgres_uri=SecretStr(database), qdrant_url=SecretStr(qdrant), **more))


@pytest.fixture
async def container(tmp_path: Path, database: str, qdrant: str) -> AsyncIterator[Container]:
    container = opened(tmp_path, database, qdrant, **ON_QDRANT)
    yield container
    await container.close()


@pytest.fixture
async def client(qdrant: str) -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(url=qdrant)
    yield client
    await client.close()


def collection(namespace: str) -> str:
    """LightRAG's name of a collection for the embedded model."""
    embedder = WordLlamaEmbedder()
    letters = "".join(each if each.isalnum() else "_" for each in embedder.name.lower())
    return f"lightrag_vdb_{namespace}_{letters}_{embedder.dimensions}d"


# Other tests have points in the same collections.
_ALL = 1_000_000


async def everything(client: AsyncQdrantClient, key: str) -> dict[str, list[dict[str, Any]]]:
    """The payloads of a workspace by namespaces."""
    found: dict[str, list[dict[str, Any]]] = {}
    for namespace in NAMESPACES:
        points, _ = await client.scroll(collection(namespace), limit=_ALL)
        found[namespace] = [dict(point.payload or {}) for point in points]
        found[namespace] = [each for each in found[namespace] if each.get("workspace_id") == key]
    return found


async def index(container: Container, **texts: str) -> None:
    """Have documents indexed, with their share of the graph."""
    workspace = await container.workspaces.open(WORKSPACE)
    await workspace.passages.save_documents([SourceText(f"{name}.md", text) for name, text in texts.items()])


async def key_of(container: Container) -> str:
    """LightRAG's name of the workspace."""
    return (await (await container.workspaces.open(WORKSPACE)).passages.status()).lightrag_workspace


async def in_tables(database: str) -> list[str]:
    """The ids of vectors in LightRAG's tables."""
    tables = "SELECT table_name FROM information_schema.tables WHERE table_name ILIKE 'lightrag_vdb_%'"
    names = [row["table_name"] for row in await rows(database, tables)]
    return [row["id"] for name in names for row in await rows(database, f'SELECT id FROM "{name}"')]


async def test_lightrags_server_answers_from_what_cragside_has_indexed_and_nothing_that_was_deleted(
    container: Container, database: str, qdrant: str, client: AsyncQdrantClient, models: str, started: Any
) -> None:
    await index(container, keeper=KEEPER, swan=SWAN, gone=GONE)
    key, workspace = await key_of(container), await container.workspaces.open(WORKSPACE)
    assert "Otterburn" in str(await everything(client, key))
    (gone,) = await workspace.documents.named("gone.md")
    await workspace.documents.delete(gone.id)
    for namespace in NAMESPACES:
        points, _ = await client.scroll(collection(namespace), limit=_ALL)
        assert "Otterburn" not in str([each.payload for each in points])
    assert await in_tables(database) == []

    embedder = WordLlamaEmbedder()
    model = embedder.name, embedder.dimensions
    server = started("lightrag-server", lambda: LightRagOnQdrant(database, key, models, model, qdrant))
    low, high = ["Grace Darling"], ["lighthouse"]
    question = {"query": "Grace Darling lighthouse", "mode": "mix", "ll_keywords": low, "hl_keywords": high}
    answer = (await asked(server, "/query/data", question))["data"]
    assert "Grace Darling" in {each["entity_name"] for each in answer["entities"]}
    assert ("Grace Darling", "Longstone Lighthouse") in {(e["src_id"], e["tgt_id"]) for e in answer["relationships"]}
    assert [(each["content"], each["file_path"]) for each in answer["chunks"]] == [(KEEPER, "keeper.md")]
    naive = (await asked(server, "/query/data", {"query": QUESTION, "mode": "naive"}))["data"]
    assert [each["content"] for each in naive["chunks"]] == [KEEPER]
    assert [line for line in server.log.splitlines() if line.startswith("ERROR")] == []


async def test_lightrags_own_class_finds_and_adds_the_same_points(
    container: Container, qdrant: str, client: AsyncQdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ids, its payloads, its collections, as it makes them itself."""
    from lightrag.kg.qdrant_impl import QdrantVectorDBStorage
    from lightrag.kg.shared_storage import initialize_share_data
    from lightrag.utils import EmbeddingFunc

    await index(container, keeper=KEEPER)
    key, embedder = await key_of(container), WordLlamaEmbedder()
    found = await everything(client, key)
    initialize_share_data()
    monkeypatch.setenv("QDRANT_URL", qdrant)

    async def embed(texts: list[str], **_: Any) -> Any:
        return np.asarray(embedder.encode(texts))

    function = EmbeddingFunc(embedding_dim=embedder.dimensions, func=embed, model_name=embedder.name)
    given = {"embedding_batch_num": 10, "vector_db_storage_cls_kwargs": {"cosine_better_than_threshold": 0.2}}
    fields = {
        "chunks": {"full_doc_id", "content", "file_path"},
        "entities": {"entity_name", "source_id", "content", "file_path"},
        "relationships": {"src_id", "tgt_id", "source_id", "content", "file_path"},
    }
    for namespace in NAMESPACES:
        theirs = QdrantVectorDBStorage(namespace, given, function, workspace=key, meta_fields=fields[namespace])
        await theirs.initialize()
        assert theirs.final_namespace == collection(namespace)
        ids = [each["id"] for each in found[namespace]]
        assert ids
        assert [each["id"] for each in await theirs.get_by_ids(ids)] == ids
        best = await theirs.query(found[namespace][0]["content"], 1)
        assert best[0]["id"] == ids[0]
        assert {*best[0]} - {"cragside_change", "distance"} == {*fields[namespace], "id", "workspace_id", "created_at"}
        # What it writes over a row of ours is the same point.
        await theirs.upsert({ids[0]: {"content": found[namespace][0]["content"]}})
        await theirs.index_done_callback()
        assert len((await everything(client, key))[namespace]) == len(ids)
        await theirs.finalize()


async def test_a_workspace_that_is_built_anew_or_removed_leaves_nothing_behind(
    container: Container, database: str, qdrant: str, client: AsyncQdrantClient, tmp_path: Path
) -> None:
    await index(container, keeper=KEEPER)
    first = await key_of(container)
    await container.workspaces.reindex(WORKSPACE, lambda _: None)
    second = await key_of(container)
    empty: dict[str, list[Any]] = {namespace: [] for namespace in NAMESPACES}
    assert await everything(client, first) == empty
    assert [each["content"] for each in (await everything(client, second))["chunks"]] == [KEEPER]
    await container.close()

    back = opened(tmp_path, database, qdrant)
    with pytest.raises(ConfigurationError, match="was built with QdrantVectorDBStorage, but RAG_VECTOR_STORAGE is PG"):
        await key_of(back)
    await back.workspaces.reindex(WORKSPACE, lambda _: None)
    assert await everything(client, second) == empty
    assert await in_tables(database)
    await back.close()

    again = opened(tmp_path, database, qdrant, **ON_QDRANT)
    await again.workspaces.reindex(WORKSPACE, lambda _: None)
    assert await in_tables(database) == []
    third = await key_of(again)
    assert await everything(client, third) != empty
    assert await again.workspaces.remove(WORKSPACE)
    assert await everything(client, third) == empty
    await again.close()


async def test_a_qdrant_that_was_emptied_or_lacks_points_is_found_and_repaired(
    tmp_path: Path, database: str, started: Any
) -> None:
    server = started("qdrant", QdrantStandIn)
    container = opened(tmp_path, database, server.url, **ON_QDRANT)
    await index(container, keeper=KEEPER)
    assert await container.workspaces.disagreement(WORKSPACE) == ""
    client = AsyncQdrantClient(url=server.url)
    key = await key_of(container)
    one = (await everything(client, key))["entities"][0]
    from cragside.store.outside.qdrant import point_id

    await client.delete(collection("entities"), [point_id(key, one["id"])])
    assert "Qdrant has" in await container.workspaces.disagreement(WORKSPACE)
    await container.workspaces.reindex(WORKSPACE, lambda _: None)
    assert await container.workspaces.disagreement(WORKSPACE) == ""

    server.stop()
    server.start()
    found = {each.component: each for each in await examine_components(container, FOR_OPERATORS)}
    assert (found["qdrant"].state, found["workspaces"].remedy) == ("ok", "Run `cragside repair`.")
    assert "emptied" in await container.workspaces.disagreement(WORKSPACE)
    with pytest.raises(ServiceUnavailable, match="cragside repair"):
        await index(container, swan=SWAN)
    workspace = await container.workspaces.open(WORKSPACE)
    assert await workspace.documents.named("keeper.md")
    await container.workspaces.reindex(WORKSPACE, lambda _: None)
    assert await container.workspaces.disagreement(WORKSPACE) == ""
    assert KEEPER in {each["content"] for each in (await everything(client, await key_of(container)))["chunks"]}
    await client.close()
    await container.close()


async def test_questions_are_answered_while_qdrant_is_away_and_what_was_indexed_reaches_it_afterwards(
    tmp_path: Path, database: str, started: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from cragside.databases import gate
    from cragside.databases import qdrant as connections

    monkeypatch.setattr(connections, "REQUEST_SECONDS", 2.0)
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.0)
    server = started("qdrant", lambda: LastingStandIn("hush"))
    container = opened(tmp_path, database, server.url, qdrant_api_key=SecretStr("hush"), **ON_QDRANT)
    await index(container, keeper=KEEPER)
    workspace = await container.workspaces.open(WORKSPACE)
    server.stop()
    found = await workspace.passages.retrieve(QUESTION, limit=8)
    assert [each.content for each in found] == [KEEPER]
    assert "is searched without its entities: Qdrant does not answer" in caplog.text
    accepted = await workspace.documents.accept(SourceText("swan.md", SWAN))
    for task in accepted.tasks:
        if task.stage == "embed":
            await workspace.work.embed(task)
    server.start()
    await index(container, gone=GONE)
    client = AsyncQdrantClient(url=server.url, api_key="hush")
    there = await everything(client, await key_of(container))
    assert {each["content"] for each in there["chunks"]} == {KEEPER, SWAN, GONE}
    assert "hush" not in caplog.text
    await client.close()
    await container.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "RAG_VECTOR_STORAGE is QdrantVectorDBStorage, which needs QDRANT_URL"),
        ({"QDRANT_URL": "http://h"}, "which needs POSTGRES_URI"),
    ],
)
def test_a_storage_without_its_database_is_an_error(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_settings({"RAG_VECTOR_STORAGE": "QdrantVectorDBStorage", **given})


def test_a_wrong_address_is_an_error_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="QDRANT_URL: it has a user or a password") as error:
        opened(tmp_path, "postgresql://u:p@127.0.0.1/x", "https://me:hush@qdrant", **ON_QDRANT)
    assert "hush" not in str(error.value)


async def test_entities_come_from_qdrant_for_cragsides_own_questions(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    await index(container, keeper=KEEPER, swan=SWAN)
    engine = (await container.workspaces.open(WORKSPACE)).passages
    before = [each.content for each in await engine.retrieve(QUESTION, limit=8)]
    asked_of = []
    from cragside.store.outside.qdrant import QdrantVectors

    nearest = QdrantVectors.nearest

    async def noting(self: QdrantVectors, name: str, *rest: Any, **more: Any) -> Any:
        found = await nearest(self, name, *rest, **more)
        asked_of.append((name, bool(found)))
        return found

    monkeypatch.setattr(QdrantVectors, "nearest", noting)
    assert [each.content for each in await engine.retrieve(QUESTION, limit=8)] == before
    assert sorted(asked_of) == [(collection("entities"), True), (collection("relationships"), True)]
