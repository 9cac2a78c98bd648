"""Counts the attacks in the test suite by family, and updates their table in docs/security.md.

    python -m tools.attack_table          # runs the attacks and writes the table

A test that is marked `attack("family")` is one attack; it passes if the attack is refused or made harmless.
"""

import re
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/security.md"
_TABLE = re.compile(r"(<!-- attacks -->\n).*?(<!-- /attacks -->)", re.DOTALL)


class Tally:
    """A pytest plugin that counts tried and refused attacks by family."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Count a finished test."""
        report = (yield).get_result()
        mark = item.get_closest_marker("attack")
        if mark and report.when == "call":
            self.tried[mark.args[0]] += 1
            self.refused[mark.args[0]] += report.passed


def table(counted: Tally) -> str:
    """The counts as a table in Markdown."""
    rows = [f"| {family} | {counted.tried[family]} | {counted.refused[family]} |" for family in sorted(counted.tried)]
    total = f"| **all** | **{counted.tried.total()}** | **{counted.refused.total()}** |"
    return "\n".join(["| attack | tried | refused |", "|---|---|---|", *rows, total]) + "\n"


def main() -> int:
    """Write the table. Return 1 if an attack was not refused."""
    counted = Tally()
    pytest.main(["-q", "-m", "attack", str(ROOT / "tests")], plugins=[counted])
    PAGE.write_text(_TABLE.sub(lambda frame: f"{frame[1]}{table(counted)}{frame[2]}", PAGE.read_text()))
    return 0 if counted.tried == counted.refused else 1


if __name__ == "__main__":
    sys.exit(main())
