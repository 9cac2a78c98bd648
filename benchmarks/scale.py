"""The cost of a query as the store grows (100, 2,000 and 20,000 passages), and the time to open the store.

`python -m benchmarks.scale [--quick] [--rounds N] [--peer] [--json FILE]`

cragside's own indexing builds the stores once from generated texts (`benchmarks.corpus`: a Zipf vocabulary, ten
passages per document, recurring named entities; the pool of names grows with the square root of the passages) and keeps
them in the cache folder. Each measurement is a fresh process without model server: it opens the store, asks one
question, warms up, and measures its CPU time over new questions. Rounds are interleaved.
`--peer` adds LightRAG's own file storages, filled by LightRAG's own pipeline with the same texts, passages, embedder
and extractor, and queried with given keywords. Building them takes hours at 20,000 passages.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.harness import OWN_PYTHON, ROOT, Target, environment, machine, report, table
from benchmarks.stores import CHUNKING, store

SIZES = (100, 2_000, 20_000)
QUICK_SIZES = (100, 1_000)
WARM_UP = 30


async def measure(passages: int, count: int) -> dict[str, float]:
    """Open the store of `RAG_HOME` and query it. Times in seconds, CPU in ms per query."""
    from cragside.bootstrap import Container
    from cragside.settings import load_settings

    asked = corpus.questions(passages, count + WARM_UP + 1)
    container = Container(load_settings())
    try:
        began = time.perf_counter()
        repository = (await container.workspaces.open("default")).passages
        opened = time.perf_counter() - began
        await repository.retrieve(asked.pop(), limit=8)
        first = time.perf_counter() - began
        for question in asked[:WARM_UP]:
            await container.enricher.enrich({"prompt": f"/rag {question}"})
        cpu, began = time.process_time(), time.perf_counter()
        for question in asked[WARM_UP:]:
            await container.enricher.enrich({"prompt": f"/rag {question}"})
        return {
            "open_s": opened,
            "first_query_s": first,
            "cpu_ms": (time.process_time() - cpu) * 1000 / count,
            "wall_ms": (time.perf_counter() - began) * 1000 / count,
        }
    finally:
        await container.close()


def in_process(module: str, passages: int, count: int, **variables: str) -> dict[str, float]:
    """Run the measurement in a fresh process; its last line is JSON."""
    command = [OWN_PYTHON, "-m", module, "--measure", str(passages), "--count", str(count)]
    ended = subprocess.run(command, env=environment(**variables), cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"The measurement of {passages:,} passages failed:\n{ended.stderr[-3000:]}")
    measured: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return measured


def rounds_of(sizes: Sequence[int], homes: dict[int, Path], rounds: int, count: int) -> Iterator[dict[int, Any]]:
    """In each round, one measurement of each size."""
    for number in range(rounds):
        print(f"round {number + 1} ...", flush=True)
        yield {n: in_process("benchmarks.scale", n, count, RAG_HOME=str(homes[n]), **CHUNKING) for n in sizes}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one round with up to 1,000 passages")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (3)")
    parser.add_argument("--peer", action="store_true", help="also measure LightRAG's own file storages (slow to build)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=200, help="questions per measurement (200)")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(asyncio.run(measure(arguments.measure, arguments.count))))
        sys.exit()
    sizes = QUICK_SIZES if arguments.quick else SIZES
    homes = {size: store(size) for size in sizes}
    line = machine()
    rounds = list(rounds_of(sizes, homes, 1 if arguments.quick else arguments.rounds, arguments.count))
    peers = _peers(sizes, arguments.count) if arguments.peer else {}
    _print(sizes, rounds, peers)
    low, high = sizes[0], sizes[-1]
    ratio = statistics.median([each[high]["cpu_ms"] / each[low]["cpu_ms"] for each in rounds])
    opened = statistics.median([each[high]["first_query_s"] for each in rounds])
    targets = [
        Target(f"CPU per query, {high:,} / {low:,} passages", ratio, 2),
        Target(f"opening {high:,} passages and the first retrieval, model included", opened, 1, "s"),
    ]
    saved = {"rounds": rounds, "peer": peers}
    report("A growing store", targets, saved, machine_line=line, file=arguments.json)


def _peers(sizes: Sequence[int], count: int) -> dict[int, dict[str, float]]:
    from benchmarks.peers.environment import peer_python, tokenizer_tables
    from benchmarks.peers.lightrag_files import build

    tables = str(tokenizer_tables(peer_python()))
    measured = {}
    for size in sizes:
        folder = build(size, tables)
        measured[size] = in_process(
            "benchmarks.peers.lightrag_files", size, count, TIKTOKEN_CACHE_DIR=tables, PEER_STORE=str(folder)
        )
    return measured


def _print(sizes: Sequence[int], rounds: Sequence[dict[int, Any]], peers: dict[int, dict[str, float]]) -> None:
    def row(name: str, size: int, found: Sequence[dict[str, float]]) -> list[str]:
        keys = ("cpu_ms", "wall_ms", "open_s", "first_query_s")
        return [name, f"{size:,}", *(f"{statistics.median([each[key] for each in found]):.2f}" for key in keys)]

    rows = [row("cragside", size, [each[size] for each in rounds]) for size in sizes]
    rows += [row("LightRAG, file storages", size, [peers[size]]) for size in peers]
    print(
        f"\n{table(['', 'passages', 'CPU ms per query', 'ms per query', 'open s', 'open and first retrieval s'], rows)}"
    )


if __name__ == "__main__":
    main()
