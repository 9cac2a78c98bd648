"""Compare the vectors in Qdrant with the documents in PostgreSQL."""

import asyncio

from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.ledger.postgres.stores import searched_in
from cragside.store.storages.qdrant.changes import suffix_of
from cragside.store.storages.qdrant.points import NAMESPACES, collection_of
from cragside.store.storages.qdrant.vectors import vectors_of


async def disagreement(store: PostgresStore) -> str:
    """Describe the vectors that are too many or too few once all changes are written; "" for none.

    Raises `LedgerError`.
    """
    if store.model is None or store.dimensions is None:
        return ""
    suffix, qdrant = suffix_of(store.model, store.dimensions), vectors_of(store)
    found = await asyncio.gather(*(qdrant.count(collection_of(each, suffix), store.key) for each in NAMESPACES))
    wanted = [await searched_in(store), *await store.sizes_by_mentions()]
    if list(found) == wanted:
        return ""
    expected = "{} passages, {} entities and {} relations".format(*wanted)
    return f"the documents have {expected}, but Qdrant has {found[0]}, {found[1]} and {found[2]} vectors"
