"""How much a workspace stores, for limits, without opening it."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from cragside.adapters.lightrag.ledger.entries import behind
from cragside.adapters.lightrag.ledger.postgres.documents import DOCUMENT, OF_SOURCE
from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.lightrag.storable import storable
from cragside.adapters.postgres.database import PostgresDatabase
from cragside.domain.indexing import DocumentKey, Stored

if TYPE_CHECKING:
    from cragside.adapters.lightrag.ledger.postgres.store import PostgresStore

_SIZE = "greatest(size, characters) + length(metadata)"
_STORED = f"""SELECT count(*) FILTER (WHERE state = 'current'), coalesce(sum({_SIZE}), 0)::bigint
    FROM crag.document WHERE store = $1 AND state <> 'gone'"""  # noqa: S608 (our own text)
# What other databases do not have yet, texts that were deleted meanwhile among it.
_WAITING = "SELECT coalesce(sum(octet_length(change)), 0)::bigint FROM crag.journal WHERE store = $1"
_SIZES = f"""SELECT {_SIZE}, track FROM {DOCUMENT}
    WHERE document.store = $1 AND state = 'current' AND {OF_SOURCE}"""  # noqa: S608 (our own text)


async def stored_in(database: PostgresDatabase, workspace: str, keys: Collection[DocumentKey]) -> Stored:
    """What `Ledger.stored` says. Counts and sizes are of one moment."""
    async with translating(), database.transaction(snapshot=True):
        store = await database.value("SELECT id FROM crag.store WHERE workspace = $1", workspace)
        if store is None:
            return Stored()
        documents, total = await database.one(_STORED, store)
        waiting = int(await database.value(_WAITING, store))
        sizes = {key: size for key in keys if (size := await _size_of(database, store, key)) is not None}
        return Stored(documents, total + waiting, sizes, waiting)


async def _size_of(database: PostgresDatabase, store: int, key: DocumentKey) -> int | None:
    """The bytes of the document that `Library.accept` would replace. None if it would make a new one, or in doubt."""
    source, track = storable(key.source), key.track
    if track and (own := await database.all(_SIZES, store, behind(source, track))):
        found, tracks = own, {track}
    else:
        found, tracks = await database.all(_SIZES, store, source), {"", track}
    fits = not track or all(each in tracks for _, each in found)
    return min(int(size) for size, _ in found) if found and fits else None


async def searched_in(store: "PostgresStore") -> int:
    """How many passages of a store can be found."""
    return int(await store.value("SELECT count(*) FROM crag.searched WHERE store = $1"))
