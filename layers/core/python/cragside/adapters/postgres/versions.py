"""The versions of a PostgreSQL server and of what it needs."""

from cragside.adapters.postgres.database import PostgresDatabase

_VERSIONS = """SELECT current_setting('server_version'),
    (SELECT extversion FROM pg_extension WHERE extname = 'vector')"""


async def versions_of(database: PostgresDatabase) -> tuple[str, str | None]:
    """PostgreSQL's version, and that of pgvector in this database: None if the extension is not there."""
    server, vector = await database.one(_VERSIONS)
    return str(server).split(" ")[0], vector
