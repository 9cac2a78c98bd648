"""LightRAG's own storages in PostgreSQL, on the connections and in the transactions of the ledger."""
