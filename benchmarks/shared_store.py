"""Retrieval and `/rag` over a store in PostgreSQL, and in Neo4j, beside lightrag-server on the same databases.

`python -m benchmarks.shared_store --postgres URI [--neo4j URI] [--quick] [--rounds N] [--workers N] [--json FILE]`

The first URI names an empty database, to which the role may add schemas, tables and the extension `vector`. With the
second one, `bolt://USER:PASSWORD@HOST:7687`, the graph is in Neo4j. cragside indexes
1,000 passages there, and both servers read this one workspace. They get the same requests to `/query/data`: the same
questions, keywords, mode and limits, so that neither asks a chat model. A stub Ollama embeds for both, in 2 ms. Rounds
are interleaved, ratios are taken within each round.

Then 100 clients at once send `/rag` prompts through cragside's proxy, with a stub model of 300 ms a call. The command
ends with 1 if a request fails, if cragside has more connections to PostgreSQL than its pools may have, or if its
processes need more than 400 MB.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from benchmarks import corpus
from benchmarks.harness import (
    CRAGSIDE,
    ROOT,
    Load,
    Target,
    cpu_seconds,
    cragside,
    environment,
    get_json,
    machine,
    post_all,
    post_each,
    report,
    scratch,
    stub,
    table,
)
from benchmarks.peers.environment import LIGHTRAG_VERSION
from benchmarks.peers.lightrag_server import lightrag_server, on_databases
from benchmarks.shared_prompts import APPLICATION, CONCURRENCY, CONNECTIONS, Prompts, measure_prompts, promises
from benchmarks.stores import CHUNKING
from benchmarks.stubs.ollama import EMBEDDING_MODEL
from cragside.adapters.embedded.keywords import keywords_of

PASSAGES = 1_000
QUICK_PASSAGES = 200
PASSAGES_A_DOCUMENT = 10
LIMIT = 8
EMBED_MS, CHAT_MS = 2, 300


@dataclass(frozen=True)
class Sizes:
    """The number of requests in each measurement."""

    passages: int
    rounds: int
    single: int
    burst: int
    peer_single: int
    peer_burst: int
    prompts: int


FULL = Sizes(PASSAGES, rounds=3, single=100, burst=500, peer_single=40, peer_burst=200, prompts=500)
QUICK = Sizes(QUICK_PASSAGES, rounds=1, single=20, burst=100, peer_single=10, peer_burst=100, prompts=300)


@dataclass
class Servers:
    """Addresses and process ids."""

    cragside: str
    cragside_pid: int
    lightrag: str
    lightrag_pid: int


@dataclass
class Round:
    """Retrieval in one round."""

    single: Load = field(default_factory=Load)
    burst: Load = field(default_factory=Load)
    peer_single: Load = field(default_factory=Load)
    peer_burst: Load = field(default_factory=Load)
    cpu_ms: float = 0.0
    peer_cpu_ms: float = 0.0


class Questions:
    """Questions that no server was asked before, so that caches have no effect."""

    def __init__(self, passages: Sequence[corpus.Passage]) -> None:
        self._passages = passages
        self._asked = 0

    def next(self, count: int) -> list[tuple[str, str]]:
        """Questions, each with the passage that answers it."""
        numbers = range(self._asked, self._asked + count)
        self._asked += count
        chosen = [(n, self._passages[n * 7919 % len(self._passages)]) for n in numbers]
        return [(corpus.distinct(passage.question, n), passage.text) for n, passage in chosen]


def body_of(question: str) -> dict[str, Any]:
    """The request to both servers."""
    keywords = keywords_of(question)
    return {
        "query": question,
        "mode": "mix",
        "top_k": LIMIT,
        "chunk_top_k": LIMIT,
        "ll_keywords": keywords.low or keywords.high or [question],
        "hl_keywords": keywords.high or keywords.low or [question],
        "enable_rerank": False,
    }


def check_retrieval(answer: Any) -> str:
    """The error in an answer of `/query/data`, or ""."""
    good = answer.get("status") == "success" and answer["data"]["chunks"] and answer["data"]["entities"]
    return "" if good else json.dumps(answer)[:300]


def ask(server: str, questions: Sequence[tuple[str, str]], *, concurrency: int) -> Load:
    """Send the questions to `/query/data`. A wrong answer ends the benchmark."""
    bodies = [body_of(question) for question, _ in questions]
    url = f"{server}/query/data"
    if concurrency == 1:
        load = post_each(url, bodies, check=check_retrieval)
    else:
        load = uvloop.run(post_all(url, bodies, concurrency=concurrency, check=check_retrieval))
    if load.failures:
        raise SystemExit(f"{server}: {len(load.failures)} of {len(bodies)} answers are wrong: {load.failures[0]}")
    return load


def share_found(server: str, questions: Sequence[tuple[str, str]]) -> float:
    """The share of questions for which the passage that answers them is among the passages."""
    found = 0
    for question, passage in questions:
        chunks = get_json(f"{server}/query/data", body_of(question))["data"]["chunks"]
        found += any(passage in chunk["content"] for chunk in chunks)
    return found / len(questions)


def measure_round(servers: Servers, sizes: Sizes, questions: Questions) -> Round:
    """One of each measurement of retrieval."""
    done = Round()
    done.single = ask(servers.cragside, questions.next(sizes.single), concurrency=1)
    done.peer_single = ask(servers.lightrag, questions.next(sizes.peer_single), concurrency=1)
    before = cpu_seconds(servers.cragside_pid)
    done.burst = ask(servers.cragside, questions.next(sizes.burst), concurrency=CONCURRENCY)
    done.cpu_ms = (cpu_seconds(servers.cragside_pid) - before) * 1000 / sizes.burst
    before = cpu_seconds(servers.lightrag_pid)
    done.peer_burst = ask(servers.lightrag, questions.next(sizes.peer_burst), concurrency=CONCURRENCY)
    done.peer_cpu_ms = (cpu_seconds(servers.lightrag_pid) - before) * 1000 / sizes.peer_burst
    return done


def start(
    stack: ExitStack, folder: Path, postgres: str, neo4j: str | None, passages: Sequence[corpus.Passage], workers: int
) -> Servers:
    """Index the passages, then start both servers on them."""
    ollama = stack.enter_context(stub("ollama", "--embed-ms", str(EMBED_MS), "--chat-ms", str(CHAT_MS)))
    texts, home = folder / "texts", folder / "home"
    texts.mkdir()
    for name, text in corpus.documents(list(passages), each=PASSAGES_A_DOCUMENT):
        (texts / name).write_text(text)
    variables = {
        "OLLAMA_BASE_URL": ollama,
        "POSTGRES_URI": f"{postgres}{'&' if urlsplit(postgres).query else '?'}application_name={APPLICATION}",
        "RAG_POSTGRES_CONNECTIONS": str(CONNECTIONS),
        "RAG_EMBEDDING_MODEL": EMBEDDING_MODEL,
        "RAG_OLLAMA_PARALLEL": str(2 * CONCURRENCY),
        **CHUNKING,
        **({"NEO4J_URI": neo4j} if neo4j else {}),
    }

    def run(*command: str) -> str:
        settings = environment(RAG_HOME=str(home), **variables)
        ended = subprocess.run(
            [CRAGSIDE, *command], env=settings, cwd=ROOT, check=False, capture_output=True, text=True
        )
        if ended.returncode:
            raise SystemExit(f"cragside {command[0]} failed:\n{ended.stderr[-3000:]}")
        return ended.stdout

    run("migrate")
    print(f"indexing {len(passages):,} passages ...", flush=True)
    run("ingest", str(texts))
    status = json.loads(run("status", "--json"))
    if status["passages"] != len(passages):
        raise SystemExit(f"The workspace has {status['passages']:,} passages. Name an empty database.")
    address, pid = stack.enter_context(cragside(home, log=folder / "cragside.log", workers=workers, **variables))
    told = {
        **on_databases(postgres, neo4j),
        "WORKSPACE": status["lightrag_workspace"],
        "RERANK_BINDING": "null",
    }
    peer, peer_pid = stack.enter_context(lightrag_server(folder, ollama, **told))
    return Servers(address, pid, peer, peer_pid)


def targets(rounds: Sequence[Round], prompts: Prompts) -> list[Target]:
    """The figures that have a limit."""

    def ratio(of: Callable[[Round], float]) -> float:
        return statistics.median(map(of, rounds))

    faster = ratio(lambda each: each.burst.per_second / each.peer_burst.per_second)
    return [
        Target(
            "retrieval, 1 at a time, p50 / lightrag-server's", ratio(lambda r: r.single.p50 / r.peer_single.p50), 1 / 3
        ),
        Target(
            "retrieval, 1 at a time, p95 / lightrag-server's", ratio(lambda r: r.single.p95 / r.peer_single.p95), 1 / 3
        ),
        Target(f"retrieval, {CONCURRENCY} at once, throughput / lightrag-server's", faster, 5, at_most=False),
        Target(
            f"retrieval, {CONCURRENCY} at once, p95 / lightrag-server's",
            ratio(lambda r: r.burst.p95 / r.peer_burst.p95),
            1 / 3,
        ),
        *promises(prompts),
    ]


def details(rounds: Sequence[Round], prompts: Prompts) -> list[list[str]]:
    """A row for each program and load: p50, p95, requests per second, CPU."""
    rows = []
    for name, load, cpu in (
        ("cragside, retrieval, 1", "single", None),
        ("lightrag-server, retrieval, 1", "peer_single", None),
        (f"cragside, retrieval, {CONCURRENCY}", "burst", "cpu_ms"),
        (f"lightrag-server, retrieval, {CONCURRENCY}", "peer_burst", "peer_cpu_ms"),
    ):
        loads = [getattr(each, load) for each in rounds]
        keys = [statistics.median([getattr(each, key) for each in loads]) for key in ("p50", "p95", "per_second")]
        spent = f"{statistics.median([getattr(each, cpu) for each in rounds]):.1f}" if cpu else ""
        rows.append([name, *(f"{key:,.1f}" for key in keys), spent])
    for name, each, spent in (
        ("cragside, /rag, 1", prompts.single, ""),
        (f"cragside, /rag, {CONCURRENCY}", prompts.burst, f"{prompts.cpu_ms:.1f}"),
    ):
        rows.append([name, f"{each.p50:,.1f}", f"{each.p95:,.1f}", f"{each.per_second:,.1f}", spent])
    return rows


def told(value: Any) -> Any:
    """A figure as it is saved."""
    return value.as_dict() | {"failures": len(value.failures)} if isinstance(value, Load) else value


def main() -> None:
    """Measure and print. Ends with 1 for a broken promise that is not about time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--postgres", metavar="URI", required=True, help="an empty database with pgvector")
    parser.add_argument("--neo4j", metavar="URI", help="a Neo4j for the graph, with user and password")
    parser.add_argument("--quick", action="store_true", help="a smoke test of one small round with 200 passages")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3)")
    parser.add_argument("--workers", type=int, default=1, help="processes of cragside serve (1, as lightrag-server)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    line = machine()
    passages = corpus.passages(sizes.passages)
    questions = Questions(passages)
    with scratch() as folder, ExitStack() as stack:
        servers = start(stack, folder, arguments.postgres, arguments.neo4j, passages, arguments.workers)
        asked = questions.next(sizes.peer_single)
        found = [share_found(server, asked) for server in (servers.cragside, servers.lightrag)]  # and warms up
        rounds = []
        for number in range(arguments.rounds or sizes.rounds):
            print(f"round {number + 1} ...", flush=True)
            rounds.append(measure_round(servers, sizes, questions))
        one, many = ([question for question, _ in questions.next(count)] for count in (sizes.single, sizes.prompts))
        ask_prompts = measure_prompts(servers.cragside, servers.cragside_pid, arguments.postgres, one, many)
        prompts = uvloop.run(ask_prompts)
    print(f"\n{table(['', 'p50 ms', 'p95 ms', 'requests/s', 'CPU ms per request*'], details(rounds, prompts))}")
    print("* of the server's own processes, without PostgreSQL")
    if wrong := prompts.single.failures + prompts.burst.failures:
        print(f"{len(wrong)} /rag prompts failed, such as {wrong[0]}")
    slower = prompts.burst.p95 / prompts.single.p95
    print(f"/rag, p95 of {CONCURRENCY} at once / p95 of one at a time: {slower:.1f}")
    print(f"passages that answer the questions among the {LIMIT} found: cragside {found[0]:.0%}, peer {found[1]:.0%}")
    saved = {
        "rounds": [{name: told(value) for name, value in vars(each).items()} for each in rounds],
        "prompts": {name: told(value) for name, value in vars(prompts).items()},
        "found": found,
        "peer": f"lightrag-hku[api] {LIGHTRAG_VERSION}",
    }
    report(
        f"A store in PostgreSQL{' and Neo4j' if arguments.neo4j else ''}",
        targets(rounds, prompts),
        saved,
        machine_line=line,
        file=arguments.json,
    )
    sys.exit(0 if all(promise.met for promise in promises(prompts)) else 1)


if __name__ == "__main__":
    main()
