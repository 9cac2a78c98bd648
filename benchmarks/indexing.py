"""Indexing: chunks per second compared with lightrag-server on one stub, and the cost of a chunk as the corpus grows.

`python -m benchmarks.indexing [--quick] [--rounds N] [--only peer|rate|growth] [--json FILE]`

Both servers get the same documents over HTTP, split into the same passages, and the same stub Ollama: chat 300 ms,
embeddings 20 ms. Time runs from the first request until the last document is in graph and vectors; cragside's time
includes its tiers 2 and 3. The rate and the growth are measured on the embedded default, in a process without model
server. The rate counts chunks per second from the first document until all are searchable, and until all are in the
graph too. The growth is CPU time per chunk, over 1,000 chunks around the first thousand and over the last thousand.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from benchmarks import corpus
from benchmarks.harness import (
    OWN_PYTHON,
    ROOT,
    Target,
    cragside,
    environment,
    get_json,
    machine,
    report,
    scratch,
    stub,
    table,
)
from benchmarks.peers.environment import LIGHTRAG_VERSION
from benchmarks.peers.lightrag_server import ingest as lightrag_ingest
from benchmarks.peers.lightrag_server import lightrag_server
from benchmarks.stores import CHUNKING, PASSAGES_A_DOCUMENT

# The peer counts tokens differently; with this size its passages equal ours.
PEER_CHUNKING = {"CHUNK_SIZE": "265", "CHUNK_OVERLAP_SIZE": "0"}
_WINDOW = 1_000
_BATCH = 25


@dataclass(frozen=True)
class Sizes:
    """Numbers of documents for the servers, and of chunks for the rate and the growth."""

    documents: int
    rate: int
    growth: int
    rounds: int


FULL = Sizes(documents=40, rate=2_000, growth=100_000, rounds=3)
QUICK = Sizes(documents=6, rate=300, growth=3_000, rounds=1)


def beside_the_peer(documents: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Chunks per second of both, each on an empty store, one after the other."""
    with scratch() as folder, ExitStack() as stack:
        ollama = stack.enter_context(stub("ollama"))
        variables = {"OLLAMA_BASE_URL": ollama, **CHUNKING}
        address, _ = stack.enter_context(cragside(folder / "home", log=folder / "cragside.log", **variables))
        ours, chunks = _ingest(address, documents)
        peer, _ = stack.enter_context(lightrag_server(folder, ollama, **PEER_CHUNKING))
        theirs = lightrag_ingest(peer, documents)
        peer_chunks = _peer_chunks(peer)
    return {
        "chunks": chunks,
        "seconds": ours,
        "per_second": chunks / ours,
        "peer_chunks": peer_chunks,
        "peer_seconds": theirs,
        "peer_per_second": peer_chunks / theirs,
    }


def _ingest(server: str, documents: Sequence[tuple[str, str]], *, seconds: float = 600) -> tuple[float, int]:
    """Index (name, text) pairs and wait for the last one. Returns the seconds and the number of chunks."""
    began = time.monotonic()
    taken = get_json(f"{server}/ingest", {"items": [{"source": name, "text": text} for name, text in documents]})
    while time.monotonic() < began + seconds:
        totals = get_json(f"{server}/enrichment/stats")["totals"]
        if totals.get("enriched", 0) >= taken["upserted"]:
            return time.monotonic() - began, int(taken["upserted"])
        if totals.get("failed", 0):
            raise SystemExit(f"cragside could not index the documents: {totals}")
        time.sleep(0.2)
    raise SystemExit(f"cragside did not index {len(documents)} documents in {seconds:.0f} s.")


def _peer_chunks(server: str) -> int:
    body = {"page": 1, "page_size": 200}
    listed = get_json(f"{server}/documents/paginated", body)["documents"]
    return sum(int(document["chunks_count"] or 0) for document in listed)


async def rate(chunks: int) -> dict[str, float]:
    """Index that many chunks into the store of `RAG_HOME`. Chunks per second and CPU ms per chunk from the start on."""
    from cragside.bootstrap import Container
    from cragside.domain.document import SourceText
    from cragside.settings import load_settings

    container = Container(load_settings())
    name = container.settings.workspace
    documents = corpus.documents(corpus.passages(chunks), each=PASSAGES_A_DOCUMENT)
    try:
        await corpus.index(container, [("first.txt", "The first text loads the models.")])
        workspace = await container.workspaces.open(name)
        began, worked = time.monotonic(), time.process_time()
        for source, text in documents:
            await container.intake.text(SourceText(source, text), workspace=name)
        for task in await workspace.documents.restart(failures=False):
            if task.stage == "embed":
                await workspace.work.embed(task)
        searchable = time.monotonic() - began, time.process_time() - worked
        await corpus.index(container, [])
        whole = time.monotonic() - began, time.process_time() - worked
    finally:
        await container.close()
    return {
        "searchable_per_second": chunks / searchable[0],
        "searchable_ms": searchable[1] * 1000 / chunks,
        "graph_per_second": chunks / whole[0],
        "graph_ms": whole[1] * 1000 / chunks,
    }


