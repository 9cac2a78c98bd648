"""The leases of all stores, and the changes of all stores that wait for another database."""

from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.lightrag.ledger.postgres.schema import tells_since_when
from cragside.adapters.postgres.database import PostgresDatabase
from cragside.ports.telemetry import Standing

_LEASES = """SELECT count(*) FILTER (WHERE expires > clock_timestamp()),
    count(*) FILTER (WHERE expires <= clock_timestamp()) FROM crag.lease"""
_WAITING = """SELECT role, count(*), extract(epoch FROM clock_timestamp() - min(noted))::float FROM crag.journal
    GROUP BY role"""


async def standing_in(database: PostgresDatabase) -> Standing:
    """What there is in a database. Raises `LedgerError`."""
    async with translating():
        held, expired = await database.one(_LEASES)
        waiting = await database.all(_WAITING) if await tells_since_when(database) else []
    return Standing(held, expired, {role: (count, max(seconds, 0.0)) for role, count, seconds in waiting})
