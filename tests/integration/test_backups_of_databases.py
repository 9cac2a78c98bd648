"""The commands of docs/backup.md for databases: PostgreSQL comes back whole, and the others agree with it again."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner

from cragside.bootstrap import Container
from cragside.domain.exchange import Exchange
from cragside.domain.indexing import DeadLetter
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from cragside.settings import load_settings
from tests.blocks import Block, blocks
from tests.indexing import ARMSTRONG, SWAN, text
from tests.places import InAge, InPostgres
from tests.services import postgres as postgres_server
from tests.services import redis_server, tools
from tests.services.backends import migrated
from tests.services.neo4j_server import Neo4j
from tests.services.postgres import Postgres
from tests.services.redis_server import RedisServer

OTTER = "Sea otters eat the urchins of the kelp forest in Monterey."


@dataclass
class Databases:
    """cragside on databases, and the page's commands beside it."""

    home: Path
    uri: str
    others: dict[str, str]

    def settings(self) -> dict[str, str]:
        return {"RAG_HOME": str(self.home), "POSTGRES_URI": self.uri, **self.others}

    def shell(self, commands: str) -> None:
        """Run commands of databases, which have to succeed."""
        at = urlsplit(self.uri)
        folders = [postgres_server.programs(), redis_server.programs()]
        environment = {
            "PATH": os.pathsep.join([*map(str, folders), os.defpath]),
            "HOME": str(self.home.parent),
            "PGHOST": str(at.hostname),
            "PGPORT": str(at.port),
            "PGUSER": str(at.username),
            "PGPASSWORD": unquote(at.password or ""),
            "PGDATABASE": at.path.strip("/"),
        }
        tools.run(["bash", "-e", "-c", commands], env=environment, inherit=False, cwd=self.home.parent, seconds=120)

    def cragside(self, *arguments: str) -> Any:
        """Run a command, and return its exit code."""
        session = Session(environment=self.settings(), folder=self.home.parent)
        return CliRunner().invoke(app, list(arguments), obj=session)

    def page(self, beginning: str) -> str:
        """Run the commands of a block, which have to succeed; what those of cragside print."""
        lines = block(beginning).text.splitlines()
        if others := [line for line in lines if not line.startswith("cragside ")]:
            self.shell("\n".join(others))
        printed = ""
        for command in (line.split()[1:] for line in lines if line not in others):
            result = self.cragside(*command)
            assert result.exit_code == 0, result.output
            printed += result.stdout
        return printed

    def dump(self, name: str) -> None:
        self.page("umask 077\npg_dump")
        (self.home.parent / "cragside.dump").rename(self.home.parent / name)

    def restore(self, name: str) -> None:
        """Put a dump in the place of the database, with no connection open."""
        shutil.copy(self.home.parent / name, self.home.parent / "cragside.dump")
        self.shell(block("pg_restore").first_line)

    def inside(self, work: Callable[[Container], Any]) -> Any:
        """Return the output of a call that stands in for a process of its own."""

        async def working() -> Any:
            container = Container(load_settings(self.settings()))
            try:
                return await work(container)
            finally:
                await container.close()

        return asyncio.run(working())

    def add(self, name: str, said: str) -> None:
        """Take a text in, and index it."""

        async def work(container: Container) -> None:
            library = (await container.workspaces.open("default")).documents
            await container.queue.send((await library.accept(text(name, said))).tasks)
            await container.worker().run(until_idle=True)

        self.inside(work)

    def disagreement(self) -> str:
        return str(self.inside(lambda container: container.workspaces.disagreement("default")))

    def connections_of(self, entity: str) -> list[str]:
        async def work(container: Container) -> list[str]:
            view = await (await container.workspaces.open("default")).graph.entity(entity)
            return sorted(each.entity for each in view.connections) if view else []

        found: list[str] = self.inside(work)
        return found


def block(beginning: str) -> Block:
    """The page's block of commands that begins so."""
    (found,) = [each for each in blocks("docs/backup.md", "sh") if each.text.startswith(beginning)]
    return found


@pytest.fixture
def made(postgres: Postgres, tmp_path: Path) -> Iterator[Callable[..., Databases]]:
    """A function that adds other databases to a new one of PostgreSQL."""
    with migrated(postgres) as uri:
        yield lambda **others: Databases(tmp_path / "home", uri, others)


