import logging
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EVALS = Path(__file__).parents[3] / "evals"
sys.path.insert(0, str(EVALS))

from clapnq_data import natural, snippet  # noqa: E402
from figures import auc, brier, calibration_error, reliability, share  # noqa: E402


def test_auc_counts_ties_half() -> None:
    assert auc(np.array([0.9, 0.5]), np.array([0.1, 0.5])) == pytest.approx(0.875)


def test_calibrated_scores_have_no_calibration_error() -> None:
    scores, truth = np.array([0.5, 0.5, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    assert calibration_error(scores, truth) == 0
    assert brier(scores, truth) == pytest.approx(0.125)
    assert [row[2] for row in reliability(scores, truth)] == [1, 2, 1]


def test_overconfidence_shows_in_the_calibration_error() -> None:
    assert calibration_error(np.array([0.9, 0.9]), np.array([1.0, 0.0])) == pytest.approx(0.4)


def test_a_share_has_its_interval() -> None:
    assert share([True] * 9 + [False]).startswith(" 90.0% (9/10, 95 % interval 59.6% to 98.2%")


def test_tokenised_spelling_becomes_natural() -> None:
    odd = "He said `` no '' , and ( in 1900 ) left the king 's well - known court ."
    assert natural(odd) == 'He said "no", and (in 1900) left the king\'s well-known court.'


def test_a_snippet_is_the_stretch_with_the_questions_words() -> None:
    text = "filler " * 50 + "insulin lowers glucose " + "filler " * 50
    assert "insulin lowers glucose" in snippet("what lowers glucose", text, size=10)


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("clapnq.py", ["--data"]),
        ("calibrate_grader.py", ["--data", "pairs", "--clapnq"]),
        ("calibrate_reranker.py", ["--data"]),
        ("swaps.py", ["--data"]),
        ("citations.py", ["--data"]),
    ],
)
def test_without_the_data_a_script_says_where_to_get_it(
    script: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [script, *options, str(tmp_path)])
    monkeypatch.setattr(logging, "disable", lambda level: None)  # it would hold for later tests
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EVALS / script), run_name="__main__")
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert "github.com/primeqa/clapnq" in told.err
    assert told.out == ""
