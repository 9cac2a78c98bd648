"""Graphs of Apache AGE, an extension of PostgreSQL. Each is a schema of its own."""

import asyncpg

from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.ledger.failures import LedgerError

# LightRAG's class for them.
AGE_STORAGE = "PGGraphStorage"
# LightRAG's labels.
_LABELS = ("create_vlabel", "base"), ("create_elabel", "DIRECTED")
ENTITY = """ag_catalog.agtype_access_operator({}.properties, '"entity_id"'::ag_catalog.agtype)"""
# LightRAG's names of indexes, so that its server makes no others. Its own are not unique: two writers could make two
# vertices of an entity.
_INDEXES = (
    'CREATE UNIQUE INDEX entity_p_idx ON {0}."base" (id)',
    f'CREATE UNIQUE INDEX entity_idx_node_id ON {{0}}."base" ({ENTITY.format("base")})',
    'CREATE UNIQUE INDEX directed_seid_idx ON {0}."DIRECTED" (start_id, end_id)',
    'CREATE INDEX directed_eid_idx ON {0}."DIRECTED" (end_id)',
)


def graph_of(key: str) -> str:
    """LightRAG's name of the graph of a workspace that it knows by this key.

    Keys are lower-case letters and digits, so that the name needs no quotes, and no other key has the same one.
    """
    return f"{key}_chunk_entity_relation"


async def install_age(connection: asyncpg.Connection, extension: str = "age") -> None:
    """Make the extension in the database, unless it is there. Raises `LedgerError`: no AGE, or no right to make it."""
    if not await connection.fetchval("SELECT true FROM pg_available_extensions WHERE name = $1", extension):
        missing = "needs the extension AGE for PGGraphStorage, which this PostgreSQL server does not have"
        raise LedgerError("the server has no AGE", f"{missing}. Install it there, or unset RAG_GRAPH_STORAGE")
    try:
        await connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
    except asyncpg.InsufficientPrivilegeError as error:
        remedy = f"have a superuser run CREATE EXTENSION {extension}; in this database, then run cragside migrate again"
        raise LedgerError("AGE is missing", f"needs the extension AGE for PGGraphStorage: {remedy}") from error


async def make_graph(database: PostgresDatabase, key: str) -> None:
    """Make an empty graph. Within a transaction."""
    name = graph_of(key)
    async with database.connection() as connection:
        await connection.execute(f"SELECT ag_catalog.create_graph('{name}')")
        for function, label in _LABELS:
            await connection.execute(f"SELECT ag_catalog.{function}('{name}', '{label}')")
        for index in _INDEXES:
            await connection.execute(index.format(name))


async def drop_graph(database: PostgresDatabase, key: str) -> None:
    """Drop a graph."""
    await database.value(f"SELECT ag_catalog.drop_graph('{graph_of(key)}', true)")
