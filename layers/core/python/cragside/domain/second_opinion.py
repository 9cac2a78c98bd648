"""Blends the grade of the embedded grader with the judgement of a chat model."""

import math
from dataclasses import dataclass

# A judgement adds _SLOPE * its log-odds + _INTERCEPT to the log-odds of a grade, if that is more than nothing: one
# above 0.83 counts. They are fitted on questions for which the embedded grader found nothing (evals/README.md).
_SLOPE, _INTERCEPT = 1.0, -1.6
# A judgement adds at most so much: from 0.25 to 0.6.
_MOST = 1.5
_YES, _NO = 0.83, 0.3
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
        """Tell if the model is sure of an answer, and the embedded grader that there is none."""
        return self.grade < _NO and self.probability > _YES


def blended(grade: float, judgement: float) -> float:
    """The grade (0..1) of a passage with this embedded grade and this probability of an answer: it never falls."""
    added = min(max(_SLOPE * log_odds(judgement) + _INTERCEPT, 0.0), _MOST)
    return 1.0 / (1.0 + math.exp(-(log_odds(grade) + added)))


def may_pass(grade: float, threshold: float) -> bool:
    """Tell if a judgement could lift a passage with this embedded grade above the threshold."""
    return blended(grade, 1.0) > threshold


def log_odds(probability: float) -> float:
    """The log-odds of a probability, within those of 0.001 and 0.999."""
    bounded = min(max(probability, _CERTAIN), 1.0 - _CERTAIN)
    return math.log(bounded / (1.0 - bounded))
