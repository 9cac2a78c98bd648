"""Routes of questions about notes that only their title makes the right ones.

    python evals/titles.py [--data FOLDER]

Indexes the 48 notes of `titles.jsonl` as files through the real pipeline, in passages of 64 tokens, and sends each
note's question through the `Enricher`, and a question about another thing. The notes never repeat their titles, which
are in the first line, in front matter, or in the file's name alone. With `--data` it also sends the questions of
CLAP-NQ's training half, whose passages have their titles in each of these places in turn.
"""

import argparse
import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from clapnq import stay_local
from clapnq_data import Passage, Question
from clapnq_data import read as read_questions
from figures import share
from stores import EmptyWeb, ask, candidates_for, indexed

from cragside.bootstrap import Container

NOTES = Path(__file__).with_name("titles.jsonl")


@dataclass(frozen=True)
class Note:
    """A note; where its title is; its question, and one about something that no note is about."""

    kind: str
    name: str
    title: str
    body: str
    question: str
    other: str

    @property
    def file(self) -> str:
        """The content of its file."""
        if self.kind == "file name":
            return self.body
        if self.kind == "front matter":
            return f'---\ntitle: "{self.title}"\n---\n\n{self.body}\n'
        return f"{self.title}\n\n{self.body}\n"

    @property
    def answer(self) -> str:
        """The words at the end of the passage that answers."""
        return " ".join(self.body.split()[-4:])


@dataclass(frozen=True)
class Judged:
    """A note, and where its questions led."""

    note: Note
    found: bool
    first: bool
    local: bool
    other_leaves: bool


def read() -> list[Note]:
    """The notes."""
    return [Note(**json.loads(line)) for line in NOTES.read_text("utf-8").splitlines()]


async def judge(notes: list[Note]) -> list[Judged]:
    """Index the notes and ask all questions."""
    files = [(note.name, note.file.encode()) for note in notes]
    async with indexed(files, chunk_tokens=64, chunk_overlap_tokens=8) as container:
        return [await _judged(container, note) for note in notes]


async def _judged(container: Container, note: Note) -> Judged:
    candidates = await candidates_for(container, note.question)
    own = [document.content.strip().endswith(note.answer) for document in candidates]
    asked, other = await ask(container, note.question), await ask(container, note.other)
    above = [each.content for each in asked.documents if (each.score or 0.0) > asked.threshold]
    return Judged(
        note,
        found=any(own),
        first=own[:1] == [True],
        local=any(text.strip().endswith(note.answer) for text in above),
        other_leaves=not any((each.score or 0.0) > other.threshold for each in other.documents),
    )


def report(judged: Iterable[Judged]) -> None:
    """Print the figures of each kind and of all."""
    everything = list(judged)
    for kind in (*dict.fromkeys(each.note.kind for each in everything), "all"):
        some = [each for each in everything if kind in (each.note.kind, "all")]
        print(f"\n{kind}: {len(some)} notes")
        print(f"  among the candidates              {share([each.found for each in some])}")
        print(f"  first                             {share([each.first for each in some])}")
        print(f"  local, because of this passage    {share([each.local for each in some])}")
        print(f"  another thing's question leaves   {share([each.other_leaves for each in some])}")


File = Callable[[Passage], tuple[str, str]]
PLACES: dict[str, File] = {
    "first line": lambda passage: (f"{passage.key}.txt", f"{passage.title}\n\n{passage.text}"),
    "front matter": lambda passage: (
        f"{passage.key}.md",
        f"---\ntitle: {json.dumps(passage.title)}\n---\n\n{passage.text}",
    ),
    "file name": lambda passage: (f"{passage.key[:2]}/{passage.title.replace('/', ' ')}.txt", passage.text),
    "nowhere": lambda passage: (f"{passage.key}.txt", passage.text),
}


async def routes(questions: list[Question], file: File, *, gold: bool) -> list[bool]:
    """Count the answerable questions that stay local, with all passages or without the answering ones."""
    answerable = [question for question in questions if question.in_training_half and question.answerable]
    left_out = set() if gold else {question.passage.key for question in answerable}
    passages = {question.passage.key: question.passage for question in questions}
    files = [file(passage) for key, passage in passages.items() if key not in left_out]
    async with indexed(((name, text.encode()) for name, text in files), search=EmptyWeb()) as container:
        return await stay_local(container, answerable)


async def report_routes(questions: list[Question]) -> None:
    """Print the routes of the training half."""
    for place, file in PLACES.items():
        print(f"\nCLAP-NQ, training half, title: {place}")
        print(f"  gold indexed: local     {share(await routes(questions, file, gold=True))}")
        web = [not local for local in await routes(questions, file, gold=False)]
        print(f"  gold left out: web      {share(web)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="CLAP-NQ's folder")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    report(asyncio.run(judge(read())))
    if options.data:
        asyncio.run(report_routes(read_questions(options.data)))


if __name__ == "__main__":
    main()
