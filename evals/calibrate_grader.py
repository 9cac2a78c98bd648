"""Fits the embedded grader's weights on pairs of many sources.

    python evals/calibrate_grader.py --data FOLDER --clapnq FOLDER [--write]

FOLDER has the pairs (`pairs_data.py`). Of each source there is a sample, its questions in the forms that people type,
and its passages also without title, as short notes, as rows, and amid other text. The background of similarity is that
of the passages of CLAP-NQ's training half. Each source is also left out in turn: the printed figures are of weights
that were fitted without it, beside those of the weights in the package. The rules of ADR 3 and ADR 25 stand outside the
fit. The German and French sources are in no fit: they show how the English weights do on another language, beside those
of `calibrate_languages.py`.
"""

import argparse
import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from clapnq_data import DATASET, LICENCE, PUBLISHED, SPLIT, Passage, read
from figures import auc, brier, calibration_error
from pairs_data import FOREIGN, SEED, SOURCES, Pair, read_pairs

from cragside.adapters.embedded import grader
from cragside.adapters.embedded.embedder import Lexicon, WordLlamaEmbedder
from cragside.adapters.embedded.features import FEATURES, Background, PassageWords, compare, read_passage, read_question
from cragside.adapters.embedded.grader import packaged_weights
from cragside.domain.verdict import DEFAULT_THRESHOLD

AXES = 16
PENALTY = 1.0
PER_SOURCE = 1500
# The share of passages that answer, in weight, and how much the sources count whose questions people typed into a
# search engine. Chosen on the training half of CLAP-NQ and the tuning half of `everyday.py`.
PRIOR = 0.44
TYPED = ("boolq", "clapnq-answers", "nqopen", "qed")
TYPED_COUNT = 4.0
# Passages of the answering one's article share its title, while the candidates of a store are of many documents.
ARTICLE_COUNT = 0.1
WEIGHTS = Path(grader.__file__).with_name(grader.WEIGHTS_FILE)

Array = npt.NDArray[np.float64]


class Table(NamedTuple):
    """Pairs as arrays: features, label, weight, source, language of the passage."""

    features: Array
    truth: Array
    weight: Array
    source: npt.NDArray[np.str_]
    language: npt.NDArray[np.str_]

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Table":
        """The chosen pairs."""
        return Table(*(column[chosen] for column in self))


def background_of(passages: list[Passage], lexicon: Lexicon) -> Background:
    """Mean and covariance of the passages' directions, the covariance with 16 axes and one figure for the rest."""
    rows = [read_passage(p.title, p.text, lexicon).directions for p in passages]
    directions = np.concatenate(rows).astype(np.float64)
    mean = directions.mean(axis=0)
    centred = directions - mean
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    variances = singular**2 / len(directions)
    rest = float((variances.sum() - variances[:AXES].sum()) / directions.shape[1])
    return Background(
        mean.astype(np.float32), axes[:AXES].astype(np.float32), variances[:AXES].astype(np.float32), rest
    )


def table_of(pairs: Sequence[Pair], lexicon: Lexicon, background: Background) -> Table:
    """The features of each pair."""
    known: dict[tuple[str, str], PassageWords] = {}
    features, languages = [], []
    for pair in pairs:
        passage = known.get((pair.title, pair.text))
        if passage is None:
            passage = known[pair.title, pair.text] = read_passage(pair.title, pair.text, lexicon)
        table = compare(read_question(pair.question, lexicon), [passage], lexicon, background)
        features.append(table[0])
        languages.append(passage.language)
    columns = ([pair.truth for pair in pairs], [weight_of(pair) for pair in pairs], [pair.source for pair in pairs])
    truth, weight, source = map(np.array, columns)
    return Table(np.array(features), truth.astype(np.float64), weight, source, np.array(languages))


def weight_of(pair: Pair) -> float:
    """Weigh a pair among those of its source and label."""
    return pair.weight * (ARTICLE_COUNT if pair.kind == "article" else 1.0)


def balanced(table: Table) -> Array:
    """Weights with which each source counts the same, or four times if its questions were typed, and `PRIOR` holds."""
    weight = table.weight.copy()
    for source in np.unique(table.source):
        for truth, share in ((1.0, PRIOR), (0.0, 1 - PRIOR)):
            chosen = (table.source == source) & (table.truth == truth)
            weight[chosen] *= share * PER_SOURCE * (TYPED_COUNT if source in TYPED else 1.0) / weight[chosen].sum()
    return weight


def fitted(table: Table) -> Array:
    """Intercept and coefficients, from the English pairs of a table."""
    english = table.where((table.language == "english") & ~np.isin(table.source, FOREIGN))
    return fit(english.features, english.truth, balanced(english))


