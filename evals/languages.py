"""Routes of German and French questions, with their passages indexed and without them.

    python evals/languages.py [--half development|held-out] [--missed]

`languages.jsonl` has passages written for this evaluation, each with four questions that it answers, one about a
related subject that no passage treats (`other`), and one about its own subject that it leaves open (`more`). Passages
on even lines (from 0) are for development, those on odd lines are held out.

Indexes each language's passages through the real pipeline and sends the questions of the half through the `Enricher`:
with all passages, and without the half's own.
"""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from clapnq import stay_local, texts_of
from clapnq_data import Passage, Question
from figures import share
from halves import HALVES, chosen
from stores import EmptyWeb, indexed

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.domain.verdict import DEFAULT_THRESHOLD

SET = Path(__file__).with_name("languages.jsonl")
LANGUAGES = {"de": "German", "fr": "French"}


@dataclass(frozen=True)
class Entry:
    """A passage, the questions that it answers, one on a related subject, and one that it leaves open."""

    language: str
    half: str
    passage: Passage
    questions: tuple[str, ...]
    other: str
    more: str

    def asked(self, *texts: str) -> list[Question]:
        """Texts as questions about this passage."""
        return [Question(text, text, self.passage, text in self.questions) for text in texts]


def read_entries() -> list[Entry]:
    """All entries of the set."""
    rows = [json.loads(line) for line in SET.read_text(encoding="utf-8").splitlines()]
    return [
        Entry(
            row["language"],
            HALVES[number % 2],
            Passage(f"{row['language']}-{number}", row["title"], row["text"]),
            tuple(row["questions"]),
            row["other"],
            row["more"],
        )
        for number, row in enumerate(rows)
    ]


async def routes(passages: list[Passage], questions: list[Question]) -> list[bool]:
    """Tell which questions stay local, with these passages indexed."""
    async with indexed(texts_of(passages), search=EmptyWeb()) as container:
        return await stay_local(container, questions)


async def evaluate(entries: list[Entry], half: str, *, missed: bool) -> None:
    """Print the figures of one half, for each language."""
    grader = EmbeddedGrader(WordLlamaEmbedder())
    for code, language in LANGUAGES.items():
        own = [entry for entry in entries if entry.language == code and entry.half == half]
        passages = [entry.passage for entry in entries if entry.language == code]
        questions = [question for entry in own for question in entry.asked(*entry.questions)]
        others = [question for entry in own for question in entry.asked(entry.other)]
        more = [question for entry in own for question in entry.asked(entry.more)]
        local = await routes(passages, [*questions, *others, *more])
        mine = {entry.passage.key for entry in own}
        without = await routes([passage for passage in passages if passage.key not in mine], questions)
        answered, rest = local[: len(questions)], local[len(questions) :]
        bare = [grader.scores(q.text, [("", q.passage.text)])[0] > DEFAULT_THRESHOLD for q in questions]
        print(f"{language}, {half} half")
        print(f"  passage indexed: local           {share(answered)}")
        print(f"  half's passages removed: leaves  {share([not flag for flag in without])}")
        print(f"  related subject: leaves          {share([not flag for flag in rest[: len(others)]])}")
        print(f"  open in its passage: leaves      {share([not flag for flag in rest[len(others) :]])}")
        print(f"  passage without title: above {DEFAULT_THRESHOLD}  {share(bare)}")
        for question, flag in zip(questions, answered, strict=True):
            if missed and not flag:
                print(f"    missed: {question.text}")


if __name__ == "__main__":
    options = chosen(__doc__)
    asyncio.run(evaluate(read_entries(), options.half, missed=options.missed))
