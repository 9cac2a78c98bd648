"""The servers of `benchmarks.stack`: PostgreSQL, Neo4j, SearXNG and Ollama, started as the tests start them."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import CRAGSIDE, ROOT, environment
from tests.services import ollama
from tests.services.neo4j_server import Neo4jServer
from tests.services.postgres import PostgresServer
from tests.services.searxng import Engine, SearxngServer
from tests.services.server import Server


@dataclass(frozen=True)
class Servers:
    """The settings of a cragside that uses the servers, what SearXNG searches, and what the servers are."""

    variables: dict[str, str]
    engine: Engine
    versions: str


@contextmanager
def servers(find: Callable[[str], Sequence[dict[str, Any]]]) -> Iterator[Servers]:
    """New servers with empty databases. `find` is what SearXNG's only engine finds for a query."""
    engine = Engine(find=find)
    with ExitStack() as stack:
        stack.callback(engine.close)

        def start(server: Server) -> Server:
            print(f"starting {server.name} ...", flush=True)
            return stack.enter_context(server)

        database, graph, web, models = map(
            start, (PostgresServer(), Neo4jServer(), SearxngServer(engine), ollama.server())
        )
        variables = {
            "POSTGRES_URI": database.uri,
            "NEO4J_URI": graph.uri,
            "SEARXNG_HOST": web.url,
            "OLLAMA_BASE_URL": models.url,
            "RAG_EMBEDDING_MODEL": ollama.EMBEDDING_MODEL,
        }
        yield Servers(variables, engine, "; ".join(each.version() for each in (database, graph, web, models)))


def migrate(home: Path, variables: dict[str, str]) -> None:
    """Make the tables."""
    settings = environment(RAG_HOME=str(home), **variables)
    subprocess.run([CRAGSIDE, "migrate"], env=settings, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
