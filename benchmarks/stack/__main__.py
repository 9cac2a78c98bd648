"""cragside on all real servers at once: PostgreSQL, Neo4j, SearXNG and Ollama, without a graphics card.

`python -m benchmarks.stack [--quick] [--embedded] [--steady MINUTES] [--only PART] [--json FILE]`

It starts the servers as the tests do, on loopback; the first run fetches PostgreSQL, Neo4j and SearXNG and builds
Ollama. One `cragside serve` has the graph in Neo4j, everything else in PostgreSQL, and the questions' embeddings from
Ollama. Then it measures what the specification (SC-001 to SC-005) and the contract promise, each with its target:

- whole answers of the small model through the proxy, one at a time: with local evidence, with pages of the web, and
  without the command;
- 100 `/rag` requests at once while a worker indexes 200 documents;
- a steady rate of questions: how much the service's memory grows.

The embedded grader decides, as where no model is fast enough. The time of a model that grades is told without a target:
that is what a graphics card is for.

With `--embedded` there is no Ollama: cragside's own model embeds, and there are no whole answers. It shows what the
databases and cragside stand, where two processors cannot embed 300 texts at once.
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import uvloop

from benchmarks.harness import Load, Target, cragside, machine, report, scratch, table
from benchmarks.stack.answers import Answers, Routes, ask_each, measure_routes, telling
from benchmarks.stack.load import Burst, measure_burst
from benchmarks.stack.questions import Knowledge
from benchmarks.stack.servers import index, migrate, servers, stop_on_sigterm
from benchmarks.stack.steady import PER_SECOND, Steady, measure_steady
from benchmarks.stack.targets import NOT_MEASURED, of_answers, of_load, of_steady
from benchmarks.stores import CHUNKING
from tests.services.ollama import CHAT_MODEL

PARTS = ("answers", "load", "steady")


@dataclass(frozen=True)
class Sizes:
    """Passages known beforehand, documents brought meanwhile, and questions of each kind."""

    passages: int
    later: int
    asked: int
    enriched: int
    graded: int
    minutes: float


FULL = Sizes(passages=60, later=200, asked=20, enriched=60, graded=10, minutes=30)
QUICK = Sizes(passages=30, later=20, asked=5, enriched=20, graded=2, minutes=1)


@dataclass
class Figures:
    """All that is measured; parts may be left out."""

    routes: Routes | None = None
    graded: Answers | None = None
    burst: Burst | None = None
    steady: Steady | None = None


def measure(
    folder: Path, sizes: Sizes, parts: Collection[str], minutes: float, *, embedded: bool
) -> tuple[Figures, str]:
    """Start everything and measure; also the versions of the servers."""
    knowledge, done = Knowledge(sizes.passages, sizes.later), Figures()
    with servers(knowledge.find, with_ollama=not embedded) as found:
        variables = {**found.variables, **CHUNKING}
        migrate(folder / "home", variables)
        with cragside(folder / "home", log=folder / "log", RAG_CHAT_MODEL="embedded", **variables) as (address, pid):
            print(f"indexing {sizes.passages} passages ...", flush=True)
            index(address, knowledge.documents)
            if "answers" in parts:
                print("whole answers ...", flush=True)
                done.routes = measure_routes(address, knowledge, found.engine.asked, sizes.asked, sizes.enriched)
                print("a model that grades ...", flush=True)
                with cragside(folder / "home", log=folder / "log-of-grading", **variables) as (graded_by_model, _):
                    done.graded = ask_each(graded_by_model, list(islice(telling(knowledge.local), sizes.graded)))
            if "load" in parts:
                print("100 at once ...", flush=True)
                done.burst = measure_burst(address, pid, knowledge)
            if "steady" in parts:
                print(f"{PER_SECOND:g} question a second for {minutes:g} minutes ...", flush=True)
                done.steady = uvloop.run(measure_steady(address, pid, knowledge, minutes))
        return done, found.versions


def details(figures: Figures) -> list[list[str]]:
    """A row for each kind of request: how many, failures, p50 and p95."""
    loads: dict[str, Load] = {}
    if (routes := figures.routes) and figures.graded:
        loads |= {
            "whole answer, local": routes.local.load,
            "whole answer, web": routes.web.load,
            "whole answer, no /rag": routes.plain.load,
            f"whole answer, local, graded by {CHAT_MODEL}": figures.graded.load,
            "evidence alone, local": routes.evidence,
            "evidence alone, web": routes.web_evidence,
        }
    if burst := figures.burst:
        loads |= {
            "bringing documents": burst.sent,
            "100 at once while indexing": burst.local,
            "100 at once, web": burst.web,
        }
    return [
        [name, str(len(load.latencies_ms)), str(len(load.failures)), f"{load.p50:,.0f}", f"{load.p95:,.0f}"]
        for name, load in loads.items()
        if load.latencies_ms
    ]


def tell(figures: Figures) -> list[Target]:
    """Print what has no target, and return what has one."""
    print(f"\n{table(['', 'requests', 'failures', 'p50 ms', 'p95 ms'], details(figures))}")
    told: list[Target] = []
    if routes := figures.routes:
        first = statistics.median(routes.local.first_ms)
        print(f"first piece of an answer with local evidence, p50: {first:,.0f} ms")
        print(f"right with /rag {routes.local.accuracy:.0f} %, without {routes.plain.accuracy:.0f} %")
        told += of_answers(routes)
    if burst := figures.burst:
        print(f"at most {burst.waiting} indexing tasks waited while 100 asked")
        for failure, count in Counter(burst.local.failures + burst.web.failures).most_common(3):
            print(f"{count} failed: {failure}")
        told += of_load(burst)
    if steady := figures.steady:
        first_mb, last_mb = steady.samples[0], steady.samples[-1]
        print(f"{steady.answered} good answers at the steady rate, memory {first_mb:.0f} to {last_mb:.0f} MB")
        for failure, count in Counter(steady.failures).most_common(3):
            print(f"{count} failed: {failure}")
        for wrong, count in Counter(steady.wrong).most_common(3):
            print(f"{count} degraded or without evidence: {wrong}")
        told += of_steady(steady)
    print(f"\nNot measured: {NOT_MEASURED}")
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stack", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test, with one minute of steady questions")
    parser.add_argument("--embedded", action="store_true", help="without Ollama: cragside's own model embeds")
    parser.add_argument("--steady", type=float, metavar="MINUTES", help="how long to ask at a steady rate (30)")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this part (all)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    line = machine()
    stop_on_sigterm()
    with scratch() as folder:
        parts = [part for part in arguments.only or PARTS if not (arguments.embedded and part == "answers")]
        minutes = arguments.steady or sizes.minutes
        figures, versions = measure(folder, sizes, parts, minutes, embedded=arguments.embedded)
    told = tell(figures)
    saved = {"servers": versions, "loads": details(figures), "steady": vars(figures.steady) if figures.steady else None}
    report(f"The whole stack: {versions}", told, saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
