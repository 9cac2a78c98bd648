"""One embedded store of many passages: its memory, the time to load it, and the CPU of a query.

`python -m benchmarks.large [--quick] [--passages N] [--json FILE]`

cragside's own indexing of so many passages takes hours. So the store of `benchmarks.scale` with 2,000 passages is
copied again and again into one store: each copy with other names of entities, other documents, and vectors that are
turned a little. So there are as many entities and relations for each passage as in the small store. What a model said
of the passages (40 % of the file) and the cache of embeddings are left out. Two sizes are measured, each in fresh
processes, and 1,000,000 passages are extrapolated linearly from them.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpus
from benchmarks.harness import OWN_PYTHON, ROOT, cache_folder, environment, machine, report, table
from benchmarks.stores import CHUNKING, store
from cragside.adapters.embedded.keywords import searched_words
from cragside.ports.clock import SYSTEM_CLOCK
from cragside.store.exchange import (
    Batches,
    DocumentRow,
    EdgeRow,
    EmbeddingRow,
    FactsRow,
    NodeRow,
    QueryRow,
    ValueRow,
    VectorRow,
)
from cragside.store.sqlite.exchange import dump, load

PASSAGES, QUICK_PASSAGES, BASE, EXTRAPOLATED = 40_000, 4_000, 2_000, 1_000_000
_KINDS = "Institute|Harbour|Museum|Railway|Observatory|Foundry|Library|Society|Canal|Mill"
_NAMES = re.compile(rf"\b([A-Z][a-z]+)(?= (?:{_KINDS})\b)")
_IDS = re.compile(r"\b(doc|ent|rel)-[0-9a-f]{4}")
_FILES = re.compile(r"\brecord-(?=\d)")
_SYLLABLES = ("ba", "do", "fi", "gu", "ke", "la", "mo", "ni", "pu", "re")
# The share of a vector that each copy turns into another direction.
_TURNED = 0.3


class Copies:
    """Gives the rows of a store several times, under other names."""

    def __init__(self, base: Path, count: int) -> None:
        self._base = base
        self._count = count
        self._random = np.random.default_rng(11)

    async def rows(self) -> Batches:
        """Yield all rows, kind after kind as a store takes them."""
        kinds: list[list[Any]] = []
        async for batch in dump(self._base):
            if kinds and type(kinds[-1][0]) is type(batch[0]):
                kinds[-1].extend(batch)
            else:
                kinds.append(list(batch))
        for rows in kinds:
            for copy in range(1 if isinstance(rows[0], FactsRow) else self._count):
                renamed = [self._renamed(row, copy) for row in rows if _kept(row)]
                if copy and isinstance(rows[0], NodeRow | EdgeRow):  # years and the like keep their names
                    renamed = [new for new, old in zip(renamed, rows, strict=True) if new[:-1] != old[:-1]]
                for start in range(0, len(renamed), 500):
                    yield renamed[start : start + 500]

    def _renamed(self, row: Any, copy: int) -> Any:
        if copy == 0:
            return row
        fields = {name: _renamed(value, copy) for name, value in row._asdict().items() if isinstance(value, str)}
        if hasattr(row, "version"):
            fields["version"] = row.version + copy * 10_000_000
        if isinstance(row, DocumentRow):
            fields["content_hash"] = f"{copy:08x}{row.content_hash[8:]}"
        if isinstance(row, VectorRow):
            vector = np.frombuffer(row.vector, np.float32)
            turned = vector + _TURNED * self._random.normal(size=len(vector)) / len(vector) ** 0.5
            fields["vector"] = (turned / np.linalg.norm(turned)).astype(np.float32).tobytes()
        if isinstance(row, EdgeRow):
            fields["source"], fields["target"] = sorted((fields["source"], fields["target"]))
        return row._replace(**fields)


def _kept(row: Any) -> bool:
    return not isinstance(row, EmbeddingRow | QueryRow) and not (
        isinstance(row, ValueRow) and row.namespace == "llm_response_cache"
    )


def _renamed(text: str, copy: int) -> str:
    end = "".join(_SYLLABLES[int(digit)] for digit in str(copy))
    text = _NAMES.sub(rf"\1{end}", text)
    text = _IDS.sub(rf"\1-x{copy:03x}", text)
    return _FILES.sub(f"record-{copy}-", text)


def copied(passages: int) -> Path:
    """Return the `RAG_HOME` of a store with that many passages; the first call builds it."""
    base = store(BASE)
    home = cache_folder() / f"large-{passages}-{base.name}"
    if not (home / "ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        (home / "default").mkdir(parents=True)
        print(f"building a store of {passages:,} passages in {home} (once) ...", flush=True)
        began = time.monotonic()
        rows = Copies(base / "default", passages // BASE).rows()
        asyncio.run(load(home / "default", rows, searched_words, SYSTEM_CLOCK))
        print(f"built in {time.monotonic() - began:.0f} s", flush=True)
        (home / "ready").touch()
    return home


async def measure(count: int) -> dict[str, float]:
    """Open the store of `RAG_HOME`, ask, and look for similar passages. Seconds and ms are of CPU, unless they say."""
    from cragside.bootstrap import Container
    from cragside.domain.query import SimilaritySearch
    from cragside.settings import load_settings

    asked = corpus.questions(BASE, count + 1)
    container = Container(load_settings())
    try:
        cpu, began = time.process_time(), time.perf_counter()
        repository = (await container.workspaces.open("default")).passages
        before = _peak_mb()
        await repository.retrieve(asked.pop(), limit=8)
        figures = {"first_s": time.process_time() - cpu, "first_wall_s": time.perf_counter() - began}
        figures |= {"before_mb": before, "peak_mb": _peak_mb()}

        async def retrieve(question: str) -> object:
            return await repository.retrieve(question, limit=8)

        async def after_a_write(question: str) -> object:
            _write(Path(os.environ["RAG_HOME"]) / "default" / "store.sqlite3")
            return await repository.retrieve(question, limit=8)

        async def enrich(question: str) -> object:
            return await container.enricher.enrich({"prompt": f"/rag {question}"})

        async def similar(question: str) -> object:
            return await repository.similar(SimilaritySearch(question, limit=8))

        for question in asked:  # warms up
            await retrieve(question)
        for name, ask in (("retrieve", retrieve), ("written", after_a_write), ("enrich", enrich), ("similar", similar)):
            figures[f"{name}_ms"] = await _median_ms(ask, asked)
        status = await repository.status()
        return figures | {"passages": status.passages, "entities": status.entities, "relations": status.relations}
    finally:
        await container.close()


def _write(path: Path) -> None:
    """Commit something, as a worker of another process does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('benchmark', hex(randomblob(8)))")


