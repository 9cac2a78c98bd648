"""Measures if the embedded grader tells a question's paragraph from others, on a file in SQuAD's format.

    python evals/squad_files.py FILE...

XQuAD has such files in German (`xquad.de.json`), Spanish and English, with the same questions and paragraphs:
https://github.com/google-deepmind/xquad, licence CC-BY-SA 4.0. They are not part of this repository. The first two
questions of each paragraph are graded, with their paragraph and with the eight paragraphs of other articles that a
ranking returns first, all without titles.
"""

import argparse
import json
from pathlib import Path

from clapnq_data import Passage, ranking
from figures import share

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.domain.verdict import DEFAULT_THRESHOLD

CANDIDATES = 8
QUESTIONS = 2


def evaluate(file: Path, grader: EmbeddedGrader) -> None:
    """Print the figures of one file."""
    passages: list[Passage] = []
    asked: list[tuple[str, int]] = []
    for number, article in enumerate(json.loads(file.read_text(encoding="utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            asked += [(question["question"], len(passages)) for question in paragraph["qas"][:QUESTIONS]]
            passages.append(Passage(str(number), "", paragraph["context"]))
    own, others = [], []
    for (text, place), order in zip(asked, ranking([text for text, _ in asked], passages), strict=True):
        rest = [passages[i].text for i in order if passages[i].key != passages[place].key][:CANDIDATES]
        mine, *scores = grader.scores(text, [("", passages[place].text), *(("", other) for other in rest)])
        own.append(mine > DEFAULT_THRESHOLD)
        others.append(max(scores) <= DEFAULT_THRESHOLD)
    print(f"{file.name}: {len(asked)} questions, {len(passages)} paragraphs")
    print(f"  own paragraph above {DEFAULT_THRESHOLD}   {share(own)}")
    print(f"  no other above {DEFAULT_THRESHOLD}        {share(others)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    for given in parser.parse_args().files:
        evaluate(given, EmbeddedGrader(WordLlamaEmbedder()))
