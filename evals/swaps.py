"""Tells if a question about another number, code, date or name leaves the local route.

    python evals/swaps.py --data FOLDER

Takes the answerable questions of CLAP-NQ's training half with their gold passages. Each question gets a number, a
year, a date or a code of its passage, or keeps a name that they share. The swap replaces it with one that the passage
lacks: one digit changed, another name of the set, or a name with one letter changed. The passage should pass for the
original and not for the swap. The weights were fitted on none of these questions.
"""

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from clapnq_data import CANDIDATES, SEED, Passage, Question, ranking, read, report, variants
from figures import share

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.embedded.words import words
from cragside.domain.verdict import DEFAULT_THRESHOLD

LETTERS = "abcdefghiklmnoprstu"
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_NUMBER = re.compile(r"(?<![\w.,:/–-])[0-9]{2,3}(?![\w.,:/–-]|\.[0-9])")
_YEAR = re.compile(r"(?<![\w.,:/–-])[12][0-9]{3}(?![\w,:/–-]|\.[0-9])")
_DATE = re.compile(rf"\b(?:(?:{MONTHS}) [0-9]{{1,2}}|[0-9]{{1,2}} (?:{MONTHS}))\b")
_NAME_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b")
_LOWER = re.compile(r"\b[a-z]{4,}\b")


@dataclass(frozen=True)
class Swap:
    """A question that the passage is right for, and the same one about something else."""

    kind: str
    original: str
    swapped: str
    text: str


def swaps_of(question: Question, names: list[str], choose: random.Random) -> Iterator[Swap]:
    """At most two swaps of each kind."""
    text = question.passage.text
    for kind, joint, pattern in (("number", "with", _NUMBER), ("year", "in", _YEAR), ("date", "on", _DATE)):
        found = sorted(set(pattern.findall(text)))
        for stated in choose.sample(found, min(2, len(found))):
            if (other := another_number(stated, text, choose)) is not None:
                yield Swap(kind, f"{question.text} {joint} {stated}", f"{question.text} {joint} {other}", text)
    for letters in ("K", "XR"):
        code = f"{letters}{choose.randrange(100, 1000)}"
        if (other := another_number(code, text, choose)) is not None:
            with_code = f"{question.passage.title.split(' (')[0]} {code}: {text}"
            yield Swap("code", f"{question.text} {code}", f"{question.text} {other}", with_code)
    own = set(words(f"{question.passage.title} {text}"))
    asked = words(question.text)
    for name in sorted({word for word in asked if word in names and word in own}):
        strange = [other for other in names if other not in own]
        place = choose.randrange(1, len(name))
        typo = name[:place] + choose.choice(LETTERS.replace(name[place], "")) + name[place + 1 :]
        for kind, other in (*(("name", other) for other in choose.sample(strange, 2)), ("letter", typo)):
            if other not in own:
                swapped = " ".join(other if word == name else word for word in asked)
                yield Swap(kind, question.text, swapped, text)


def another_number(stated: str, text: str, choose: random.Random) -> str | None:
    """`stated` with its last digit changed, so that the text lacks it."""
    last = max(place for place, letter in enumerate(stated) if letter.isdigit())
    others = [stated[:last] + digit + stated[last + 1 :] for digit in "123456789"]
    lacking = [other for other in others if re.search(rf"\b{other}\b", text) is None and other != stated]
    return choose.choice(lacking) if lacking else None


def names_of(passages: list[Passage]) -> list[str]:
    """The words that have a capital inside a sentence, and are written small nowhere in the set."""
    inside = {name.lower() for passage in passages for name in _NAME_INSIDE.findall(passage.text)}
    return sorted(inside - {word for passage in passages for word in _LOWER.findall(passage.text)})


def report_swaps(questions: list[Question], grader: EmbeddedGrader) -> None:
    choose = random.Random(SEED)
    names = names_of([question.passage for question in questions])
    local: dict[str, list[bool]] = defaultdict(list)
    leaves: dict[str, list[bool]] = defaultdict(list)
    for question in questions:
        for swap in swaps_of(question, names, choose) if question.answerable else ():
            passage = (question.passage.title, swap.text)
            for kind in (swap.kind, "all"):
                local[kind].append(grader.scores(swap.original, [passage])[0] > DEFAULT_THRESHOLD)
                leaves[kind].append(grader.scores(swap.swapped, [passage])[0] <= DEFAULT_THRESHOLD)
    for kind in sorted(local, key=lambda kind: (kind == "all", kind)):
        print(f"{kind:8} original local {share(local[kind])}\n{'':8} swap leaves    {share(leaves[kind])}")


def report_questions(questions: list[Question], grader: EmbeddedGrader) -> None:
    """Print the training half's own figures with every rule of the grader, not only the fitted weights."""
    passages = list({question.passage.key: question.passage for question in questions}.values())
    order = ranking([question.text for question in questions], passages)
    graded: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for number, (question, ranked) in enumerate(zip(questions, order, strict=True)):
        others = [p for i in ranked if (p := passages[i]).key != question.passage.key][:CANDIDATES]
        for passage in [*([question.passage] if question.answerable else []), *others]:
            for name, title, text in variants(question.text, passage):
                score = grader.scores(question.text, [(title, text)])[0]
                graded[name].append((score, float(passage is question.passage), number))
    for name, rows in graded.items():
        scores, truth, number = (np.array(column) for column in zip(*rows, strict=True))
        report(name, scores, truth, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with answerable.jsonl and unanswerable.jsonl")
    options = parser.parse_args()
    questions = [question for question in read(options.data) if question.in_training_half]
    grader = EmbeddedGrader(WordLlamaEmbedder())
    report_questions(questions, grader)
    print()
    report_swaps(questions, grader)


if __name__ == "__main__":
    main()
