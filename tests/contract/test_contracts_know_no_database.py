"""The contract suites know ports and backends: no database, and nothing that an adapter keeps to itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ADAPTERS = "cragside.adapters"
LIGHTRAG = f"{ADAPTERS}.lightrag"
# What a new database has to know of the adapter.
INTERFACES = (
    f"{LIGHTRAG}.backends.",
    *(f"{LIGHTRAG}.ledger.{name}" for name in ("changes", "entries", "exchange", "interface", "leases")),
)


def modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return []


def faults(tree: ast.AST) -> Iterator[str]:
    adapters = {
        (name.asname or name.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and any(each.startswith(ADAPTERS) for each in modules_of(node))
        for name in node.names
    }
    for node in ast.walk(tree):
        for module in modules_of(node)[:1]:
            if module.split(".")[0] == "sqlite3" or (module.startswith(LIGHTRAG) and not module.startswith(INTERFACES)):
                yield f"line {node.lineno} imports {module}"  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            target = node.args[0]
            patched = target.value if isinstance(target, ast.Constant) else ast.unparse(target).split(".")[0]
            if patched in adapters or str(patched).startswith(ADAPTERS):
                yield f"line {node.lineno} patches {patched}"


@pytest.mark.parametrize("path", sorted(HERE.glob("*.py")), ids=lambda path: path.stem)
def test_a_suite_knows_no_database_and_patches_no_adapter(path: Path) -> None:
    assert list(faults(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import sqlite3",
        "from sqlite3 import connect",
        "def f():\n    from cragside.adapters.lightrag.ledger.sqlite.database import Database",
        "from cragside.adapters.lightrag.ledger import sqlite",
        "from cragside.adapters.lightrag.storages.sqlite import vectors",
        "from cragside.adapters.lightrag.indexing.drafts import DraftVectors",
        "from cragside.adapters.lightrag.leases import Leases",
        "monkeypatch.setattr('cragside.adapters.lightrag.library.sweep_if_free', dies)",
        "from cragside.adapters.lightrag.indexing.drafts import Draft\nmonkeypatch.setattr(Draft, 'extract', fails)",
        "from cragside.adapters.lightrag import library as lib\nmonkeypatch.setattr(lib, 'move', fails)",
    ],
)
def test_it_is_noticed(source: str) -> None:
    assert list(faults(ast.parse(source)))