def fit(features: Array, truth: Array, weight: Array) -> Array:
    """Intercept and coefficients of a ridge-penalised logistic regression, for unscaled features."""
    mean, spread = features.mean(axis=0), features.std(axis=0)
    design = np.column_stack([np.ones(len(features)), (features - mean) / spread])
    ridge = np.diag([0.0] + [PENALTY] * features.shape[1])
    beta = np.zeros(design.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (p - truth)) + ridge @ beta
        step = np.linalg.solve((design.T * (weight * p * (1 - p))) @ design + ridge, gradient)
        beta -= step
        if np.abs(step).max() < 1e-9:
            break
    slopes = beta[1:] / spread
    return np.concatenate([[beta[0] - slopes @ mean], slopes])


def predict(beta: Array, features: Array) -> Array:
    return 1 / (1 + np.exp(-(beta[0] + features @ beta[1:])))


def report(name: str, probabilities: Array, truth: Array, hard: npt.NDArray[np.bool_]) -> None:
    """Print how well the scores tell answering passages from others, and which pass the threshold."""
    own, others = probabilities[truth == 1], probabilities[truth == 0]
    groups = {"answered": own, "others": others, "on the subject": probabilities[hard]}
    above = [f"{group} {np.mean(of > DEFAULT_THRESHOLD):.1%}" for group, of in groups.items() if of.size]
    print(
        f"  {name:9} AUC {auc(own, others):.3f}  Brier {brier(probabilities, truth):.3f}  "
        f"ECE {calibration_error(probabilities, truth):.3f}  above {DEFAULT_THRESHOLD}: {', '.join(above)}"
    )


def packaged(table: Table) -> Array:
    """The scores of the weights in the package, each language's own."""
    weights = packaged_weights()
    return np.array(
        [weights.probability(row, language) for row, language in zip(table.features, table.language, strict=True)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with pairs.jsonl.xz and passages.jsonl.xz")
    parser.add_argument("--clapnq", type=Path, required=True, help="folder of CLAP-NQ, as for clapnq.py")
    parser.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name} into the package")
    options = parser.parse_args()
    questions = [question for question in read(options.clapnq) if question.in_training_half]
    pairs = read_pairs(options.data, PER_SOURCE)
    lexicon = Lexicon(WordLlamaEmbedder())
    background = background_of([question.passage for question in questions], lexicon)
    background = replace(background, means=packaged_weights().background.means)
    table = table_of(pairs, lexicon, background)
    hard = np.array([pair.on_the_subject for pair in pairs])
    before = packaged(table)
    print(f"{len(pairs)} pairs. Each source, scored by the weights in the package and by weights fitted without it:")
    for source in SOURCES:
        held = table.source == source
        print(f"{source}, {held.sum()} pairs")
        report("packaged", before[held], table.truth[held], hard[held])
        left_out = predict(fitted(table.where(~held)), table.features[held])
        report("left out", left_out, table.truth[held], hard[held])
    beta = fitted(table)
    print("intercept", round(float(beta[0]), 3), dict(zip(FEATURES, beta[1:].round(3).tolist(), strict=True)))
    if options.write:
        write(beta, background, len(pairs))


def encoded(values: npt.NDArray[np.float32]) -> str:
    return base64.b64encode(values.astype("<f2").tobytes()).decode()


def write(beta: Array, background: Background, count: int) -> None:
    data = {
        "version": 2,
        "provenance": {
            "dataset": f"{count} pairs of a question and a passage, sampled from published sources",
            "sources": [
                {"name": name, "published": published, "licence": licence}
                for name, (published, licence) in SOURCES.items()
                if name not in FOREIGN
            ],
            "background": {"dataset": DATASET, "published": PUBLISHED, "licence": LICENCE, "split": SPLIT},
            "languages": "evals/languages.jsonl, the development half, by evals/calibrate_languages.py",
            "script": "evals/calibrate_grader.py",
            "seed": SEED,
            "date": datetime.now(UTC).date().isoformat(),
        },
        "features": list(FEATURES),
        "coefficients": [round(float(b), 5) for b in beta[1:]],
        "intercept": round(float(beta[0]), 5),
        "background": {
            "dimensions": len(background.mean),
            "encoding": "base64 of little-endian float16, row by row",
            "mean": encoded(background.mean),
            "axes": encoded(background.axes),
            "variances": [float(f"{v:.6g}") for v in background.variances],
            "rest": float(f"{background.rest:.6g}"),
        },
    }
    # Those for other languages are the work of `calibrate_languages.py`.
    data["languages"] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["languages"]
    WEIGHTS.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {WEIGHTS.name}, {WEIGHTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
