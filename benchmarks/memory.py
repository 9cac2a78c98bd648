"""The memory of a small service: two server processes and an indexing worker.

`python -m benchmarks.memory [--quick] [--json FILE]`

`cragside serve --workers 2` starts on an empty store and gets 100 documents of 10 passages; then 100 concurrent
questions, while the worker indexes; and 100 more when everything is indexed. The figure is the largest sum over all
processes at any moment, sampled seven times a second. Memory that processes share counts once.
"""

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks import corpus
from benchmarks.embedded import CONCURRENCY, WORKERS, ask
from benchmarks.harness import Target, cragside, get_json, machine, memory_mb, report, scratch, table

PASSAGES, EACH = 1_000, 10
LIMIT_MB = 400
_PAUSE_SECONDS = 0.15


class Peak:
    """The largest memory since `reset`, in MB: of a process and its children, or what else `measure` finds."""

    def __init__(self, pid: int, measure: Callable[[int], float] = memory_mb) -> None:
        self._pid = pid
        self._measure = measure
        self.largest = 0.0

    def sample(self) -> None:
        """Look once. A process that ends meanwhile is looked at next time."""
        try:
            self.largest = max(self.largest, self._measure(self._pid))
        except OSError:
            return

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Sample on a thread while the block runs."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(_PAUSE_SECONDS):
                self.sample()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def reset(self) -> float:
        """The peak so far, and begin anew."""
        self.sample()
        largest, self.largest = self.largest, 0.0
        return largest


def wait_until_indexed(address: str, seconds: float = 300) -> None:
    """Return when the queue is empty."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        queue = get_json(f"{address}/v1/queue/dead")
        if not queue["pending"] + queue["processing"]:
            return
        time.sleep(0.2)
    raise SystemExit("The documents were not indexed in time.")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test with a tenth of the documents")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    line = machine()
    written = corpus.passages(PASSAGES)
    brought = corpus.documents(written[: PASSAGES // 10] if arguments.quick else written, each=EACH)
    questions = [corpus.distinct(passage.question, number) for number, passage in enumerate(written)]
    peaks: dict[str, float] = {}
    with (
        scratch() as folder,
        cragside(folder / "home", log=folder / "cragside.log", workers=WORKERS) as (address, pid),
    ):
        peak = Peak(pid)
        with peak.watched():
            time.sleep(1)
            peaks["idle, just started"] = peak.reset()
            for name, text in brought:
                get_json(f"{address}/v1/documents", {"name": name, "text": text})
            ask(address, questions[:CONCURRENCY], concurrency=CONCURRENCY)
            peaks[f"{CONCURRENCY} concurrent questions while indexing"] = peak.reset()
            wait_until_indexed(address)
            peaks["indexing"] = peak.reset()
            ask(address, questions[CONCURRENCY : 2 * CONCURRENCY], concurrency=CONCURRENCY)
            peaks[f"{CONCURRENCY} concurrent questions, all indexed"] = peak.reset()
    print(f"\n{table(['moment', 'MB'], [[name, f'{megabytes:.0f}'] for name, megabytes in peaks.items()])}")
    targets = [Target("all processes at any moment", max(peaks.values()), LIMIT_MB, "MB")]
    report("Memory of a small service", targets, {"peaks": peaks}, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
