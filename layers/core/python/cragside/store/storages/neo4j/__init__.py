"""LightRAG's graph in Neo4j, which the ledger in PostgreSQL writes through its journal."""
