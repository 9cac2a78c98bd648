"""How much a workspace in PostgreSQL stores, without opening it."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.lightrag.ledger.sizes import stored_of
from cragside.adapters.postgres.database import PostgresDatabase
from cragside.domain.indexing import DocumentKey, Stored

if TYPE_CHECKING:
    from cragside.adapters.lightrag.ledger.postgres.store import PostgresStore

# What other databases do not have yet, texts that were deleted meanwhile among it.
_WAITING = "SELECT coalesce(sum(octet_length(change)), 0)::bigint FROM crag.journal WHERE store = $1"


async def stored_in(database: PostgresDatabase, workspace: str, keys: Collection[DocumentKey]) -> Stored:
    """What `Ledger.stored` says. Counts and sizes are of one moment."""
    async with translating(), database.transaction(snapshot=True):
        store = await database.value("SELECT id FROM crag.store WHERE workspace = $1", workspace)
        if store is None:
            return Stored()

        async def read(sql: str, *values: Any) -> list[Any]:
            return await database.all(sql, store, *values)

        stored = await stored_of(read, keys)
        waiting = int(await database.value(_WAITING, store))
        return replace(stored, bytes=stored.bytes + waiting, waiting=waiting)


async def searched_in(store: "PostgresStore") -> int:
    """How many passages of a store can be found."""
    return int(await store.value("SELECT count(*) FROM crag.searched WHERE store = $1"))
