"""Routes and grades of the embedded default on the half of CLAP-NQ that calibration did not use.

    python evals/clapnq.py --data FOLDER

Indexes the set's passages through the real pipeline (LightRAG, WordLlama, the rule-based extractor), once with that
half's gold passages and once without, and sends each question through the Enricher. Exit status 2: no data.
"""

import argparse
import asyncio
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from clapnq_data import DATASET, Passage, Question, read, snippet
from figures import auc, brier, calibration_error, reliability, share
from stores import EmptyWeb, ask, indexed, name_of

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.evidence import Document
from cragside.domain.verdict import DEFAULT_THRESHOLD


@dataclass(frozen=True)
class Grading:
    """A question with its own passage and the other retrieved ones, graded."""

    question: Question
    own_retrieved: bool
    own: float
    others: list[tuple[Document, float]]

    @property
    def best_other(self) -> float:
        return max((score for _, score in self.others), default=0.0)


def texts_of(passages: Iterable[Passage]) -> list[SourceText]:
    """The passages as documents of their own."""
    return [SourceText(f"{passage.key}.txt", passage.text, title=passage.title) for passage in passages]


async def stay_local(built: Container, questions: list[Question]) -> list[bool]:
    """Tell for each question if the pipeline accepts local evidence and does not ask the web."""
    local = []
    for question in questions:
        context = await ask(built, question.text)
        # A name in French may pass for a question in French, and a thing may not be named: hints, no failures.
        if any(lost.component not in ("language", "parts") for lost in context.degraded):
            raise SystemExit(f"The pipeline failed for {question.text!r}: {context.degraded}")
        local.append(not context.search_performed)
    return local


async def gradings(built: Container, questions: list[Question]) -> list[Grading]:
    """Retrieve for each question as the pipeline does, and grade its own passage and the other retrieved ones."""
    grader = EmbeddedGrader(WordLlamaEmbedder())
    repository = (await built.workspaces.open("default")).passages
    limit = built.settings.candidates
    found = []
    for question in questions:
        own_name = f"{question.passage.key}.txt"
        candidates = await repository.retrieve(question.text, limit=limit + 1)
        mine = [document for document in candidates[:limit] if name_of(document) == own_name]
        others = [document for document in candidates if name_of(document) != own_name][:limit]
        own, *rest = await grader.grade(question.text, [_document(question.passage), *others])
        if mine:
            own = max(await grader.grade(question.text, mine))
        found.append(Grading(question, bool(mine), own, list(zip(others, rest, strict=True))))
    return found


def report(graded: list[Grading]) -> None:
    answerable = [g for g in graded if g.question.answerable]
    others = [score for g in answerable for _, score in g.others]
    scores = np.array([g.own for g in answerable] + others)
    truth = np.array([1.0] * len(answerable) + [0.0] * len(others))
    print("\nGrading: gold passages against the other passages retrieved for the same question")
    print(f"  AUC    {auc(scores[truth == 1], scores[truth == 0]):.4f} ({len(answerable)} gold, {len(others)} other)")
    print(f"  Brier  {brier(scores, truth):.4f}   expected calibration error {calibration_error(scores, truth):.4f}")
    print("  score        pairs  mean score  share of gold")
    for low, high, count, mean, gold in reliability(scores, truth):
        print(f"  {low:.1f} to {high:.1f} {count:8} {mean:11.3f} {gold:14.3f}")
    false = [(g, d, s) for g in answerable for d, s in g.others if s > DEFAULT_THRESHOLD]
    print(f"  other passages above {DEFAULT_THRESHOLD}: {len(false)}, {_same_page(false)} of them of the gold's page")
    for g, document, score in false:
        print(f"    {score:.2f} {g.question.text} -> {document.title} (gold: {g.question.passage.title})")


def report_forms(questions: list[Question]) -> None:
    grader = EmbeddedGrader(WordLlamaEmbedder())
    print("\nThe same gold passages in other forms, share above the threshold")
    forms = {
        "with title": lambda q: (q.passage.title, q.passage.text),
        "without title": lambda q: ("", q.passage.text),
        "40-word web snippet with title": lambda q: (q.passage.title, snippet(q.text, q.passage.text)),
        "40-word web snippet without title": lambda q: ("", snippet(q.text, q.passage.text)),
    }
    for name, form in forms.items():
        above = [grader.scores(q.text, [form(q)])[0] > DEFAULT_THRESHOLD for q in questions]
        print(f"  {name:34} {share(above)}")
    above = [
        grader.scores(question.text, [("", _buried(questions, number))])[0] > DEFAULT_THRESHOLD
        for number, question in enumerate(questions)
    ]
    print(f"  {'the snippet amid 200 other words':34} {share(above)}")


def _buried(questions: list[Question], number: int) -> str:
    """The question's snippet between the first 100 words of two other passages."""
    before, after = (
        " ".join(questions[(number + step) % len(questions)].passage.text.split()[:100]) for step in (1, 2)
    )
    question = questions[number]
    return f"{before} {snippet(question.text, question.passage.text)} {after}"


def _same_page(false: list[tuple[Grading, Document, float]]) -> int:
    return sum(document.title == grading.question.passage.title for grading, document, _ in false)


def _document(passage: Passage) -> Document:
    return Document(id=passage.key, content=passage.text, source="local", title=passage.title)


async def evaluate(questions: list[Question]) -> None:
    held_out = [question for question in questions if not question.in_training_half]
    answerable = [question for question in held_out if question.answerable]
    off_answer = [question for question in held_out if not question.answerable]
    passages = list({question.passage.key: question.passage for question in questions}.values())
    gold = {question.passage.key for question in answerable}
    started = time.perf_counter()
    async with indexed(texts_of(passages), search=EmptyWeb()) as built:
        print(f"{DATASET}: {len(held_out)} held-out questions, {len(answerable)} answerable")
        print(f"indexed {len(passages)} passages of both halves in {time.perf_counter() - started:.1f} s")
        with_gold = await stay_local(built, answerable)
        unanswerable = await stay_local(built, off_answer)
        graded = await gradings(built, held_out)
    rest = [passage for passage in passages if passage.key not in gold]
    async with indexed(texts_of(rest), search=EmptyWeb()) as built:
        without_gold = await stay_local(built, answerable)
    mine = [g for g in graded if g.question.answerable]
    threshold = DEFAULT_THRESHOLD
    print("\nRoutes of answerable questions")
    print(f"  gold indexed: local                        {share(with_gold)}")
    print(
        f"    because of the gold passage itself       {share([g.own_retrieved and g.own > threshold for g in mine])}"
    )
    print(f"    gold among the candidates retrieved      {share([g.own_retrieved for g in mine])}")
    print(f"  gold of the half left out: web             {share([not local for local in without_gold])}")
    print(f"  only the question's own gold left out: web {share([g.best_other <= threshold for g in mine])}")
    print("\nQuestions whose own passage is on the subject without containing the answer (no embedded method can tell)")
    print(f"  still local                                {share(unanswerable)}")
    report(graded)
    report_forms(answerable)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("CLAPNQ_DIR") or "clapnq")
    parser.add_argument("--data", type=Path, default=default, help="folder of the set; default: $CLAPNQ_DIR")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    asyncio.run(evaluate(read(options.data)))


if __name__ == "__main__":
    main()
