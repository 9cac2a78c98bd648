"""The servers that shared stores run on: each answers its real driver, and can be paused, killed and restarted."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import numpy as np
import pytest
from neo4j import AsyncGraphDatabase
from neo4j.exceptions import AuthError, ConstraintError
from pgvector.asyncpg import register_vector
from qdrant_client import AsyncQdrantClient, models
from redis.asyncio import from_url
from redis.exceptions import AuthenticationError

from tests.services.neo4j_server import Neo4j, Neo4jServer
from tests.services.pgbouncer import PgbouncerServer
from tests.services.postgres import PostgresServer
from tests.services.redis_server import RedisServer
from tests.services.tools import free_port

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.services


def run_tests(**environment):
    """The outcome of one test of this file, in a run of its own."""
    command = [sys.executable, "-m", "pytest", __file__, "-p", "no:cacheprovider", "-k", "a_database_has_pgvector"]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


async def connected(uri, **options):
    return await asyncpg.connect(uri, timeout=5, **options)


async def test_a_database_has_pgvector_and_nothing_else(database):
    connection = await connected(database)
    assert await connection.fetchval("SELECT extversion FROM pg_extension WHERE extname = 'vector'") >= "0.8"
    assert await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
    await connection.close()


async def test_vectors_are_ranked_by_their_cosine_with_and_without_an_index(database):
    connection = await connected(database)
    await register_vector(connection)
    await connection.execute("CREATE TABLE passage (id int, vector vector(3))")
    vectors = [np.array(v, dtype=np.float32) for v in ([1, 0, 0], [1, 1, 0], [0, 0, 1])]
    await connection.executemany("INSERT INTO passage VALUES ($1, $2)", list(enumerate(vectors)))
    nearest = "SELECT id, 1 - (vector <=> $1) AS cosine FROM passage ORDER BY vector <=> $1"
    for statement in ("SELECT 1", "CREATE INDEX ON passage USING hnsw (vector vector_cosine_ops)"):
        await connection.execute(statement)
        await connection.execute("SET hnsw.iterative_scan = strict_order")
        rows = await connection.fetch(nearest, vectors[0])
        assert [row["id"] for row in rows] == [0, 1, 2]
        assert [row["cosine"] for row in rows] == pytest.approx([1, 0.5**0.5, 0])
    await connection.close()


async def test_each_database_is_a_new_copy_of_its_template(postgres, database):
    async def fill(uri):
        connection = await connected(uri)
        await connection.execute("CREATE TABLE setting AS SELECT 1 AS value")
        await connection.close()

    async def never(uri):
        raise AssertionError("it was filled twice")

    template = await postgres.template("filled_once", fill)
    assert await postgres.template("filled_once", never) == template
    for _ in range(2):
        async with postgres.database(template) as uri:
            connection = await connected(uri)
            assert await connection.fetchval("UPDATE setting SET value = value + 1 RETURNING value") == 2
            await connection.close()
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await connected(uri)


async def test_age_makes_a_graph_and_answers_cypher(age_database):
    connection = await connected(age_database)
    await connection.execute("SET search_path = ag_catalog, public")
    await connection.execute("SELECT create_graph('people')")
    asked = "SELECT * FROM cypher('people', $$ {} $$) AS (name agtype)"
    await connection.execute(asked.format("CREATE (:person {name: 'Ada'})-[:knows]->(:person {name: 'Mary'})"))
    found = await connection.fetchval(asked.format("MATCH (:person {name: 'Ada'})-[:knows]->(p) RETURN p.name"))
    assert found == '"Mary"'
    await connection.close()


async def test_age_is_loaded_for_connections_that_never_ask_for_it(age_database):
    connection = await connected(age_database)
    assert "age" in await connection.fetchval("SHOW shared_preload_libraries")
    await connection.close()


async def test_pgbouncer_serves_more_clients_than_it_has_connections(pgbouncer, database):
    async def ask(number):
        connection = await connected(pgbouncer.through(database), statement_cache_size=0)
        async with connection.transaction():
            server = await connection.fetchval("SELECT pg_backend_pid()")
            assert await connection.fetchval("SELECT $1::int", number) == number
        await connection.close()
        return server

    assert 1 <= len(set(await asyncio.gather(*map(ask, range(20))))) <= 4


async def test_pgbouncer_loses_prepared_statements_of_clients_that_keep_them(pgbouncer, database):
    """Why `statement_cache_size=0` is needed: the next transaction may run on another connection."""
    first, second = [await connected(pgbouncer.through(database), statement_cache_size=100) for _ in range(2)]
    assert await first.fetchval("SELECT $1::int", 1) == 1
    async with second.transaction():  # on the connection that has the statement
        await second.execute("SELECT 1")
        with pytest.raises(asyncpg.InvalidSQLStatementNameError):
            await first.fetchval("SELECT $1::int", 1)
    for connection in (first, second):
        await connection.close()


async def test_neo4j_holds_a_constraint_and_answers_cypher(neo4j, graph_label):
    async with AsyncGraphDatabase.driver(neo4j.address, auth=neo4j.auth) as driver:
        await driver.execute_query(f"CREATE CONSTRAINT FOR (n:{graph_label}) REQUIRE n.entity_id IS UNIQUE")
        await driver.execute_query(f"CREATE (:{graph_label} {{entity_id: 'Ada'}})-[:KNOWS]->(:{graph_label})")
        found = await driver.execute_query(f"MATCH (n:{graph_label})-[:KNOWS]->() RETURN n.entity_id AS name")
        assert [record["name"] for record in found.records] == ["Ada"]
        with pytest.raises(ConstraintError):
            await driver.execute_query(f"CREATE (:{graph_label} {{entity_id: 'Ada'}})")


async def test_nothing_of_a_label_is_left_in_neo4j(neo4j):
    async with AsyncGraphDatabase.driver(neo4j.address, auth=neo4j.auth) as driver:
        async with neo4j.label() as label:
            await driver.execute_query(f"CREATE CONSTRAINT FOR (n:{label}) REQUIRE n.entity_id IS UNIQUE")
            await driver.execute_query(f"CREATE (:{label}_b)-[:KNOWS]->(:{label})")
        left = "MATCH (n) WHERE any(l IN labels(n) WHERE l STARTS WITH $label) RETURN count(n) AS n"
        assert (await driver.execute_query(left, label=label)).records[0]["n"] == 0
        left = "SHOW INDEXES YIELD labelsOrTypes WHERE $label IN labelsOrTypes RETURN count(*) AS n"
        assert (await driver.execute_query(left, label=label)).records[0]["n"] == 0


async def test_neo4j_refuses_a_wrong_password(neo4j):
    async with AsyncGraphDatabase.driver(neo4j.address, auth=("neo4j", "wrong")) as driver:
        with pytest.raises(AuthError):
            await driver.verify_connectivity()


async def test_each_redis_database_is_empty(redis, redis_database):
    async with from_url(redis_database) as client, redis.database() as other:
        assert await client.dbsize() == 0
        await client.set("key", "value")
        assert await client.get("key") == b"value"
        async with from_url(other) as neighbour:
            assert await neighbour.get("key") is None


async def test_qdrants_client_finds_the_nearest_vector(qdrant):
    client = AsyncQdrantClient(location=qdrant)
    cosine = models.VectorParams(size=2, distance=models.Distance.COSINE)
    await client.create_collection("passages", vectors_config=cosine)
    points = [models.PointStruct(id=n, vector=vector) for n, vector in enumerate([[1.0, 0.0], [1.0, 1.0]])]
    await client.upsert("passages", points)
    (best,) = (await client.query_points("passages", query=[0.9, 1.0], limit=1)).points
    assert best.id == 1
    await client.delete_collection("passages")
    await client.close()


async def test_a_paused_postgres_keeps_its_clients_waiting_until_it_is_resumed(started):
    server = started("postgres", PostgresServer)
    connection = await connected(server.uri)
    server.pause()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncpg.connect(server.uri), 0.3)
    asked = asyncio.create_task(connection.fetchval("SELECT 1"))
    await asyncio.wait([asked], timeout=0.2)
    assert not asked.done()
    server.resume()
    assert await asked == 1
    await connection.close()


async def test_what_was_committed_survives_a_postgres_that_is_killed(started):
    server = started("postgres", PostgresServer)
    connection = await connected(server.uri)
    await connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    server.kill()
    with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError)):
        await connection.fetchval("SELECT value FROM kept")
    server.start()
    connection = await connected(server.uri)
    assert await connection.fetchval("SELECT value FROM kept") == 7
    await connection.close()


async def test_pgbouncer_outlives_the_postgres_behind_it(started):
    behind = started("postgres", PostgresServer)
    server = started("pgbouncer", lambda: PgbouncerServer(behind.uri))
    behind.stop()
    with pytest.raises((asyncpg.PostgresError, OSError)):
        await connected(server.uri, statement_cache_size=0)
    behind.start()
    connection = await connected(server.uri, statement_cache_size=0)
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


async def test_redis_refuses_a_wrong_password(started):
    server = started("redis", RedisServer)
    async with from_url(server.uri.replace("redis://:", "redis://:not")) as stranger:
        with pytest.raises(AuthenticationError):
            await stranger.ping()


def test_a_given_postgres_is_used_and_left_as_it_was(started):
    server = started("postgres", PostgresServer)

    async def databases():
        connection = await connected(server.uri)
        found = await connection.fetch("SELECT datname FROM pg_database ORDER BY 1")
        await connection.close()
        return [name for (name,) in found]

    before = asyncio.run(databases())
    ran = run_tests(TEST_POSTGRES_URI=server.uri, SERVERS="required")
    assert ran.returncode == 0, ran.stdout
    assert "postgres: PostgreSQL 17" in ran.stdout
    assert "(from TEST_POSTGRES_URI)\n    tests/integration/test_servers.py: 1 passed" in ran.stdout
    assert asyncio.run(databases()) == before


def test_a_given_server_that_does_not_answer_fails_its_tests_and_is_named():
    ran = run_tests(TEST_POSTGRES_URI=f"postgresql://me:secret@127.0.0.1:{free_port()}/db", SERVERS="required")
    assert ran.returncode == 1
    assert "postgres: NOT THERE: PostgreSQL did not answer" in ran.stdout
    assert "tests/integration/test_servers.py: 1 error" in ran.stdout
    assert "secret" not in ran.stdout


async def test_what_redis_acknowledged_survives_its_death(started):
    server = started("redis", RedisServer)
    async with from_url(server.uri) as client:
        await client.set("key", "value")
    server.kill()
    server.start()
    async with from_url(server.uri) as client:
        assert await client.get("key") == b"value"


async def test_what_neo4j_committed_survives_its_death(started):
    server = started("neo4j", Neo4jServer)
    running = Neo4j(server.uri)
    async with AsyncGraphDatabase.driver(running.address, auth=running.auth) as driver:
        await driver.execute_query("CREATE (:kept {value: 7})")
    server.kill()
    server.start()
    async with AsyncGraphDatabase.driver(running.address, auth=running.auth) as driver:
        found = await driver.execute_query("MATCH (n:kept) RETURN n.value AS value")
        assert [record["value"] for record in found.records] == [7]


@pytest.mark.parametrize("module", ["postgres", "redis_server"])
def test_a_server_can_be_started_by_hand(module):
    command = [sys.executable, "-m", f"tests.services.{module}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            uri = process.stdout.readline().strip()
            assert uri.startswith(("postgresql://", "redis://"))
            with socket.create_connection(("127.0.0.1", urlsplit(uri).port), timeout=5):
                pass
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(uri).port), timeout=5)
