"""Files that a compiler leaves behind, and the ways it may end."""

import sys

import pytest

from layers.lightrag.bytecode import compiled
from layers.lightrag.errors import BuildError

REAL = f'"{sys.executable}" "$@"'


@pytest.fixture
def modules(tmp_path):
    folder = tmp_path / "python"
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"NAME = {name!r}\n")
    return folder


def compiler(folder, *lines):
    script = folder / "python3.12"
    script.write_text("\n".join(["#!/bin/sh", *lines]))
    script.chmod(0o755)
    return str(script)


def test_every_module_gets_bytecode(modules):
    assert compiled(modules, sys.executable) == []
    assert len(list(modules.rglob("*.pyc"))) == 2


def test_a_module_that_is_no_python_is_named_and_the_others_get_theirs(modules):
    (modules / "one" / "template.py").write_text("this is {{ no }} Python\n")
    (failure,) = compiled(modules, sys.executable)
    assert "template.py" in failure
    assert len(list(modules.rglob("*.pyc"))) == 2


@pytest.mark.parametrize(
    "lines",
    [
        ["kill -9 $$"],
        ["exit 0"],  # without having done anything
        [REAL, "kill -9 $$"],
        [REAL, "rm -r $(find . -name one)/__pycache__", "exit 0"],
    ],
)
def test_a_compiler_that_stops_early_ends_the_build(modules, tmp_path, monkeypatch, lines):
    monkeypatch.chdir(modules)
    with pytest.raises(BuildError, match="modules without bytecode"):
        compiled(modules, compiler(tmp_path, *lines))


def test_a_compiler_that_dies_after_one_failure_ends_the_build_too(modules, tmp_path):
    died = compiler(tmp_path, "echo \"*** Error compiling 'one/__init__.py'...\"", "exit 1")
    with pytest.raises(BuildError, match="2 modules without bytecode"):
        compiled(modules, died)
