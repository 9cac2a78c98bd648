"""The budget of one request: CPU, calls and allocated blocks by layer.

    python -m benchmarks.budget [--quick] [--rounds N] [--against CHECKOUT] [--json FILE]

`cragside serve` runs in a separate process, with the embedded models, over 100 passages. A stub takes Ollama's place.
One client sends three kinds of requests, one at a time: a plain prompt that passes through, a `/rag` prompt that passes
through with evidence, and `/v1/enrich`. CPU is that of the server without a profiler, user and system. A profile shares
it among the layers, by each function's own time; what the profiler itself costs is subtracted. `--against` measures
another checkout with its own environment in turns with this one. Figures are medians of the rounds.
"""

import argparse
import http.client
import json
import os
import pstats
import signal
import statistics
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import corpus, harness
from benchmarks.passthrough import BODY
from benchmarks.stores import CHUNKING, PASSAGES_A_DOCUMENT, store

# A function belongs to the first layer that names its file, or its file and function. What no layer names belongs to
# its caller's if it is the interpreter's or the standard library's, else to "rest".
LAYERS: dict[str, tuple[str, ...]] = {
    "limits": ("proxy/clients.py", "application/allowance.py", "domain/tokens.py", "/fair_slots.py"),
    "connection": ("uvloop", "uvicorn/", "httptools", "proxy/server.py", "proxy/processes.py", "asyncio/"),
    "access": (
        "entrypoints/access.py",
        "entrypoints/origins.py",
        "domain/addresses.py",
        "domain/hops.py",
        "http/request_access.py",
        "http/middleware.py",
        "proxy/app.py",
        "proxy/routes.py",
        "adapters/local/tokens.py",
    ),
    "audit": ("entrypoints/audit.py", "local/audit_log.py"),
    "metrics": ("entrypoints/metrics.py", "prometheus_client/", "proxy/observed.py", "entrypoints/log.py", "logging/"),
    "LangGraph": ("langgraph/", "langchain_core/", "langsmith/", "crag/"),
    "grading": (
        "application/grading.py",
        "embedded/grader.py",
        "embedded/features.py",
        "embedded/answers.py",
        "embedded/numbers.py",
        "embedded/spelling.py",
        "embedded/languages.py",
        "embedded/question_parts.py",
        "domain/verdict.py",
        "domain/dates.py",
        "domain/dating.py",
    ),
    "retrieval": (
        "cragside/store/",
        "cragside/databases/",
        "composition/",
        "lightrag/",
        "numpy/",
        "sqlite3/",
        "sqlite_vec",
        "embedded/",
        "wordllama/",
        "tokenizers/",
        "tiktoken/",
        "application/passages.py",
    ),
    "injection": (
        "application/enricher.py",
        "application/answerer.py",
        "application/memory.py",
        "domain/context.py",
        "domain/citations.py",
        "domain/outcome.py",
        "domain/token_counts.py",
        "proxy/enrichment.py:with",
        "proxy/prompts.py:with_evidence",
    ),
    "relay": (
        "proxy/relay.py",
        "proxy/upstream.py",
        "proxy/connection.py",
        "proxy/exchanges.py",
        "proxy/forwarding.py",
    ),
    "prompt": (
        "cragside/entrypoints/",
        "cragside/application/",
        "cragside/domain/",
        "adapters/local/",
        "fastapi/",
        "starlette/",
        "pydantic/",
        "pydantic_core",
    ),
}
REST = "rest"
_OURS = "/core/python/cragside/"
PASSAGES = 100
ROUNDS = 3
Function = tuple[str, int, str]


@dataclass(frozen=True)
class Sizes:
    """Holds numbers of requests: before measuring, for the CPU time, and under each profiler."""

    warm: int
    measured: dict[str, int]
    profiled: dict[str, int]


FULL = Sizes(10, {"plain": 1000, "rag": 50, "enrich": 50}, {"plain": 200, "rag": 10, "enrich": 10})
QUICK = Sizes(3, {"plain": 100, "rag": 10, "enrich": 10}, {"plain": 20, "rag": 3, "enrich": 3})


@dataclass
class Share:
    """Holds the cost of a request in one layer."""

    cpu_us: float = 0.0
    calls: float = 0.0
    blocks: float = 0.0


@dataclass
class Budget:
    """Holds the cost of a request. `functions` and `files` are those of cragside that it reaches."""

    cpu_us: float
    layers: dict[str, Share]
    functions: int
    files: int
    rest: list[str] = field(default_factory=list)

    @property
    def calls(self) -> float:
        """Sum the calls of all layers."""
        return sum(share.calls for share in self.layers.values())

    @property
    def blocks(self) -> float:
        """Sum the blocks of all layers."""
        return sum(share.blocks for share in self.layers.values())


def layer_of(function: Function) -> str | None:
    """Return the layer of a function; None for what belongs to its caller's."""
    file, _, name = function
    place = f"{name if file == '~' else file}:{name}".replace("\\", "/")
    for layer, parts in LAYERS.items():
        if any(part in place for part in parts):
            return layer
    ours = file == "~" or ("site-packages" not in file and "/cragside/" not in file)
    return None if ours else REST


