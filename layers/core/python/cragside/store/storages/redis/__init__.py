"""LightRAG's values and its list of documents in Redis, which the ledger in PostgreSQL writes through its journal."""
