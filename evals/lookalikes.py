"""Questions about single reports among thousands that look alike.

    python evals/lookalikes.py [--size NUMBER ...]

Generates reports that differ in a name, a place, a number, a date and one fact, indexes them through the real pipeline,
and asks 30 questions that one report alone answers. Counts for how many the right report comes first: in the evidence
of the `Enricher`, among the candidates of retrieval, and by BM25 over all words of the question, which this script
computes by itself from the same texts.
"""

import argparse
import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from figures import share
from lookalike_reports import questions, reports
from stores import ask, candidates_for, indexed, name_of

from cragside.domain.document import SourceText
from cragside.domain.evidence import Document

SIZES = (1_000, 10_000)
QUESTIONS = 30
_BATCH = 500
_K1, _B = 1.2, 0.75
_WORD = re.compile(r"\w+")


class ExactBm25:
    """Texts ranked by BM25 with the weights of Lucene, by lower-case words and nothing else."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(_WORD.findall(text.lower())) for text in texts]
        lengths = np.array([counts.total() for counts in self._counts], float)
        self._norms = _K1 * (1 - _B + _B * lengths / lengths.mean())

    def scores(self, question: str) -> npt.NDArray[np.float64]:
        """The score of each text."""
        scores = np.zeros(len(self._counts))
        for word in set(_WORD.findall(question.lower())):
            times = np.array([counts[word] for counts in self._counts], float)
            holders = np.count_nonzero(times)
            weight = np.log(1 + (len(times) - holders + 0.5) / (holders + 0.5))
            scores += weight * times * (_K1 + 1) / (times + self._norms)
        return scores


async def judge(size: int) -> dict[str, list[bool]]:
    """Tell for each way of searching if the right report came first, question by question."""
    made = reports(size)
    asked = questions(made, QUESTIONS)
    bm25 = ExactBm25([report.text for report in made])
    found: dict[str, list[bool]] = {"cragside's evidence": [], "cragside's retrieval": [], "exact BM25": []}
    async with indexed() as container:
        repository = (await container.workspaces.open("default")).passages
        texts = [SourceText(_file(number), report.text) for number, report in enumerate(made)]
        for start in range(0, size, _BATCH):
            await repository.save_documents(texts[start : start + _BATCH])
        for question, number in asked:
            found["cragside's evidence"].append(_is_first(number, (await ask(container, question)).documents))
            found["cragside's retrieval"].append(_is_first(number, await candidates_for(container, question)))
            found["exact BM25"].append(int(bm25.scores(question).argmax()) == number)
    return found


def _is_first(number: int, found: Sequence[Document]) -> bool:
    return bool(found) and name_of(found[0]) == _file(number)


def _file(number: int) -> str:
    return f"report-{number:05d}.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="+", default=SIZES, metavar="NUMBER", help="reports (1000 10000)")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    for size in options.size:
        began = time.monotonic()
        found = asyncio.run(judge(size))
        print(f"{size:,} reports, the right one first ({time.monotonic() - began:.0f} s)")
        for way, flags in found.items():
            print(f"  {way:22} {share(flags)}", flush=True)


if __name__ == "__main__":
    main()
