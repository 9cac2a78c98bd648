"""Docstrings begin with a verb or with their subject."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A sentence that begins so has no verb before its end, and is read twice.
RIDDLE = re.compile(r"(What|Whatever|Whether|Which|Who|Whoever|Where|How|Those)\b")


def sources() -> list[Path]:
    """Return the Python files of the project, without those that tests read as data."""
    folders = ("layers", "functions", "infra", "tools", "evals", "benchmarks", "packaging", "tests")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if ROOT / "tests/data" not in path.parents)


def beginnings(source: str) -> Iterator[str]:
    """Yield the first line of each docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield (ast.get_docstring(node) or "").partition("\n")[0]


def test_no_docstring_is_a_riddle() -> None:
    riddles = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in sources()
        for line in beginnings(path.read_text(encoding="utf-8"))
        if RIDDLE.match(line)
    ]

    assert riddles == []


@pytest.mark.parametrize("docstring", ["What it keeps.", "Whether it is there.", "Those that are left."])
def test_a_riddle_is_found(docstring: str) -> None:
    assert [line for line in beginnings(f'def f():\n    """{docstring}"""\n') if RIDDLE.match(line)] == [docstring]
