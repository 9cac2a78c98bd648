"""Tells if a search finds the right passage first, by similarity and by relevance, and which least cosine fits a model.

    python evals/ranking.py --data FOLDER [--half training|held-out] [--ollama URL --model NAME]

Indexes CLAP-NQ's passages, and then the notes of `short_notes.jsonl`, through the real pipeline, and asks each question
as `POST /v1/query` does. Then it prints what each least cosine keeps of the embedding model's vectors. With `--model`,
it prints that alone, for a model of an Ollama host. Exit status 2: no data.
"""

import argparse
import asyncio
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from clapnq import texts_of
from clapnq_data import Question, read
from figures import share
from short_notes import read_notes
from stores import EmptyWeb, indexed

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.model_host.embedder import HostedEmbedder
from cragside.adapters.ollama.host import OllamaHost
from cragside.application.passages import Lookup
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.query import Ranking
from cragside.ports.embedder import Embedder
from cragside.store.chunking import searched_text

STEPS = [round(0.05 * step, 2) for step in range(2, 16)]
KEPT = 0.9
RANKINGS: tuple[Ranking, ...] = ("similarity", "relevance")
# As much of a passage as small models read. Some versions of Ollama refuse more instead of cutting it.
_READ_BY_SMALL_MODELS = 900


@dataclass(frozen=True)
class Asked:
    """A question and the name of the document that answers it."""

    question: str
    name: str


@dataclass(frozen=True)
class Ranks:
    """The place of each question's document (0 is the first, None is not found), and CPU milliseconds a question."""

    places: list[int | None]
    milliseconds: float

    def within(self, places: int) -> list[bool]:
        """For each question, whether its document is among the first `places`."""
        return [place is not None and place < places for place in self.places]


async def ranks(built: Container, asked: Sequence[Asked], by: Ranking) -> Ranks:
    """Ask all questions, in one ranking, for eight passages."""
    places: list[int | None] = []
    started = time.process_time()
    for each in asked:
        lookup = Lookup(each.question, 8, by, least_similarity=0.0, both=True)
        found = await built.passages.find(lookup, workspace="default", seconds=30)
        names = [hit.record.name for hit in found.hits]
        places.append(names.index(each.name) if each.name in names else None)
    return Ranks(places, 1000 * (time.process_time() - started) / len(asked))


async def compare(sources: Sequence[SourceText], asked: Sequence[Asked]) -> dict[Ranking, Ranks]:
    """Index the sources, and rank them for each question in both ways.

    The first round reads the passages. It asks in other words, because the grader remembers questions.
    """
    async with indexed(sources, search=EmptyWeb()) as built:
        await ranks(built, [Asked(f"{each.question} ?", each.name) for each in asked], "relevance")
        return {by: await ranks(built, asked, by) for by in RANKINGS}


def kept(cosines: npt.NDArray[np.float32], own: Sequence[int], least: float) -> tuple[list[bool], float]:
    """For each question (a row), whether its own passage has the least cosine, and how many others have it."""
    mine = np.zeros(cosines.shape, bool)
    mine[np.arange(len(own)), own] = True
    above = cosines >= least
    return above[mine].tolist(), float((above & ~mine).sum(axis=1).mean())


def fitting(cosines: npt.NDArray[np.float32], own: Sequence[int]) -> float:
    """The largest step that keeps nine in ten of the questions' own passages."""
    return max(step for step in STEPS if np.mean(kept(cosines, own, step)[0]) >= KEPT)


async def report_thresholds(embedder: Embedder, half: Sequence[Question], everything: Sequence[Question]) -> None:
    """Print what each least cosine keeps, of passages as they are indexed with their title, and without one."""
    passages = list({question.passage.key: question.passage for question in everything}.values())
    keys = [passage.key for passage in passages]
    own = [keys.index(question.passage.key) for question in half]
    questions = await embedder.embed([question.text for question in half])
    most = None if isinstance(embedder, WordLlamaEmbedder) else _READ_BY_SMALL_MODELS
    fits = []
    for form in ("with title", "without title"):
        titles = [passage.title if form == "with title" else "" for passage in passages]
        texts = [searched_text(title, passage.text)[:most] for title, passage in zip(titles, passages, strict=True)]
        cosines = questions @ (await embedder.embed(texts)).T
        fits.append(fitting(cosines, own))
        print(f"\n{embedder.name}, passages {form}: what a least cosine keeps")
        for step in STEPS:
            flags, others = kept(cosines, own, step)
            print(f"  {step:.2f}  right {share(flags)}, {others:.1f} others a question")
    print(f"\n{embedder.name}: {min(fits):.2f} keeps {KEPT:.0%} with and without titles")


def report(name: str, results: dict[Ranking, Ranks]) -> None:
    print(f"\n{name}")
    for by, found in results.items():
        print(f"  by {by:10} first {share(found.within(1))}")
        print(f"  {'':13} in three {share(found.within(3))}")
        print(f"  {'':13} CPU of a question {found.milliseconds:.1f} ms")


async def evaluate(questions: list[Question], half: str) -> None:
    chosen = [each for each in questions if each.answerable and each.in_training_half == (half == "training")]
    passages = {question.passage.key: question.passage for question in questions}
    sources = texts_of(passages.values())
    asked = [Asked(question.text, f"{question.passage.key}.txt") for question in chosen]
    report(f"CLAP-NQ, {half} half: {len(asked)} questions, {len(sources)} passages", await compare(sources, asked))
    notes = read_notes()
    sources = [SourceText(f"{number}.txt", note["note"]) for number, note in enumerate(notes)]
    asked = [Asked(note["question"], f"{number}.txt") for number, note in enumerate(notes)]
    report(f"Short notes: {len(asked)} questions, as many notes", await compare(sources, asked))
    await report_thresholds(WordLlamaEmbedder(), chosen, questions)


async def measure(questions: list[Question], half: str, url: str, model: str) -> None:
    chosen = [each for each in questions if each.answerable and each.in_training_half == (half == "training")]
    host = OllamaHost(url, parallel=1)
    try:
        await report_thresholds(HostedEmbedder(host, model), chosen, questions)
    finally:
        await host.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("CLAPNQ_DIR") or "clapnq")
    parser.add_argument("--data", type=Path, default=default, help="folder of the set; default: $CLAPNQ_DIR")
    parser.add_argument("--half", choices=["training", "held-out"], default="training", help="default: training")
    parser.add_argument("--ollama", metavar="URL", default="http://127.0.0.1:11434", help="address of the host")
    parser.add_argument("--model", help="an embedding model of the host")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    questions = read(options.data)
    if options.model:
        asyncio.run(measure(questions, options.half, options.ollama, options.model))
    else:
        asyncio.run(evaluate(questions, options.half))


if __name__ == "__main__":
    main()
