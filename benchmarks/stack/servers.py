"""Servers of `benchmarks.stack`, as the tests start them: PostgreSQL, Neo4j, SearXNG, Ollama."""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.harness import CRAGSIDE, ROOT, environment, get_json, post_all
from benchmarks.memory import wait_until_indexed
from tests.services import ollama
from tests.services.neo4j_server import Neo4jServer
from tests.services.postgres import PostgresServer
from tests.services.searxng import Engine, SearxngServer
from tests.services.server import Server

INDEXED_SECONDS = 1800
SENDERS = 4


@dataclass(frozen=True)
class Servers:
    """The settings of a cragside that uses the servers, what SearXNG searches, and what the servers are."""

    variables: dict[str, str]
    engine: Engine
    versions: str


@contextmanager
def servers(find: Callable[[str], Sequence[dict[str, Any]]], *, with_ollama: bool = True) -> Iterator[Servers]:
    """New servers with empty databases. `find` is what SearXNG's only engine finds for a query."""
    engine = Engine(find=find)
    with ExitStack() as stack:
        stack.callback(engine.close)

        def start(server: Server) -> Server:
            print(f"starting {server.name} ...", flush=True)
            return stack.enter_context(server)

        database, graph, web = map(start, (PostgresServer(), Neo4jServer(), SearxngServer(engine)))
        variables = {"POSTGRES_URI": database.uri, "NEO4J_URI": graph.uri, "SEARXNG_HOST": web.url}
        started = [database, graph, web]
        if with_ollama:
            started.append(start(ollama.server()))
            variables |= {"OLLAMA_BASE_URL": started[-1].url, "RAG_EMBEDDING_MODEL": ollama.EMBEDDING_MODEL}
        yield Servers(variables, engine, "; ".join(each.version() for each in started))


def migrate(home: Path, variables: dict[str, str]) -> None:
    """Make the tables."""
    settings = environment(RAG_HOME=str(home), **variables)
    subprocess.run([CRAGSIDE, "migrate"], env=settings, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def index(address: str, documents: Sequence[tuple[str, str]]) -> None:
    """Bring documents, and return once all are indexed."""
    bodies = [{"name": name, "text": text} for name, text in documents]
    if (sent := uvloop.run(post_all(f"{address}/v1/documents", bodies, concurrency=SENDERS))).failures:
        raise SystemExit(sent.failures[0])
    wait_until_indexed(address, INDEXED_SECONDS)


async def waiting(address: str) -> int:
    """Count the indexing tasks that are not done."""
    queue = await asyncio.to_thread(get_json, f"{address}/v1/queue/dead")
    return int(queue["pending"] + queue["processing"])


def stop_on_sigterm() -> None:
    """End this program by an exception on SIGTERM, so that the blocks that started servers stop them."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would interrupt the stopping
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
