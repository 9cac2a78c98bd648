"""No regular expression of the package takes long for a text that is made to keep it busy."""

import re
from functools import partial

import pytest

from tests.bounds import TooSlow, read_within
from tests.expressions import Expression, apply, expressions, hostile_texts

pytestmark = pytest.mark.slow

# For a text of this length a linear expression takes some 4 ms, and a quadratic one from 0.8 to 5 seconds.
_SECONDS = 0.3
_LENGTH = 40_000


def _slow_text(expression: Expression) -> str | None:
    for text in hostile_texts(expression.pattern):
        try:
            read_within(_SECONDS, partial(apply, expression), text, _LENGTH)
        except TooSlow:
            return str(text)
    return None


@pytest.mark.attack("slow regular expressions")
@pytest.mark.parametrize("expression", expressions(), ids=lambda expression: expression.place)
def test_an_expression_is_quick_for_its_worst_texts(expression: Expression) -> None:
    assert _slow_text(expression) is None


@pytest.mark.parametrize("pattern", [r"[!?.,:;]+$", r"\s*x", r"a@[^/]*@[^/]*:"])
def test_slow_expressions_are_found(pattern: str) -> None:
    assert _slow_text(Expression("here", re.compile(pattern), ("search",))) is not None
