"""Limits the open files of this process, and loads modules before it forks."""

import sys
from contextlib import suppress
from importlib import import_module

from cragside.settings import Settings

# A server that needs more than this has other problems first, and macOS refuses a limit without end.
_MOST = 65_536
_UNKNOWN = 1024
# An open store holds its vectors in memory, a connection some kilobytes.
_STORES, _CONNECTIONS = 64, 4096
# Logs, the event loop, the queue, parsers, fetched pages, the model host.
_RESERVED = 128
# The database, its log and that log's index, the locks of its two kinds of writers, and one for what SQLite sorts.
_A_STORE = 6
# The client's, and Ollama's for what passes through.
_A_CONNECTION = 2


def raise_limit() -> int:
    """Raise the limit of open files as far as the system allows. Returns the new limit."""
    if sys.platform == "win32":
        return _UNKNOWN
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    return limit()


def limit() -> int:
    """Return the limit of open files of this process."""
    if sys.platform == "win32":
        return _UNKNOWN
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else min(soft, _MOST)


def most_stores(wanted: int | None = None) -> int:
    """Return the most stores to keep open: as many as wanted, within a quarter of the limit."""
    return max(4, min(wanted or _STORES, _free() // 4 // _A_STORE))


def most_connections(wanted: int | None = None) -> int:
    """Return the most client connections: as many as wanted, within half of the limit."""
    return max(8, min(wanted or _CONNECTIONS, _free() // 2 // _A_CONNECTION))


def _free() -> int:
    found = limit()
    return found - min(_RESERVED, found // 4)


# What a container imports only when it answers and indexes.
_FOR_REQUESTS = (
    "cragside.store.knowledge_graph",
    "cragside.store.library",
    "cragside.store.repository",
    "cragside.crag.graph",
    "langchain_text_splitters",
)


def load(settings: Settings) -> None:
    """Load the modules and models of answers and indexing."""
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder
    from cragside.adapters.embedded.grader import packaged_weights

    clients = ["cragside.adapters.ollama.chat_client"] if settings.ollama_address else []
    clients += ["cragside.adapters.openai"] if settings.openai_address else []
    # SQLite's backend imports its driver when it opens a store, PostgreSQL's has imported it.
    driver = [] if settings.on_postgres else ["cragside.store.sqlite.driver"]
    for module in (*_FOR_REQUESTS, *driver, *clients):
        import_module(module)
    WordLlamaEmbedder.load()
    packaged_weights()
