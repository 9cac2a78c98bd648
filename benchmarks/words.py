"""Search by words in SQLite as a store grows (100, 3,000, 20,000 and 100,000 passages): recall and time.

`python -m benchmarks.words [--quick] [--texts FILE] [--json FILE]`

There are two kinds of passages: reports that look alike (`evals/lookalike_reports.py`), and prose: the texts of
`benchmarks.corpus` or, with `--texts`, those of a file of JSON lines `[title, text]`, each asked for with six words of
a row. Recall is the share of the ten best passages by BM25 over all words of the question that are among the first ten
found; equal scores count as the same. The time is the CPU's, of this search alone. Beside it are recall and time of a
search over the words that at most 5 % of the passages have, and the time over all words.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpus
from benchmarks.harness import Target, machine, report, scratch, table
from cragside.adapters.embedded.keywords import asked_words, searched_words
from cragside.store.ranking import words_of
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import write_vectors
from cragside.store.sqlite.vectors import SqliteVectorStorage
from evals.lookalike_reports import questions, reports

SIZES = (100, 3_000, 20_000, 100_000)
QUICK_SIZES = (100, 3_000)
QUESTIONS = 100
FIRST = 10
MOST = 3 * FIRST  # retrieval asks for so many to find ten
# Words in more than half of the passages add a millionth.
_SAME = 1e-4

Found = dict[int, float]


class WordSearch:
    """A store that has nothing but the words of passages."""

    def __init__(self, folder: Path, texts: Sequence[str]) -> None:
        self.database = Database.acquire(folder)
        self.passages = 0
        self.add(texts)
        config = {"working_dir": str(folder), "vector_db_storage_cls_kwargs": {"asked_text": asked_words}}
        asked: Any = {"namespace": "chunks", "workspace": "", "global_config": config, "embedding_func": len}
        self._storage = SqliteVectorStorage(**asked)

    @classmethod
    @asynccontextmanager
    async def opened(cls, folder: Path, texts: Sequence[str]) -> Any:
        """The store, while the block is open."""
        search = cls(folder, texts)
        await search._storage.initialize()
        try:
            yield search
        finally:
            await search._storage.finalize()
            search.database.release()

    def add(self, texts: Sequence[str]) -> None:
        """Write passages."""
        rows = {f"{number}-0-0-x-y": {"content": text} for number, text in enumerate(texts, start=self.passages)}
        vectors = np.zeros((len(texts), 1), np.float32)
        with self.database.transaction():
            write_vectors(self.database, "chunks", rows, vectors, list(map(searched_words, texts)))
        self.passages += len(texts)

    def spread(self, words: list[str]) -> dict[str, int]:
        """Count the passages that have each word."""
        return self._storage._spread(words)

    def found(self, question: str) -> Found:
        """Return the results of cragside's search with their scores."""
        return self._storage._full_text(question, MOST)

    def by_all(self, question: str, most: int = MOST) -> Found:
        """Return the passages that have all words of a question."""
        return self._by(words_of(asked_words(question)), most)

    def by_few(self, question: str) -> Found:
        """Search by the words that at most 5 % of the passages have, or by the rarest word."""
        words = words_of(asked_words(question))
        counts = self.database.within("SELECT term, doc FROM passage_term WHERE term IN ({})", words)
        spread = dict(counts) if self.passages > 200 else {}
        common = max(0.05 * self.passages, 200, min(spread.values(), default=0))
        return self._by([word for word in words if spread.get(word, 0) <= common], MOST)

    def _by(self, words: Sequence[str], most: int) -> Found:
        match = " OR ".join(f'"{word}"' for word in words)
        sql = "SELECT rowid, -rank FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?"
        return dict(self.database.all(sql, (match, most)))


def recall(found: Found, exact: Found) -> float:
    """The share of the first ten. `exact` has the scores of many more."""
    best = sorted(exact.values(), reverse=True)[:FIRST]
    first = sorted(found, key=lambda number: -found[number])[: len(best)]
    return sum(exact.get(number, 0.0) >= best[-1] - _SAME for number in first) / len(best)


def lookalikes(size: int) -> tuple[list[str], list[str]]:
    """Reports that look alike, and questions."""
    made = reports(size)
    return [each.text for each in made], [question for question, _ in questions(made, QUESTIONS)]


def prose(size: int, file: str | None) -> tuple[list[str], list[str]]:
    """Passages and questions: generated ones, or those of a file."""
    if file is None:
        texts = [passage.text for passage in corpus.passages(size)]
        return texts, corpus.questions(size, min(size, QUESTIONS))
    draw = random.Random(3)
    with Path(file).open(encoding="utf-8") as lines:
        texts = [" ".join(json.loads(line)) for line in lines]
    draw.shuffle(texts)
    texts = texts[:size]
    asked = []
    for text in draw.sample(texts, min(size, QUESTIONS)):
        words = text.split()
        start = draw.randrange(max(1, len(words) - 6))
        asked.append(" ".join(words[start : start + 6]))
    return texts, [question for question in asked if searched_words(question)]


async def measure(texts: Sequence[str], asked: Sequence[str]) -> dict[str, float]:
    """Recall, and CPU in ms per question."""
    with scratch() as folder:
        async with WordSearch.opened(folder / "store", texts) as search:
            exact = [search.by_all(question, most=20 * MOST) for question in asked]
            shown = {"passages": float(len(texts))}
            ways: dict[str, Callable[[str], Found]] = {"now": search.found, "few": search.by_few, "all": search.by_all}
            for name, way in ways.items():
                began = time.process_time()
                found = [way(question) for question in asked]
                shown[f"{name}_ms"] = (time.process_time() - began) * 1000 / len(asked)
                shown[name] = statistics.mean(map(recall, found, exact))
            return shown


def each_kind(sizes: Sequence[int], file: str | None) -> Iterator[tuple[str, dict[str, float]]]:
    """The figures of each kind and size."""
    for size in sizes:
        for kind, made in (("look-alikes", lookalikes(size)), ("prose", prose(size, file))):
            yield kind, asyncio.run(measure(*made))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test with up to 3,000 passages")
    parser.add_argument("--texts", metavar="FILE", help="JSON lines [title, text], in place of generated prose")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    line = machine()
    measured = list(each_kind(QUICK_SIZES if arguments.quick else SIZES, arguments.texts))
    head = ["", "passages", "recall", "ms", "recall, words of 5 %", "ms, words of 5 %", "ms, all words"]
    keys = ("now", "now_ms", "few", "few_ms", "all_ms")
    rows = [[kind, f"{told['passages']:,.0f}", *(f"{told[key]:.3f}" for key in keys)] for kind, told in measured]
    print(f"\n{table(head, rows)}")
    least = min(told["now"] for _, told in measured)
    targets = [Target("recall against BM25 over all words, the least", least, 0.98, at_most=False)]
    saved = {"measured": measured}
    report("Search by words", targets, saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
