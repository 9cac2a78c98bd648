"""LightRAG's own server as its users run it: its defaults, its file storages, its Ollama binding."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchmarks.harness import environment, free_port, get_json, process, wait_until_up
from benchmarks.peers.environment import peer_python, tokenizer_tables
from benchmarks.stubs.ollama import CHAT_MODEL, DIMENSIONS, EMBEDDING_MODEL


@contextmanager
def lightrag_server(
    folder: Path, ollama: str, *, embedding: tuple[str, int] = (EMBEDDING_MODEL, DIMENSIONS), **variables: str
) -> Iterator[tuple[str, int]]:
    """The server on an empty store in `folder`, with its defaults and `variables`; yields address and process id.

    `embedding` is the model's name and the length of its vectors.
    """
    python = peer_python()
    port = free_port()
    settings = environment(
        HOST="127.0.0.1",
        PORT=str(port),
        WORKING_DIR=str(folder / "store"),
        INPUT_DIR=str(folder / "inputs"),
        LOG_DIR=str(folder),
        LLM_BINDING="ollama",
        LLM_BINDING_HOST=ollama,
        LLM_MODEL=CHAT_MODEL,
        EMBEDDING_BINDING="ollama",
        EMBEDDING_BINDING_HOST=ollama,
        EMBEDDING_MODEL=embedding[0],
        EMBEDDING_DIM=str(embedding[1]),
        TIKTOKEN_CACHE_DIR=str(tokenizer_tables(python)),
        **variables,
    )
    log = folder / "lightrag-server.log"
    with process([str(python.with_name("lightrag-server"))], env=settings, log=log) as child:
        address = f"http://127.0.0.1:{port}"
        wait_until_up(f"{address}/health", child, log)
        yield address, child.pid


def ingest(server: str, documents: Sequence[tuple[str, str]], *, seconds: float = 600) -> float:
    """Index (name, text) pairs and wait for the last one. Returns the seconds."""
    began = time.monotonic()
    body = {"texts": [text for _, text in documents], "file_sources": [name for name, _ in documents]}
    get_json(f"{server}/documents/texts", body)
    while time.monotonic() < began + seconds:
        counts = get_json(f"{server}/documents/status_counts")["status_counts"]
        if counts.get("processed", 0) >= len(documents):
            return time.monotonic() - began
        if counts.get("failed", 0):
            raise SystemExit(f"lightrag-server could not index the documents: {counts}")
        time.sleep(0.2)
    raise SystemExit(f"lightrag-server did not index {len(documents)} documents in {seconds:.0f} s.")


def on_databases(postgres: str, neo4j: str | None) -> dict[str, str]:
    """The server's settings for a store in PostgreSQL, or with its graph in Neo4j."""
    found = urlsplit(postgres)
    settings = {
        "LIGHTRAG_KV_STORAGE": "PGKVStorage",
        "LIGHTRAG_VECTOR_STORAGE": "PGVectorStorage",
        "LIGHTRAG_GRAPH_STORAGE": "PGTableGraphStorage",
        "LIGHTRAG_DOC_STATUS_STORAGE": "PGDocStatusStorage",
        "POSTGRES_HOST": found.hostname or "",
        "POSTGRES_PORT": str(found.port or 5432),
        "POSTGRES_USER": unquote(found.username or ""),
        "POSTGRES_PASSWORD": unquote(found.password or ""),
        "POSTGRES_DATABASE": found.path.removeprefix("/"),
        "POSTGRES_SERVER_SETTINGS": "search_path=public",
    }
    if neo4j is None:
        return settings
    found = urlsplit(neo4j)
    return settings | {
        "LIGHTRAG_GRAPH_STORAGE": "Neo4JStorage",
        "NEO4J_URI": f"{found.scheme}://{found.hostname}:{found.port or 7687}",
        "NEO4J_USERNAME": unquote(found.username or ""),
        "NEO4J_PASSWORD": unquote(found.password or ""),
    }
