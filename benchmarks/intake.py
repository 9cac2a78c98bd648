"""The time from a text to an answer after which it can be found, beside that of accepting alone.

`python -m benchmarks.intake [--quick] [--json FILE]`

In this process, without HTTP, on SQLite and with the embedded model. Texts of each length are taken in by turns: one is
left to a worker, as all were before, the next is made searchable at once. The longest time without a turn for others is
measured by a task that sleeps half a millisecond at a time.
"""

import argparse
import asyncio
import statistics
import time
from collections import defaultdict
from pathlib import Path

from benchmarks import corpus
from benchmarks.harness import Target, machine, report, scratch, table
from cragside.application import intake
from cragside.bootstrap import Container
from cragside.settings import load_settings

# Characters: a note, a page, ten pages, and the longest text that is searchable at once.
LENGTHS = 90, 3_600, 18_000, 99_000
PAIRS = 30
QUICK_PAIRS = 5
_TURN = 0.0005
_LIMIT = intake._AT_ONCE_CHARACTERS
_WAYS = {"left to the worker": -1, "at once": _LIMIT}


class Turns:
    """Notes the longest time for which other tasks had no turn."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Watch until cancelled."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_TURN)
            self.longest = max(self.longest, time.perf_counter() - began - _TURN)


def texts(pairs: int) -> dict[int, list[str]]:
    """Different texts of each length, two for a pair."""
    prose = "\n\n".join(
        text for _, text in corpus.documents(corpus.passages(6 * pairs * sum(LENGTHS) // 3_000), each=6)
    )
    made, begin = defaultdict[int, list[str]](list), 0
    for length in LENGTHS:
        for _ in range(2 * pairs):
            made[length].append(prose[begin : begin + length].strip())
            begin += length
    if not all(len(set(each)) == 2 * pairs for each in made.values()):
        raise SystemExit("The corpus is too short.")
    return made


async def measured(home: Path, pairs: int) -> dict[str, dict[str, float]]:
    """Return the medians of each length and way, in milliseconds."""
    container = Container(load_settings({"RAG_HOME": str(home)}))
    await container.intake.written("The lamp is lit at dusk.", name="first.md", workspace="w")
    turns = Turns()
    watching = asyncio.create_task(turns.watch())
    noted = defaultdict[str, list[tuple[float, float, float]]](list)
    for length, each in texts(pairs).items():
        for number, text in enumerate(each):
            way, most = list(_WAYS.items())[number % 2]
            vars(intake)["_AT_ONCE_CHARACTERS"] = most
            turns.longest = 0.0
            began, busy = time.perf_counter(), time.process_time()
            accepted = await container.intake.written(text, name=f"{length}-{number}.md", workspace="w")
            took, used = time.perf_counter() - began, time.process_time() - busy
            if accepted.record.searchable != (way == "at once"):
                raise SystemExit(f"A text of {length} characters was {accepted.record.status}.")
            noted[f"{length:,} characters, {way}"].append((took, used, turns.longest))
    watching.cancel()
    await container.close()
    return {what: _medians(rows) for what, rows in noted.items()}


def _medians(rows: list[tuple[float, float, float]]) -> dict[str, float]:
    medians = (1000 * statistics.median(column) for column in zip(*rows, strict=True))
    return dict(zip(("took_ms", "cpu_ms", "blocked_ms"), medians, strict=True))


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    line = machine()
    with scratch() as folder:
        figures = asyncio.run(measured(folder, QUICK_PAIRS if arguments.quick else PAIRS))
    rows = [[what, *(f"{value:.1f}" for value in each.values())] for what, each in figures.items()]
    print(f"\n{table(['text', 'ms', 'ms of CPU', 'longest block, ms'], rows)}")
    page = figures[f"{LENGTHS[1]:,} characters, at once"]["took_ms"]
    targets = [Target("a page of text is searchable after", page, 50, "ms")]
    report("Intake", targets, figures, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
