"""Retrieval from PostgreSQL: few round trips, and the same answers as one question after another."""

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest

from benchmarks import corpus
from cragside.adapters.lightrag.backends.postgres import PostgresBackend
from cragside.adapters.lightrag.backends.postgres_tables import migrate
from cragside.adapters.lightrag.engine.engine import Engine
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
    """A store in PostgreSQL, and what it says to its database."""

    def __init__(self, container: Container, database: CountingDatabase) -> None:
        self.container = container
        self.database = database

    async def retrieve(self, question: str, mode: Mode = "mix") -> list[Document]:
        repository = (await self.container.workspaces.open("default")).passages
        return await repository.retrieve(question, limit=8, mode=mode)


def container_on(database: CountingDatabase, home: Path) -> Container:
    return Container(load_settings({"RAG_HOME": str(home)}), backend=PostgresBackend(database))


async def fill(uri: str) -> None:
    """Make the tables, and index a few hundred documents."""
    database = CountingDatabase(PostgresAddress.parse(uri), most=3)
    await migrate(database)
    with TemporaryDirectory() as home:
        container = container_on(database, Path(home))
        repository = (await container.workspaces.open("default")).passages
        texts = corpus.documents(corpus.passages(PASSAGES), each=4)
        outcomes = await repository.save_documents([SourceText(name, text) for name, text in texts])
        assert {outcome.status for outcome in outcomes} == {"indexed"}
        await container.close()
    await database.close()


@pytest.fixture
async def filled(postgres: Postgres, tmp_path: Path) -> AsyncIterator[Filled]:
    """A copy of a store that is filled once."""
    async with postgres.database(await postgres.template("few_round_trips", fill)) as uri:
        database = CountingDatabase(PostgresAddress.parse(uri), most=3)
        container = container_on(database, tmp_path)
        yield Filled(container, database)
        await container.close()
        await database.close()


async def test_a_retrieval_takes_three_round_trips(filled: Filled) -> None:
    first, *questions = corpus.questions(PASSAGES, QUESTIONS)
    await filled.retrieve(first)
    for question in questions:
        with filled.database.counted() as statements:
            assert await filled.retrieve(question)
        assert len(statements) <= 3, statements


async def test_another_process_that_writes_costs_no_further_round_trip(filled: Filled) -> None:
    await filled.retrieve("Who opened the bridge?")
    await filled.database.value("UPDATE cragside.store SET state = state + 1 RETURNING 1")
    with filled.database.counted() as statements:
        await filled.retrieve("Who opened the bridge?")
    assert len(statements) <= 3, statements


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_what_is_fetched_ahead_gives_the_same_answers(
    filled: Filled, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cragside.adapters.lightrag.storages.postgres.vectors import PostgresVectors

    answers: list[Any] = []
    answered = Engine.aquery_data

    async def note(self: Engine, *arguments: Any) -> Any:
        answers.append(await answered(self, *arguments))
        return answers[-1]

    monkeypatch.setattr(Engine, "aquery_data", note)
    questions = [*corpus.questions(PASSAGES, QUESTIONS), "xyzzy?"]
    ahead = []
    for question in questions:
        documents = await filled.retrieve(question, mode)
        ahead.append((documents, answers[-1]))
    assert any(answer["data"].get("chunks") for _, answer in ahead)
    monkeypatch.setattr(PostgresVectors, "finds_with", lambda *_: False)
    for question, (documents, answer) in zip(questions, ahead, strict=True):
        assert await filled.retrieve(question, mode) == documents
        assert answers[-1] == answer
