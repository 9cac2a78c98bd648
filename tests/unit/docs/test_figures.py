"""Figures in the documentation are those that the named commands print, as far as they take seconds."""

import os
import re
import subprocess
import sys

import pytest

from tests.blocks import ROOT

EVALS = (ROOT / "evals/README.md").read_text()
BENCHMARKS = (ROOT / "benchmarks/README.md").read_text()


def section(page: str, heading: str) -> str:
    return page.split(f"## {heading}\n")[1].split("\n## ")[0]


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in section(page, heading).splitlines() if line.startswith("| ")]
    return [[cell.strip("`") for cell in re.split(r" *\| *", line)[1:-1]] for line in lines[1:]]


def figures(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def benchmark(wanted: str) -> str:
    """What the table of benchmarks says of a command; a row without one belongs to the row above."""
    found, command = "", ""
    for given, *cells in rows(BENCHMARKS, "Figures"):
        command = given.partition("`")[0] or command
        found += " ".join(cells) + "\n" if command == wanted else ""
    return found


def test_the_readme_has_the_figures_of_the_evals_and_the_benchmarks() -> None:
    command = ""
    for name, result, given in rows((ROOT / "README.md").read_text(), "How well, how fast"):
        command = given or command
        measured = section(EVALS, "Figures of `clapnq.py`") if "eval" in command else benchmark(command.split()[-1])
        assert figures(result) <= figures(measured), f"{name}: the page of {command} has another figure"


# Held-out halves are for final figures. Tests that looked at them would make them guide the next change.
@pytest.mark.guides
@pytest.mark.parametrize(
    "command", ["short_notes.py", "followups.py --half development", "languages.py --half development"]
)
def test_the_page_of_the_evals_has_what_an_eval_prints(command: str) -> None:
    script, *options = command.split()
    printed = subprocess.run(
        [sys.executable, ROOT / "evals" / script, *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    page = section(EVALS, f"Figures of `{script}`")
    counted = re.findall(r"\((\d+)/(\d+),", printed)
    for dialogues, lines in re.findall(r"(\d+) dialogues\n((?:  .+\n)+)", printed):
        counted += [(count, dialogues) for count in re.findall(r"(?:first|threshold|evidence) (\d+)", lines)]
    assert counted
    for right, number in counted:
        assert re.search(rf"\b{right} of {number}\b|\({right}\)", page), f"{right} of {number} is not on the page"
