"""Blends the grade of the embedded grader with the judgement of a chat model."""

import math
from dataclasses import dataclass

# Above this grade of a passage, no model is asked.
ENOUGH = 0.75
# A judgement moves a grade by at most so much in log-odds: from 0.17 to 0.6, or from 0.6 to 0.17.
_MOST = 2.0
# Log-odds of a grade = those of the embedded grade + _SLOPE * those of the judgement + _INTERCEPT. The slope is fitted;
# with the intercept, a judgement halfway between those of right and of wrong passages moves nothing (evals/judges.py).
_SLOPE, _INTERCEPT = 0.55, -0.4
_YES, _NO = 0.6, 0.3
_CERTAIN = 0.001


@dataclass(frozen=True, slots=True)
class Judgement:
    """The probability that a passage answers, by a chat model that read no other, and the embedded grade it had."""

    model: str
    probability: float
    grade: float

    @property
    def blend(self) -> float:
        """The grade (0..1) that counts."""
        return blended(self.grade, self.probability)

    @property
    def contradicts(self) -> bool:
        """Tell if one of them is sure of an answer and the other that there is none."""
        return min(self.grade, self.probability) < _NO and max(self.grade, self.probability) > _YES


def blended(grade: float, judgement: float) -> float:
    """The grade (0..1) of a passage with this embedded grade and this probability of an answer."""
    moved = _SLOPE * log_odds(judgement) + _INTERCEPT
    return 1.0 / (1.0 + math.exp(-(log_odds(grade) + min(max(moved, -_MOST), _MOST))))


def may_pass(grade: float, threshold: float) -> bool:
    """Tell if a judgement could lift a passage with this embedded grade above the threshold."""
    return blended(grade, 1.0) > threshold


def log_odds(probability: float) -> float:
    """The log-odds of a probability, within those of 0.001 and 0.999."""
    bounded = min(max(probability, _CERTAIN), 1.0 - _CERTAIN)
    return math.log(bounded / (1.0 - bounded))
