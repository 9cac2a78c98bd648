"""Limits for a laptop: embedding 100 chunks, a similarity search over 50,000, memory for 100 documents.

`python -m benchmarks.limits [--quick] [--json FILE]`

All of it uses the embedded default, without model server. Each measurement is a separate process:

- It embeds 100 texts of about 1,000 tokens, then accepts the same texts and makes them searchable.
- It makes 50,000 passages of generated texts searchable (kept in the cache folder; without graph, which a similarity
  search does not use), and searches them with `similar`: nearest first, chosen for diversity, and with filters,
  one that a passage in a thousand matches and one that none matches.
- It indexes 100 documents of three pages, graph included. The figure is the peak resident memory that the operating
  system counted for the process.
"""

import argparse
import asyncio
import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import cragside
from benchmarks import corpus
from benchmarks.harness import OWN_PYTHON, ROOT, Target, cache_folder, environment, machine, report, scratch, table
from benchmarks.stores import CHUNKING
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.query import Condition, Filter, SimilaritySearch
from cragside.settings import load_settings

PASSAGES = 50_000
QUICK_PASSAGES = 2_000
PASSAGES_A_DOCUMENT = 10
DOCUMENTS = 100
CHUNKS = 100
# The numbers of corpus passages (about 300 tokens) in a chunk of 1,000 tokens and in a document of three pages.
_A_CHUNK = 3
_A_DOCUMENT = 6
_QUESTIONS = 30
_RARE = 1_000
_FIRST = "the first one, with the model and all vectors to load"
_CPU = "CPU of one without filter"


async def embedded() -> dict[str, float]:
    """Seconds for 100 chunks: to embed them, and from text to searchable."""
    written = corpus.passages(CHUNKS * _A_CHUNK)
    chunks = [text for _, text in corpus.documents(written, each=_A_CHUNK)]
    began = time.perf_counter()
    await WordLlamaEmbedder().embed(chunks)
    alone = time.perf_counter() - began
    container = Container(load_settings())
    try:
        began = time.perf_counter()
        passages = await make_searchable(container, [SourceText("book.txt", "\n\n".join(chunks))])
        return {"embedded_s": alone, "searchable_s": time.perf_counter() - began, "passages": passages}
    finally:
        await container.close()


