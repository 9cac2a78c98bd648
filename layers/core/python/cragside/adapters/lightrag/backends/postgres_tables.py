"""The tables of a PostgreSQL database: the ledger's and LightRAG's."""

from cragside.adapters.lightrag.ledger.failures import StoreFormatError
from cragside.adapters.lightrag.ledger.postgres.age import install_age
from cragside.adapters.lightrag.ledger.postgres.schema import (
    MIGRATING,
    SCHEMA_VERSION,
    TABLES,
    record_version,
    version_of,
)
from cragside.adapters.lightrag.ledger.postgres.search_schema import TABLES as SEARCH_TABLES
from cragside.adapters.lightrag.ledger.postgres.store import translating
from cragside.adapters.lightrag.storages.postgres.near_indexes import make_near_indexes
from cragside.adapters.lightrag.storages.postgres.tables import make_tables, make_vector_tables
from cragside.adapters.postgres import preferences, queue_schema
from cragside.adapters.postgres.database import PostgresDatabase


async def migrate(database: PostgresDatabase, *, model: str = "", dimensions: int = 0, age: bool = False) -> bool:
    """Make the tables, those for a model's vectors, missing indexes, and with `age` the extension.

    Returns whether the ledger's tables were missing.

    The tables are made all or none. Several processes may do it at the same time. Raises `LedgerError`, and
    `StoreFormatError` for tables of a later version.
    """
    async with translating(), database.transaction(), database.connection() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
        if missing := (version := await version_of(database)) == 0:
            await connection.execute(TABLES)
            await connection.execute(SEARCH_TABLES)
            await connection.execute(queue_schema.TABLES)
            await connection.execute(preferences.TABLES)
            await make_tables(connection)
            await record_version(database)
        elif version > SCHEMA_VERSION:
            raise StoreFormatError(
                f"its tables have format {version}, but this cragside knows {SCHEMA_VERSION}. Update it."
            )
        if age:
            await install_age(connection)
        if model:
            await make_vector_tables(database, model, dimensions)
    await make_near_indexes(database)
    return missing