class Profile:
    """Divides a profile of CPU by layer."""

    def __init__(self, stats: Mapping[Function, Any], overhead: tuple[float, float]) -> None:
        self._stats = stats
        to_called, to_caller = overhead
        made: Counter[Function] = Counter()
        for _, _, _, _, callers in stats.values():
            for caller, (_, calls, _, _) in callers.items():
                made[caller] += calls
        self.own = {
            each: max(own - calls * to_called - made[each] * to_caller, 0.0)
            for each, (_, calls, own, _, _) in stats.items()
        }
        self._known: dict[Function, dict[str, float]] = {}

    def layers_of(self, function: Function) -> dict[str, float]:
        """Return the layers that a function works for, as shares of 1."""
        if function not in self._known:
            layer = layer_of(function)
            # A circle of callers, such as a recursion, ends here.
            self._known[function] = {layer or REST: 1.0}
            if layer is None:
                self._known[function] = self._of_callers(function) or {REST: 1.0}
        return self._known[function]

    def _of_callers(self, function: Function) -> dict[str, float]:
        callers = {each: calls for each, (_, calls, _, _) in self._stats[function][4].items() if each != function}
        shares: dict[str, float] = defaultdict(float)
        for caller, calls in callers.items():
            for layer, share in self.layers_of(caller).items():
                shares[layer] += share * calls / sum(callers.values())
        return dict(shares)


def budget(
    stats: Mapping[Function, Any], overhead: tuple[float, float], blocks: Iterable[Any], cpu_us: float, requests: int
) -> Budget:
    """Compute the budget of one request of a profile of so many; `cpu_us` was measured without the profiler."""
    profile = Profile(stats, overhead)
    layers = {layer: Share() for layer in (*LAYERS, REST)}
    whole = sum(profile.own.values())
    rest: Counter[str] = Counter()
    for function, own in profile.own.items():
        for layer, share in profile.layers_of(function).items():
            layers[layer].cpu_us += own / whole * share * cpu_us
            layers[layer].calls += stats[function][1] * share / requests
            if layer == REST:
                rest[f"{Path(function[0]).name}:{function[2]}"] += own / whole * share * cpu_us
    for file, line, name, number in blocks:
        function = (file, line, name)
        shares = profile.layers_of(function) if function in stats else {layer_of(function) or REST: 1.0}
        for layer, share in shares.items():
            layers[layer].blocks += number * share / requests
    # What runs now and then beside the requests does not count.
    ours = {
        (file, name)
        for (file, _, name), (_, calls, _, _, _) in stats.items()
        if _OURS in file and not name.startswith("<") and calls * 2 >= requests
    }
    most = [f"{name} {own:.0f} µs" for name, own in rest.most_common(5) if own >= 1]
    return Budget(cpu_us, layers, len(ours), len({file for file, _ in ours}), most)


class Server:
    """Holds a server of a checkout, and asks it."""

    def __init__(self, address: str, process: int, folder: Path) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        self._process = process
        self._folder = folder
        self._numbers = count()
        self._questions = [passage.question for passage in corpus.passages(PASSAGES)]

    def ask(self, kind: str, times: int) -> None:
        """Send so many requests, one after the other. A wrong answer ends the benchmark."""
        for _ in range(times):
            number = next(self._numbers)
            question = corpus.distinct(self._questions[number % PASSAGES], number)
            path, body = _request(kind, question)
            self._connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            answer = response.read()
            right = (b"rag_context" if kind == "enrich" else b"token19") in answer
            found = kind != "rag" or response.getheader("X-Rag-Verdict")
            if response.status != 200 or not right or not found:
                raise SystemExit(f"{kind} was answered with {response.status}: {answer[:300]!r}")

    def budget(self, kind: str, sizes: Sizes) -> Budget:
        """Measure one kind of request."""
        used = harness.own_cpu_seconds(self._process)
        self.ask(kind, sizes.measured[kind])
        cpu_us = (harness.own_cpu_seconds(self._process) - used) / sizes.measured[kind] * 1e6
        requests = sizes.profiled[kind]
        cpu = self._measured(signal.SIGUSR1, "cpu", kind, requests)
        blocks = json.loads(self._measured(signal.SIGUSR2, "blocks", kind, requests).read_text())
        stats = pstats.Stats(str(cpu)).stats  # type: ignore[attr-defined]
        overhead = json.loads((self._folder / "overhead").read_text())
        return budget(stats, overhead, blocks, cpu_us, requests)

    def _measured(self, switch: signal.Signals, name: str, kind: str, requests: int) -> Path:
        file = self._folder / name
        file.unlink(missing_ok=True)
        os.kill(self._process, switch)
        self.ask(kind, 1)  # the signal comes before it, and its threads start
        self.ask(kind, requests - 1)
        os.kill(self._process, switch)
        until = time.monotonic() + 30
        while not file.exists():
            if time.monotonic() > until:
                raise SystemExit(f"No {name} came from the server.")
            time.sleep(0.02)
        return file


