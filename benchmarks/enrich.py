"""One `/rag` request and 100 concurrent ones, compared with LangGraph's tutorial over lightrag-server.

`python -m benchmarks.enrich [--quick] [--rounds N] [--json FILE]`

A stub Ollama takes 300 ms for a chat call and 20 ms to embed a batch; a stub SearXNG takes 200 ms for a search. Each
program runs as its users run it, in a separate process, over the same 30 documents: cragside as `cragside serve` on a
store that
`cragside ingest` built, the peer as its own server under the tutorial's algorithm. Rounds are interleaved. Figures are
medians of the rounds; ratios are taken within each round.
"""

import argparse
import json
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    memory_mb,
    post_all,
    post_each,
    report,
    scratch,
    stub,
    table,
)
from benchmarks.peers.environment import LIGHTRAG_VERSION, peer_python
from benchmarks.peers.lightrag_server import ingest as lightrag_ingest
from benchmarks.peers.lightrag_server import lightrag_server
from benchmarks.stubs.ollama import ABSENT_TOPIC, CHAT_MODEL, EMBEDDING_MODEL

DOCUMENTS = 30
CONCURRENCY = 100
WORKERS = 2
LOCAL_FLOOR_MS = 20 + 300
WEB_FLOOR_MS = 20 + 300 + 300 + 200


@dataclass(frozen=True)
class Sizes:
    """The number of requests in each measurement."""

    rounds: int
    single: int
    burst: int
    peer_single: int
    peer_burst: int


FULL = Sizes(rounds=3, single=30, burst=600, peer_single=5, peer_burst=100)
QUICK = Sizes(rounds=1, single=8, burst=200, peer_single=2, peer_burst=20)


@dataclass
class Servers:
    """Addresses and process ids of all servers."""

    ollama: str
    searxng: str
    cragside: str
    cragside_pid: int
    lightrag: str
    lightrag_pid: int


