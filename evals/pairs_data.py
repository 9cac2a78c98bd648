"""Pairs of a question and a passage from many published sources, sampled, with the questions as people type them.

A folder of pairs has `passages.jsonl.xz`, whose lines are `[title, text]`, and `pairs.jsonl.xz`, whose lines are
`[question, number of the passage, label, weight, source, kind, language, split]`.
"""

import json
import lzma
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cragside.adapters.embedded.answers import pieces
from cragside.adapters.embedded.words import INTERROGATIVES, OTHER, SCAFFOLDING, STOPWORDS, words

FILES = ("pairs.jsonl.xz", "passages.jsonl.xz")
SEED = 7
# Where each source is published, and its licence. A source of English questions about German texts is left out: the
# embedded model does not cross languages.
SOURCES = {
    "ares-fever": ("github.com/stanford-futuredata/ARES, synthetic questions", "Apache-2.0; texts CC BY-SA"),
    "ares-hotpotqa": ("github.com/stanford-futuredata/ARES, synthetic questions", "Apache-2.0; texts CC BY-SA"),
    "ares-nq": ("github.com/stanford-futuredata/ARES, synthetic questions", "Apache-2.0; texts CC BY-SA"),
    "ares-wow": ("github.com/stanford-futuredata/ARES, synthetic questions", "Apache-2.0; texts CC BY-SA"),
    "boolq": ("github.com/elehman16/boolq", "CC BY-SA 3.0, as the set is published; the copy states none"),
    "clapnq-answers": ("github.com/primeqa/clapnq, training questions", "Apache-2.0"),
    "covidqa": ("github.com/deepset-ai/COVID-QA", "Apache-2.0"),
    "medquad": ("github.com/abachaa/MedQuAD", "CC BY 4.0"),
    "nqg": ("github.com/xinyadu/nqg, test split (SQuAD)", "CC BY-SA 4.0"),
    "nqopen": ("github.com/nelson-liu/lost-in-the-middle", "MIT; texts CC BY-SA 3.0"),
    "piaf": ("github.com/etalab-ia/piaf-code", "MIT; texts CC BY-SA"),
    "pubmedqa": ("github.com/pubmedqa/pubmedqa", "MIT"),
    "qed": ("github.com/google-research-datasets/QED", "CC BY-SA 3.0"),
    "selqa": ("github.com/emorynlp/selqa", "Apache-2.0"),
    "squad": ("github.com/rajpurkar/SQuAD-explorer", "CC BY-SA 4.0"),
    "squad-fr": ("github.com/AkariAsai/extractive_rc_by_runtime_mt", "CC BY-SA 4.0"),
    "timeqa": ("github.com/wenhuchen/Time-Sensitive-QA", "BSD-3-Clause"),
    "xquad-de": ("github.com/google-deepmind/xquad", "CC BY-SA 4.0"),
}
FOREIGN = ("piaf", "squad-fr", "xquad-de")
# Made negatives (another name or number, an echo, a passage at random) come in every fourth case.
_MADE = ("random", "echo", "code", "swap-name", "swap-number", "swap-code")
_MADE_SHARE = 0.25
_POSITIVES = 1 / 3
_MOST_LETTERS = 4000
_FUNCTION_WORDS = STOPWORDS | OTHER | SCAFFOLDING
_AUXILIARIES = frozenset(
    ("is", "are", "was", "were", "did", "do", "does", "ist", "war", "sind", "hat", "haben", "est", "sont", "était")
)
_SHORTEST_MISTYPED = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """A question with a passage that answers it (`truth` 1) or not (0)."""

    question: str
    title: str
    text: str
    truth: int
    weight: float
    source: str
    kind: str

    @property
    def on_the_subject(self) -> bool:
        """Tell if the passage is on the subject of the question without its answer."""
        return self.kind in ("topic", "unanswerable")


def read_pairs(folder: Path, per_source: int) -> list[Pair]:
    """A sample of each source, a third of it answered. Exits with status 2 if the folder does not have the files."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        print(f"{folder} does not hold {' and '.join(missing)}.", file=sys.stderr)
        raise SystemExit(2)
    choose = random.Random(SEED)
    passages = [tuple(row) for row in _rows(folder / "passages.jsonl.xz")]
    rows = defaultdict(list)
    for row in _rows(folder / "pairs.jsonl.xz"):
        if row[5] not in _MADE or choose.random() < _MADE_SHARE:
            rows[row[4], row[2]].append(row)
    pairs = []
    for source in SOURCES:
        answered = round(per_source * _POSITIVES)
        for truth, size in ((1, answered), (0, per_source - answered)):
            choose.shuffle(rows[source, truth])
            for question, number, _, weight, _, kind, _, _ in rows[source, truth][:size]:
                title, text = shown(question, *passages[number], choose, choose.choice(passages)[1])
                pairs.append(Pair(typed(question, choose), title, text, truth, weight, source, kind))
    return pairs


def typed(question: str, choose: random.Random) -> str:
    """A question as it is, or in lower case: whole, without its question word, function words, or with one typo."""
    form = choose.random()
    if form < 0.4:
        return question
    found = question.lower().rstrip(" ?.").split()
    if form < 0.55 or len(found) < 3:
        return " ".join(found)
    if form < 0.7:
        while len(found) > 2 and (found[0] in INTERROGATIVES or found[0] in _AUXILIARIES):
            found = found[1:]
    elif form < 0.88:
        kept = [word for word in found if word.strip(",.'’") not in _FUNCTION_WORDS]
        found = kept if len(kept) > 1 else found
    elif places := [place for place, word in enumerate(found) if len(word) >= _SHORTEST_MISTYPED]:
        place = choose.choice(places)
        found[place] = _mistyped(found[place], choose)
    return " ".join(found)


def _mistyped(word: str, choose: random.Random) -> str:
    """A word with two letters swapped, one left out, or one doubled."""
    at = choose.randrange(1, len(word) - 1)
    slips = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[: at + 1] + word[at:],
    )
    return choose.choice(slips)


def shown(question: str, title: str, text: str, choose: random.Random, other: str) -> tuple[str, str]:
    """A passage as it is, without title, as a short note or as rows around its best sentence, or amid other text."""
    text = text[:_MOST_LETTERS]
    form = choose.random()
    if form < 0.4:
        return title, text
    if form < 0.6:
        return "", text
    if form >= 0.9:
        around = other.split()[:200]
        return title, "\n".join((" ".join(around[:100]), text, " ".join(around[100:])))
    sentences = [piece for piece in pieces(text) if len(piece.split()) > 3] or [text]
    sought = {word for word in words(question) if word not in _FUNCTION_WORDS}
    best = max(range(len(sentences)), key=lambda place: len(sought.intersection(words(sentences[place]))))
    if form < 0.8:
        note = sentences[max(0, best - choose.randrange(2)) : best + 1 + choose.randrange(2)]
        return choose.choice((title, "")), " ".join(note)
    return title, "\n".join(map(_row, sentences[max(0, best - 1) : best + 2]))


def _row(sentence: str) -> str:
    return " | ".join(word for word in sentence.split() if word.lower().strip(",.'’") not in _FUNCTION_WORDS)


def _rows(file: Path) -> Iterator[list]:
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
