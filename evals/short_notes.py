"""Tells if notes of one sentence answer their question, and only that one.

    python evals/short_notes.py

`short_notes.jsonl` has notes, table rows, FAQ entries and remembered exchanges, written for this evaluation. Each has a
question that it answers, a question about another number or name, and a title. The embedded grader scores the note for
both questions, and as echoes the title and the question itself.
"""

import json
from pathlib import Path

from figures import share

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.domain.verdict import DEFAULT_THRESHOLD

NOTES = Path(__file__).with_name("short_notes.jsonl")


Note = dict[str, str]
Results = dict[str, list[bool]]


def read_notes() -> list[Note]:
    """The notes, each with `note`, `question`, `other` (the question about something else) and `echo` (a title)."""
    return [json.loads(line) for line in NOTES.read_text(encoding="utf-8").splitlines()]


def judge(notes: list[Note], grader: EmbeddedGrader) -> Results:
    """For each note, whether each of the four comparisons comes out right."""

    def passes(question: str, text: str) -> bool:
        return grader.scores(question, [("", text)])[0] > DEFAULT_THRESHOLD

    return {
        "the note answers its question: local": [passes(note["question"], note["note"]) for note in notes],
        "the question has another number or name: leaves": [not passes(note["other"], note["note"]) for note in notes],
        "the title instead of the note: leaves": [not passes(note["question"], note["echo"]) for note in notes],
        "the question instead of the note: leaves": [not passes(note["question"], note["question"]) for note in notes],
    }


def main() -> None:
    notes = read_notes()
    for name, flags in judge(notes, EmbeddedGrader(WordLlamaEmbedder())).items():
        print(f"{name:50} {share(flags)}")
        for note, right in zip(notes, flags, strict=True):
            if not right:
                print(f"  wrong: {note['question']} | {note['other']} | {note['note']!r}")


if __name__ == "__main__":
    main()
