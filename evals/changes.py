"""Order of two documents of which the later one changes what the earlier one says.

    python evals/changes.py [--half development|held-out] [--missed]

Indexes the 40 pairs of `changes.jsonl` as files through the real pipeline, each half into a store of its own, and sends
each pair's question through the `Enricher`, on the embedded default without web search. The date of a document is in
its front matter, its first lines, its name or its mail header. Ten questions name the earlier time. There the earlier
document is to come first, and the grader may well drop the later one. Odd rows are for development; the held-out half
is for final figures alone.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import share
from halves import HALVES, chosen
from stores import ask, indexed, name_of

from cragside.domain.evidence import Document

PAIRS = Path(__file__).with_name("changes.jsonl")


@dataclass(frozen=True)
class File:
    """The name and the content of a file."""

    name: str
    text: str


@dataclass(frozen=True)
class Pair:
    """A document, a later one that changes it, and a question that each answers in its way."""

    kind: str
    language: str
    earlier: File
    later: File
    question: str
    old: str
    new: str
    names_earlier: bool


@dataclass(frozen=True)
class Asked:
    """A pair and the evidence for its question."""

    pair: Pair
    evidence: tuple[Document, ...]

    def place(self, file: File) -> int | None:
        """The place of a document in the evidence, from 0."""
        names = [name_of(document) for document in self.evidence]
        return names.index(file.name) if file.name in names else None

    @property
    def both(self) -> bool:
        """Tell if neither document was dropped."""
        return None not in (self.place(self.pair.earlier), self.place(self.pair.later))

    @property
    def first(self) -> bool:
        """Tell if the document that is asked for comes first of all."""
        wanted = self.pair.earlier if self.pair.names_earlier else self.pair.later
        return self.place(wanted) == 0

    @property
    def dated(self) -> bool:
        """Tell if both passages show a date."""
        named = [each for each in self.evidence if name_of(each) in self._names]
        return len(named) >= 2 and all(each.metadata.get("date") for each in named)

    @property
    def marked(self) -> bool:
        """Tell if the earlier passage, and no other of the pair, is marked as earlier."""
        marked = {name_of(each) for each in self.evidence if "earlierThan" in each.metadata}
        return marked & self._names == {self.pair.earlier.name}

    @property
    def _names(self) -> set[str]:
        return {self.pair.earlier.name, self.pair.later.name}


def read(half: str) -> list[Pair]:
    """The pairs of one half: the odd rows for development, the even ones held out."""
    rows = PAIRS.read_text("utf-8").splitlines()[HALVES.index(half) :: 2]
    pairs = [json.loads(row) for row in rows]
    return [Pair(**{**pair, **{name: File(**pair[name]) for name in ("earlier", "later")}}) for pair in pairs]


async def ask_all(pairs: Sequence[Pair]) -> list[Asked]:
    """Index both documents of all pairs, the later ones first, and ask the questions."""
    files = (*(pair.later for pair in pairs), *(pair.earlier for pair in pairs))
    async with indexed((file.name, file.text.encode()) for file in files) as container:
        return [Asked(pair, (await ask(container, pair.question)).documents) for pair in pairs]


def report(asked: Sequence[Asked]) -> None:
    """Print the figures of questions of now and of those that name the earlier time."""
    now = [each for each in asked if not each.pair.names_earlier]
    earlier = [each for each in asked if each.pair.names_earlier]
    print(f"{len(asked)} pairs")
    print(f"  later first                                  {share([each.first for each in now])}")
    print(f"  earlier marked as earlier                    {share([each.marked for each in now])}")
    print(f"  earlier first where the question names it    {share([each.first for each in earlier])}")
    print(f"  neither dropped                              {share([each.both for each in now])}")
    print(f"  both with their dates                        {share([each.dated for each in now])}")


def print_missed(asked: Sequence[Asked]) -> None:
    """Print the pairs whose order is wrong, with the evidence, its scores and dates."""
    for each in asked:
        if each.first and (each.pair.names_earlier or (each.both and each.marked)):
            continue
        print(f"\n{each.pair.kind}: {each.pair.question}")
        for found in each.evidence:
            date, mark = found.metadata.get("date"), "earlier" if "earlierThan" in found.metadata else ""
            print(f"  {found.score or 0.0:.3f} {date or '-':10} {mark:7} {name_of(found)}")


def main() -> None:
    options = chosen(__doc__)
    asked = asyncio.run(ask_all(read(options.half)))
    if options.missed:
        print_missed(asked)
    report(asked)


if __name__ == "__main__":
    main()