async def fill(container: Container) -> None:
    """A document, an exchange and a setting; a document that was given up, and one that waits."""
    workspace = await container.workspaces.open("default")
    await container.queue.send((await workspace.documents.accept(text("swan.md", SWAN))).tasks)
    await container.memory.remember(
        Exchange("Which port does Redis have?", "Redis has port 6380 here."), workspace="default"
    )
    await container.worker().run(until_idle=True)
    await container.preference_store.change("default", {"threshold": 0.42})
    await container.queue.send((await workspace.documents.accept(text("bad.md", OTTER), enrich=False)).tasks)
    (delivery,) = await container.queue.receive(limit=1, wait=0)
    await workspace.work.failed(delivery.task, "It is unreadable.")
    await container.queue.bury(delivery, "It is unreadable.")
    await container.queue.send((await workspace.documents.accept(text("armstrong.md", ARMSTRONG))).tasks)


async def letters(container: Container) -> list[DeadLetter]:
    return await container.queue.dead(workspace="default")


async def threshold(container: Container) -> Any:
    return (await container.preferences.of("default")).threshold


async def remove(container: Container) -> None:
    for workspace in await container.workspaces.names():
        await container.workspaces.remove(workspace)
        await container.queue.discard(workspace=workspace)
    await container.preference_store.change("default", {"threshold": 0.9})


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.services(name)) for name in ("postgres", "postgres_age")])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InPostgres]:
    """A new database of PostgreSQL, with the graph in tables or in AGE."""
    with migrated(request.getfixturevalue(request.param)) as uri:
        yield (InAge if request.param == "postgres_age" else InPostgres)(tmp_path / "home", uri)


def test_a_dump_of_postgresql_brings_everything_back(place: InPostgres) -> None:
    graph = {"RAG_GRAPH_STORAGE": "PGGraphStorage"} if isinstance(place, InAge) else {}
    databases, there = Databases(place.home, place.uri, graph), place
    databases.inside(fill)
    before = {name: there.contents(name) for name in ("default", "default~memory")}
    waiting, dead = there.statistics(), databases.inside(letters)
    assert (waiting, [each.reason for each in dead]) == ((2, 0, 1), ["It is unreadable."])

    databases.page("umask 077\npg_dump")
    databases.inside(remove)
    told = databases.page("pg_restore")
    assert "documents        3" in told
    assert {name: there.contents(name) for name in before} == before
    assert (there.statistics(), databases.inside(letters)) == (waiting, dead)
    assert databases.inside(threshold) == 0.42
    databases.inside(lambda container: container.worker().run(until_idle=True))
    assert there.statistics() == (0, 0, 1)
    assert databases.connections_of("William Armstrong")


def test_a_restored_postgresql_and_a_graph_of_another_time_agree_after_a_repair(
    made: Callable[..., Databases], neo4j: Neo4j
) -> None:
    databases = made(NEO4J_URI=neo4j.uri)
    databases.add("swan.md", SWAN)
    older = databases.connections_of("Joseph Swan")
    databases.dump("old")
    databases.add("armstrong.md", ARMSTRONG)
    newer = databases.connections_of("Joseph Swan")
    databases.dump("new")
    assert set(older) < set(newer)
    try:
        databases.restore("old")  # the graph is newer
        mended(databases)
        assert databases.connections_of("Joseph Swan") == older
        databases.restore("new")  # the graph is older: the repair has put one of the old texts in its place
        mended(databases)
        assert databases.connections_of("Joseph Swan") == newer
    finally:
        databases.inside(lambda container: container.workspaces.remove("default"))


def test_a_redis_that_was_restored_agrees_after_a_repair(
    made: Callable[..., Databases], started: Callable[..., RedisServer]
) -> None:
    redis = started("redis", RedisServer)
    chosen = {"RAG_KV_STORAGE": "RedisKVStorage", "RAG_DOC_STATUS_STORAGE": "RedisDocStatusStorage"}
    databases = made(REDIS_URI=redis.uri, **chosen)
    client = f"REDISCLI_AUTH={urlsplit(redis.uri).password} redis-cli -p {redis.port}"
    databases.add("swan.md", SWAN)
    databases.dump("old")
    databases.shell(f"{client} --rdb redis.rdb")
    databases.add("armstrong.md", ARMSTRONG)
    databases.dump("new")

    redis.kill()
    (redis.home / "appendonlydir").rename(redis.home / "away")
    shutil.copy(databases.home.parent / "redis.rdb", redis.home / "dump.rdb")
    redis.appendonly = "no"
    redis.start()
    databases.shell(f"{client} config set appendonly yes")
    databases.restore("old")
    assert databases.disagreement() == ""
    databases.restore("new")
    mended(databases)


def mended(databases: Databases) -> None:
    """The workspace is told to need repair, which mends it."""
    examined = databases.cragside("doctor")
    assert (examined.exit_code, "Run `cragside repair`" in examined.stdout) == (3, True)
    assert "default: built anew from" in databases.page("cragside repair")
    assert databases.disagreement() == ""
