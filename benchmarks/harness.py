"""Shared by the benchmarks: separate processes on free loopback ports, load, percentiles, the machine, the table."""

import asyncio
import http.client
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

ROOT = Path(__file__).resolve().parents[1]
CLEAN = ("OLLAMA_", "SEARXNG_", "RAG_", "LIGHTRAG_", "POSTGRES_", "NEO4J_", "LANGCHAIN_", "LANGSMITH_")
OWN_PYTHON = sys.executable
CRAGSIDE = str(Path(sys.executable).with_name("cragside"))


def cache_folder() -> Path:
    """The folder that keeps peers and built stores between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "cragside"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def environment(**variables: str) -> dict[str, str]:
    """The environment without proxies and without settings of the measured programs, plus `variables`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(CLEAN) and not name.lower().endswith("_proxy")
    }
    return {**kept, "NO_PROXY": "*", "no_proxy": "*", **variables}


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(command: Sequence[str], *, env: dict[str, str], log: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A child process that runs while the block is open. Its output goes to `log`, or to a pipe without one."""
    target: Any = log.open("w") if log else subprocess.PIPE
    child = subprocess.Popen(
        command, env=env, cwd=ROOT, stdout=target, stderr=subprocess.STDOUT if log else None, text=True
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if log:
            target.close()


@contextmanager
def stub(module: str, *arguments: str) -> Iterator[str]:
    """A stub server of `benchmarks.stubs` in a separate process; yields its address."""
    command = [OWN_PYTHON, "-m", f"benchmarks.stubs.{module}", *arguments]
    with process(command, env=environment()) as child:
        assert child.stdout is not None
        yield f"http://127.0.0.1:{int(child.stdout.readline())}"


@contextmanager
def cragside(
    home: Path, *, log: Path, workers: int = 1, program: str = CRAGSIDE, **variables: str
) -> Iterator[tuple[str, int]]:
    """`cragside serve` as users run it; yields its address and its process id once it answers."""
    port = free_port()
    command = [program, "serve", "--host", "127.0.0.1", "--port", str(port), "--workers", str(workers)]
    with process(command, env=environment(RAG_HOME=str(home), **variables), log=log) as child:
        address = f"http://127.0.0.1:{port}"
        wait_until_up(f"{address}/healthz", child, log)
        yield address, child.pid


def wait_until_up(url: str, child: subprocess.Popen[str], log: Path, seconds: float = 90) -> None:
    """Return when the address answers 200. Exit with the last lines of its log if the child ends or times out."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if child.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"{' '.join(map(str, child.args))} did not come up:\n{log.read_text()[-3000:]}")  # type: ignore[arg-type]


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder that is deleted afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="cragside-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def get_json(url: str, body: Any = None) -> Any:
    """The JSON of an address: GET, or POST with a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def resident_mb(pid: int) -> float:
    """Resident memory of a process and its children, in MB."""
    return sum(_status_kb(each, "VmRSS") for each in family(pid)) / 1024


def own_resident_mb(pid: int) -> float:
    """Resident memory of a process without its children, in MB."""
    return _status_kb(pid, "VmRSS") / 1024


def children_resident_mb(pid: int) -> float:
    """Resident memory of the processes that a process started, in MB."""
    return resident_mb(pid) - own_resident_mb(pid)


def memory_mb(pid: int) -> float:
    """Memory of a process and its children in MB; shared memory counts once."""
    rollups = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in family(pid)]
    return sum(int(line.split()[1]) for text in rollups for line in text.splitlines() if line.startswith("Pss:")) / 1024


def cpu_seconds(pid: int) -> float:
    """CPU time in seconds of a process and its living children."""
    return sum(map(own_cpu_seconds, family(pid)))


def own_cpu_seconds(pid: int) -> float:
    """CPU time in seconds of a process without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and all its children."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        listed = task / "children"
        children += [int(child) for child in listed.read_text().split()] if listed.exists() else []
    return [pid, *(member for child in children for member in family(child))]


def _status_kb(pid: int, key: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return float(line.split()[1])
    return 0.0


@dataclass
class Load:
    """The result of a burst of requests: each latency in ms, the total in seconds, and the failures."""

    latencies_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def took(self, milliseconds: float, status: int, answer: bytes, check: Callable[[Any], str]) -> None:
        """Record an answer; `check` returns the error in it, or ""."""
        self.latencies_ms.append(milliseconds)
        wrong = f"status {status}: {answer[:300]!r}" if not 200 <= status < 300 else check(json.loads(answer))
        if wrong:
            self.failures.append(wrong)

    def add(self, more: "Load") -> None:
        """Count the requests of a further burst."""
        self.latencies_ms += more.latencies_ms
        self.failures += more.failures
        self.seconds += more.seconds

    @property
    def per_second(self) -> float:
        """Requests finished per second."""
        return len(self.latencies_ms) / self.seconds

    @property
    def p50(self) -> float:
        """Median latency in milliseconds."""
        return statistics.median(self.latencies_ms)

    @property
    def p95(self) -> float:
        """95th percentile of latency in milliseconds."""
        return percentile(self.latencies_ms, 95)

    def as_dict(self) -> dict[str, float]:
        """The figures for the report."""
        return {
            "requests": len(self.latencies_ms),
            "p50_ms": round(self.p50, 2),
            "p95_ms": round(self.p95, 2),
            "per_second": round(self.per_second, 2),
        }


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * int(percent) // 100) - 1))]


def post_each(url: str, bodies: Sequence[Any], *, check: Callable[[Any], str]) -> Load:
    """Send the bodies one after the other on one connection, with a client that costs almost no CPU."""
    load = Load()
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=300)
    for body in bodies:
        data = json.dumps(body).encode()
        sent = time.perf_counter()
        connection.request("POST", parts.path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        load.took((time.perf_counter() - sent) * 1000, response.status, answer, check)
    connection.close()
    load.seconds = sum(load.latencies_ms) / 1000
    return load


async def post_all(
    url: str, bodies: Sequence[Any], *, concurrency: int, check: Callable[[Any], str] = lambda _answer: ""
) -> Load:
    """Send each body once, `concurrency` at a time; each worker sends its next one after an answer.

    `check` returns the error in an answer, or "".
    """
    load = Load()
    waiting = iter([json.dumps(body).encode() for body in bodies])
    timeout = aiohttp.ClientTimeout(total=300)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        began = time.perf_counter()
        await asyncio.gather(*(_worker(session, url, waiting, load, check) for _ in range(concurrency)))
        load.seconds = time.perf_counter() - began
    return load


async def _worker(
    session: aiohttp.ClientSession, url: str, waiting: Iterator[bytes], load: Load, check: Callable[[Any], str]
) -> None:
    for body in waiting:
        sent = time.perf_counter()
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
            answer = await response.read()
        load.took((time.perf_counter() - sent) * 1000, response.status, answer, check)


@dataclass(frozen=True)
class Target:
    """A figure and its limit. It is missed if any request behind it failed, as a quick error is no quick answer."""

    name: str
    reached: float
    limit: float
    unit: str = ""
    at_most: bool = True
    failures: int = 0

    @property
    def met(self) -> bool:
        """Return True if the figure is within the limit, and nothing failed."""
        if self.failures:
            return False
        return self.reached <= self.limit if self.at_most else self.reached >= self.limit

    def row(self) -> list[str]:
        """The cells of the table."""
        sign = "at most" if self.at_most else "at least"
        limit, reached = (f"{value:.3g}" if value < 1000 else f"{value:,.0f}" for value in (self.limit, self.reached))
        result = f"{reached} {self.unit}".strip() + (f", {self.failures} failed" if self.failures else "")
        return [self.name, f"{sign} {limit} {self.unit}".strip(), result, _mark(self.met)]


def _mark(met: bool) -> str:
    return "met" if met else "MISSED"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "| " + " | ".join(str(cell).ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in [head, *rows]
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def machine() -> str:
    """A line that describes the machine."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    busy = os.getloadavg()[0]
    return (
        f"{len(os.sched_getaffinity(0))} cores of {model}, {memory:.0f} GB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load before {busy:.1f}"
    )


def report(
    title: str, targets: Sequence[Target], details: dict[str, Any], *, machine_line: str, file: str | None
) -> None:
    """Print the targets, and save them with the details if a file is given."""
    print(f"\n{title}\n{machine_line}\n")
    if targets:
        print(table(["figure", "target", "result", ""], [target.row() for target in targets]))
    if file:
        saved = {
            "title": title,
            "date": date.today().isoformat(),
            "machine": machine_line,
            "targets": [
                {
                    "name": t.name,
                    "limit": t.limit,
                    "reached": round(t.reached, 4),
                    "unit": t.unit,
                    "failures": t.failures,
                    "met": t.met,
                }
                for t in targets
            ],
            "details": details,
        }
        Path(file).write_text(json.dumps(saved, indent=2) + "\n")
        print(f"\nsaved to {file}")
