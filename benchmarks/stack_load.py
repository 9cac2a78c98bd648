"""100 `/rag` requests at once while a worker indexes, for `benchmarks.stack`."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from benchmarks.corpus import Passage
from benchmarks.harness import Load, get_json, own_resident_mb, post_all, resident_mb
from benchmarks.memory import Peak
from benchmarks.stack_questions import Knowledge, turns

CONCURRENCY = 100
_LEAST_BURSTS, _MOST_BURSTS = 3, 10
_SENDERS = 4


@dataclass
class Burst:
    """What came of the requests: with local answers while documents are indexed, then such as only the web answers."""

    local: Load = field(default_factory=Load)
    web: Load = field(default_factory=Load)
    sent: Load = field(default_factory=Load)
    waiting: int = 0
    service_mb: float = 0.0
    worker_mb: float = 0.0


async def measure_burst(address: str, pid: int, knowledge: Knowledge) -> Burst:
    """Bring the documents, and ask 100 at once until all of them are indexed, or ten times."""
    done, local = Burst(), turns(knowledge.local)
    service, worker = Peak(pid, own_resident_mb), Peak(pid, worker_mb)
    with service.watched(), worker.watched():
        bodies = [{"name": name, "text": text} for name, text in knowledge.later]
        sending = asyncio.create_task(post_all(f"{address}/v1/documents", bodies, concurrency=_SENDERS))
        bursts = 0
        while bursts < _LEAST_BURSTS or (bursts < _MOST_BURSTS and (not sending.done() or await waiting(address))):
            left = await waiting(address)
            add(done.local, await ask(address, local))
            done.waiting = max(done.waiting, left)
            bursts += 1
        done.sent = await sending
        done.web = await ask(address, turns(knowledge.web))
    done.service_mb, done.worker_mb = service.largest, worker.largest
    return done


async def ask(address: str, passages: Iterator[Passage]) -> Load:
    """One question of each of 100 clients. An answer that is degraded, or without evidence, is a failure."""
    bodies = [{"prompt": f"/rag {passage.question}"} for passage in islice(passages, CONCURRENCY)]
    return await post_all(f"{address}/v1/enrich", bodies, concurrency=CONCURRENCY, check=wrong_with)


def wrong_with(answer: Any) -> str:
    """The error in an answer, or ""."""
    context = answer.get("metadata", {}).get("rag_context")
    if not context:
        return "no rag_context"
    return str(context["degraded"]) if context["degraded"] else "" if context["documents"] else "no evidence"


async def waiting(address: str) -> int:
    """How many indexing tasks are not done."""
    queue = await asyncio.to_thread(get_json, f"{address}/v1/queue/dead")
    return int(queue["pending"] + queue["processing"])


async def index(address: str, documents: Sequence[tuple[str, str]]) -> None:
    """Bring documents, and return once all are indexed."""
    bodies = [{"name": name, "text": text} for name, text in documents]
    if (sent := await post_all(f"{address}/v1/documents", bodies, concurrency=_SENDERS)).failures:
        raise SystemExit(sent.failures[0])
    while await waiting(address):
        await asyncio.sleep(1)


def worker_mb(pid: int) -> float:
    """Resident memory of the processes that a service started."""
    return resident_mb(pid) - own_resident_mb(pid)


def add(load: Load, more: Load) -> None:
    """Count the requests of a further burst."""
    load.latencies_ms += more.latencies_ms
    load.failures += more.failures
    load.seconds += more.seconds
