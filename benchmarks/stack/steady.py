"""A steady rate of questions over a long time, for `benchmarks.stack`: does the memory of the service grow?"""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import aiohttp

from benchmarks import corpus
from benchmarks.corpus import Passage
from benchmarks.harness import own_cpu_seconds, own_resident_mb
from benchmarks.stack.answers import chat, unfinished, wrong_with
from benchmarks.stack.questions import Knowledge, turns

PER_SECOND = 1.0
_SAMPLE_SECONDS = 30.0
# Of ten questions, two have no local answer; one goes through the proxy and is answered by the model.
_WEB = frozenset((3, 7))
_ANSWERED = 9
_TOKENS = 8


@dataclass
class Steady:
    """Samples of memory in MB, the answers and failures, and the service's share of one core in percent.

    `failures` had no answer. `wrong` are answers that are degraded or without evidence; `answered` counts the others.
    """

    samples: list[float] = field(default_factory=list)
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    cpu: float = 0.0

    def add(self, status: int, degraded: str, answer: bytes) -> None:
        """Count an answer: a whole one of `/v1/enrich`, or a stream of the proxy's with what its header says."""
        if status != 200:
            self.failures.append(f"status {status}: {answer[:300]!r}")
        elif wrong := degraded or _wrong_with(json.loads((answer.splitlines() or [b"{}"])[-1])):
            self.wrong.append(wrong)
        else:
            self.answered += 1

    @property
    def drift(self) -> float:
        """Return the growth of memory from the second quarter to the last, in percent."""
        return drift(self.samples)


def drift(samples: Sequence[float]) -> float:
    """The mean of the last quarter compared with the mean of the second, in percent."""
    quarter = len(samples) // 4
    if not quarter:
        raise ValueError("Four samples are needed.")
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    return 100 * (statistics.mean(after) / statistics.mean(before) - 1)


async def measure_steady(address: str, pid: int, knowledge: Knowledge, minutes: float) -> Steady:
    """Ask at a steady rate, whether or not earlier answers have come."""
    done, asking = Steady(), set[asyncio.Task[None]]()
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    began, cpu = time.monotonic(), own_cpu_seconds(pid)
    pause = min(_SAMPLE_SECONDS, minutes * 60 / 8)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        for number, (path, body) in enumerate(_bodies(knowledge)):
            passed = time.monotonic() - began
            if passed >= minutes * 60:
                break
            if passed >= pause * (len(done.samples) + 1):
                done.samples.append(own_resident_mb(pid))
                print(f"{passed / 60:5.1f} min {done.samples[-1]:7.1f} MB, {done.answered} answers", flush=True)
            task = asyncio.create_task(_ask(session, f"{address}{path}", body, done))
            asking.add(task)
            task.add_done_callback(asking.discard)
            await asyncio.sleep(max(0.0, began + (number + 1) / PER_SECOND - time.monotonic()))
        await asyncio.gather(*asking)
    done.samples.append(own_resident_mb(pid))
    done.cpu = 100 * (own_cpu_seconds(pid) - cpu) / (time.monotonic() - began)
    return done


async def _ask(session: aiohttp.ClientSession, url: str, body: dict[str, object], done: Steady) -> None:
    try:
        async with session.post(url, json=body) as response:
            answer = await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        done.failures.append(f"{type(error).__name__}: {error}")
    else:
        done.add(response.status, response.headers.get("x-rag-degraded", ""), answer)


def _wrong_with(last: dict[str, Any]) -> str:
    return unfinished(last) if "done" in last or "error" in last else wrong_with(last)


def _bodies(knowledge: Knowledge) -> Iterator[tuple[str, dict[str, object]]]:
    """Questions that nobody asked before, for ever."""
    local, web = turns(knowledge.local), turns(knowledge.web)
    for number, turn in enumerate(cycle(range(10))):
        passage: Passage = next(web if turn in _WEB else local)
        prompt = f"/rag {corpus.distinct(passage.question, number)}"
        yield ("/api/chat", chat(prompt, _TOKENS)) if turn == _ANSWERED else ("/v1/enrich", {"prompt": prompt})
