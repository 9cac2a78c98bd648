"""CLAP-NQ's development set: reading, splitting, forms and a plain ranking of its passages, and their figures."""

import hashlib
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from figures import Scores, auc, brier, calibration_error

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.words import terms

DATASET = "CLAP-NQ, development set (answerable.jsonl, unanswerable.jsonl)"
LICENCE = "Apache-2.0"
PUBLISHED = "https://github.com/primeqa/clapnq and https://huggingface.co/datasets/PrimeQA/clapnq"
FILES = ("answerable.jsonl", "unanswerable.jsonl")
SPLIT = "a question is in the training half when the SHA-256 of its id is an even number"

SEED = 20250101
FOLDS = 5
CANDIDATES = 8

_SPACE_BEFORE = re.compile(r"\s+(?=[,.;:!?)\]%]|'s\b|n't\b)")
_SPACE_AFTER = re.compile(r"(?<=[(\[])\s+")


@dataclass(frozen=True)
class Passage:
    """A passage in natural spelling; `key` identifies its text."""

    key: str
    title: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, the passage it was asked about, and whether that passage answers it."""

    id: str
    text: str
    passage: Passage
    answerable: bool

    @property
    def in_training_half(self) -> bool:
        return int(hashlib.sha256(self.id.encode()).hexdigest(), 16) % 2 == 0


def read(folder: Path) -> list[Question]:
    """All questions of the set. Exits with status 2 and instructions if the folder does not contain it."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        print(
            f"{folder} does not hold {' and '.join(missing)}. Get the set's development split from {PUBLISHED} "
            f"({LICENCE}) and pass its folder with --data, or to make with CLAPNQ_DIR.",
            file=sys.stderr,
        )
        raise SystemExit(2)
    questions = []
    for name in FILES:
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            source = row["passages"][0]
            text = natural(source["text"])
            key = hashlib.sha256(text.encode()).hexdigest()[:16]
            passage = Passage(key, source["title"], text)
            questions.append(Question(row["id"], row["input"], passage, name == "answerable.jsonl"))
    return questions


def natural(text: str) -> str:
    """CLAP-NQ's tokenised spelling ("word , `` quoted ''") in normal spelling."""
    text = _SPACE_AFTER.sub("", _SPACE_BEFORE.sub("", text))
    return (
        text.replace("`` ", '"').replace(" ''", '"').replace("``", '"').replace("''", '"').replace(" - ", "-").strip()
    )


def snippet(question: str, text: str, size: int = 40) -> str:
    """The window of `size` words with most of the question's terms, as a web search engine shows it."""
    split = text.split()
    sought = set(terms(question))
    hits = np.array([float(not sought.isdisjoint(terms(word))) for word in split])
    if len(split) <= size:
        return text
    sums = np.convolve(hits, np.ones(size), mode="valid")
    start = int(sums.argmax())
    return " ".join(split[start : start + size])


class Pairs:
    """Pairs of question and passage with features, label, weight, and the question of each."""

    def __init__(self) -> None:
        self.features: list[Scores] = []
        self.truth: list[float] = []
        self.weight: list[float] = []
        self.question: list[int] = []
        self.variant: list[str] = []

    def add(self, features: Scores, truth: float, weight: float, question: int, variant: str) -> None:
        self.features.append(features)
        self.truth.append(truth)
        self.weight.append(weight)
        self.question.append(question)
        self.variant.append(variant)

    def arrays(self) -> tuple[Scores, Scores, Scores, npt.NDArray[np.intp], npt.NDArray[np.str_]]:
        return (
            np.array(self.features),
            np.array(self.truth),
            np.array(self.weight),
            np.array(self.question),
            np.array(self.variant),
        )


def variants(question: str, passage: Passage) -> list[tuple[str, str, str]]:
    """A passage with its title, without it, and as a web snippet."""
    cut = snippet(question, passage.text)
    return [("title", passage.title, passage.text), ("bare", "", passage.text), ("snippet", passage.title, cut)]


def report(name: str, scores: Scores, truth: Scores, question: npt.NDArray[np.intp]) -> None:
    """Print how well the scores of one form tell gold passages from the other candidates of their questions."""
    gold = {q: s for q, s, t in zip(question, scores, truth, strict=True) if t == 1}
    best: dict[int, float] = {}
    for q, s, t in zip(question, scores, truth, strict=True):
        if t == 0:
            best[q] = max(best.get(q, 0.0), s)
    print(
        f"{name:8} AUC {auc(scores[truth == 1], scores[truth == 0]):.3f}  Brier {brier(scores, truth):.4f}  "
        f"ECE {calibration_error(scores, truth):.4f}  gold above 0.6 {np.mean([s > 0.6 for s in gold.values()]):.1%}  "
        f"no other above 0.6 {np.mean([best[q] <= 0.6 for q in gold]):.1%}"
    )


def ranking(questions: list[str], passages: list[Passage]) -> npt.NDArray[np.intp]:
    """For each question the positions of the passages, best first: 0.6 BM25 + 0.4 cosine, each scaled to 0..1."""
    embedder = WordLlamaEmbedder()
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    cosine = embedder.encode(questions) @ embedder.encode(texts).T
    counts = [Counter(terms(text)) for text in texts]
    lengths = np.array([max(1, sum(count.values())) for count in counts], dtype=float)
    bm25 = np.zeros_like(cosine, dtype=float)
    for row, question in enumerate(questions):
        for term in set(terms(question)):
            frequency = np.array([count[term] for count in counts], dtype=float)
            having = float((frequency > 0).sum())
            rarity = np.log(1 + (len(passages) - having + 0.5) / (having + 0.5))
            bm25[row] += rarity * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * lengths / lengths.mean()))
    return np.argsort(-(0.6 * _scaled(bm25) + 0.4 * _scaled(cosine.astype(float))), axis=1, kind="stable")


def _scaled(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    return (scores - low) / np.maximum(high - low, 1e-9)
