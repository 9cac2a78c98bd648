"""Figures in the documentation are those that the named commands print, as far as they take seconds."""

import os
import re
import subprocess
import sys

import pytest

from tests.blocks import ROOT

EVALS = (ROOT / "evals/README.md").read_text()


def section(page: str, heading: str) -> str:
    return page.split(f"## {heading}\n")[1].split("\n## ")[0]


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
