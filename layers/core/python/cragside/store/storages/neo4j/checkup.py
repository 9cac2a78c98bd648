"""Compare a graph in Neo4j with the documents in PostgreSQL."""

from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.neo4j.graph import graph_of


async def disagreement(store: PostgresStore) -> str:
    """Describe the nodes and edges that the graph has too many or too few once all changes are written; "" for none.

    Raises `LedgerError`.
    """
    nodes, edges = await graph_of(store).sizes(store.key)
    entities, relations = await store.sizes_by_mentions()
    if (nodes, edges) == (entities, relations):
        return ""
    names = f"the documents name {entities} entities and {relations} relations"
    return f"{names}, but the graph has {nodes} and {edges}"
