"""The tables of a PostgreSQL database: the ledger's and LightRAG's."""

import asyncpg

from cragside.databases.postgres.database import PostgresDatabase, ServerState, state_of
from cragside.ports.telemetry import Standing
from cragside.store.errors import LedgerError
from cragside.store.postgres.lightrag_tables import make_tables, make_vector_tables, missing_vector_tables
from cragside.store.postgres.schema import (
    MIGRATING,
    PREFERENCES_TABLE,
    SCHEMA_VERSION,
    SEARCH_TABLES,
    TABLES,
    check_version,
    complete,
    install_age,
    record_version,
    tells_since_when,
    translating,
    version_of,
)
from cragside.store.postgres.searching import make_near_indexes
from cragside.store.queues.postgres import TABLES as QUEUE_TABLES

_LEASES = """SELECT count(*) FILTER (WHERE expires > clock_timestamp()),
    count(*) FILTER (WHERE expires <= clock_timestamp()) FROM crag.lease"""
_WAITING_BY_ROLE = """SELECT role, count(*), extract(epoch FROM clock_timestamp() - min(noted))::float FROM crag.journal
    GROUP BY role"""


async def inspected(database: PostgresDatabase) -> tuple[ServerState, int, int]:
    """The server's state, the number of the tables' format, 0 without tables that can be read, and this program's.

    Raises `LedgerError`.
    """
    async with translating():
        server = await state_of(database)
        return server, 0 if server.forbidden else await version_of(database), SCHEMA_VERSION


async def standing(database: PostgresDatabase) -> Standing:
    """The leases and the waiting changes of all stores. Raises `LedgerError`."""
    async with translating():
        held, expired = await database.one(_LEASES)
        waiting = await database.all(_WAITING_BY_ROLE) if await tells_since_when(database) else []
    return Standing(held, expired, {role: (count, max(seconds, 0.0)) for role, count, seconds in waiting})


async def migrate(database: PostgresDatabase, *, model: str = "", dimensions: int = 0, age: bool = False) -> bool:
    """Make the tables, those for a model's vectors, missing indexes, and with `age` the extension.

    Returns whether the ledger's tables were missing.

    The tables are made all or none. Several processes may do it at the same time. Raises `LedgerError`,
    also for tables of a later version.
    """
    async with translating(), database.transaction(), database.connection() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
        if missing := (version := await version_of(database)) == 0:
            await _make_extension(database, connection)
            await _make_schema(connection)
            await connection.execute(TABLES)
            await connection.execute(SEARCH_TABLES)
            await connection.execute(QUEUE_TABLES)
            await connection.execute(PREFERENCES_TABLE)
            await make_tables(connection)
            await record_version(database)
        else:
            check_version(version)
            await complete(database)
        if age:
            await install_age(connection)
        if model:
            await make_vector_tables(database, model, dimensions)
    await make_near_indexes(database)
    return missing


async def is_complete(database: PostgresDatabase, *, model: str, dimensions: int) -> bool:
    """Return True if `migrate` would make nothing. Raises as it does."""
    async with translating():
        if (version := await version_of(database)) == 0:
            return False
        check_version(version)
        return await tells_since_when(database) and not await missing_vector_tables(database, model, dimensions)


async def _make_extension(database: PostgresDatabase, connection: asyncpg.Connection) -> None:
    if (await state_of(database)).vector is not None:
        return
    try:
        await connection.execute("CREATE EXTENSION vector")
    except asyncpg.InsufficientPrivilegeError as error:
        remedy = "have a superuser run CREATE EXTENSION vector; in this database, then run cragside migrate again"
        raise LedgerError("pgvector is missing", f"needs the extension pgvector: {remedy}") from error
    except (asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFileError) as error:
        remedy = "install pgvector on PostgreSQL's machine, then run cragside migrate again"
        raise LedgerError("pgvector is missing", f"needs the extension pgvector: {remedy}") from error


async def _make_schema(connection: asyncpg.Connection) -> None:
    may = """SELECT (has_database_privilege(current_database(), 'CREATE') OR to_regnamespace('crag') IS NOT NULL)
        AND has_schema_privilege('public', 'CREATE')"""
    if not await connection.fetchval(may):
        remedy = "run cragside migrate as a role that has CREATE on the database and on its schema public"
        raise LedgerError("the role may not make tables", f"has no tables, and this role may not make them: {remedy}")