def _request(kind: str, question: str) -> tuple[str, bytes]:
    if kind == "plain":
        return "/api/chat", BODY
    if kind == "rag":
        return "/api/chat", json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": f"/rag {question}"}]}
        ).encode()
    return "/v1/enrich", json.dumps({"prompt": f"/rag {question}"}).encode()


def home_of(checkout: Path, folder: Path) -> Path:
    """Make a store by the checkout's own code."""
    if checkout == harness.ROOT:
        return store(PASSAGES)
    home = folder / "home"
    home.mkdir()
    each = [str(PASSAGES_A_DOCUMENT)] if '"each"' in (checkout / "benchmarks/stores.py").read_text() else []
    subprocess.run(
        [str(checkout / ".venv/bin/python"), "-m", "benchmarks.stores", str(PASSAGES), *each],
        env=harness.environment(RAG_HOME=str(home), **CHUNKING), cwd=checkout, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return home


def measure(checkout: Path, home: Path, folder: Path, kinds: Iterable[str], sizes: Sizes) -> dict[str, Budget]:
    """Measure the budgets of a checkout, whose server runs meanwhile."""
    port = harness.free_port()
    python = harness.OWN_PYTHON if checkout == harness.ROOT else str(checkout / ".venv/bin/python")
    command = [python, str(harness.ROOT / "benchmarks/profiled.py"), str(folder), "serve"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    log = folder / "serve.log"
    with harness.stub("streaming") as ollama:
        env = harness.environment(RAG_HOME=str(home), OLLAMA_BASE_URL=ollama, **CHUNKING)
        with harness.process(command, env=env, log=log) as child:
            address = f"http://127.0.0.1:{port}"
            harness.wait_until_up(f"{address}/healthz", child, log)
            server = Server(address, child.pid, folder)
            for kind in sizes.measured:  # the first questions load the models
                server.ask(kind, sizes.warm)
            _wait_until_idle(child.pid)
            return {kind: server.budget(kind, sizes) for kind in kinds}


def _wait_until_idle(process: int) -> None:
    """Return when the server has done what it does after its start, or after a minute."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        used = harness.own_cpu_seconds(process)
        time.sleep(0.5)
        if harness.own_cpu_seconds(process) - used <= 0.02:
            return


def median(budgets: list[Budget]) -> Budget:
    """Take the median of each figure."""

    def of(figure: str, layer: str) -> float:
        return statistics.median(getattr(each.layers[layer], figure) for each in budgets)

    layers = {layer: Share(**{figure: of(figure, layer) for figure in asdict(Share())}) for layer in budgets[0].layers}
    cpu_us = statistics.median(each.cpu_us for each in budgets)
    last = budgets[-1]
    return Budget(cpu_us, layers, last.functions, last.files, last.rest)


def table(kind: str, budgets: Mapping[str, Budget]) -> str:
    """Show the layers of one kind of request, a column for each figure of each checkout."""
    head = [kind, *(f"{figure}, {name}" for name in budgets for figure in ("µs", "calls", "blocks"))]
    shares = {layer: [each.layers[layer] for each in budgets.values()] for layer in (*LAYERS, REST)}
    whole = [Share(each.cpu_us, each.calls, each.blocks) for each in budgets.values()]
    rows = [
        [layer, *(f"{value:,.0f}" for each in found for value in (each.cpu_us, each.calls, each.blocks))]
        for layer, found in {**shares, "all": whole}.items()
    ]
    return harness.table(head, rows)


def main() -> None:
    """Measure, print, and save if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one small round")
    parser.add_argument("--rounds", type=int, help=f"rounds ({ROUNDS})")
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="another checkout, with an environment in .venv"
    )
    parser.add_argument("--only", choices=FULL.measured, help="one kind of request")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    line = harness.machine()
    sizes, rounds = (QUICK, 1) if arguments.quick else (FULL, ROUNDS)
    kinds = [arguments.only] if arguments.only else list(FULL.measured)
    checkouts = {"here": harness.ROOT}
    if arguments.against:
        checkouts["there"] = arguments.against.resolve()
    found: dict[str, dict[str, list[Budget]]] = {kind: {name: [] for name in checkouts} for kind in kinds}
    with harness.scratch() as scratch:
        folders = {name: scratch / name for name in checkouts}
        for folder in folders.values():
            folder.mkdir()
        homes = {name: home_of(checkout, folders[name]) for name, checkout in checkouts.items()}
        for _ in range(arguments.rounds or rounds):
            for name, checkout in checkouts.items():
                for kind, one in measure(checkout, homes[name], folders[name], kinds, sizes).items():
                    found[kind][name].append(one)
    budgets = {kind: {name: median(each) for name, each in named.items()} for kind, named in found.items()}
    for kind, named in budgets.items():
        print(f"\n{table(kind, named)}")
        for name, each in named.items():
            print(f"{name}: {each.functions} functions of cragside in {each.files} files; rest: {', '.join(each.rest)}")
    details = {
        kind: {name: [asdict(each) for each in rounds] for name, rounds in named.items()}
        for kind, named in found.items()
    }
    harness.report("Budget of a request", [], details, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
