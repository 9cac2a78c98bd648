"""Which stores a database has."""

from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.postgres.database import PostgresDatabase

# A leading dot: a store that is being built. Whoever builds it holds a lease of it.
_ABANDONED = """SELECT workspace FROM crag.store WHERE starts_with(workspace, '.') AND NOT EXISTS (
    SELECT FROM crag.lease WHERE lease.store = crag.store.id AND expires > clock_timestamp()) ORDER BY workspace"""
_IS_THERE = "SELECT 1 FROM crag.store WHERE workspace = $1"


async def names_in(database: PostgresDatabase) -> list[str]:
    """The workspaces of a database, in order. Raises `LedgerError`."""
    async with translating():
        return [row[0] for row in await database.all("SELECT workspace FROM crag.store ORDER BY workspace")]


async def abandoned_in(database: PostgresDatabase) -> list[str]:
    """The stores that nobody builds any more, though they are not complete. Raises `LedgerError`."""
    async with translating():
        return [row[0] for row in await database.all(_ABANDONED)]


async def is_in(database: PostgresDatabase, workspace: str) -> bool:
    """Whether a database has a store of a workspace. Raises `LedgerError`."""
    async with translating():
        return await database.one(_IS_THERE, workspace) is not None
