"""Measures if the check of citations tells sentences that a passage supports from others.

    python evals/citations.py --data FOLDER [--half training|held-out]

Takes CLAP-NQ's answerable questions. Supported: sentences of a gold passage, and sentences of the answers that people
wrote from it. Unsupported: the same sentences against the best ranked other passage, and against their own passage
with a number or a name replaced by one that it lacks. Prints what each least coverage keeps; the one in
`adapters/embedded/grader.py` was chosen on the training half.
"""

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clapnq_data import SEED, Question, natural, ranking, read
from figures import share
from swaps import another_number, names_of

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import LEAST_COVERAGE, EmbeddedSupportJudge
from cragside.adapters.embedded.words import words
from cragside.domain.citations import sentences_of

# With fewer words a sentence says too little to be right or wrong.
LEAST_WORDS = 6
_NUMBER = re.compile(r"(?<![\w.,:/–-])[0-9]{1,4}(?![\w,:/–-]|\.[0-9])")
_SUPPORTED = ("taken", "rephrased")


@dataclass(frozen=True)
class Pair:
    """A sentence and the passage that it is compared with. `kind` says where they come from."""

    kind: str
    sentence: str
    title: str
    text: str


def answers_of(folder: Path) -> dict[str, list[str]]:
    """The answers that people wrote, by the ids of the questions."""
    rows = map(json.loads, (folder / "answerable.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["id"]: [natural(each["answer"]) for each in row["output"]] for row in rows}


def pairs_of(questions: list[Question], answers: dict[str, list[str]]) -> Iterator[Pair]:
    choose = random.Random(SEED)
    passages = list({question.passage.key: question.passage for question in questions}.values())
    names = names_of(passages)
    order = ranking([question.text for question in questions], passages)
    for question, ranked in zip(questions, order, strict=True):
        own = question.passage
        other = next(passages[i] for i in ranked if passages[i].title != own.title)
        written = [sentence for answer in answers[question.id] for sentence in told(answer)]
        taken = choose.sample(told(own.text), min(3, len(told(own.text))))
        for kind, sentences in (("taken", taken), ("rephrased", written)):
            for sentence in sentences:
                yield Pair(kind, sentence, own.title, own.text)
                yield Pair(f"{kind}, other passage", sentence, other.title, other.text)
                for what, swapped in swapped_in(sentence, f"{own.title} {own.text}", names, choose):
                    yield Pair(f"{kind}, {what} swapped", swapped, own.title, own.text)


def told(text: str) -> list[str]:
    """The sentences that say something."""
    return [each for each in sentences_of(text) if len(words(each)) >= LEAST_WORDS]


def swapped_in(sentence: str, text: str, names: list[str], choose: random.Random) -> Iterator[tuple[str, str]]:
    """The sentence with a number, and with a name, that the text lacks."""
    numbers = sorted(set(_NUMBER.findall(sentence)))
    if numbers and (other := another_number(stated := choose.choice(numbers), text, choose)) is not None:
        yield "number", re.sub(rf"\b{stated}\b", other, sentence)
    own = set(words(text))
    named = [word for word in re.findall(r"\b[A-Z][a-z]{3,}\b", sentence[1:]) if word.lower() in names]
    if named:
        replacement = choose.choice([name for name in names if name not in own]).capitalize()
        yield "name", re.sub(rf"\b{choose.choice(named)}\b", replacement, sentence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with answerable.jsonl and unanswerable.jsonl")
    parser.add_argument("--half", choices=("training", "held-out"), default="training")
    options = parser.parse_args()
    training = options.half == "training"
    questions = [q for q in read(options.data) if q.answerable and q.in_training_half == training]
    judge = EmbeddedSupportJudge(WordLlamaEmbedder())
    right: dict[str, list[bool]] = defaultdict(list)
    scores: dict[str, list[float]] = defaultdict(list)
    for pair in pairs_of(questions, answers_of(options.data)):
        found = judge.judge(pair.sentence, title=pair.title, text=pair.text)
        right[pair.kind].append(found.supported == (pair.kind in _SUPPORTED))
        if "swapped" not in pair.kind:
            scores[pair.kind].append(found.score)
    for kind in sorted(right, key=lambda kind: (kind not in _SUPPORTED, kind)):
        print(f"{kind:30} judged right {share(right[kind])}")
    print(f"\nleast coverage ({LEAST_COVERAGE:g} is used), without the rules on numbers and names:")
    for least in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9):
        kept = {kind: sum(score >= least for score in found) / len(found) for kind, found in sorted(scores.items())}
        print(f"  {least:.2f}  " + "  ".join(f"{kind} {value:.3f}" for kind, value in kept.items()))


if __name__ == "__main__":
    main()
