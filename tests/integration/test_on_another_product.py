"""A product for vectors that is nothing but a driver: indexing, questions, copies, repair and removal work with it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import override

from cragside.bootstrap import Container
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.document import SourceText
from cragside.settings import load_settings
from cragside.store.backends.postgres import DEFAULTS, PostgresBackend
from cragside.store.errors import LedgerError
from tests.integration.test_lightrag_server import KEEPER, SWAN
from tests.outside_vectors import Memory, VectorsInMemory
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

pytestmark = pytest.mark.services("postgres")
WORKSPACE = "zoo"
QUESTION = "Who kept the Longstone Lighthouse?"


class Product(VectorsInMemory):
    """Notes which collections are searched, and may be away."""

    def __init__(self, database: Memory) -> None:
        super().__init__(database)
        self.searched: list[str] = []
        self.away = False

    @override
    async def nearest(
        self, collection: str, key: str, vector: Sequence[float], *, least: float, most: int
    ) -> list[dict[str, Any]]:
        if self.away:
            raise LedgerError("memory does not answer", "is out of reach")
        found = await super().nearest(collection, key, vector, least=least, most=most)
        self.searched += [collection] if found else []
        return found


@pytest.fixture
def product() -> Product:
    return Product(Memory())


@pytest.fixture
async def container(tmp_path: Path, postgres: "Postgres", product: Product) -> AsyncIterator[Container]:
    with migrated(postgres) as uri:
        database = PostgresDatabase(PostgresAddress.parse(uri), most=3)
        backend = PostgresBackend(database, {**DEFAULTS, "vector": "OtherVectorDBStorage"}, {"vector": product})
        container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
        workspace = await container.workspaces.open(WORKSPACE)
        await workspace.passages.save_documents([SourceText("keeper.md", KEEPER), SourceText("swan.md", SWAN)])
        yield container
        await container.close()
        await backend.close()


def rows(product: Product) -> dict[str, int]:
    """Count the rows by namespaces."""
    return {
        name.removeprefix(product.prefix).partition("_")[0]: sum(row is not None for _, row in kept.rows.values())
        for name, kept in product._database.collections.items()
    }


async def test_entities_come_from_it_and_while_it_is_away_passages_answer(
    container: Container, product: Product, caplog: pytest.LogCaptureFixture
) -> None:
    assert all(rows(product).values())
    workspace = await container.workspaces.open(WORKSPACE)
    before = [each.content for each in await workspace.passages.retrieve(QUESTION, limit=8)]
    assert {name.split("_")[2] for name in product.searched} == {"entities", "relationships"}
    product.away = True
    assert KEEPER in [each.content for each in await workspace.passages.retrieve(f"{QUESTION} Tell me.", limit=8)]
    assert "is searched without its entities: memory does not answer" in caplog.text
    assert KEEPER in before


async def test_what_it_has_lost_is_found_and_repaired(container: Container, product: Product) -> None:
    assert await container.workspaces.disagreement(WORKSPACE) == ""
    entities = next(kept for name, kept in product._database.collections.items() if "entities" in name)
    entities.rows.popitem()
    assert "memory has" in await container.workspaces.disagreement(WORKSPACE)
    product._database.collections.clear()
    assert "its share in memory was restored" in await container.workspaces.disagreement(WORKSPACE)
    await container.workspaces.reindex(WORKSPACE, lambda _: None)
    assert await container.workspaces.disagreement(WORKSPACE) == ""
    assert all(rows(product).values())
    assert await container.workspaces.remove(WORKSPACE)
    assert not any(rows(product).values())
