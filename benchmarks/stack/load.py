"""100 `/rag` requests at once while a worker indexes, for `benchmarks.stack`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import uvloop

from benchmarks.corpus import Passage
from benchmarks.harness import Load, children_resident_mb, own_resident_mb, post_all
from benchmarks.memory import Peak, wait_until_indexed
from benchmarks.stack.answers import wrong_with
from benchmarks.stack.questions import Knowledge, turns
from benchmarks.stack.servers import INDEXED_SECONDS, SENDERS, waiting

CONCURRENCY = 100
_MOST_BURSTS = 10
_PAUSE_SECONDS = 0.2


@dataclass
class Burst:
    """Load of `benchmarks.stack`: local answers while documents are indexed, then answers from the web."""

    local: Load = field(default_factory=Load)
    web: Load = field(default_factory=Load)
    sent: Load = field(default_factory=Load)
    waiting: int = 0
    service_mb: float = 0.0
    worker_mb: float = 0.0


def measure_burst(address: str, pid: int, knowledge: Knowledge) -> Burst:
    """Bring the documents, ask 100 at once while they are indexed, and then what only the web answers."""
    done = Burst()
    service, worker = Peak(pid, own_resident_mb), Peak(pid, children_resident_mb)
    with service.watched(), worker.watched():
        uvloop.run(_while_indexing(address, knowledge, done))
        wait_until_indexed(address, INDEXED_SECONDS)
        done.web = uvloop.run(ask(address, turns(knowledge.web)))
    done.service_mb, done.worker_mb = service.largest, worker.largest
    return done


async def _while_indexing(address: str, knowledge: Knowledge, done: Burst) -> None:
    bodies = [{"name": name, "text": text} for name, text in knowledge.later]
    sending = asyncio.create_task(post_all(f"{address}/v1/documents", bodies, concurrency=SENDERS))

    async def begun() -> int:
        """Tasks that wait, as soon as there are any; 0 if there will be none."""
        while not (left := await waiting(address)) and not sending.done():
            await asyncio.sleep(_PAUSE_SECONDS)
        return left or await waiting(address)

    local = turns(knowledge.local)
    await add_bursts(done, lambda: ask(address, local), begun, lambda: waiting(address))
    done.sent = await sending


async def add_bursts(
    done: Burst,
    burst: Callable[[], Awaitable[Load]],
    begun: Callable[[], Awaitable[int]],
    waiting: Callable[[], Awaitable[int]],
) -> None:
    """Ask up to ten times while tasks wait. A burst counts if tasks waited before it and still wait at its end."""
    for _ in range(_MOST_BURSTS):
        if not (left := await begun()):
            return
        asked = await burst()
        if await waiting():
            done.local.add(asked)
            done.waiting = max(done.waiting, left)


async def ask(address: str, passages: Iterator[Passage]) -> Load:
    """One question of each of 100 clients. An answer that is degraded, or without evidence, is a failure."""
    bodies = [{"prompt": f"/rag {passage.question}"} for passage in islice(passages, CONCURRENCY)]
    return await post_all(f"{address}/v1/enrich", bodies, concurrency=CONCURRENCY, check=wrong_with)