@dataclass
class Round:
    """The figures of one round."""

    bare: Load = field(default_factory=Load)
    local: Load = field(default_factory=Load)
    web: Load = field(default_factory=Load)
    burst: Load = field(default_factory=Load)
    peer_local: Load = field(default_factory=Load)
    peer_web: Load = field(default_factory=Load)
    peer_burst: Load = field(default_factory=Load)
    cpu_ms: float = 0.0
    peer_cpu_ms: float = 0.0
    calls: dict[str, dict[str, int]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The figures for the report."""
        return {name: value.as_dict() if isinstance(value, Load) else value for name, value in vars(self).items()}


class Questions:
    """Questions that no program was asked before, so that caches of answers have no effect."""

    def __init__(self, passages: Sequence[corpus.Passage]) -> None:
        self._passages = passages
        self._asked = 0

    def local(self, count: int) -> list[str]:
        """Questions that the documents answer."""
        return [self._next() for _ in range(count)]

    def web(self, count: int) -> list[str]:
        """Questions that no document answers, although they name known things."""
        return [self._next().replace("For whom", f"In {ABSENT_TOPIC}, for whom") for _ in range(count)]

    def _next(self) -> str:
        self._asked += 1
        question = self._passages[self._asked % len(self._passages)].question
        return corpus.distinct(question, self._asked)


def ask_bare(servers: Servers, questions: Sequence[str]) -> Load:
    """The two model calls of a local hit by a client that does nothing else: the stub's share of the floor."""
    load = Load()
    embedding = {"model": EMBEDDING_MODEL, "input": ["a question", "its names", "its subject"]}
    for question in questions:
        grading = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": question}], "stream": False}
        embedded = post_each(f"{servers.ollama}/api/embed", [embedding], check=lambda _: "")
        graded = post_each(f"{servers.ollama}/api/chat", [grading], check=lambda _: "")
        load.latencies_ms.append(embedded.seconds * 1000 + graded.seconds * 1000)
    load.seconds = sum(load.latencies_ms) / 1000
    return load


def ask_cragside(servers: Servers, questions: Sequence[str], *, concurrency: int, verdict: str) -> Load:
    """Send the questions to cragside. An answer with another verdict, or a degraded one, counts as a failure."""

    def check(answer: Any) -> str:
        context = answer.get("metadata", {}).get("rag_context", {})
        good = context.get("verdict") == verdict and context.get("documents") and not context.get("degraded")
        return "" if good else json.dumps({k: context.get(k) for k in ("verdict", "degraded")})

    bodies = [{"model": CHAT_MODEL, "prompt": f"/rag {question}"} for question in questions]
    address = f"{servers.cragside}/v1/enrich"
    if concurrency == 1:
        load = post_each(address, bodies, check=check)
    else:
        load = uvloop.run(post_all(address, bodies, concurrency=concurrency, check=check))
    if load.failures:
        raise SystemExit(f"cragside: {len(load.failures)} of {len(bodies)} answers are wrong: {load.failures[0]}")
    return load


def ask_peer(servers: Servers, questions: Sequence[str], *, concurrency: int) -> Load:
    """Send the questions to the tutorial's graph, in a separate process."""
    command = [
        *(str(peer_python()), "-m", "benchmarks.peers.tutorial", "--model", CHAT_MODEL, "--warm-up"),
        *("--ollama", servers.ollama, "--lightrag", servers.lightrag, "--searxng", servers.searxng),
        *("--concurrency", str(concurrency)),
    ]
    ended = subprocess.run(
        command, input=json.dumps(questions), capture_output=True, text=True, env=environment(), cwd=ROOT, check=False
    )
    if ended.returncode:
        raise SystemExit(f"The tutorial failed:\n{ended.stderr[-3000:]}")
    measured = json.loads(ended.stdout)
    return Load(measured["latencies_ms"], measured["seconds"])


def measure_round(servers: Servers, sizes: Sizes, questions: Questions) -> Round:
    """One of each measurement."""
    done = Round()

    def counted(name: str) -> None:
        done.calls[name] = get_json(f"{servers.ollama}/stub/calls") | get_json(f"{servers.searxng}/stub/calls")
        for address in (servers.ollama, servers.searxng):
            get_json(f"{address}/stub/reset", {})

    counted("before")
    done.bare = ask_bare(servers, questions.local(sizes.single))
    counted("bare")
    done.local = ask_cragside(servers, questions.local(sizes.single), concurrency=1, verdict="local")
    counted("local")
    done.web = ask_cragside(servers, questions.web(sizes.single), concurrency=1, verdict="web")
    counted("web")
    before = cpu_seconds(servers.cragside_pid)
    done.burst = ask_cragside(servers, questions.local(sizes.burst), concurrency=CONCURRENCY, verdict="local")
    done.cpu_ms = (cpu_seconds(servers.cragside_pid) - before) * 1000 / sizes.burst
    counted("burst")
    done.peer_local = ask_peer(servers, questions.local(sizes.peer_single), concurrency=1)
    done.peer_web = ask_peer(servers, questions.web(sizes.peer_single), concurrency=1)
    before = cpu_seconds(servers.lightrag_pid)
    done.peer_burst = ask_peer(servers, questions.local(sizes.peer_burst), concurrency=CONCURRENCY)
    done.peer_cpu_ms = (cpu_seconds(servers.lightrag_pid) - before) * 1000 / sizes.peer_burst
    counted("peer")
    _check_path(done.calls, sizes)
    return done


def _check_path(calls: dict[str, dict[str, int]], sizes: Sizes) -> None:
    """Stop unless the measured requests made the model calls that the floors assume."""
    for name, wanted in (
        ("local", {"grade batch": sizes.single, "embed": sizes.single}),
        ("web", {"grade batch": sizes.single, "embed": sizes.single, "rewrite": sizes.single, "search": sizes.single}),
        ("burst", {"grade batch": sizes.burst}),
    ):
        seen = calls[name]
        if any(seen.get(kind, 0) != count for kind, count in wanted.items()) or seen.get("keywords"):
            raise SystemExit(f"The {name} requests took another path: {seen} instead of {wanted} and no keywords.")


def start(stack: ExitStack, folder: Path, passages: Sequence[corpus.Passage]) -> Servers:
    """Start the stubs, cragside and the peer, each with the documents indexed."""
    documents = corpus.documents(list(passages), each=1)
    ollama, searxng = stack.enter_context(stub("ollama")), stack.enter_context(stub("searxng"))
    texts = folder / "texts"
    texts.mkdir()
    for name, text in documents:
        (texts / name).write_text(text)
    home = folder / "home"
    variables = {"OLLAMA_BASE_URL": ollama, "SEARXNG_HOST": searxng, "RAG_OLLAMA_PARALLEL": str(2 * CONCURRENCY)}
    settings = environment(RAG_HOME=str(home), **variables)
    subprocess.run([CRAGSIDE, "ingest", str(texts)], env=settings, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    address, pid = stack.enter_context(cragside(home, log=folder / "cragside.log", workers=WORKERS, **variables))
    lightrag, lightrag_pid = stack.enter_context(lightrag_server(folder, ollama))
    lightrag_ingest(lightrag, documents)
    return Servers(ollama, searxng, address, pid, lightrag, lightrag_pid)


def targets(rounds: Sequence[Round], memory_mb: float) -> list[Target]:
    """The figures that have a limit."""

    local = statistics.median([each.local.p50 / LOCAL_FLOOR_MS for each in rounds])
    web = statistics.median([each.web.p50 / WEB_FLOOR_MS for each in rounds])
    throughput = statistics.median([each.burst.per_second / each.peer_burst.per_second for each in rounds])
    tail = statistics.median([each.burst.p95 / LOCAL_FLOOR_MS for each in rounds])
    return [
        Target("local hit, 1 at a time, p50 / its floor of 320 ms", local, 1.05),
        Target("web fallback, 1 at a time, p50 / its floor of 820 ms", web, 1.05),
        Target(
            "100 concurrent, throughput / tutorial over lightrag-server",
            throughput,
            12,
            at_most=False,
        ),
        Target("100 concurrent, p95 / the floor of 320 ms", tail, 4),
        Target("memory of cragside's processes after the last burst", memory_mb, 400, "MB"),
    ]


def details(rounds: Sequence[Round]) -> list[list[str]]:
    """A row for each program and load: p50, p95, requests per second, CPU."""
    rows = []
    for name, load, cpu in (
        ("a local hit's two model calls alone, 1", "bare", None),
        ("cragside, local, 1", "local", None),
        ("tutorial, local, 1", "peer_local", None),
        ("cragside, web, 1", "web", None),
        ("tutorial, web, 1", "peer_web", None),
        ("cragside, local, 100", "burst", "cpu_ms"),
        ("tutorial, local, 100", "peer_burst", "peer_cpu_ms"),
    ):
        loads = [getattr(each, load) for each in rounds]
        rows.append(
            [
                name,
                *(f"{statistics.median([getattr(each, key) for each in loads]):,.0f}" for key in ("p50", "p95")),
                f"{statistics.median([each.per_second for each in loads]):,.1f}",
                f"{statistics.median([getattr(each, cpu) for each in rounds]):.1f}" if cpu else "",
            ]
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one small round")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    line = machine()
    passages = corpus.passages(DOCUMENTS)
    questions = Questions(passages)
    rounds: list[Round] = []
    with scratch() as folder, ExitStack() as stack:
        servers = start(stack, folder, passages)
        ask_cragside(servers, questions.local(20), concurrency=4, verdict="local")
        ask_cragside(servers, questions.web(4), concurrency=4, verdict="web")
        for number in range(arguments.rounds or sizes.rounds):
            print(f"round {number + 1} ...", flush=True)
            rounds.append(measure_round(servers, sizes, questions))
        memory = memory_mb(servers.cragside_pid)
    rows = details(rounds)
    print(f"\n{table(['', 'p50 ms', 'p95 ms', 'requests/s', 'CPU ms per request*'], rows)}")
    print("* of the server: cragside's process, lightrag-server's process (without the tutorial's own process)")
    one = rounds[0].calls
    print(f"calls to the stubs by cragside in round 1: local {one['local']}, web {one['web']}, burst {one['burst']}")
    saved = {
        "rounds": [
            {
                name: getattr(r, name).as_dict()
                for name in ("bare", "local", "web", "burst", "peer_local", "peer_web", "peer_burst")
            }
            | {"cpu_ms": r.cpu_ms, "peer_cpu_ms": r.peer_cpu_ms, "calls": r.calls}
            for r in rounds
        ],
        "peer": f"lightrag-hku[api] {LIGHTRAG_VERSION}",
    }
    report("Enrichment", targets(rounds, memory), saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
