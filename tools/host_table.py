"""Calls cragside with its hosts' libraries, and writes what worked to the table in README.md.

python -m tools.host_table
"""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
PROPERTY = "host"
_TABLE = re.compile(r"(<!-- hosts -->\n).*?(<!-- /hosts -->)", re.DOTALL)


class Rows:
    """A pytest plugin that keeps the row of each host whose test passed."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the row of a test that passed."""
        if report.when == "call" and report.passed:
            self.rows += [value for name, value in report.user_properties if name == PROPERTY]


def table(rows: list[dict[str, str]]) -> str:
    """The rows in Markdown."""
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([row[column] for column in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def rows_on_page() -> list[list[str]]:
    """The cells of each host's row in the README."""
    found = _TABLE.search(PAGE.read_text())
    lines = found.group().splitlines()[3:-1] if found else []
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def with_skipped(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The page's rows in their order, with those of a run in the place of the older, then the new ones."""
    tried = {row["host"]: row for row in rows}
    known = {cells[0]: dict(zip(rows[0], cells, strict=True)) for cells in rows_on_page()}
    return list({**known, **tried}.values())


def main() -> int:
    """Write the table, unless a host failed. Return the exit status."""
    rows = Rows()
    status = pytest.main(["-q", str(ROOT / "tests/hosts")], plugins=[rows])
    if status == 0:
        PAGE.write_text(
            _TABLE.sub(lambda frame: f"{frame[1]}{table(with_skipped(rows.rows))}{frame[2]}", PAGE.read_text())
        )
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
