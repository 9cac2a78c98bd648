"""Whether a graph in Neo4j is that of the documents in PostgreSQL."""

from cragside.adapters.lightrag.ledger.postgres.journal import ShareLost
from cragside.adapters.lightrag.ledger.postgres.store import PostgresStore
from cragside.adapters.lightrag.storages.neo4j.graph import graph_of


async def disagreement(store: PostgresStore) -> str:
    """How the graph differs, "" if it does not. Raises `LedgerError`."""
    try:
        await store.catch_up()
    except ShareLost:
        return "the graph was restored from a backup, or emptied"
    nodes, edges = await graph_of(store).sizes(store.key)
    entities, relations = await store.sizes_by_mentions()
    if (nodes, edges) == (entities, relations):
        return ""
    names = f"the documents name {entities} entities and {relations} relations"
    return f"{names}, but the graph has {nodes} and {edges}"
