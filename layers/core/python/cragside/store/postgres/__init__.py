"""Stores in PostgreSQL: the ledger's tables, and LightRAG's storages beside them."""
