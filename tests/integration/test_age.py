"""The graph in Apache AGE, as LightRAG's own class finds it, and as several connections use it."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from cragside.bootstrap import Container
from cragside.composition.databases import examine, migrate
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.settings import load_settings
from cragside.store.postgres.schema import install_age
from tests.indexing import SWAN, take, text
from tests.services.backends import migrated
from tests.services.pgbouncer import PgbouncerServer
from tests.services.postgres import Postgres

AGE = {"RAG_GRAPH_STORAGE": "PGGraphStorage"}


@pytest.fixture
def uri(postgres_age: Postgres) -> Iterator[str]:
    """A database with the tables of `cragside migrate`."""
    with migrated(postgres_age) as uri:
        yield uri


@asynccontextmanager
async def opened(home: Path, uri: str, **settings: str) -> AsyncIterator[Container]:
    container = Container(load_settings({"RAG_HOME": str(home), "POSTGRES_URI": uri, **settings}))
    yield container
    await container.close()


async def index(container: Container) -> None:
    workspace = await container.workspaces.open("w")
    await take(workspace.documents, workspace.work, text("swan.md", SWAN))


async def neighbours(container: Container, name: str = "Joseph Swan") -> list[str]:
    view = await (await container.workspaces.open("w")).graph.entity(name)
    return sorted(link.entity for link in view.connections) if view else []


async def asked(uri: str, sql: str) -> Any:
    connection = await asyncpg.connect(uri)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


@asynccontextmanager
async def lightrags(uri: str) -> AsyncIterator[Any]:
    """LightRAG's own storage of the graph, on its own connections."""
    from lightrag.kg.postgres_impl import PGGraphStorage, PostgreSQLDB
    from lightrag.kg.shared_storage import finalize_share_data, initialize_share_data

    initialize_share_data()
    address = urlsplit(uri)
    database = PostgreSQLDB(
        {
            "host": address.hostname,
            "port": address.port,
            "user": address.username,
            "password": address.password,
            "database": address.path.removeprefix("/"),
            "workspace": None,
            "max_connections": 2,
            "connection_retry_attempts": 1,
            "connection_retry_backoff": 0,
            "connection_retry_backoff_max": 0,
            "pool_close_timeout": 5,
        }
    )
    await database.initdb()
    storage = PGGraphStorage(
        namespace="chunk_entity_relation",
        workspace=await asked(uri, "SELECT key FROM crag.store"),
        global_config={"max_graph_nodes": 1000},
        embedding_func=None,
    )
    storage.db = database
    await storage.initialize()
    yield storage
    await database.pool.close()
    finalize_share_data()


async def test_lightrags_own_class_reads_the_graph_and_changes_it(tmp_path: Path, uri: str) -> None:
    async with opened(tmp_path, uri, **AGE) as container:
        await index(container)
        ours = await neighbours(container)
        async with lightrags(uri) as storage:
            assert sorted(other for _, other in await storage.get_node_edges("Joseph Swan")) == ours
            shown = await storage.get_knowledge_graph("*")
            assert {"Joseph Swan", *ours} <= {label for node in shown.nodes for label in node.labels}
            pair = ("William Armstrong", "Joseph Swan")
            told = (await storage.get_edges_batch([{"src": pair[0], "tgt": pair[1]}]))[pair]
            # In the other direction than cragside writes.
            await storage.upsert_edge(*pair, {**told, "description": "Armstrong met Swan."})
            second = f"$${storage.graph_name}$$, $$CREATE (:base {{entity_id: 'Joseph Swan'}})$$"
            with pytest.raises(Exception, match="UniqueViolationError"):
                await storage._query(f"SELECT * FROM cypher({second}) AS (n agtype)", readonly=False)
        assert await neighbours(container) == ours
        await index_more(container)
        assert await neighbours(container) == ours


