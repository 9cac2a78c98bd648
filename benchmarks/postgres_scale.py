"""Retrieval from PostgreSQL as a workspace grows (1,000, 10,000 and 100,000 passages): time, round trips and recall.

`python -m benchmarks.postgres_scale --postgres URI [--quick] [--json FILE]`

URI names an empty database, to which the role may add schemas, tables and the extension `vector`. Its workspaces are
written in bulk (`benchmarks.postgres_stores`), all into one database, and stay there: the next run measures them again.
One of 200 passages is beside them. The time is that of `retrieve`, model, ranking and state check included, one
question after another, the sizes in turns: the median of the fastest of five rounds, because other load on a machine
only adds to it. Recall is the share of the passages retrieved by exact search that indexes
find as well, and of the 30 nearest vectors alone.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from typing import Any

from benchmarks import corpus
from benchmarks.harness import Target, machine, report, table
from benchmarks.postgres_stores import fill
from cragside.bootstrap import Container
from cragside.settings import load_settings

SMALL = 200
SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 6_000)
ROUNDS = 5
QUESTIONS = 60
LIMIT = 8
_NEAREST = 30
_NEAR = """SELECT found FROM crag.nearest('crag.searched', 'seq', 'vector', 'store = ' || $1::bigint,
    CASE WHEN $2::boolean THEN 'crag.near_passages_' || $1 END, $3::float4[], -1, $4::integer)"""
_STORED = """SELECT id, (SELECT passages FROM crag.extent WHERE store = id) FROM crag.store
    WHERE workspace = $1"""


async def _prepare(container: Container, sizes: tuple[int, ...]) -> None:
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder
    from cragside.composition.databases import migrate

    await migrate(container.database, WordLlamaEmbedder())
    for size in sizes:
        if await container.database.one(_STORED, _name(size)) is None:
            await fill(container, _name(size), corpus.passages(size))
    await migrate(container.database, WordLlamaEmbedder())  # indexes
    async with container.database.connection() as connection:
        await connection.execute("ANALYZE", timeout=600)


def _name(size: int) -> str:
    return f"size-{size}"


async def _retrieved(container: Container, size: int, questions: list[str]) -> tuple[list[list[str]], list[float]]:
    """The ids of the passages of each question, and the milliseconds that each took."""
    repository = (await container.workspaces.open(_name(size))).passages
    found, times = [], []
    for question in questions:
        began = time.perf_counter()
        documents = await repository.retrieve(question, limit=LIMIT)
        times.append((time.perf_counter() - began) * 1000)
        found.append([document.id for document in documents])
    return found, times


async def _nearest(container: Container, size: int, questions: list[str], *, by_index: bool) -> list[set[str]]:
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder

    store, _ = await container.database.one(_STORED, _name(size))
    vectors = WordLlamaEmbedder().encode(questions)
    rows = [await container.database.all(_NEAR, store, by_index, vector.tolist(), _NEAREST) for vector in vectors]
    return [{row[0] for row in each} for each in rows]


def _recall(found: list[Any], exact: list[Any]) -> float:
    pairs = zip(found, exact, strict=True)
    return sum(len({*some} & {*others}) for some, others in pairs) / max(1, sum(map(len, exact)))


async def measure(uri: str, sizes: tuple[int, ...]) -> dict[int, dict[str, float]]:
    """The figures of each size."""
    with tempfile.TemporaryDirectory() as home:
        settings = load_settings({**os.environ, "RAG_HOME": home, "POSTGRES_URI": uri})
        container = Container(settings)
        try:
            return await _measured(container, sizes)
        finally:
            await container.close()


async def _measured(container: Container, sizes: tuple[int, ...]) -> dict[int, dict[str, float]]:
    from cragside.store.postgres import searching

    await _prepare(container, sizes)
    asked = {size: corpus.questions(size, min(size, ROUNDS * QUESTIONS + QUESTIONS)) for size in sizes}
    found: dict[int, list[list[str]]] = {}
    for size in sizes:
        found[size], _ = await _retrieved(container, size, asked[size][:QUESTIONS])  # and warms up
    medians: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(1, ROUNDS + 1):
        for size in sizes:
            fresh = asked[size][number * QUESTIONS : (number + 1) * QUESTIONS] or asked[size][:QUESTIONS]
            _, times = await _retrieved(container, size, fresh)
            medians[size].append(statistics.median(times))
    shown = {}
    for size in sizes:
        near = [await _nearest(container, size, asked[size][:QUESTIONS], by_index=way) for way in (True, False)]
        shown[size] = {"p50_ms": min(medians[size]), "nearest": _recall(*near)}
    # Without the names of indexes, searches are exact.
    by_name = searching.index_of_passages, searching.index_of_rows
    searching.index_of_passages = lambda _: "NULL"
    searching.index_of_rows = lambda *_: "NULL"
    try:
        for size in sizes:
            exact, slow = await _retrieved(container, size, asked[size][:QUESTIONS])
            shown[size] |= {"recall": _recall(found[size], exact), "exact_ms": statistics.median(slow)}
    finally:
        searching.index_of_passages, searching.index_of_rows = by_name
    return shown


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--postgres", metavar="URI", required=True, help="an empty database with pgvector")
    parser.add_argument("--quick", action="store_true", help="a smoke test with up to 6,000 passages")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    sizes = QUICK_SIZES if arguments.quick else SIZES
    line = machine()
    measured = asyncio.run(measure(arguments.postgres, (SMALL, *sizes)))
    head = ["passages", "ms (p50)", "ms exactly", "recall of retrieval", f"recall of the {_NEAREST} nearest vectors"]
    keys = ("p50_ms", "exact_ms", "recall", "nearest")
    rows = [[f"{size:,}", *(f"{told[key]:.3g}" for key in keys)] for size, told in measured.items()]
    print(f"\n{table(head, rows)}")
    low, high = sizes[0], sizes[-1]
    recall = min(told["recall"] for told in measured.values())
    targets = [
        Target(f"retrieval, {high:,} / {low:,} passages", measured[high]["p50_ms"] / measured[low]["p50_ms"], 2),
        Target("recall of retrieval against exact search, the least of all sizes", recall, 0.98, at_most=False),
    ]
    saved = {str(size): told for size, told in measured.items()}
    report("A growing workspace in PostgreSQL", targets, saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
