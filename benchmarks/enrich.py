"""`/rag` requests by the way that they take, one at a time and 100 concurrent, beside the floors of their calls.

`python -m benchmarks.enrich [--quick] [--rounds N] [--against FOLDER] [--without-peer] [--json FILE]`

A stub Ollama takes 300 ms for a chat call and 20 ms to embed a batch; a stub SearXNG takes 200 ms for a search. Each
program runs as its users run it, in a separate process, over the same 30 documents: cragside as `cragside serve` on a
store that `cragside ingest` built, with and without RAG_SPECULATIVE_SEARCH; the peer, LangGraph's tutorial, over
lightrag-server. `--against` adds the cragside of another clone, which has an environment in `.venv`. Rounds are
interleaved. Figures are medians of the rounds; ratios are taken within each round. The stubs count their calls, and the
benchmark ends if a way made others than its own.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, cycle, islice
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
# The milliseconds of a stub's call.
TAKES = {"embed": 20, "judge": 300, "grade batch": 300, "rewrite": 300, "search": 200}
# What a request may take beyond its floor.
_OVER_FLOOR_MS = 10
# Questions that are chosen at once.
_AT_ONCE = 20


@dataclass(frozen=True)
class Way:
    """Describes a way to find evidence: its verdict, and the calls that a request makes for it, one after the other.

    With `early`, the search is beside the judgement.
    """

    name: str
    verdict: str
    calls: Mapping[str, int] = field(hash=False)
    early: bool = False

    @property
    def floor_ms(self) -> int:
        """Return the milliseconds of its calls alone."""
        spent = {kind: TAKES[kind] * number for kind, number in self.calls.items()}
        if self.early:
            return spent["embed"] + max(spent["judge"], spent["search"])
        return sum(spent.values())


PASSING = Way("local, no judgement", "local", {"embed": 1})
JUDGED = Way("local, one judgement", "local", {"embed": 1, "judge": 1})
WEB = Way("web, one judgement", "web", {"embed": 1, "judge": 1, "search": 1})
EARLY = Way("web, searched early", "web", WEB.calls, early=True)
# Before second opinions, a model graded all passages in one call.
GRADED = Way("local, one batch", "local", {"embed": 1, "grade batch": 1})
REWRITTEN = Way("web, one batch", "web", {"embed": 1, "grade batch": 1, "rewrite": 1, "search": 1})
WAYS = (PASSING, JUDGED, WEB)
OWN = {way: way for way in WAYS}
EARLIER = {PASSING: GRADED, JUDGED: GRADED, WEB: REWRITTEN}


@dataclass(frozen=True)
class Sizes:
    """Holds the number of requests in each measurement."""

    rounds: int
    single: int
    burst: int
    peer_single: int
    peer_burst: int


FULL = Sizes(rounds=3, single=20, burst=300, peer_single=5, peer_burst=100)
QUICK = Sizes(rounds=1, single=8, burst=100, peer_single=2, peer_burst=20)


@dataclass(frozen=True)
class Server:
    """Holds a running cragside, and the way that it takes for the questions of each way."""

    name: str
    address: str
    pid: int
    ways: Mapping[Way, Way]


@dataclass
class Servers:
    """Holds all servers. Without a peer, `lightrag` is ""."""

    ollama: str
    searxng: str
    ours: Server
    early: Server
    against: Server | None
    lightrag: str = ""
    lightrag_pid: int = 0


@dataclass
class Round:
    """Holds a round's figures, by the name of the measurement: loads, CPU of the server in ms a request, and calls."""

    loads: dict[str, Load] = field(default_factory=dict)
    cpu_ms: dict[str, float] = field(default_factory=dict)
    calls: dict[str, dict[str, int]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for the report."""
        loads = {name: load.as_dict() for name, load in self.loads.items()}
        return {"loads": loads, "cpu_ms": self.cpu_ms, "calls": self.calls}


class Questions:
    """Gives questions of each way that no program was asked before, so that caches of answers have no effect.

    They are chosen by asking this process's own cragside, with stubs that answer at once: by verdict, and by the
    judgements that they need.
    """

    def __init__(self, chosen: Mapping[Way, Sequence[str]]) -> None:
        self._left = {way: iter(questions) for way, questions in chosen.items()}

    def take(self, way: Way, number: int) -> list[str]:
        """Return the next questions of a way."""
        return [next(self._left[way]) for _ in range(number)]


async def chosen(
    home: Path, variables: Mapping[str, str], passages: Sequence[corpus.Passage], number: Mapping[Way, int]
) -> dict[Way, list[str]]:
    """Find so many questions of each way. Ends the benchmark if no passage has a question of one."""
    from cragside.bootstrap import Container
    from cragside.settings import load_settings

    container = Container(load_settings({"RAG_HOME": str(home), **variables}))
    entries = count()

    async def way_of(question: str) -> Way | None:
        enriched = await container.enricher.enrich({"model": CHAT_MODEL, "prompt": f"/rag {question}"})
        context = enriched.rag_context
        assert context is not None
        if context.degraded:
            return None
        judged = {"embed": 1, "judge": context.asked, "search": int(context.search_performed)}
        made = {kind: times for kind, times in judged.items() if times}
        return next((way for way in WAYS if (way.verdict, way.calls) == (context.verdict, made)), None)

    def asked(passage: corpus.Passage, way: Way) -> str:
        question = corpus.distinct(passage.question, next(entries))
        return question if way is not WEB else question.replace("For whom", f"In {ABSENT_TOPIC}, for whom")

    async def fitting(some: Sequence[corpus.Passage], way: Way) -> list[tuple[corpus.Passage, str]]:
        questions = [asked(passage, way) for passage in some]
        taken = await asyncio.gather(*map(way_of, questions))
        return [(some[i], questions[i]) for i, found in enumerate(taken) if found == way]

    found: dict[Way, list[str]] = {}
    for way in WAYS:
        able = cycle([passage for passage, _ in await fitting(passages, way)])
        questions = found[way] = []
        while len(questions) < number[way]:
            some = list(islice(able, _AT_ONCE))
            if not some:
                raise SystemExit(f"No document has a question of the way: {way.name}.")
            questions += [question for _, question in await fitting(some, way)]
    await container.close()
    return found


def ask_bare(servers: Servers, questions: Sequence[str]) -> Load:
    """Measure two model calls by a client that does nothing else: the stub's share of a floor of 320 ms."""
    load = Load()
    embedding = {"model": EMBEDDING_MODEL, "input": ["a question", "its names", "its subject"]}
    for question in questions:
        grading = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": question}], "stream": False}
        embedded = post_each(f"{servers.ollama}/api/embed", [embedding], check=lambda _: "")
        graded = post_each(f"{servers.ollama}/api/chat", [grading], check=lambda _: "")
        load.latencies_ms.append(embedded.seconds * 1000 + graded.seconds * 1000)
    load.seconds = sum(load.latencies_ms) / 1000
    return load


def ask(server: Server, questions: Sequence[str], *, concurrency: int, verdict: str) -> Load:
    """Send the questions to a cragside. An answer with another verdict, or a degraded one, ends the benchmark."""

    def check(answer: Any) -> str:
        context = answer.get("metadata", {}).get("rag_context", {})
        good = context.get("verdict") == verdict and context.get("documents") and not context.get("degraded")
        return "" if good else json.dumps({k: context.get(k) for k in ("query", "verdict", "degraded")})

    bodies = [{"model": CHAT_MODEL, "prompt": f"/rag {question}"} for question in questions]
    address = f"{server.address}/v1/enrich"
    if concurrency == 1:
        load = post_each(address, bodies, check=check)
    else:
        load = uvloop.run(post_all(address, bodies, concurrency=concurrency, check=check))
    if load.failures:
        raise SystemExit(f"{server.name}: {len(load.failures)} of {len(bodies)} answers are wrong: {load.failures[0]}")
    return load


def ways_of(servers: Servers, server: Server, question: str) -> Mapping[Way, Way]:
    """Return the ways of another clone, by the calls that it makes for a question that needs one judgement."""
    get_json(f"{servers.ollama}/stub/reset", {})
    ask(server, [question], concurrency=1, verdict=JUDGED.verdict)
    return EARLIER if get_json(f"{servers.ollama}/stub/calls").get("grade batch") else OWN


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


class Measuring:
    """Measures one round."""

    def __init__(self, servers: Servers, sizes: Sizes, questions: Questions) -> None:
        self.servers = servers
        self.sizes = sizes
        self.questions = questions
        self.done = Round()

    def measure(self) -> Round:
        """Return each measurement, with those that are compared one after the other."""
        servers, sizes, take = self.servers, self.sizes, self.questions.take
        with self._counted("bare"):
            self.done.loads["bare"] = ask_bare(servers, take(PASSING, sizes.single))
        compared = [servers.ours, *([servers.against] if servers.against else [])]
        for way in WAYS:
            questions = take(way, sizes.single)
            for server in compared if way is not WEB else [*compared, servers.early]:
                self._ask(server, way, questions, concurrency=1)
        for way in (JUDGED, PASSING):
            questions = take(way, sizes.burst)
            for server in compared:
                self._ask(server, way, questions, concurrency=CONCURRENCY)
        with self._counted("equal"):
            equal = take(JUDGED, 1) * CONCURRENCY
            self.done.loads["equal"] = ask(servers.ours, equal, concurrency=CONCURRENCY, verdict="local")
        if servers.lightrag:
            self._ask_peer()
        return self.done

    def _ask(self, server: Server, way: Way, questions: Sequence[str], *, concurrency: int) -> None:
        name, taken = named(server, way, concurrency), server.ways[way]
        before = cpu_seconds(server.pid)
        with self._counted(name):
            self.done.loads[name] = ask(server, questions, concurrency=concurrency, verdict=taken.verdict)
        self.done.cpu_ms[name] = (cpu_seconds(server.pid) - before) * 1000 / len(questions)
        wanted = {kind: number * len(questions) for kind, number in taken.calls.items()}
        made = {kind: number for kind, number in self.done.calls[name].items() if kind != "embedded texts"}
        if made != wanted:
            raise SystemExit(f"{name}: another way was taken, with the calls {made} instead of {wanted}.")

    def _ask_peer(self) -> None:
        servers, sizes, take = self.servers, self.sizes, self.questions.take
        for name, way, number, concurrency in (
            ("tutorial: local, 1", JUDGED, sizes.peer_single, 1),
            ("tutorial: web, 1", WEB, sizes.peer_single, 1),
            (f"tutorial: local, {CONCURRENCY}", JUDGED, sizes.peer_burst, CONCURRENCY),
        ):
            before = cpu_seconds(servers.lightrag_pid)
            with self._counted(name):
                self.done.loads[name] = ask_peer(servers, take(way, number), concurrency=concurrency)
            self.done.cpu_ms[name] = (cpu_seconds(servers.lightrag_pid) - before) * 1000 / number

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        """Note the calls that the stubs get in the block."""
        addresses = (self.servers.ollama, self.servers.searxng)
        for address in addresses:
            get_json(f"{address}/stub/reset", {})
        yield
        made: dict[str, int] = defaultdict(int)
        for address in addresses:
            for kind, number in get_json(f"{address}/stub/calls").items():
                made[kind] += number
        self.done.calls[name] = dict(made)


def named(server: Server, way: Way, concurrency: int) -> str:
    """Return the name of a measurement. `way` is that of its questions."""
    return f"{server.name}: {way.name}, {concurrency}"


def needed(sizes: Sizes, rounds: int) -> dict[Way, int]:
    """Count the questions that all rounds take, and those that warm the servers up."""
    single, burst = sizes.single + sizes.peer_single, sizes.burst
    return {
        PASSING: rounds * (2 * sizes.single + burst) + 10,
        JUDGED: rounds * (single + burst + 1 + sizes.peer_burst) + 11,
        WEB: rounds * single + 10,
    }


def start(
    stack: ExitStack, folder: Path, passages: Sequence[corpus.Passage], other: Path | None, *, peer: bool
) -> Servers:
    """Start the stubs, each cragside and the peer, each with the documents indexed."""
    documents = corpus.documents(list(passages), each=1)
    ollama, searxng = stack.enter_context(stub("ollama")), stack.enter_context(stub("searxng"))
    texts = folder / "texts"
    texts.mkdir()
    for name, text in documents:
        (texts / name).write_text(text)
    variables = {"OLLAMA_BASE_URL": ollama, "SEARXNG_HOST": searxng, "RAG_OLLAMA_PARALLEL": str(2 * CONCURRENCY)}

    def ingested(home: Path, program: str) -> Path:
        settings = environment(RAG_HOME=str(home), **variables)
        command = [program, "ingest", str(texts)]
        subprocess.run(command, env=settings, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return home

    def served(name: str, home: Path, ways: Mapping[Way, Way], program: str = CRAGSIDE, **more: str) -> Server:
        log = folder / f"{name}.log"
        running = cragside(home, log=log, workers=WORKERS, program=program, **variables, **more)
        return Server(name, *stack.enter_context(running), ways)

    home = ingested(folder / "home", CRAGSIDE)
    servers = Servers(
        ollama,
        searxng,
        served("cragside", home, OWN),
        served("cragside, early", home, {WEB: EARLY}, RAG_SPECULATIVE_SEARCH="true"),
        None,
    )
    if other is not None:
        program = str(other.resolve() / ".venv" / "bin" / "cragside")
        servers.against = served(other.resolve().name, ingested(folder / "other", program), OWN, program)
    if peer:
        servers.lightrag, servers.lightrag_pid = stack.enter_context(lightrag_server(folder, ollama))
        lightrag_ingest(servers.lightrag, documents)
    return servers


def targets(servers: Servers, rounds: Sequence[Round], memory: float) -> list[Target]:
    """Return the figures that have a limit."""

    def median(figure: Callable[[Round], float]) -> float:
        return statistics.median(map(figure, rounds))

    ours, found = servers.ours, []
    for server, way in (*((ours, way) for way in WAYS), (servers.early, WEB)):
        floor, name = server.ways[way].floor_ms, named(server, way, 1)
        beyond = median(lambda each, name=name, floor=floor: each.loads[name].p50 - floor)
        found.append(Target(f"{name}: p50 beyond its floor of {floor} ms", beyond, _OVER_FLOOR_MS, "ms"))
    burst = named(ours, JUDGED, CONCURRENCY)
    tail = median(lambda each: each.loads[burst].p95 / JUDGED.floor_ms)
    found.append(Target(f"{burst}: p95 / its floor of {JUDGED.floor_ms} ms", tail, 4))
    if (other := servers.against) is not None:
        for way in (JUDGED, PASSING):
            rate, before = named(ours, way, CONCURRENCY), named(other, way, CONCURRENCY)
            ratio = median(lambda each, a=rate, b=before: each.loads[a].per_second / each.loads[b].per_second)
            found.append(Target(f"{rate}: requests/s / those of {other.name}", ratio, 1.2, at_most=False))
    if servers.lightrag:
        peer = f"tutorial: local, {CONCURRENCY}"
        ratio = median(lambda each: each.loads[burst].per_second / each.loads[peer].per_second)
        found.append(Target(f"{burst}: requests/s / the tutorial's over lightrag-server", ratio, 12, at_most=False))
    judged = median(lambda each: each.calls["equal"].get("judge", 0))
    found.append(Target(f"{CONCURRENCY} times the same question at once: judgements", judged, WORKERS))
    return [*found, Target("memory of cragside's processes after the last burst", memory, 400, "MB")]


def details(servers: Servers, rounds: Sequence[Round]) -> list[list[str]]:
    """Show a row for each measurement: its floor, p50, p95, requests per second, CPU."""
    floors = {"bare": TAKES["embed"] + TAKES["judge"], "equal": JUDGED.floor_ms}
    for server in filter(None, (servers.ours, servers.early, servers.against)):
        for way, taken in server.ways.items():
            floors |= {named(server, way, each): taken.floor_ms for each in (1, CONCURRENCY)}
    shown = {"bare": "an embedding and a chat call alone, 1", "equal": f"cragside: one question {CONCURRENCY} times"}
    rows = []
    for name in rounds[0].loads:
        loads = [each.loads[name] for each in rounds]
        cpu = [each.cpu_ms[name] for each in rounds if name in each.cpu_ms]
        rows.append(
            [
                shown.get(name, name),
                str(floors.get(name, "")),
                *(f"{statistics.median([getattr(each, key) for each in loads]):,.0f}" for key in ("p50", "p95")),
                f"{statistics.median([each.per_second for each in loads]):,.1f}",
                f"{statistics.median(cpu):.1f}" if cpu else "",
            ]
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one small round")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3)")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another clone, whose cragside is measured too")
    parser.add_argument("--without-peer", action="store_true", help="leave the tutorial out")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    number = arguments.rounds or sizes.rounds
    line = machine()
    passages = corpus.passages(DOCUMENTS)
    with scratch() as folder, ExitStack() as stack:
        servers = start(stack, folder, passages, arguments.against, peer=not arguments.without_peer)
        with stub("ollama", "--chat-ms", "0", "--embed-ms", "0") as ollama, stub("searxng", "--search-ms", "0") as web:
            print("choosing questions by the way that they take ...", flush=True)
            variables = {"OLLAMA_BASE_URL": ollama, "SEARXNG_HOST": web}
            asked = uvloop.run(chosen(folder / "home", variables, passages, needed(sizes, number)))
        questions = Questions(asked)
        if (other := servers.against) is not None:
            servers.against = replace(other, ways=ways_of(servers, other, questions.take(JUDGED, 1)[0]))
        for way in WAYS:
            warming = questions.take(way, 10)
            for server in filter(None, (servers.ours, servers.early, servers.against)):
                if way in server.ways:
                    ask(server, warming, concurrency=4, verdict=server.ways[way].verdict)
        rounds: list[Round] = []
        for each in range(number):
            print(f"round {each + 1} ...", flush=True)
            rounds.append(Measuring(servers, sizes, questions).measure())
        memory = memory_mb(servers.ours.pid)
    rows = details(servers, rounds)
    print(f"\n{table(['', 'floor ms', 'p50 ms', 'p95 ms', 'requests/s', 'CPU ms per request*'], rows)}")
    print("* of the server: cragside's process, lightrag-server's process (without the tutorial's own process)")
    print(f"calls to the stubs in round 1: {json.dumps(rounds[0].calls)}")
    saved = {"rounds": [each.as_dict() for each in rounds], "peer": f"lightrag-hku[api] {LIGHTRAG_VERSION}"}
    report("Enrichment", targets(servers, rounds, memory), saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
