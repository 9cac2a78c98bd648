"""Retrieval for follow-up questions, with and without the conversation before them.

    python evals/followups.py [--half development|held-out]

Indexes the demo's corpus through the real pipeline and sends the last question of each dialogue in `dialogues.tsv`
through the `Enricher`, once alone and once with the earlier turns. Odd rows are for development, even rows held out.
"""

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path

from halves import HALVES
from stores import ask, indexed, name_of

from cragside.domain.outcome import RagContext
from cragside.entrypoints.samples.documents import corpus

DIALOGUES = Path(__file__).with_name("dialogues.tsv")


@dataclass(frozen=True)
class Dialogue:
    """Turns (the assistant's begin with `A: `), the document that answers the last one, and whether it stands alone."""

    turns: tuple[str, ...]
    document: str
    alone: bool

    def earlier(self) -> list[dict[str, str]]:
        """The messages before the last question."""
        return [
            {"role": "assistant", "content": turn[3:]} if turn.startswith("A: ") else {"role": "user", "content": turn}
            for turn in self.turns[:-1]
        ]


def read(half: str) -> list[Dialogue]:
    """The dialogues of one half."""
    rows = [line.split("\t") for line in DIALOGUES.read_text("utf-8").splitlines()]
    found = [Dialogue(tuple(turns.split(" | ")), document, kind == "alone") for turns, document, kind in rows]
    return found[HALVES.index(half) :: 2]


async def main(half: str) -> None:
    """Print the figures of one half."""
    dialogues = read(half)
    async with indexed(corpus()) as container:
        before = [await ask(container, dialogue.turns[-1]) for dialogue in dialogues]
        after = [await ask(container, dialogue.turns[-1], dialogue.earlier()) for dialogue in dialogues]
    _print(half, dialogues, before, after)


def _print(half: str, dialogues: list[Dialogue], before: list[RagContext], after: list[RagContext]) -> None:
    for dialogue, found in zip(dialogues, after, strict=True):
        wrong = not _first(dialogue, found) or dialogue.alone is (found.standalone_question is not None)
        if wrong:
            print("missed:", " | ".join(dialogue.turns), "->", found.standalone_question, _names(found)[:1])
    for kind in (False, True):
        chosen = [i for i, dialogue in enumerate(dialogues) if dialogue.alone is kind]
        print(f"{half}, {'standing alone' if kind else 'follow-up'}: {len(chosen)} dialogues")
        for name, contexts in (("alone", before), ("with the turns", after)):
            first = sum(_first(dialogues[i], contexts[i]) for i in chosen)
            local = sum(_first(dialogues[i], contexts[i], above=contexts[i].threshold) for i in chosen)
            among = sum(f"{dialogues[i].document}.md" in _names(contexts[i]) for i in chosen)
            print(f"  {name}: first {first}, first and above the threshold {local}, in the evidence {among}")
        print(f"  changed: {sum(after[i].standalone_question is not None for i in chosen)}")


def _first(dialogue: Dialogue, found: RagContext, *, above: float = 0.0) -> bool:
    best = found.documents[0] if found.documents else None
    return best is not None and name_of(best) == f"{dialogue.document}.md" and (best.score or 0.0) > above


def _names(found: RagContext) -> list[str]:
    return [name_of(document) for document in found.documents]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, default="development")
    asyncio.run(main(parser.parse_args().half))
