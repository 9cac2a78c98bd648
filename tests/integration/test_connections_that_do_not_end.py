"""A relay that keeps connections open, however they are closed, fails nothing that was done through it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pytest
from typer.testing import CliRunner

from cragside.databases.neo4j import Neo4jDatabase
from cragside.databases.qdrant import QdrantDatabase
from cragside.databases.redis import RedisDatabase
from cragside.databases.server_addresses import Neo4jAddress, QdrantAddress, RedisAddress
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.services.stub_ollama import StubOllama
from tests.services.way import Way

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j


@asynccontextmanager
async def lingering(address: str) -> AsyncIterator[str]:
    """The address through a relay that ends no connection."""
    parts = urlsplit(address)
    async with Way(parts.port or 0) as way:
        way.lingers = True
        before, _, _ = parts.netloc.rpartition("@")
        yield urlunsplit(parts._replace(netloc=f"{before}@127.0.0.1:{way.port}" if before else f"127.0.0.1:{way.port}"))


async def test_commands_on_postgres_end_well(database: str, tmp_path: Path) -> None:
    async with lingering(database) as uri:
        environment = {"POSTGRES_URI": uri, "RAG_HOME": str(tmp_path)}
        for command, told in (("migrate", "Made the tables"), ("migrate", "The tables are there"), ("documents", "")):
            session = Session(environment=environment, folder=tmp_path)
            ran = await asyncio.to_thread(CliRunner().invoke, app, [command], obj=session)
            assert (ran.exit_code, told in ran.output) == (0, True), ran.output


async def test_neo4j_is_closed(neo4j: "Neo4j") -> None:
    user, password = neo4j.auth
    async with lingering(f"bolt://{user}:{password}@127.0.0.1:{urlsplit(neo4j.uri).port}") as uri:
        graph = Neo4jDatabase(Neo4jAddress.parse(uri), most=1)
        assert await graph.rows("RETURN 1") == [[1]]
        await graph.close()


async def test_redis_is_closed(redis_database: str) -> None:
    async with lingering(redis_database) as uri:
        values = RedisDatabase(RedisAddress.parse(uri), most=1)
        await values.ping()
        await values.close()


async def test_qdrant_is_closed() -> None:
    async with StubOllama() as server, lingering(server.url) as url:
        server.refusals["/collections"] = 418
        vectors = QdrantDatabase(QdrantAddress(url), most=1)
        with pytest.raises(Exception, match="418"):
            await vectors.run(lambda client: client.get_collections())
        await vectors.close()
