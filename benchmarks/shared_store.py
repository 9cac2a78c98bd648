"""Retrieval and `/rag` over a store in PostgreSQL, compared with lightrag-server on the same database.

`python -m benchmarks.shared_store --postgres URI [--quick] [--rounds N] [--workers N] [--json FILE]`

URI names an empty database, to which the role may add schemas, tables and the extension `vector`. cragside indexes
1,000 passages there, and both servers read this one workspace. They get the same requests to `/query/data`: the same
questions, keywords, mode and limits, so that neither asks a chat model. A stub Ollama embeds for both, in 2 ms. Rounds
are interleaved, ratios are taken within each round.

Then 100 clients at once send `/rag` prompts through cragside's proxy, with a stub model of 300 ms a call. The command
ends with 1 if a request fails, if cragside has more connections to PostgreSQL than its pools may have, or if its
processes need more than 400 MB.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
import asyncpg
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
    family,
    get_json,
    machine,
    memory_mb,
    post_all,
    post_each,
    report,
    scratch,
    stub,
    table,
)
from benchmarks.peers.environment import LIGHTRAG_VERSION
from benchmarks.peers.lightrag_server import lightrag_server
from benchmarks.stores import CHUNKING
from benchmarks.stubs.ollama import CHAT_MODEL, EMBEDDING_MODEL
from cragside.adapters.embedded.keywords import keywords_of

PASSAGES = 1_000
QUICK_PASSAGES = 200
PASSAGES_A_DOCUMENT = 10
CONCURRENCY = 100
LIMIT = 8
CONNECTIONS = 10
MEGABYTES = 400
EMBED_MS, CHAT_MS = 2, 300
_APPLICATION = "cragside-benchmark"
_STORAGES = {
    "LIGHTRAG_KV_STORAGE": "PGKVStorage",
    "LIGHTRAG_VECTOR_STORAGE": "PGVectorStorage",
    "LIGHTRAG_GRAPH_STORAGE": "PGTableGraphStorage",
    "LIGHTRAG_DOC_STATUS_STORAGE": "PGDocStatusStorage",
}


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


@dataclass
class Prompts:
    """What 100 `/rag` prompts at once took, and what cragside used meanwhile."""

    single: Load = field(default_factory=Load)
    burst: Load = field(default_factory=Load)
    connections: int = 0
    allowed: int = 0
    memory: float = 0.0
    cpu_ms: float = 0.0


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


async def prompted(server: str, questions: Sequence[str], *, concurrency: int) -> Load:
    """Send `/rag` prompts to the proxy. A prompt without local evidence, or a degraded one, counts as a failure."""
    load, waiting = Load(), iter(questions)
    timeout = aiohttp.ClientTimeout(total=300)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:

        async def client() -> None:
            for question in waiting:
                message = {"role": "user", "content": f"/rag {question}"}
                body = {"model": CHAT_MODEL, "messages": [message], "stream": False}
                sent = time.perf_counter()
                async with session.post(f"{server}/api/chat", json=body) as response:
                    answer = await response.read()
                    told = {name.lower(): value for name, value in response.headers.items()}
                wrong = told.get("x-rag-verdict") != "local" or "x-rag-degraded" in told
                check = json.dumps(told) if wrong else ""
                load.took((time.perf_counter() - sent) * 1000, response.status, answer, lambda _, said=check: said)

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(concurrency)))
        load.seconds = time.perf_counter() - began
    return load


@asynccontextmanager
async def watched(postgres: str, pid: int, done: Prompts) -> AsyncIterator[None]:
    """Note the most connections and memory of cragside while the block runs."""
    connection = await asyncpg.connect(postgres, timeout=10)
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"

    async def watch() -> None:
        while True:
            done.connections = max(done.connections, await connection.fetchval(sql, _APPLICATION))
            done.memory = max(done.memory, memory_mb(pid))
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await connection.close()


def measure_prompts(servers: Servers, postgres: str, sizes: Sizes, questions: Questions) -> Prompts:
    """`/rag` prompts, one at a time and 100 at once."""
    done = Prompts()

    def asked(count: int) -> list[str]:
        return [question for question, _ in questions.next(count)]

    async def measure() -> None:
        await prompted(servers.cragside, asked(CONCURRENCY), concurrency=CONCURRENCY)
        done.single = await prompted(servers.cragside, asked(sizes.single), concurrency=1)
        async with watched(postgres, servers.cragside_pid, done):
            before = cpu_seconds(servers.cragside_pid)
            done.burst = await prompted(servers.cragside, asked(sizes.prompts), concurrency=CONCURRENCY)
            done.cpu_ms = (cpu_seconds(servers.cragside_pid) - before) * 1000 / sizes.prompts

    uvloop.run(measure())
    done.allowed = CONNECTIONS * len(family(servers.cragside_pid))
    return done


def database_of(postgres: str) -> dict[str, str]:
    """LightRAG's settings for the same database."""
    parts = urlsplit(postgres)
    return {
        "POSTGRES_HOST": parts.hostname or "",
        "POSTGRES_PORT": str(parts.port or 5432),
        "POSTGRES_USER": unquote(parts.username or ""),
        "POSTGRES_PASSWORD": unquote(parts.password or ""),
        "POSTGRES_DATABASE": parts.path.removeprefix("/"),
        "POSTGRES_SERVER_SETTINGS": "search_path=public",
    }


def start(stack: ExitStack, folder: Path, postgres: str, passages: Sequence[corpus.Passage], workers: int) -> Servers:
    """Index the passages, then start both servers on them."""
    ollama = stack.enter_context(stub("ollama", "--embed-ms", str(EMBED_MS), "--chat-ms", str(CHAT_MS)))
    texts, home = folder / "texts", folder / "home"
    texts.mkdir()
    for name, text in corpus.documents(list(passages), each=PASSAGES_A_DOCUMENT):
        (texts / name).write_text(text)
    variables = {
        "OLLAMA_BASE_URL": ollama,
        "POSTGRES_URI": f"{postgres}{'&' if urlsplit(postgres).query else '?'}application_name={_APPLICATION}",
        "RAG_POSTGRES_CONNECTIONS": str(CONNECTIONS),
        "RAG_EMBEDDING_MODEL": EMBEDDING_MODEL,
        "RAG_OLLAMA_PARALLEL": str(2 * CONCURRENCY),
        **CHUNKING,
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
    told = {**_STORAGES, **database_of(postgres), "WORKSPACE": status["lightrag_workspace"], "RERANK_BINDING": "null"}
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


def promises(prompts: Prompts) -> list[Target]:
    """The figures that do not depend on the machine's speed."""
    return [
        Target(f"/rag, {CONCURRENCY} at once, failures", len(prompts.single.failures + prompts.burst.failures), 0),
        Target("/rag, connections to PostgreSQL", prompts.connections, prompts.allowed),
        Target("/rag, memory of cragside's processes", prompts.memory, MEGABYTES, "MB"),
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
        servers = start(stack, folder, arguments.postgres, passages, arguments.workers)
        asked = questions.next(sizes.peer_single)
        found = [share_found(server, asked) for server in (servers.cragside, servers.lightrag)]  # and warms up
        rounds = []
        for number in range(arguments.rounds or sizes.rounds):
            print(f"round {number + 1} ...", flush=True)
            rounds.append(measure_round(servers, sizes, questions))
        prompts = measure_prompts(servers, arguments.postgres, sizes, questions)
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
    report("A store in PostgreSQL", targets(rounds, prompts), saved, machine_line=line, file=arguments.json)
    sys.exit(0 if all(promise.met for promise in promises(prompts)) else 1)


if __name__ == "__main__":
    main()
