"""100 clients at once that send `/rag` prompts through cragside's proxy, for `benchmarks.shared_store`."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import asyncpg

from benchmarks.harness import Load, Target, cpu_seconds, family, memory_mb
from benchmarks.stubs.ollama import CHAT_MODEL

CONCURRENCY = 100
CONNECTIONS = 10
MEGABYTES = 400
# By this name, PostgreSQL tells the connections of cragside from those of lightrag-server.
APPLICATION = "cragside-benchmark"


@dataclass
class Prompts:
    """Times of `/rag` prompts, and cragside's consumption under 100 at once."""

    single: Load = field(default_factory=Load)
    burst: Load = field(default_factory=Load)
    connections: int = 0
    allowed: int = 0
    memory: float = 0.0
    cpu_ms: float = 0.0


def promises(prompts: Prompts) -> list[Target]:
    """The figures that do not depend on the machine's speed."""
    return [
        Target(f"/rag, {CONCURRENCY} at once, failures", len(prompts.single.failures + prompts.burst.failures), 0),
        Target("/rag, connections to PostgreSQL", prompts.connections, prompts.allowed),
        Target("/rag, memory of cragside's processes", prompts.memory, MEGABYTES, "MB"),
    ]


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
            with suppress(OSError):  # a process of cragside has just ended
                done.memory = max(done.memory, memory_mb(pid))
                # The indexing worker may end meanwhile.
                done.allowed = max(done.allowed, CONNECTIONS * len(family(pid)))
            done.connections = max(done.connections, await connection.fetchval(sql, APPLICATION))
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await connection.close()


async def measure_prompts(server: str, pid: int, postgres: str, one: Sequence[str], many: Sequence[str]) -> Prompts:
    """Send the questions of `one` one at a time, and those of `many` 100 at once."""
    done = Prompts(single=await prompted(server, one, concurrency=1))
    async with watched(postgres, pid, done):
        before = cpu_seconds(pid)
        done.burst = await prompted(server, many, concurrency=CONCURRENCY)
        done.cpu_ms = (cpu_seconds(pid) - before) * 1000 / len(many)
    return done
