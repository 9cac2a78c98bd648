"""Loads what containers import late, before a fork."""

from importlib import import_module

from cragside.settings import Settings

# What a container imports only when it opens a store, answers and indexes.
_FOR_REQUESTS = (
    "cragside.adapters.lightrag.knowledge_graph",
    "cragside.adapters.lightrag.library",
    "cragside.adapters.lightrag.repository",
    "cragside.crag.graph",
    "langchain_text_splitters",
)
_ON_SQLITE = (
    "cragside.adapters.lightrag.ledger.sqlite.ledger",
    "cragside.adapters.lightrag.storages.sqlite.graph",
    "cragside.adapters.lightrag.storages.sqlite.kv",
    "cragside.adapters.lightrag.storages.sqlite.vectors",
)
_ON_POSTGRES = (
    "cragside.adapters.lightrag.ledger.postgres.ledger",
    "cragside.adapters.lightrag.storages.postgres.graph",
    "cragside.adapters.lightrag.storages.postgres.values",
    "cragside.adapters.lightrag.storages.postgres.vectors",
)


def load(settings: Settings) -> None:
    """Load the modules and models of opened stores, answers and indexing."""
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder
    from cragside.adapters.embedded.grader import packaged_weights

    database = _ON_POSTGRES if settings.on_postgres else _ON_SQLITE
    graphs = ["cragside.adapters.lightrag.storages.neo4j.graph"] if settings.neo4j_uri else []
    if settings.vector_storage == "QdrantVectorDBStorage":
        graphs.append("cragside.adapters.lightrag.storages.qdrant.vectors")
    if settings.kv_storage == "RedisKVStorage":
        graphs.append("cragside.adapters.lightrag.storages.redis.values")
    clients = ["cragside.adapters.ollama.chat_client"] if settings.ollama_address else []
    clients += ["cragside.adapters.openai"] if settings.openai_address else []
    for module in (*_FOR_REQUESTS, *database, *graphs, *clients):
        import_module(module)
    WordLlamaEmbedder.load()
    packaged_weights()
