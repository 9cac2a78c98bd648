"""Turns an endpoint's scores into probabilities."""

import math
from dataclasses import dataclass
from typing import Literal

Scores = Literal["probability", "logit"]
# Log-odds beyond this are certain in either case, and have no exponential.
_CERTAIN = 40.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Log-odds of a grade = `slope` * log-odds of a score + `intercept`, as `evals/calibrate_reranker.py` fits them.

    `scores` says what an endpoint answers: log-odds, or probabilities. Unfitted, a probability remains what it is.
    """

    scores: Scores = "probability"
    slope: float = 1.0
    intercept: float = 0.0

    def grade(self, score: float) -> float:
        """The grade (0..1) of a score. Raises `ValueError` for a score that is no probability where one is due."""
        odds = self.slope * self.log_odds(score) + self.intercept
        return 1.0 / (1.0 + math.exp(-min(max(odds, -_CERTAIN), _CERTAIN)))

    def log_odds(self, score: float) -> float:
        """The log-odds of a score. Raises `ValueError` as `grade` does."""
        if self.scores == "logit":
            return min(max(score, -_CERTAIN), _CERTAIN)
        if not 0.0 <= score <= 1.0:
            raise ValueError("not a probability")
        if score in (0.0, 1.0):
            return _CERTAIN if score else -_CERTAIN
        return min(max(math.log(score / (1.0 - score)), -_CERTAIN), _CERTAIN)
