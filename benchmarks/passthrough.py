"""The cost of the proxy: streams of 20 chunks from Ollama directly, and through `cragside serve`, in turns.

    python -m benchmarks.passthrough [--rounds N] [--seconds S] [--json FILE]

Stub and proxy are separate processes. The load generator is plain asyncio too, so that the measured programs are the
bottleneck. Figures are medians over the rounds; each round measures both ways, one after the other.
"""

import argparse
import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import uvloop

from benchmarks import harness
from benchmarks.stubs.streaming import CHUNKS, TOKENS

STREAMS = 100
PACE_MS = 10  # between two chunks of a model that generates 100 tokens per second
BODY = b'{"model":"m","messages":[{"role":"user","content":"Tell me about the sea."}],"options":{"temperature":0}}'
STREAM_END = b"0\r\n\r\n"
CONTENT = b"".join(chunk.partition(b"\r\n")[2][:-2] for chunk in CHUNKS)


@dataclass(frozen=True)
class Measured:
    """A burst: finished streams, streams per second, and the median time of a stream in ms."""

    streams: int
    per_second: float
    median_ms: float


class Client(asyncio.Protocol):
    """Sends the next request after each answer, until the time is up."""

    def __init__(self, request: bytes, until: float, latencies: list[float], finished: asyncio.Future[None]) -> None:
        self._request = request
        self._until = until
        self._latencies = latencies
        self._finished = finished
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's callback."""
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        """asyncio's callback."""
        self._tail = (self._tail + data)[-len(STREAM_END) :]
        if self._tail != STREAM_END:
            return
        now = time.perf_counter()
        self._latencies.append(now - self._sent)
        if now < self._until:
            self._ask()
            return
        self._transport.close()
        self._finished.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's callback."""
        if not self._finished.done():
            self._finished.set_exception(exc or ConnectionError("the stream broke off"))

    def _ask(self) -> None:
        self._tail = b""
        self._sent = time.perf_counter()
        self._transport.write(self._request)


def request_to(address: str) -> bytes:
    """A chat as an Ollama client sends it."""
    head = (
        f"POST /api/chat HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json\r\nUser-Agent: ollama-python/0.6.3\r\nContent-Length: {len(BODY)}\r\n\r\n"
    )
    return head.encode() + BODY


async def measure(address: str, streams: int, seconds: float) -> Measured:
    """Run that many streams at a time for `seconds`."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    began = time.perf_counter()
    ends = []
    for _ in range(streams):
        finished: asyncio.Future[None] = loop.create_future()
        ends.append(finished)
        client = Client(request_to(address), began + seconds, latencies, finished)
        await loop.create_connection(lambda client=client: client, "127.0.0.1", urlsplit(address).port)
    await asyncio.gather(*ends)
    taken = time.perf_counter() - began
    return Measured(len(latencies), len(latencies) / taken, statistics.median(latencies) * 1000)


async def content_of(address: str) -> bytes:
    """The body of one stream, without its framing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(address).port)
    writer.write(request_to(address))
    await reader.readuntil(b"\r\n\r\n")
    content = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        content += (await reader.readexactly(size + 2))[:-2]
    writer.close()
    return content


@dataclass(frozen=True)
class Comparison:
    """The direct way and the proxied one, round by round; the proxy's CPU time for a stream in microseconds."""

    rounds: list[tuple[Measured, Measured]]
    cpu_us: float

    @property
    def ratio(self) -> float:
        """Median of the proxied throughput as a share of the direct one."""
        return statistics.median(proxied.per_second / direct.per_second for direct, proxied in self.rounds)

    @property
    def added_ms(self) -> float:
        """Median latency in ms that the proxy adds to a stream."""
        return statistics.median(proxied.median_ms - direct.median_ms for direct, proxied in self.rounds)

    def row(self, name: str) -> list[str]:
        """The cells of the table."""
        ways = []
        for bursts in zip(*self.rounds, strict=True):
            per_second = statistics.median(burst.per_second for burst in bursts)
            median_ms = statistics.median(burst.median_ms for burst in bursts)
            ways.append(f"{per_second:,.0f}/s, {median_ms:.2f} ms")
        return [name, *ways, f"{self.ratio:.2f}", f"{self.added_ms:+.2f} ms", f"{self.cpu_us:.0f} µs"]


async def compare(direct: str, proxied: str, process: int, streams: int, rounds: int, seconds: float) -> Comparison:
    """Both ways in turns, after a warm-up round."""
    for address in (direct, proxied):
        if await content_of(address) != CONTENT:
            raise SystemExit(f"{address} does not give the stream byte for byte.")
        await measure(address, streams, 0.3)
    used = harness.cpu_seconds(process)
    ways = [(await measure(direct, streams, seconds), await measure(proxied, streams, seconds)) for _ in range(rounds)]
    used = harness.cpu_seconds(process) - used
    return Comparison(ways, used / sum(through.streams for _, through in ways) * 1e6)


async def run(rounds: int, seconds: float) -> dict[str, Comparison]:
    """One stream and 100 concurrent at full speed, and 100 at the pace of a model."""
    compared: dict[str, Comparison] = {}
    with harness.scratch() as folder:
        for interval in (0, PACE_MS):
            log = folder / f"serve-{interval}.log"
            with (
                harness.stub("streaming", "--interval", str(interval)) as direct,
                harness.cragside(folder / "home", log=log, OLLAMA_BASE_URL=direct) as (proxied, process),
            ):
                for streams in (STREAMS,) if interval else (1, STREAMS):
                    pace = f", a chunk every {interval} ms" if interval else ""
                    name = f"{streams} at a time{pace}"
                    compared[name] = await compare(direct, proxied, process, streams, rounds, seconds)
    return compared


def main() -> None:
    """Measure, print, and save if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds per measurement")
    parser.add_argument("--json", help="file for the figures, as JSON")
    arguments = parser.parse_args()
    machine = harness.machine()
    compared = uvloop.run(run(arguments.rounds, arguments.seconds))
    rows = [comparison.row(name) for name, comparison in compared.items()]
    print(harness.table([f"streams of {TOKENS} chunks", "direct", "through cragside", "ratio", "added", "CPU"], rows))
    targets = [
        harness.Target(
            "requests/s / direct access, 100 at a time", compared[f"{STREAMS} at a time"].ratio, 0.85, at_most=False
        ),
        harness.Target("added latency, 1 at a time", compared["1 at a time"].added_ms, 0.3, "ms"),
    ]
    details = {
        name: {"ratio": each.ratio, "added_ms": each.added_ms, "cpu_us": each.cpu_us} for name, each in compared.items()
    }
    harness.report("Pass-through", targets, details, machine_line=machine, file=arguments.json)


if __name__ == "__main__":
    main()
