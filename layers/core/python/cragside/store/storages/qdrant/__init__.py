"""LightRAG's vectors in Qdrant, which the ledger in PostgreSQL writes through its journal."""