async def grow(chunks: int) -> dict[str, float]:
    """Index that many chunks into the store of `RAG_HOME`. CPU ms per chunk around the first and the last 1,000."""
    from cragside.bootstrap import Container
    from cragside.settings import load_settings

    container = Container(load_settings())
    documents = corpus.documents(corpus.passages(chunks), each=PASSAGES_A_DOCUMENT)
    spent: list[float] = []
    try:
        for start in range(0, len(documents), _BATCH):
            began = time.process_time()
            batch = documents[start : start + _BATCH]
            await corpus.index(container, batch)
            spent.append((time.process_time() - began) * 1000)
            print(
                f"\r{(start + len(batch)) * PASSAGES_A_DOCUMENT:,} of {chunks:,}", end="", file=sys.stderr, flush=True
            )
        found = (await (await container.workspaces.open("default")).passages.status()).passages
        if found != chunks:
            raise SystemExit(f"The store has {found:,} passages instead of {chunks:,}.")
    finally:
        await container.close()
    each, batches = _BATCH * PASSAGES_A_DOCUMENT, _WINDOW // (_BATCH * PASSAGES_A_DOCUMENT)
    middle = _WINDOW // each
    first = spent[middle - batches // 2 : middle + batches // 2]
    return {
        "first_ms": sum(first) / (len(first) * each),
        "last_ms": sum(spent[-batches:]) / (batches * each),
        "mean_ms": sum(spent) / (len(spent) * each),
    }


def _apart(what: str, chunks: int) -> dict[str, float]:
    """Measure in a process and a store of their own."""
    with scratch() as home:
        command = [OWN_PYTHON, "-m", "benchmarks.indexing", f"--{what}", str(chunks)]
        variables = environment(RAG_HOME=str(home), **CHUNKING)
        ended = subprocess.run(command, env=variables, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return measured


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one small round")
    parser.add_argument("--rounds", type=int, help="rounds of the comparison with the peer (3)")
    parser.add_argument("--only", choices=("peer", "rate", "growth"), help="run only one of the measurements")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    for apart in ("--grow", "--rate"):
        parser.add_argument(apart, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if chunks := arguments.grow or arguments.rate:
        print(json.dumps(asyncio.run((grow if arguments.grow else rate)(chunks))))
        return
    sizes = QUICK if arguments.quick else FULL
    line = machine()
    saved: dict[str, Any] = {"peer": f"lightrag-hku[api] {LIGHTRAG_VERSION}"}
    targets: list[Target] = []
    if arguments.only in (None, "peer"):
        documents = corpus.documents(corpus.passages(sizes.documents * PASSAGES_A_DOCUMENT), each=PASSAGES_A_DOCUMENT)
        rounds = [beside_the_peer(documents) for _ in range(arguments.rounds or sizes.rounds)]
        saved["rounds"] = rounds
        _print(rounds)
        ratio = statistics.median([each["per_second"] / each["peer_per_second"] for each in rounds])
        targets.append(Target("chunks indexed a second / lightrag-server's", ratio, 10, at_most=False))
    if arguments.only in (None, "rate"):
        rates = [_apart("rate", sizes.rate) for _ in range(arguments.rounds or sizes.rounds)]
        saved["rates"] = rates
        median = {name: statistics.median([each[name] for each in rates]) for name in rates[0]}
        print(f"CPU a chunk: {median['searchable_ms']:.2f} ms until searchable, {median['graph_ms']:.1f} ms with graph")
        targets += [
            Target("chunks searchable a second", median["searchable_per_second"], 300, at_most=False),
            Target("chunks a second with graph", median["graph_per_second"], 80, at_most=False),
        ]
    if arguments.only in (None, "growth"):
        growth = saved["growth"] = _apart("grow", sizes.growth)
        print(f"CPU a chunk: {growth['first_ms']:.1f} ms at 1,000, {growth['last_ms']:.1f} ms at {sizes.growth:,}")
        ratio = growth["last_ms"] / growth["first_ms"]
        targets.append(Target(f"CPU a chunk, at {sizes.growth:,} / at 1,000", ratio, 1.5))
    report("Indexing", targets, saved, machine_line=line, file=arguments.json)


def _print(rounds: Sequence[dict[str, float]]) -> None:
    def row(name: str, prefix: str) -> list[str]:
        found = [[each[f"{prefix}{key}"] for each in rounds] for key in ("chunks", "seconds", "per_second")]
        return [name, *(f"{statistics.median(values):,.1f}" for values in found)]

    rows = [row("cragside", ""), row("lightrag-server", "peer_")]
    print(f"\n{table(['', 'chunks', 'seconds', 'chunks a second'], rows)}\n")


if __name__ == "__main__":
    main()
