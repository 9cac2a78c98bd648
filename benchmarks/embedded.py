"""cragside without a model server: the embedded models, 1,000 passages.

`python -m benchmarks.embedded [--quick] [--rounds N] [--json FILE]`

`cragside serve` runs in a separate process on a store that cragside indexed. This process sends requests over HTTP, one
at a time and 100 concurrent, on the same two cores. No question is repeated. Figures are medians of the rounds.
"""

import argparse
import json
import statistics
from typing import Any

import uvloop

from benchmarks import corpus
from benchmarks.harness import (
    Load,
    Target,
    cpu_seconds,
    cragside,
    machine,
    memory_mb,
    post_all,
    report,
    scratch,
    table,
)
from benchmarks.stores import CHUNKING, store

PASSAGES = 1_000
CONCURRENCY = 100
WORKERS = 2


def check(answer: Any) -> str:
    """The error in an answer, or "". No component may have failed; without a web search, weak evidence may say so."""
    context = answer.get("metadata", {}).get("rag_context")
    lost = [degraded for degraded in (context or {}).get("degraded", []) if degraded["component"] != "search"]
    return "no rag_context" if context is None else json.dumps(lost) if lost else ""


def ask(address: str, questions: list[str], *, concurrency: int) -> Load:
    """Send the questions, `concurrency` at a time. A wrong answer ends the benchmark."""
    bodies = [{"prompt": f"/rag {question}"} for question in questions]
    load = uvloop.run(post_all(f"{address}/v1/enrich", bodies, concurrency=concurrency, check=check))
    if load.failures:
        raise SystemExit(f"{len(load.failures)} of {len(bodies)} answers are wrong: {load.failures[0]}")
    return load


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one small round")
    parser.add_argument("--rounds", type=int, help="rounds (3)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    home = store(PASSAGES)
    line = machine()
    written = corpus.passages(PASSAGES)
    single, burst, rounds = (50, 200, 1) if arguments.quick else (200, 1_000, 3)
    singles: list[Load] = []
    bursts: list[Load] = []
    cpu_ms: list[float] = []
    asked = iter([corpus.distinct(p.question, n) for n in range(10) for p in written])
    with (
        scratch() as folder,
        cragside(home, log=folder / "cragside.log", workers=WORKERS, **CHUNKING) as (address, pid),
    ):
        ask(address, [next(asked) for _ in range(50)], concurrency=4)
        for _ in range(arguments.rounds or rounds):
            singles.append(ask(address, [next(asked) for _ in range(single)], concurrency=1))
            before = cpu_seconds(pid)
            bursts.append(ask(address, [next(asked) for _ in range(burst)], concurrency=CONCURRENCY))
            cpu_ms.append((cpu_seconds(pid) - before) * 1000 / burst)
        memory = memory_mb(pid)
    rows = [
        [
            name,
            *(
                f"{statistics.median([getattr(load, key) for load in loads]):.1f}"
                for key in ("p50", "p95", "per_second")
            ),
        ]
        for name, loads in (("1 at a time", singles), (f"{CONCURRENCY} at once", bursts))
    ]
    print(f"\n{table(['', 'p50 ms', 'p95 ms', 'requests/s'], rows)}")
    print(f"CPU of cragside: {statistics.median(cpu_ms):.1f} ms per request; memory {memory:.0f} MB at the end")
    targets = [
        Target("1 at a time, p50", statistics.median([load.p50 for load in singles]), 20, "ms"),
        Target(
            f"{CONCURRENCY} concurrent",
            statistics.median([load.per_second for load in bursts]),
            100,
            "requests/s",
            at_most=False,
        ),
    ]
    saved = {
        "passages": PASSAGES,
        "single": [load.as_dict() for load in singles],
        "burst": [load.as_dict() for load in bursts],
        "cpu_ms": cpu_ms,
        "memory_mb": memory,
    }
    report("Embedded, no model server", targets, saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
