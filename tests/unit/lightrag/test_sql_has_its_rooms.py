"""SQL and SQLite are known in the rooms that are made for them, and nowhere else in the package."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cragside

PACKAGE = Path(cragside.__file__).parent
ADAPTERS = PACKAGE / "adapters"
# The queue of `adapters/local` has a SQLite file of its own, and shares what failures of SQLite mean.
ROOMS = (
    ADAPTERS / "lightrag" / "ledger" / "postgres",
    ADAPTERS / "lightrag" / "ledger" / "sqlite",
    ADAPTERS / "lightrag" / "storages" / "neo4j",  # Cypher has some of the same words
    ADAPTERS / "lightrag" / "storages" / "postgres",
    ADAPTERS / "lightrag" / "storages" / "sqlite",
    ADAPTERS / "local",
    ADAPTERS / "postgres",
    ADAPTERS / "sqlite_failures.py",
)
MODULES = tuple(
    f"cragside.adapters.lightrag.{room}.{kind}" for room in ("ledger", "storages") for kind in ("postgres", "sqlite")
)
STATEMENT = re.compile(
    r"\s*(SELECT\b.+\bFROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|PRAGMA \w|CREATE (VIRTUAL )?"
    r"(TABLE|INDEX|TRIGGER|TEMP)|DROP (TABLE|INDEX)|BEGIN IMMEDIATE|WITH \w+ .*\bAS \(|VACUUM\b)",
    re.DOTALL,
)

# A source without any of them is not parsed: to parse all takes seconds.
FIRST_WORD = re.compile(r"sqlite3|SELECT|INSERT|UPDATE|DELETE|PRAGMA|CREATE|DROP|BEGIN|WITH|VACUUM")


def sources(*, in_rooms: bool) -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if in_rooms == any(room == path or room in path.parents for room in ROOMS)
    ]


def knowledge_of_sql(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(name.name.split(".")[0] == "sqlite3" for name in node.names):
            yield f"line {node.lineno} imports sqlite3"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sqlite3":
            yield f"line {node.lineno} imports from sqlite3"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and STATEMENT.match(node.value):
            yield f"line {node.lineno} holds SQL: {node.value.strip()[:40]}"


def in_source(source: str) -> list[str]:
    return list(knowledge_of_sql(ast.parse(source))) if FIRST_WORD.search(source) else []


def test_no_module_outside_its_rooms_knows_sql() -> None:
    known = {
        str(path.relative_to(PACKAGE)): found
        for path in sources(in_rooms=False)
        if (found := in_source(path.read_text()))
    }
    assert known == {}


def test_the_rooms_are_where_sql_is() -> None:
    knowing = {path for path in sources(in_rooms=True) if in_source(path.read_text())}
    for room in ROOMS:
        assert any(room == path or room in path.parents for path in knowing), room


def test_only_the_backend_and_baked_stores_which_are_its_files_import_from_the_rooms() -> None:
    importing = {
        str(path.relative_to(ADAPTERS / "lightrag"))
        for path in sources(in_rooms=False)
        if any(module in path.read_text() for module in MODULES)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(MODULES)
    }
    assert importing == {
        "backends/postgres.py",
        "backends/postgres_tables.py",
        "backends/sqlite.py",
        "files/baking.py",
        "files/manifest.py",
        # They write what the ledger in PostgreSQL notes for Qdrant and Redis.
        "storages/qdrant/changes.py",
        "storages/qdrant/checkup.py",
        "storages/qdrant/exchange.py",
        "storages/qdrant/fence.py",
        "storages/qdrant/vectors.py",
        "storages/redis/fence.py",
        "storages/redis/shares.py",
        "storages/redis/values.py",
    }


@pytest.mark.parametrize(
    "source",
    [
        "import sqlite3",
        "from sqlite3 import Connection",
        "def f():\n    import sqlite3 as s",
        "x = 'SELECT a FROM b'",
        "x = f'UPDATE part SET {a}'",
        "x = '''\n  DELETE FROM part'''",
        "x = 'PRAGMA user_version'",
        "x = 'INSERT OR IGNORE INTO part VALUES (?)'",
    ],
)
def test_it_is_noticed(source: str) -> None:
    assert in_source(source)


@pytest.mark.parametrize("source", ["x = 'Select a model.'", "x = 'UPDATE'", "import json", "x = 'Delete from here'"])
def test_other_words_are_not(source: str) -> None:
    assert in_source(source) == []
