"""Questions that name two things, compare, enumerate or ask for a list, each thing in a document of its own.

    python evals/several.py [--half development|held-out] [--missed]

Indexes the 21 or 22 short documents of one half through the real pipeline, and sends its 20 questions through the
`Enricher`, on the embedded default without web search. Each question names its documents with a string of each, and
the things that no document has. The held-out half is for final figures alone.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import share
from halves import chosen
from stores import ask, files_in, indexed, name_of

from cragside.domain.outcome import RagContext

FOLDER = Path(__file__).with_name("several")


@dataclass(frozen=True)
class Question:
    """A question; `answers` has a string of each document that answers a part, `absent` the things that none has."""

    id: str
    kind: str
    language: str
    question: str
    answers: Mapping[str, str]
    absent: Sequence[str]


@dataclass(frozen=True)
class Asked:
    """A question and what came of it."""

    question: Question
    context: RagContext

    @property
    def first(self) -> bool:
        """Tell if a document of the key comes first."""
        return bool(self.context.documents) and name_of(self.context.documents[0]) in self.question.answers

    @property
    def complete(self) -> bool:
        """Tell if the evidence has the answers of all documents of the key."""
        found = [(name_of(each), each.content) for each in self.context.documents]
        return all(
            any(name == wanted and text in content for name, content in found)
            for wanted, text in self.question.answers.items()
        )

    @property
    def told(self) -> str:
        """The reason of `degraded` that names what is missing, or ""."""
        return next((each.reason for each in self.context.degraded if each.component == "parts"), "")

    @property
    def right(self) -> bool:
        """Tell if exactly the absent things are told as missing."""
        told = self.told.count('"') // 2 == len(self.question.absent)
        return told and all(thing in self.told for thing in self.question.absent)


def read(half: str) -> list[Question]:
    """The questions of one half."""
    return [Question(**row) for row in json.loads((FOLDER / half / "questions.json").read_text("utf-8"))]


async def ask_all(half: str) -> list[Asked]:
    """Index the documents of one half and ask its questions."""
    async with indexed(files_in(FOLDER / half / "documents")) as container:
        return [Asked(question, await ask(container, question.question)) for question in read(half)]


def report(asked: Sequence[Asked]) -> None:
    """Print the figures of all questions and of each kind."""
    some_absent = [each for each in asked if each.question.absent]
    none_absent = [each for each in asked if not each.question.absent]
    evidence = [name_of(found) in each.question.answers for each in asked for found in each.context.documents]
    print(f"{len(asked)} questions")
    print(f"  {'evidence from all documents':32} {share([each.complete for each in asked])}")
    print(f"  {'right document first':32} {share([each.first for each in asked])}")
    print(f"  {'absent part told':32} {share([each.right for each in some_absent])}")
    print(f"  {'told although nothing is absent':32} {share([bool(each.told) for each in none_absent])}")
    print(f"  {'evidence that is of the key':32} {share(evidence)}")
    for kind in dict.fromkeys(each.question.kind for each in asked):
        some = [each for each in asked if each.question.kind == kind]
        print(f"  {kind:12} all {sum(e.complete for e in some)}, first {sum(e.first for e in some)} of {len(some)}")


def print_missed(asked: Sequence[Asked]) -> None:
    """Print the questions that went wrong, with their evidence."""
    for each in asked:
        if not (each.complete and each.first and each.right):
            print(f"\n{each.question.id} {each.question.kind}: {each.question.question} {dict(each.question.answers)}")
            for found in each.context.documents or each.context.closest:
                kept = "" if each.context.documents else " (not evidence)"
                print(f"  {found.score or 0.0:.3f} {name_of(found)}{kept}")
            print(f"  told: {each.told or 'nothing'}; absent: {', '.join(each.question.absent) or 'nothing'}")


def main() -> None:
    options = chosen(__doc__)
    asked = asyncio.run(ask_all(options.half))
    if options.missed:
        print_missed(asked)
    report(asked)


if __name__ == "__main__":
    main()
