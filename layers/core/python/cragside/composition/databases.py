"""Examines the databases of servers, and makes the tables of PostgreSQL."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cragside.domain.counted import counted
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.figures import Standing

if TYPE_CHECKING:
    from cragside.adapters.lightrag.storages.neo4j.fence import FencedGraph
    from cragside.adapters.lightrag.storages.qdrant.fence import FencedVectors
    from cragside.adapters.postgres.database import PostgresDatabase
    from cragside.adapters.redis.database import RedisDatabase
    from cragside.ports.embedder import Embedder

# Its statements have scoped subqueries, `CALL (node) { … }`.
_OLDEST_NEO4J = (5, 23)


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database as `doctor` shows it. `remedy` is empty if the tables are there."""

    version: str
    address: str
    detail: str
    remedy: str


async def examine(database: "PostgresDatabase", *, needs_age: bool = False) -> DatabaseState:
    """What there is in the database. Raises `ServiceUnavailable`."""
    from cragside.adapters.lightrag.backends.postgres_tables import inspected

    server, found, known = await inspected(database)
    detail = f"pgvector {server.vector or 'is missing'}"
    if needs_age:
        detail += f", AGE {server.age or 'is missing'}"
    detail += f", {server.connections} of {server.most_connections} connections in use"
    cause, remedy = "", ""
    if server.forbidden:
        cause = f"its role may not use {counted(server.forbidden, 'table')}"
        remedy = "Grant it the rights in docs/postgresql.md."
    elif found > known:
        cause, remedy = f"its tables are of a later cragside (format {found})", "Update this one."
    elif found and not server.vector:
        remedy = "Have a superuser run CREATE EXTENSION vector; in this database."
    elif found != known:
        cause, remedy = "its tables are missing", "Run `cragside migrate`."
    elif needs_age and not server.age:
        remedy = "Run `cragside migrate`."
    detail = f"{cause}, {detail}" if cause else detail
    return DatabaseState(server.version, database.address, detail, remedy)


async def standing(database: "PostgresDatabase") -> Standing:
    """The leases and the waiting changes there. Raises `ServiceUnavailable`."""
    from cragside.adapters.lightrag.backends.postgres_tables import standing as found

    return await found(database)


async def examine_graphs(graphs: "FencedGraph") -> DatabaseState:
    """What Neo4j is. Raises `ServiceUnavailable`."""
    version, edition, database = await graphs.server()
    detail = f"database {database}, {edition} edition"
    old = tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST_NEO4J
    remedy = f"cragside needs Neo4j {'.'.join(map(str, _OLDEST_NEO4J))} or later." if old else ""
    return DatabaseState(version, graphs.address, detail, remedy)


async def examine_redis(redis: "RedisDatabase") -> DatabaseState:
    """What Redis is, and whether it keeps what it has. Raises `ServiceUnavailable`."""
    from cragside.adapters.redis.database import RedisFailure

    try:
        info = await redis.run(lambda client: client.info())
    except RedisFailure as error:
        raise ServiceUnavailable("knowledge_base", f"The knowledge base {error.unusable}.") from error
    policy, kept = str(info.get("maxmemory_policy", "")), bool(info.get("aof_enabled"))
    detail = f"maxmemory-policy {policy}, appendonly {'yes' if kept else 'no'}"
    remedy = "Set maxmemory-policy to noeviction, or Redis forgets what it has." if policy.startswith("allkeys") else ""
    return DatabaseState(str(info.get("redis_version", "")), str(redis.address), detail, remedy)


async def examine_qdrant(vectors: "FencedVectors") -> DatabaseState:
    """What Qdrant is, and whether its key is kept. Raises `ServiceUnavailable`."""
    remedy = "Begin QDRANT_URL with https://: everybody on the way reads its key." if vectors.tells_its_key else ""
    return DatabaseState(await vectors.server(), vectors.address, "", remedy)


async def is_migrated(database: "PostgresDatabase", embedder: "Embedder") -> bool:
    """Whether `migrate` would make no table. Raises as it does."""
    from cragside.adapters.lightrag.backends.postgres_tables import is_complete

    (vector,) = await embedder.embed(["any text"])
    return await is_complete(database, model=embedder.name, dimensions=len(vector))


async def migrate(database: "PostgresDatabase", embedder: "Embedder", *, age: bool = False) -> bool:
    """Make the tables, those for the model's vectors, and with `age` the extension. Whether the former were missing.

    Raises `ServiceUnavailable`, also for tables of a later version.
    """
    from cragside.adapters.lightrag.backends.postgres_tables import migrate as make_tables

    (vector,) = await embedder.embed(["any text"])
    return await make_tables(database, model=embedder.name, dimensions=len(vector), age=age)
