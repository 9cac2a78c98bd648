"""LightRAG's classes for PostgreSQL. It would install a missing driver when they are imported."""

from cragside.store.without_dotenv import without_dotenv

with without_dotenv():
    from lightrag.kg.pgtable_impl import _DDL as GRAPH_TABLES
    from lightrag.kg.pgtable_impl import PGTableGraphStorage
    from lightrag.kg.postgres_impl import NAMESPACE_TABLE_MAP, TABLES, PGKVStorage, PGVectorStorage, PostgreSQLDB

__all__ = [
    "GRAPH_TABLES",
    "NAMESPACE_TABLE_MAP",
    "TABLES",
    "PGKVStorage",
    "PGTableGraphStorage",
    "PGVectorStorage",
    "PostgreSQLDB",
]