async def searched(passages: int) -> dict[str, float]:
    """Milliseconds of similarity searches in the store of `RAG_HOME`."""
    asked = corpus.questions(passages, _QUESTIONS + 1)
    container = Container(load_settings())
    try:
        repository = (await container.workspaces.open("default")).passages

        def search(text: str, strategy: str, wanted: str | None) -> Callable[[], Awaitable[Sequence[object]]]:
            condition = () if wanted is None else (Condition("shelf", wanted),)
            query = SimilaritySearch(
                text,
                limit=10,
                threshold=0.0,
                strategy=strategy,
                filter=Filter(condition),  # type: ignore[arg-type]
            )
            return lambda: repository.similar(query)

        began = time.perf_counter()
        await search(asked.pop(), "similarity", None)()
        found = {_FIRST: (time.perf_counter() - began) * 1000}
        cpu = time.process_time()
        for question in asked:
            await search(question, "similarity", None)()
        found[_CPU] = (time.process_time() - cpu) * 1000 / len(asked)
        for name, strategy, wanted, expected in (
            ("similarity", "similarity", None, 10),
            ("mmr", "mmr", None, 10),
            ("filter of one in a thousand", "similarity", "shelf-7", min(10, passages // _RARE)),
            ("filter that nothing meets", "similarity", "nowhere", 0),
        ):
            found[name] = await _median_ms([search(question, strategy, wanted) for question in asked], expected)
        return found
    finally:
        await container.close()


async def indexed() -> dict[str, float]:
    """Peak resident memory in MB while indexing 100 documents of three pages."""
    container = Container(load_settings())
    before = _peak_mb()
    try:
        await corpus.index(container, corpus.documents(corpus.passages(DOCUMENTS * _A_DOCUMENT), each=_A_DOCUMENT))
        status = await (await container.workspaces.open("default")).passages.status()
        return {"before_mb": before, "peak_mb": _peak_mb(), "passages": status.passages}
    finally:
        await container.close()


async def make_searchable(container: Container, sources: Sequence[SourceText]) -> int:
    """Accept texts and embed all their parts, as the worker does. Returns the number of passages."""
    library = (await container.workspaces.open("default")).documents
    indexer = (await container.workspaces.open("default")).work
    passages = 0
    for source in sources:
        acceptance = await library.accept(source, enrich=False)
        for task in acceptance.tasks:
            await indexer.embed(task)
        passages += acceptance.record.passages
    return passages


async def fill(passages: int) -> dict[str, float]:
    """Fill the store of `RAG_HOME`. Each document names one of 100 shelves, which the filters use."""
    container = Container(load_settings())
    try:
        texts = corpus.documents(corpus.passages(passages), each=PASSAGES_A_DOCUMENT)
        sources = [
            SourceText(name, text, metadata={"shelf": f"shelf-{number * PASSAGES_A_DOCUMENT % _RARE // 10}"})
            for number, (name, text) in enumerate(texts)
        ]
        began = time.perf_counter()
        found = await make_searchable(container, sources)
        if found != passages:
            raise SystemExit(f"The store has {found:,} passages instead of {passages:,}.")
        return {"filled_s": time.perf_counter() - began}
    finally:
        await container.close()


async def _median_ms(searches: Sequence[Callable[[], Awaitable[Sequence[object]]]], expected: int) -> float:
    took = []
    for search in searches:
        began = time.perf_counter()
        found = await search()
        took.append((time.perf_counter() - began) * 1000)
        if len(found) < expected:
            raise SystemExit(f"A search found {len(found)} passages instead of {expected}.")
    return statistics.median(took)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_process(measurement: str, passages: int, home: Path, variables: Mapping[str, str]) -> dict[str, float]:
    """Run a measurement in a fresh process; its last line is JSON."""
    command = [OWN_PYTHON, "-m", "benchmarks.limits", "--measure", measurement, "--passages", str(passages)]
    ended = subprocess.run(
        command, env=environment(RAG_HOME=str(home), **variables), cwd=ROOT, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"The measurement {measurement!r} failed:\n{ended.stderr[-3000:]}")
    measured: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return measured


def filled(passages: int) -> Path:
    """`RAG_HOME` of a store with that many searchable passages; the first call builds it."""
    home = cache_folder() / f"searchable-{passages}-{corpus.VERSION}-{cragside.__version__}"
    if not (home / "ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        print(f"making {passages:,} passages searchable in {home} (once) ...", flush=True)
        print(f"took {in_process('fill', passages, home, CHUNKING)['filled_s']:.0f} s", flush=True)
        (home / "ready").touch()
    return home


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test with 2,000 passages")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    parser.add_argument("--measure", choices=["embedded", "searched", "indexed", "fill"], help=argparse.SUPPRESS)
    parser.add_argument("--passages", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measurements = {
            "embedded": embedded,
            "searched": lambda: searched(arguments.passages),
            "indexed": indexed,
            "fill": lambda: fill(arguments.passages),
        }
        print(json.dumps(asyncio.run(measurements[arguments.measure]())))
        sys.exit()
    line = machine()
    count = QUICK_PASSAGES if arguments.quick else PASSAGES
    with scratch() as folder:
        first = in_process("embedded", 0, folder / "embedded", {})
        second = in_process("searched", count, filled(count), CHUNKING)
        third = in_process("indexed", 0, folder / "indexed", {})
    print(f"\n{table(['search', 'ms'], [[name, f'{value:.1f}'] for name, value in second.items()])}")
    print(f"\n{first['passages']:.0f} chunks were searchable after {first['searchable_s']:.2f} s.")
    slowest = max(value for name, value in second.items() if name not in (_FIRST, _CPU))
    targets = [
        Target("embedding 100 chunks", first["embedded_s"], 5, "s"),
        Target(f"slowest kind of similarity search, {count:,} chunks", slowest / 1000, 1, "s"),
        Target("peak memory while indexing 100 documents", third["peak_mb"], 500, "MB"),
    ]
    saved = {"embedded": first, "searched": second, "indexed": third}
    report("Limits", targets, saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
