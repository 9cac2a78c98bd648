"""Measures how a real small model answers from evidence that is laid out in different ways.

    python evals/layouts.py [--half development|held-out] [--layouts NAME ...] [--tokens 64]

Each question of `short_notes.jsonl` is sent with its own note between two others, in each layout, to the Ollama that
the tests build (`tests/services/ollama.py`), as a chat with temperature 0 and one seed. Counted are the answers that
cite their note, that cite anything else, that say what the note says and the question does not, and that repeat mark-up
of the layout. Odd rows are for development, even rows are held out.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cragside.domain.citations import citations_in
from cragside.domain.context import quoted
from cragside.domain.preferences import PLAIN
from tests.services import ollama
from tests.services.tools import Unavailable

SEED = 7
CODE = "k7v9qx"
BEFORE = PLAIN.replace("{code}", CODE)
AFTER = BEFORE.replace("evidence below", "evidence above").replace("the question that follows it", "the question")
REMINDER = (
    "Answer the question from the evidence above, in your own words, and put the number of the piece that you used "
    "behind each sentence, like this: [2]."
)
MARK_UP = re.compile(rf"</?evidence|{CODE}|relevance 0|\(local|^#+ ", re.MULTILINE)
WORD = re.compile(r"[\w.-]*\w")


@dataclass(frozen=True, slots=True)
class Note:
    """A piece of evidence."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, three notes, and the number of the one that answers it."""

    text: str
    notes: tuple[Note, ...]
    number: int

    def answer(self) -> set[str]:
        """The words that the note has and the question has not."""
        return _words(self.notes[self.number - 1].text) - _words(self.text)


def _heading(number: int, note: Note, *, score: bool) -> str:
    return f"[{number}] {note.title} (local, relevance 0.93) {CODE}" if score else f"[{number}] {note.title} {CODE}"


def _pieces(notes: Sequence[Note], *, score: bool = True, marked: bool = False, head: str = "") -> str:
    """The notes below their headings. If `marked`, each ends with its number, as a sentence that cites it does."""
    return "\n\n".join(
        f"{head}{_heading(number, note, score=score)}\n{note.text}{f' [{number}]' if marked else ''}"
        for number, note in enumerate(notes, 1)
    )


def _xml(pieces: str) -> str:
    return quoted("evidence", pieces, CODE)


def _markdown(pieces: str) -> str:
    return f"## Evidence {CODE}\n\n{pieces}\n\n## End of the evidence {CODE}"


LAYOUTS: dict[str, Callable[[Sequence[Note]], str]] = {
    "instruction before, scores, XML": lambda notes: f"{BEFORE}\n{_xml(_pieces(notes))}",
    "without scores": lambda notes: f"{BEFORE}\n{_xml(_pieces(notes, score=False))}",
    "instruction after": lambda notes: f"{_xml(_pieces(notes))}\n{AFTER}",
    "with a reminder": lambda notes: f"{BEFORE}\n{_xml(_pieces(notes))}\n{REMINDER}",
    "Markdown": lambda notes: f"{BEFORE}\n{_markdown(_pieces(notes, head='### '))}",
    "marked": lambda notes: f"{BEFORE}\n{_xml(_pieces(notes, marked=True))}",
}


def questions(half: str) -> list[Question]:
    """The questions of a half. The place of the right note changes from row to row."""
    rows = [json.loads(line) for line in (Path(__file__).parent / "short_notes.jsonl").read_text().splitlines()]
    notes = [Note(f"{row['domain']}.md", row["note"]) for row in rows]
    found = []
    for at, row in enumerate(rows):
        if (at % 2 == 0) != (half == "development"):
            continue
        others = [notes[(at + 23) % len(notes)], notes[(at + 47) % len(notes)]]
        place = at // 2 % 3
        found.append(Question(row["question"], (*others[:place], notes[at], *others[place:]), place + 1))
    return found


def _words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text) if len(word) > 2 or word.isdigit()}


def judged(answer: str, question: Question) -> list[str]:
    """List what counts of an answer."""
    cited = {citation.number for citation in citations_in(answer)}
    said = question.answer() & _words(answer)
    return [
        name
        for name, holds in (
            ("its note", question.number in cited),
            ("another", bool(cited - {question.number})),
            ("says", len(said) * 2 >= len(question.answer())),
            ("mark-up", bool(MARK_UP.search(answer))),
        )
        if holds
    ]


def main() -> int:
    """Ask all questions in all layouts and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("development", "held-out"), default="development")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS), metavar="NAME")
    parser.add_argument("--tokens", type=int, default=64, help="maximum tokens per answer")
    parser.add_argument("--answers", action="store_true", help="print each answer")
    chosen = parser.parse_args()
    try:
        server = ollama.server()
    except Unavailable as missing:
        print(f"Ollama cannot be built here: {missing}", file=sys.stderr)
        return 2
    options = {"temperature": 0, "seed": SEED, "num_predict": chosen.tokens, "num_ctx": 2048}
    asked, started = questions(chosen.half), time.monotonic()
    print(f"| layout | cites its note, of {len(asked)} | cites another | says what the note says | repeats mark-up |")
    print("|---|---|---|---|---|")
    with server as running, httpx.Client(base_url=running.url, timeout=300, trust_env=False) as client:
        for name in chosen.layouts:
            counted: Counter[str] = Counter()
            for question in asked:
                messages = [
                    {"role": "system", "content": LAYOUTS[name](question.notes)},
                    {"role": "user", "content": question.text},
                ]
                body = {"model": ollama.CHAT_MODEL, "messages": messages, "stream": False, "options": options}
                answer = client.post("/api/chat", json=body).raise_for_status().json()["message"]["content"]
                counted.update(judged(answer, question))
                if chosen.answers:
                    print(f"{question.number} {question.text} -> {answer!r}", flush=True)
            shown = " | ".join(str(counted[what]) for what in ("its note", "another", "says", "mark-up"))
            print(f"| {name} | {shown} |", flush=True)
    print(f"{ollama.CHAT_MODEL}, Ollama {ollama.VERSION}, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
