"""Metrics for gradings."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]


def auc(positives: Scores, negatives: Scores) -> float:
    """The probability that a positive scores above a negative; ties count half."""
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, side="left")
    upto = np.searchsorted(ordered, positives, side="right")
    return float((below + upto).mean() / 2 / len(negatives))


def brier(scores: Scores, truth: Scores) -> float:
    """Mean squared difference between score and label."""
    return float(((scores - truth) ** 2).mean())


def reliability(scores: Scores, truth: Scores, bins: int = 10) -> list[tuple[float, float, int, float, float]]:
    """(from, to, count, mean score, share of positives) for each non-empty bin."""
    place = np.minimum((scores * bins).astype(int), bins - 1)
    rows = []
    for index in range(bins):
        inside = place == index
        if inside.any():
            mean, share = float(scores[inside].mean()), float(truth[inside].mean())
            rows.append((index / bins, (index + 1) / bins, int(inside.sum()), mean, share))
    return rows


def calibration_error(scores: Scores, truth: Scores) -> float:
    """Expected calibration error over ten bins of equal width."""
    return sum(count * abs(mean - share) for _, _, count, mean, share in reliability(scores, truth)) / len(scores)


def share(flags: Sequence[bool]) -> str:
    """`93.5 % (72/77)`, with Wilson's 95 % interval."""
    total, hits = len(flags), sum(flags)
    if not total:
        return "none"
    p, z = hits / total, 1.96
    centre = (p + z * z / 2 / total) / (1 + z * z / total)
    half = z * np.sqrt(p * (1 - p) / total + z * z / 4 / total**2) / (1 + z * z / total)
    return f"{p:6.1%} ({hits}/{total}, 95 % interval {centre - half:.1%} to {centre + half:.1%})"