async def _median_ms(ask: Callable[[str], Awaitable[object]], questions: Sequence[str]) -> float:
    took = []
    for question in questions:
        began = time.process_time()
        await ask(question)
        took.append((time.process_time() - began) * 1000)
    return statistics.median(took)


def _peak_mb() -> float:
    # What `getrusage` says begins with the memory of the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def in_process(home: Path, count: int) -> dict[str, float]:
    """Run the measurement in a fresh process; its last line is JSON."""
    command = [OWN_PYTHON, "-m", "benchmarks.large", "--measure", "--count", str(count)]
    variables = environment(RAG_HOME=str(home), **CHUNKING)
    ended = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"The measurement of {home} failed:\n{ended.stderr[-3000:]}")
    measured: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return measured | {"file_mb": (home / "default" / "store.sqlite3").stat().st_size / 1e6}


SHOWN = {
    "relations": "relations",
    "entities": "entities",
    "file_mb": "file, MB",
    "first_s": "opening and first retrieval, s of CPU",
    "first_wall_s": "the same, s",
    "peak_mb": "memory at its peak, MB",
    "retrieve_ms": "retrieval, ms of CPU",
    "written_ms": "after another process's commit, ms of CPU",
    "enrich_ms": "/rag with the embedded grader, ms of CPU",
    "similar_ms": "similarity search, ms of CPU",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help=f"a smoke test with {QUICK_PASSAGES:,} passages")
    parser.add_argument("--passages", type=int, default=PASSAGES, help=f"the larger store ({PASSAGES:,})")
    parser.add_argument("--count", type=int, default=40, help="questions of each kind (40)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(asyncio.run(measure(arguments.count))))
        sys.exit()
    large = QUICK_PASSAGES if arguments.quick else arguments.passages
    homes = [copied(size) for size in (max(large // 4, BASE), large)]
    line = machine()
    small, big = (in_process(home, arguments.count) for home in homes)
    share = (EXTRAPOLATED - big["passages"]) / (big["passages"] - small["passages"])
    far = {name: big[name] + (big[name] - small[name]) * share for name in SHOWN}
    shown = (small, big) if arguments.quick else (small, big, far)  # too small to tell anything of a large one
    head = ["", *(f"{each['passages']:,.0f}" for each in (small, big)), f"{EXTRAPOLATED:,}, extrapolated"]
    rows = [[SHOWN[name], *(f"{each[name]:,.4g}" for each in shown)] for name in SHOWN]
    print(f"\n{table(head[: 1 + len(shown)], rows)}")
    report("One large store", [], {"small": small, "large": big, "far": far}, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
