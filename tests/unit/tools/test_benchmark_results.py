"""Results of benchmarks: when and where each was measured, and that the page of figures links it."""

import json
from datetime import date
from pathlib import Path

import pytest

from benchmarks import harness

FOLDER = harness.ROOT / "benchmarks" / "results"
PAGE = (harness.ROOT / "benchmarks" / "README.md").read_text()


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.name)
def test_a_result_says_when_and_where_it_was_measured_and_is_linked(file: Path) -> None:
    saved = json.loads(file.read_text())
    date.fromisoformat(saved["date"])
    assert "load before" in saved["machine"]
    assert f"(results/{file.name})" in PAGE


def test_a_report_saves_its_date_and_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = harness.Target("a page is found after", 60.0, 50.0, "ms")
    harness.report("Intake", [target], {}, machine_line="2 cores, load before 1.0", file=str(tmp_path / "intake.json"))
    saved = json.loads((tmp_path / "intake.json").read_text())
    assert date.fromisoformat(saved["date"]) <= date.today()
    assert saved["machine"] == "2 cores, load before 1.0"
    assert not saved["targets"][0]["met"]
    assert "MISSED" in capsys.readouterr().out
