"""A graph in Neo4j that is not that of the documents is found, keeps nobody from the documents, and is built anew."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cragside.bootstrap import Container
from cragside.databases.neo4j import Neo4jDatabase
from cragside.databases.server_addresses import Neo4jAddress
from cragside.domain.errors import ServiceUnavailable
from cragside.settings import load_settings
from tests.indexing import ARMSTRONG, SWAN, take, text, work
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres


@pytest.fixture
def environment(postgres: "Postgres", neo4j: "Neo4j", tmp_path: Path) -> Iterator[dict[str, str]]:
    with migrated(postgres) as uri:
        yield {"RAG_HOME": str(tmp_path), "POSTGRES_URI": uri, "NEO4J_URI": neo4j.uri}


@pytest.fixture
async def container(environment: dict[str, str]) -> AsyncIterator[Container]:
    container = Container(load_settings(environment))
    workspace = await container.workspaces.open("w")
    for name, said in (("swan.md", SWAN), ("armstrong.md", ARMSTRONG)):
        await take(workspace.documents, workspace.work, text(name, said))
    yield container
    await container.workspaces.remove("w")
    await container.close()


@pytest.fixture
async def graphs(neo4j: "Neo4j") -> AsyncIterator[Neo4jDatabase]:
    """Neo4j, as whoever administers it uses it."""
    graphs = Neo4jDatabase(Neo4jAddress.parse(neo4j.uri), most=1)
    yield graphs
    await graphs.close()


async def label_of(container: Container) -> str:
    """LightRAG's label of the workspace's nodes."""
    return (await (await container.workspaces.open("w")).passages.status()).lightrag_workspace


async def emptied(graphs: Neo4jDatabase, label: str) -> None:
    await graphs.execute(f"MATCH (node:`{label}`) DETACH DELETE node")
    await graphs.execute("MATCH (fence:CragsideFence {workspace: $label}) DELETE fence", label=label)


async def an_entity_less(graphs: Neo4jDatabase, label: str) -> None:
    await graphs.execute(f"MATCH (node:`{label}` {{entity_id: 'Joseph Swan'}}) DETACH DELETE node")


async def as_before(graphs: Neo4jDatabase, label: str) -> None:
    await graphs.execute(f"MATCH (node:`{label}` {{entity_id: 'William Armstrong'}}) DETACH DELETE node")
    await graphs.execute(
        "MATCH (fence:CragsideFence {workspace: $label}) SET fence.applied = fence.applied - 1", label=label
    )


@pytest.mark.parametrize("happened", [emptied, an_entity_less, as_before])
async def test_it_is_found_and_built_anew(container: Container, graphs: Neo4jDatabase, happened) -> None:
    workspace = await container.workspaces.open("w")
    before = [await workspace.graph.entity(name) for name in ("Joseph Swan", "William Armstrong")]
    status = await workspace.passages.status()
    assert all(before)
    assert await container.workspaces.disagreement("w") == ""

    await happened(graphs, await label_of(container))
    assert await container.workspaces.disagreement("w") != ""
    assert await container.workspaces.reindex("w", lambda _: None) == 2
    assert await container.workspaces.disagreement("w") == ""
    after = [await workspace.graph.entity(name) for name in ("Joseph Swan", "William Armstrong")]
    assert [view and view.connections for view in after] == [view and view.connections for view in before]
    now = await workspace.passages.status()
    assert (now.entities, now.relations) == (status.entities, status.relations)


async def test_documents_are_accepted_found_and_deleted_without_the_graph(
    container: Container, graphs: Neo4jDatabase
) -> None:
    await emptied(graphs, await label_of(container))
    workspace = await container.workspaces.open("w")
    accepted = await workspace.documents.accept(text("otter.md", "Sea otters eat the urchins of the kelp forest."))
    embedding, enriching = accepted.tasks
    await workspace.work.embed(embedding)
    with pytest.raises(ServiceUnavailable, match="cragside repair"):
        await work(workspace.work, [enriching])
    (swan,) = await workspace.documents.named("swan.md")
    assert await workspace.documents.delete(swan.id)
    for question, found in (("What do sea otters eat?", "otter.md"), ("Who was William Armstrong?", "armstrong.md")):
        best = (await workspace.passages.retrieve(question, limit=3))[0]
        assert best.metadata["filename"] == found
    with pytest.raises(ServiceUnavailable, match="cragside repair"):
        await workspace.graph.entity("William Armstrong")

    await container.workspaces.reindex("w", lambda _: None)
    await work(workspace.work, [enriching])
    assert await container.workspaces.disagreement("w") == ""
    view = await workspace.graph.entity("Joseph Swan")
    assert view is not None
    assert [name for _, name in view.documents] == ["armstrong.md"]
