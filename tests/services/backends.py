"""The kinds of databases that stores can be in, for suites that hold on all of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from anyio.from_thread import start_blocking_portal

from cragside.store.backends.interface import Backend
from cragside.store.backends.sqlite import SqliteBackend

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres
    from tests.services.redis_server import Redis

# Parameters of a fixture, which gets the backend by `made`.
POOLED = "pgbouncer"
SERVERS: list[Any] = [
    pytest.param("postgres", marks=pytest.mark.services("postgres")),
    pytest.param("postgres_age", marks=pytest.mark.services("postgres_age")),
    pytest.param("postgres_neo4j", marks=pytest.mark.services("postgres", "neo4j")),
    pytest.param("postgres_qdrant", marks=pytest.mark.services("postgres", "qdrant")),
    pytest.param("postgres_redis", marks=pytest.mark.services("postgres", "redis")),
]
BACKENDS = ["sqlite", *SERVERS]
# By way of pgbouncer, which gives each transaction any of its few sessions.
THROUGH_POOLER = pytest.param(POOLED, marks=pytest.mark.services("postgres", "pgbouncer"))

# LightRAG's class of the graph.
_GRAPHS = {"postgres": "PGTableGraphStorage", "postgres_age": "PGGraphStorage"}


@contextmanager
def made(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A new database of the kind that the parameter names."""
    if request.param == "sqlite":
        yield SqliteBackend()
    elif request.param == POOLED:
        pooler = request.getfixturevalue("pgbouncer")
        with _on_postgres(request.getfixturevalue("postgres"), _GRAPHS["postgres"], pooler.through) as backend:
            yield backend
    elif request.param == "postgres_qdrant":
        with _on_qdrant(request.getfixturevalue("postgres"), request.getfixturevalue("qdrant")) as backend:
            yield backend
    elif request.param == "postgres_redis":
        with _on_redis(request.getfixturevalue("postgres"), request.getfixturevalue("redis")) as backend:
            yield backend
    elif request.param == "postgres_neo4j":
        with _on_neo4j(request.getfixturevalue("postgres"), request.getfixturevalue("neo4j")) as backend:
            yield backend
    else:
        with _on_postgres(request.getfixturevalue(request.param), _GRAPHS[request.param]) as backend:
            yield backend


@contextmanager
def migrated(server: "Postgres") -> Iterator[str]:
    """The address of a new database with the tables of `cragside migrate`."""
    # In a thread, because the test's event loop may be running.
    with start_blocking_portal() as portal:
        template = portal.call(server.template, "migrated", _migrate)
        with portal.wrap_async_context_manager(server.database(template)) as uri:
            yield uri


@contextmanager
def _on_postgres(server: "Postgres", graph: str, way: Callable[[str], str] = str) -> Iterator[Backend]:
    from cragside.databases.postgres.address import PostgresAddress
    from cragside.databases.postgres.database import PostgresDatabase
    from cragside.store.backends.postgres import DEFAULTS, PostgresBackend

    with migrated(server) as uri:
        database = PostgresDatabase(PostgresAddress.parse(way(uri)), most=5)
        yield PostgresBackend(database, {**DEFAULTS, "graph": graph})


@contextmanager
def _on_neo4j(server: "Postgres", graphs: "Neo4j") -> Iterator[Backend]:
    from cragside.databases.neo4j import Neo4jDatabase
    from cragside.databases.postgres.address import PostgresAddress
    from cragside.databases.postgres.database import PostgresDatabase
    from cragside.databases.server_addresses import Neo4jAddress
    from cragside.store.backends.postgres import DEFAULTS, NEO4J_STORAGE, PostgresBackend
    from cragside.store.outside import graph as neo4j_graph
    from cragside.store.outside.neo4j import Neo4jGraphs

    # Neo4j may take long to plan a question on a busy machine, and these suites compare what is found with the graph.
    with migrated(server) as uri, patch.object(neo4j_graph, "PATIENCE_SECONDS", 30.0):
        database = PostgresDatabase(PostgresAddress.parse(uri), most=5)
        graph = Neo4jGraphs(Neo4jDatabase(Neo4jAddress.parse(graphs.uri), most=5))
        yield PostgresBackend(database, {**DEFAULTS, "graph": NEO4J_STORAGE}, {"graph": graph})


@contextmanager
def _on_qdrant(server: "Postgres", url: str) -> Iterator[Backend]:
    from cragside.databases.postgres.address import PostgresAddress
    from cragside.databases.postgres.database import PostgresDatabase
    from cragside.databases.qdrant import QdrantDatabase
    from cragside.databases.server_addresses import QdrantAddress
    from cragside.store.backends.postgres import DEFAULTS, PostgresBackend
    from cragside.store.outside.qdrant import QdrantVectors

    with migrated(server) as uri:
        database = PostgresDatabase(PostgresAddress.parse(uri), most=5)
        vectors = QdrantVectors(QdrantDatabase(QdrantAddress.parse(url), most=5))
        yield PostgresBackend(database, {**DEFAULTS, "vector": "QdrantVectorDBStorage"}, {"vector": vectors})


@contextmanager
def _on_redis(server: "Postgres", kept: "Redis") -> Iterator[Backend]:
    from cragside.databases.postgres.address import PostgresAddress
    from cragside.databases.postgres.database import PostgresDatabase
    from cragside.databases.redis import RedisDatabase
    from cragside.databases.server_addresses import RedisAddress
    from cragside.store.backends.postgres import DEFAULTS, PostgresBackend
    from cragside.store.outside.redis import RedisListing, RedisValues

    # In a thread, because the test's event loop may be running.
    with (
        migrated(server) as uri,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(kept.database()) as address,
    ):
        redis = RedisDatabase(RedisAddress.parse(address), most=5)
        names = {**DEFAULTS, "kv": "RedisKVStorage", "doc_status": "RedisDocStatusStorage"}
        outside = {"kv": RedisValues(redis), "doc_status": RedisListing(redis)}
        yield PostgresBackend(PostgresDatabase(PostgresAddress.parse(uri), most=5), names, outside)


async def _migrate(uri: str) -> None:
    from cragside.databases.postgres.address import PostgresAddress
    from cragside.databases.postgres.database import PostgresDatabase
    from cragside.store.backends.postgres_tables import migrate

    database = PostgresDatabase(PostgresAddress.parse(uri), most=1)
    await migrate(database)
    await database.close()
