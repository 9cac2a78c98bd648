"""Fits the calibration of a rerank endpoint on one half of CLAP-NQ.

    RAG_RERANK_URL=http://HOST/v1/rerank python evals/calibrate_reranker.py --data FOLDER [--questions N]

Each question is paired with its gold passage and with the other passages that a ranking of the whole set returns, each
with its title, without it, and as a web snippet of 40 words with title. A reranker is not fitted, only its scores are:
there is one feature, the log-odds of the score. It prints cross-validated figures, and the line to set.
RAG_RERANK_SCORES says what the endpoint answers.
"""

import argparse
import asyncio
from pathlib import Path

import numpy as np
from calibrate_grader import Array, fit, predict
from clapnq_data import CANDIDATES, FOLDS, SEED, Pairs, Question, ranking, read, report, variants

from cragside.adapters.rerank import Calibration, RerankGrader
from cragside.composition.models import Models
from cragside.domain.evidence import Document
from cragside.settings import Settings, load_settings

# One of nine candidates is gold here. But a corpus often has more relevant passages than the one that CLAP-NQ marks, so
# the prior is three of eleven.
GOLD_WEIGHT = 3.0


async def pairs_of(questions: list[Question], settings: Settings) -> Pairs:
    """The log-odds of every pair. Grades are the endpoint's own, so that texts are sent as for `/rag`."""
    models = Models(settings)
    assert models.rerank_endpoint is not None
    grader = RerankGrader(models.rerank_endpoint, Calibration(settings.rerank_scores))
    passages = list({question.passage.key: question.passage for question in questions}.values())
    order = ranking([question.text for question in questions], passages)
    pairs = Pairs()
    for index, question in enumerate(questions):
        others = [p for place in order[index] if (p := passages[place]).key != question.passage.key][:CANDIDATES]
        candidates = [(other, 0.0, 1.0) for other in others]
        candidates += [(question.passage, 1.0, GOLD_WEIGHT)] if question.answerable else []
        asked = [
            (name, truth, weight, Document(f"{number}", text, "local", title=title))
            for number, (passage, truth, weight) in enumerate(candidates)
            for name, title, text in variants(question.text, passage)
        ]
        grades = await grader.grade(question.text, [document for *_, document in asked])
        for (name, truth, weight, _), grade in zip(asked, grades, strict=True):
            pairs.add(np.array([Calibration().log_odds(grade)]), truth, weight / 3, index, name)
    await models.close()
    return pairs


def cross_validated(features: Array, truth: Array, weight: Array, question: np.ndarray) -> Array:
    """The score of each pair, as fitted without its question."""
    folds = (np.random.default_rng(SEED).permutation(int(question.max()) + 1) % FOLDS)[question]
    scores = np.empty(len(truth))
    for fold in range(FOLDS):
        held = folds == fold
        scores[held] = predict(fit(features[~held], truth[~held], weight[~held]), features[held])
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with answerable.jsonl and unanswerable.jsonl")
    parser.add_argument("--questions", type=int, help="use the first N questions of the half alone")
    options = parser.parse_args()
    questions = [q for q in read(options.data) if q.in_training_half][: options.questions]
    settings = load_settings()
    if settings.rerank_url is None:
        parser.error("Set RAG_RERANK_URL.")
    pairs = asyncio.run(pairs_of(questions, settings))
    features, truth, weight, question, variant = pairs.arrays()
    scores = cross_validated(features, truth, weight, question)
    print(f"{len(questions)} questions of the training half; cross-validated:")
    for name in ("title", "bare", "snippet"):
        chosen = variant == name
        report(name, scores[chosen], truth[chosen], question[chosen])
    intercept, slope = fit(features, truth, weight)
    if slope <= 0:
        raise SystemExit("Better passages get no better scores: this model cannot be calibrated.")
    print(f"RAG_RERANK_CALIBRATION={slope:.4f},{intercept:.4f}")


if __name__ == "__main__":
    main()
