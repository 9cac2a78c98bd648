"""A store in PostgreSQL that is filled once a run, and copied for each test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import corpus
from benchmarks.stores import CHUNKING
from cragside.adapters.lightrag.backends.interface import Backend
from cragside.adapters.lightrag.backends.postgres import DEFAULTS, PostgresBackend
from cragside.adapters.lightrag.backends.postgres_tables import migrate
from cragside.adapters.postgres.address import PostgresAddress
from cragside.bootstrap import Container
from cragside.domain.document import Document, SourceText
from cragside.domain.search import Mode
from cragside.settings import load_settings
from tests.services.postgres import Postgres
from tests.services.statements import CountingDatabase

PASSAGES = 240
QUESTIONS = 12


class Filled:
    """The store, and what it says to its database."""

    def __init__(self, container: Container, database: CountingDatabase) -> None:
        self.container = container
        self.database = database

    async def retrieve(self, question: str, mode: Mode = "mix") -> list[Document]:
        """What is found for a question."""
        repository = (await self.container.workspaces.open("default")).passages
        return await repository.retrieve(question, limit=8, mode=mode)


@asynccontextmanager
async def filled(server: Postgres, home: Path, graph: str = "PGTableGraphStorage") -> AsyncIterator[Filled]:
    """A copy of the store with its graph in a class of LightRAG's."""
    async with server.database(await server.template("filled_store", partial(_fill, graph))) as uri:
        database = CountingDatabase(PostgresAddress.parse(uri), most=3)
        container = container_on(PostgresBackend(database, {**DEFAULTS, "graph": graph}), home)
        yield Filled(container, database)
        await container.close()
        await database.close()


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


async def _fill(graph: str, uri: str) -> None:
    database = CountingDatabase(PostgresAddress.parse(uri), most=3)
    await migrate(database)
    with TemporaryDirectory() as home:
        container = container_on(PostgresBackend(database, {**DEFAULTS, "graph": graph}), Path(home))
        await index(container)
        await container.close()
    await database.close()
