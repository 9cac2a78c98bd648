"""A store in PostgreSQL that is filled once a run, and copied for each test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import corpus
from benchmarks.stores import CHUNKING
from cragside.bootstrap import Container
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.server_addresses import Neo4jAddress
from cragside.domain.document import SourceText
from cragside.domain.evidence import Document
from cragside.domain.query import Mode
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.backends.postgres import DEFAULTS, PostgresBackend
from cragside.store.backends.postgres_tables import migrate
from cragside.store.outside.neo4j import Neo4jGraphs
from tests.services.postgres import Postgres
from tests.services.statements import CountingDatabase, CountingGraph

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j

PASSAGES = 240
QUESTIONS = 12


class Filled:
    """The store, and what it says to its database."""

    def __init__(self, container: Container, database: CountingDatabase) -> None:
        self.container = container
        self.database = database

    async def retrieve(self, question: str, mode: Mode = "mix") -> list[Document]:
        """Return the passages that are found for a question."""
        repository = (await self.container.workspaces.open("default")).passages
        return await repository.retrieve(question, limit=8, mode=mode)


@asynccontextmanager
async def filled(
    server: Postgres, home: Path, graph: str = "PGTableGraphStorage", graphs: "Neo4j | None" = None
) -> AsyncIterator[Filled]:
    """A copy of the store with its graph in a class of LightRAG's. Copies share a graph in Neo4j."""
    name = "filled_store_with_neo4j" if graphs else "filled_store"
    async with server.database(await server.template(name, partial(_fill, graph, graphs))) as uri:
        database = CountingDatabase(PostgresAddress.parse(uri), most=3)
        backend = backend_on(database, graph, graphs)
        container = container_on(backend, home)
        yield Filled(container, database)
        await container.close()
        await backend.close()


def backend_on(database: CountingDatabase, graph: str, graphs: "Neo4j | None") -> PostgresBackend:
    """A database with its graph in a class of LightRAG's."""
    outside = {"graph": Neo4jGraphs(CountingGraph(Neo4jAddress.parse(graphs.uri), database))} if graphs else {}
    return PostgresBackend(database, {**DEFAULTS, "graph": graph}, outside)


def container_on(backend: Backend, home: Path) -> Container:
    """A process that has its stores in a database."""
    return Container(load_settings({"RAG_HOME": str(home), **CHUNKING}), backend=backend)


async def index(container: Container) -> None:
    """Index the documents."""
    repository = (await container.workspaces.open("default")).passages
    texts = corpus.documents(corpus.passages(PASSAGES), each=4)
    outcomes = await repository.save_documents([SourceText(name, text) for name, text in texts])
    assert {outcome.status for outcome in outcomes} == {"indexed"}


def questions() -> list[str]:
    """Questions that passages of all documents answer."""
    return corpus.questions(PASSAGES, QUESTIONS)


async def _fill(graph: str, graphs: "Neo4j | None", uri: str) -> None:
    database = CountingDatabase(PostgresAddress.parse(uri), most=3)
    await migrate(database)
    backend = backend_on(database, graph, graphs)
    with TemporaryDirectory() as home:
        container = container_on(backend, Path(home))
        await index(container)
        await container.close()
    await backend.close()
