"""The versions of a PostgreSQL server and of what it needs."""

from cragside.adapters.postgres.database import PostgresDatabase

_VERSIONS = """SELECT current_setting('server_version'),
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    (SELECT extversion FROM pg_extension WHERE extname = 'age')"""


async def versions_of(database: PostgresDatabase) -> tuple[str, str | None, str | None]:
    """PostgreSQL's version, and those of pgvector and AGE in this database: None if the extension is not there."""
    server, vector, age = await database.one(_VERSIONS)
    return str(server).split(" ")[0], vector, age
