"""Making the tables of a PostgreSQL database: the ledger's and LightRAG's."""

from cragside.adapters.lightrag.ledger.postgres.schema import TABLES, record_version, version_of
from cragside.adapters.lightrag.storages.postgres.tables import make_tables
from cragside.adapters.postgres.database import PostgresDatabase

# Any number that no other program is likely to lock.
_MIGRATING = 0x6372_6167


async def migrate(database: PostgresDatabase) -> None:
    """Make the tables, whole or not at all. Several processes may do so at the same time."""
    async with database.transaction(), database.connection() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATING)
        if await version_of(database) == 0:
            await connection.execute(TABLES)
            await make_tables(connection)
            await record_version(database)
