"""What a PostgreSQL server tells of itself: versions, connections and the role's rights."""

from typing import NamedTuple

from cragside.adapters.postgres.database import PostgresDatabase

_STATE = """SELECT split_part(current_setting('server_version'), ' ', 1),
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    (SELECT extversion FROM pg_extension WHERE extname = 'age'),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::integer,
    (SELECT count(*) FROM pg_class WHERE relkind = 'r'
        AND (relnamespace = to_regnamespace('crag')
            OR relnamespace = to_regnamespace('public') AND relname LIKE 'lightrag\\_%')
        AND NOT has_table_privilege(oid, 'SELECT') OR relkind = 'r' AND relnamespace = to_regnamespace('crag')
        AND relname <> 'schema_version' AND NOT has_table_privilege(oid, 'INSERT'))"""


class ServerState(NamedTuple):
    """`vector` and `age` are versions, None if they are not there. `forbidden` tables may not be used by the role."""

    version: str
    vector: str | None
    age: str | None
    connections: int
    most_connections: int
    forbidden: int


async def state_of(database: PostgresDatabase) -> ServerState:
    """What the server tells. Without a monitor's rights it tells of every connection that there is one."""
    return ServerState(*await database.one(_STATE))
