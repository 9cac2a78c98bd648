"""Fits the embedded grader's weights for German and French on the development half of `languages.jsonl`.

    python evals/calibrate_languages.py [--write]

Each language has its own coefficients and mean of passage vectors, and the variances of the English background. Each
question is paired with its passage and with the other passages of the half that a ranking
returns, and each question that no passage answers with the passages that a ranking returns for it. Every pair is used
with the title, without it, and as a web snippet of 40 words with title. A passage is also paired, as not relevant, with
its questions after their most specific word was replaced with another question's. The coefficient of `gap` is zero:
fitted, it was within its error, and positive.
"""

import argparse
import json
from dataclasses import replace

import numpy as np
from calibrate_grader import WEIGHTS, Array, encoded, fit, predict
from clapnq_data import CANDIDATES, FOLDS, SEED, Pairs, Question, ranking, variants
from figures import auc
from languages import HALVES, LANGUAGES, Entry, read_entries

from cragside.adapters.embedded.embedder import Lexicon, WordLlamaEmbedder
from cragside.adapters.embedded.features import Background, compare, read_passage, read_question
from cragside.adapters.embedded.grader import packaged_weights
from cragside.adapters.embedded.words import terms, words
from cragside.ports.embedder import Vectors

# Chosen among 0.6 to 3: the most passages above 0.6 while 95 of 100 questions leave without theirs. German was also
# compared on XQuAD (`squad_files.py`).
GOLD_WEIGHT = {"German": 0.8, "French": 2.0}
FITTED = slice(0, 3)


# Two counterfactuals per question, each with the weight of a quarter of a pair.
COUNTERFACTUALS, COUNTERFACTUAL_WEIGHT = 2, 0.25


def mean_of(entries: list[Entry], lexicon: Lexicon) -> Vectors:
    """The mean direction of the passages."""
    read = [read_passage(entry.passage.title, entry.passage.text, lexicon) for entry in entries]
    mean: Vectors = np.concatenate([passage.directions for passage in read]).mean(axis=0)
    return mean


def pairs_of(entries: list[Entry], lexicon: Lexicon, background: Background, gold_weight: float) -> Pairs:
    """All pairs of a language, each with the number of its passage, by which folds are chosen."""
    pairs = Pairs()
    passages = [entry.passage for entry in entries]
    questions = [(number, q) for number, entry in enumerate(entries) for q in entry.asked(*entry.questions)]
    questions += [(number, q) for number, entry in enumerate(entries) for q in entry.asked(entry.other)]
    order = ranking([question.text for _, question in questions], passages)
    telling = [most_telling(question.text, lexicon) for _, question in questions]
    random = np.random.default_rng(SEED)
    for row, (number, question) in enumerate(questions):

        def add(text: str, passage: int, truth: float, weight: float, prefix: str = "") -> None:
            asked = read_question(text, lexicon)
            for name, title, body in variants(text, passages[passage]):
                [features] = compare(asked, [read_passage(title, body, lexicon)], lexicon, background)
                pairs.add(features, truth, weight / 3, number, prefix + name)  # noqa: B023

        for other in [place for place in order[row] if place != number or not question.answerable][:CANDIDATES]:
            add(question.text, other, 0.0, 1.0)
        if question.answerable:
            add(question.text, number, 1.0, gold_weight)
            for word in random.choice(telling, COUNTERFACTUALS):
                if altered := counterfactual(question, telling[row], str(word)):
                    add(altered, number, 0.0, COUNTERFACTUAL_WEIGHT, "other ")
    return pairs


def most_telling(text: str, lexicon: Lexicon) -> str:
    question = read_question(text, lexicon)
    return question.content[int(lexicon.norms[question.rows].argmax())]


def counterfactual(question: Question, word: str, other: str) -> str | None:
    """The question about something else; None if the passage has the other word or lacks the replaced one."""
    passage = set(terms(f"{question.passage.title} {question.passage.text}"))
    if passage.isdisjoint(terms(word)) or not passage.isdisjoint(terms(other)):
        return None
    return " ".join(other if spoken == word else spoken for spoken in words(question.text))


def fitted(features: Array, truth: Array, weight: Array) -> Array:
    """Intercept and coefficients, that of `gap` zero."""
    return np.append(fit(features[:, FITTED], truth, weight), 0.0)


def report_pairs(name: str, scores: Array, truth: Array) -> None:
    own, others = scores[truth == 1], scores[truth == 0]
    print(f"{name:16} AUC {auc(own, others):.3f}  own above 0.6 {np.mean(own > 0.6):.1%}  ", end="")
    print(f"other pairs above 0.6 {np.mean(others > 0.6):.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name} into the package")
    options = parser.parse_args()
    lexicon = Lexicon(WordLlamaEmbedder())
    fits = {}
    for code, language in LANGUAGES.items():
        entries = [entry for entry in read_entries() if entry.language == code and entry.half == HALVES[0]]
        mean = mean_of(entries, lexicon)
        background = replace(packaged_weights().background, means={language.lower(): mean})
        features, truth, weight, passage, variant = pairs_of(
            entries, lexicon, background, GOLD_WEIGHT[language]
        ).arrays()
        scores = np.empty(len(truth))
        for fold in range(FOLDS):
            held = passage % FOLDS == fold
            scores[held] = predict(fitted(features[~held], truth[~held], weight[~held]), features[held])
        print(f"{language}, {len(entries)} passages of the development half; cross-validated:")
        for name in ("title", "bare", "snippet"):
            report_pairs(name, scores[variant == name], truth[variant == name])
        swapped = np.char.startswith(variant, "other")
        print(f"questions about something else kept below 0.6: {np.mean(scores[swapped] <= 0.6):.1%}")
        beta = fitted(features, truth, weight)
        print("intercept and coefficients", beta.round(3).tolist())
        fits[language.lower()] = {
            "coefficients": [round(float(b), 5) for b in beta[1:]],
            "intercept": round(float(beta[0]), 5),
            "mean": encoded(mean.astype(np.float32)),
        }
    if options.write:
        data = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        data["languages"] = fits
        WEIGHTS.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {WEIGHTS.name}, {WEIGHTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