async def index_more(container: Container) -> None:
    """Index a text that merges into the same edge."""
    workspace = await container.workspaces.open("w")
    await take(workspace.documents, workspace.work, text("again.md", "William Armstrong met Joseph Swan."))


async def test_pgbouncer_may_give_each_transaction_another_connection(
    tmp_path: Path, uri: str, postgres_age: Postgres, started: Callable[..., Any]
) -> None:
    bouncer = started("pgbouncer", lambda: PgbouncerServer(postgres_age.uri, pool=2))
    async with opened(tmp_path, f"{bouncer.through(uri)}?statement_cache_size=0", **AGE) as container:
        await index(container)
        assert "William Armstrong" in await neighbours(container)


GRANTS = """
GRANT CREATE, CONNECT ON DATABASE "{database}" TO {role};
GRANT USAGE ON SCHEMA crag, public, ag_catalog TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA crag, public TO {role};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA crag TO {role};
"""


async def test_a_role_needs_no_more_than_the_documented_rights(tmp_path: Path, uri: str) -> None:
    async with opened(tmp_path, uri, **AGE) as container:
        assert container.database
        await migrate(container.database, container.embedder, age=True)
    address = urlsplit(uri)
    role = f"team_{secrets.token_hex(4)}"
    admin = await asyncpg.connect(uri)
    await admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'hush'")
    try:
        await admin.execute(GRANTS.format(database=address.path.removeprefix("/"), role=role))
        limited = address._replace(netloc=f"{role}:hush@{address.hostname}:{address.port}").geturl()
        async with opened(tmp_path, limited, **AGE) as container:
            await index(container)
            assert "William Armstrong" in await neighbours(container)
            assert await container.workspaces.remove("w")
    finally:
        await admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        await admin.close()


async def test_a_removed_workspace_leaves_no_graph(tmp_path: Path, uri: str) -> None:
    async with opened(tmp_path, uri, **AGE) as container:
        await index(container)
        assert await asked(uri, "SELECT count(*) FROM ag_catalog.ag_graph") == 1
        assert await container.workspaces.remove("w")
    assert await asked(uri, "SELECT count(*) FROM ag_catalog.ag_graph") == 0


async def test_a_workspace_moves_into_age_by_reindexing_and_not_by_accident(tmp_path: Path, uri: str) -> None:
    async with opened(tmp_path, uri) as container:
        await index(container)
        before = await neighbours(container)
    async with opened(tmp_path, uri, **AGE) as container:
        with pytest.raises(
            ConfigurationError, match="built with PGTableGraphStorage, but RAG_GRAPH_STORAGE is PGGraph"
        ):
            await neighbours(container)
        assert await container.workspaces.reindex("w", lambda _: None) == 1
        workspace = await container.workspaces.open("w")
        for task in await workspace.documents.restart():
            await workspace.work.begin_enrichment(task)
            await workspace.work.extend_graph(task)
        assert await neighbours(container) == before
    assert await asked(uri, "SELECT count(*) FROM lightrag_graph_nodes") == 0


async def test_a_server_without_the_extension_is_told_apart(uri: str) -> None:
    connection = await asyncpg.connect(uri)
    with pytest.raises(ServiceUnavailable, match="needs the extension AGE for PGGraphStorage"):
        await install_age(connection, "no_such_extension")
    await connection.close()


async def test_migrate_installs_age_where_the_graph_is_in_it(tmp_path: Path, age_database: str) -> None:
    await asked(age_database, "DROP EXTENSION age")
    there = "SELECT count(*) FROM pg_extension WHERE extname = 'age'"
    async with opened(tmp_path, age_database) as container:
        assert container.database
        await migrate(container.database, container.embedder)
        assert await asked(age_database, there) == 0
        state = await examine(container.database, needs_age=True)
        assert "AGE is missing" in state.detail
        assert state.remedy == "Run `cragside migrate`."
        await migrate(container.database, container.embedder, age=True)
        assert await asked(age_database, there) == 1
        assert not (await examine(container.database, needs_age=True)).remedy
