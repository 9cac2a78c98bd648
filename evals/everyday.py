"""Everyday questions about documents of a household, a firm, a practice and two clubs.

    python evals/everyday.py [--half tuning|held-out] [--missed]

Indexes the documents of one half through the real pipeline, and sends each question through the `Enricher` with its
conversation, on the embedded default without web search. Each question names the documents that answer it and strings
that the answer holds. The held-out half is for final figures alone.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import share
from halves import chosen
from stores import ask, candidates_for, files_in, indexed, name_of

from cragside.bootstrap import Container
from cragside.domain.evidence import Document
from cragside.domain.outcome import RagContext

FOLDER = Path(__file__).with_name("everyday")
HALVES = ("tuning", "held-out")
# Kinds whose questions need something of each named document.
SEVERAL = ("comparison", "list")


@dataclass(frozen=True)
class Question:
    """A question with its key. Without `documents`, no document answers it."""

    id: str
    kind: str
    language: str
    question: str
    documents: tuple[str, ...]
    answer: tuple[tuple[str, ...], ...]
    superseded: tuple[str, ...] = ()
    history: tuple[dict[str, str], ...] = ()
    any: bool = False

    def found_first_in(self, evidence: Sequence[Document]) -> bool:
        """Tell if a document of the key comes first."""
        return bool(evidence) and name_of(evidence[0]) in self.documents

    def answered_by(self, evidence: Sequence[Document]) -> bool:
        """Tell if the evidence holds the answer, from a document of the key."""
        texts = [_folded(each.content) for each in evidence if name_of(each) in self.documents]
        found = all(any(_folded(word) in text for word in words for text in texts) for words in self.answer)
        names = {name_of(each) for each in evidence}
        return found and (self.kind not in SEVERAL or self.any or names >= set(self.documents))


@dataclass(frozen=True)
class Asked:
    """A question and what came of it; `candidates` were retrieved, before they were graded."""

    question: Question
    context: RagContext
    candidates: tuple[Document, ...]

    @property
    def first(self) -> bool:
        """Tell if a document of the key comes first in the evidence."""
        return self.question.found_first_in(self.context.documents)

    @property
    def ranked_first(self) -> bool:
        """Tell if a document of the key comes first before anything is left out for its score."""
        return self.question.found_first_in(self.candidates)

    @property
    def answered(self) -> bool:
        """Tell if the evidence holds the answer."""
        return self.question.answered_by(self.context.documents)

    @property
    def confident(self) -> bool:
        """Tell if a passage is above the threshold."""
        return any((each.score or 0.0) > self.context.threshold for each in self.context.documents)

    @property
    def none(self) -> bool:
        """Tell if there is no evidence."""
        return not self.context.documents

    @property
    def graded_away(self) -> bool:
        """Tell if there is no evidence although the first candidate answers."""
        return self.none and self.question.answered_by(self.candidates[:1])


def read(half: str) -> list[Question]:
    """The questions of one half."""
    rows = json.loads((FOLDER / half / "questions.json").read_text("utf-8"))
    return [
        Question(
            **{name: row[name] for name in ("id", "kind", "language", "question")},
            documents=tuple(row["documents"]),
            answer=tuple(map(tuple, row["answer"])),
            superseded=tuple(row.get("superseded", ())),
            history=tuple(row.get("history", ())),
            any=row.get("any", False),
        )
        for row in rows
    ]


async def ask_all(half: str) -> list[Asked]:
    """Index the documents of one half and ask its questions."""
    async with indexed(files_in(FOLDER / half / "documents")) as container:
        return [await ask_one(container, question) for question in read(half)]


async def ask_one(container: Container, question: Question) -> Asked:
    """Send a question with its conversation."""
    context = await ask(container, question.question, question.history)
    candidates = await candidates_for(container, context.standalone_question or question.question)
    return Asked(question, context, tuple(candidates))


def report(asked: Sequence[Asked]) -> None:
    """Print the figures of all questions and of each kind."""
    there = [each for each in asked if each.question.documents]
    one_language = [each for each in there if each.question.kind != "mixed"]
    absent = [each for each in asked if not each.question.documents]
    print(f"{len(asked)} questions, {len(there)} with an answer")
    _row("right document first", there, lambda each: each.first)
    _row("first candidate of the right document, in one language", one_language, lambda each: each.ranked_first)
    _row("right document first, in one language", one_language, lambda each: each.first)
    _row("answer in the evidence", there, lambda each: each.answered)
    _row("answer in the evidence, in one language", one_language, lambda each: each.answered)
    _row("confident, no document of the key", there, lambda each: each.confident and not _of_key(each))
    _row("none, although the first candidate answers", there, lambda each: each.graded_away)
    _row("none", there, lambda each: each.none)
    _row("no answer anywhere, but confident", absent, lambda each: each.confident)
    print(f"\n{'kind':14} {'first':>9} {'answered':>9} {'none':>6}")
    for kind in dict.fromkeys(each.question.kind for each in there):
        some = [each for each in there if each.question.kind == kind]
        counts = [sum(map(flag, some)) for flag in (lambda e: e.first, lambda e: e.answered, lambda e: e.none)]
        print(f"{kind:14} {counts[0]:>3} of {len(some):<2} {counts[1]:>3} of {len(some):<2} {counts[2]:>6}")


def print_missed(asked: Sequence[Asked]) -> None:
    """Print the questions that went wrong, with the evidence and its scores."""
    for each in asked:
        wrong = each.confident if not each.question.documents else not (each.first and each.answered)
        if wrong:
            key = ", ".join(each.question.documents) or "nothing"
            print(f"\n{each.question.id} {each.question.kind}: {each.question.question}")
            print(f"  key: {key} {each.question.answer}")
            for found in each.context.documents[:3] or each.candidates[:3]:
                score = "not evidence" if each.none else f"{found.score or 0.0:.3f}"
                print(f"  {score:12} {name_of(found)}: {' '.join(found.content.split())[:110]}")


def _row(name: str, asked: Sequence[Asked], flag: Callable[[Asked], bool]) -> None:
    print(f"  {name:55} {share([flag(each) for each in asked])}")


def _of_key(each: Asked) -> bool:
    return any(name_of(found) in each.question.documents for found in each.context.documents)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def main() -> None:
    options = chosen(__doc__, HALVES)
    asked = asyncio.run(ask_all(options.half))
    if options.missed:
        print_missed(asked)
    report(asked)


if __name__ == "__main__":
    main()
