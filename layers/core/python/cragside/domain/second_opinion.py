"""Blends the grade of the embedded grader with the judgement of a chat model."""

import math
from dataclasses import dataclass

# The embedded grader is sure of a passage above this: of the tuning half's questions, see evals/README.md. A model is
# not asked then.
SURE = 0.75
# A judgement moves a grade by at most so much in log-odds. It cannot make evidence of a passage that the embedded
# grader is sure against, nor drop one that it is sure of.
_MOST = 2.0
# Log-odds of a grade = those of the embedded grade + _SLOPE * those of the judgement + _INTERCEPT. The slope is fitted;
# with the intercept, a judgement halfway between those of right and of wrong passages moves nothing (evals/judges.py).
_SLOPE, _INTERCEPT = 0.55, -0.4
_SURE_OF, _SURE_AGAINST = 0.6, 0.3
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
        return min(self.grade, self.probability) < _SURE_AGAINST and max(self.grade, self.probability) > _SURE_OF


def blended(grade: float, judgement: float) -> float:
    """The grade (0..1) of a passage with this embedded grade and this probability of an answer."""
    moved = _SLOPE * _log_odds(judgement) + _INTERCEPT
    return 1.0 / (1.0 + math.exp(-(_log_odds(grade) + min(max(moved, -_MOST), _MOST))))


def may_pass(grade: float, threshold: float) -> bool:
    """Tell if a judgement could lift a passage with this embedded grade above the threshold."""
    return blended(grade, 1.0) > threshold


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, _CERTAIN), 1.0 - _CERTAIN)
    return math.log(bounded / (1.0 - bounded))
