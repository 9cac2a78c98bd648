"""Layers for Lambda: their size, their content, and that a second build is the same."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from layers.lightrag.build import check
from layers.lightrag.elf import stripped
from layers.lightrag.errors import BuildError
from layers.lightrag.sizes import FUNCTIONS, tables
from layers.lightrag.target import Target
from tests.layers.built_layers import ROOT, build, uv

pytestmark = pytest.mark.layers

LAYERS = ("core", "lightrag", "drivers", "parsers", "traces", "runtime")
MACHINES = {"x86_64": 62, "arm64": 183}


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_function_and_layers_stay_within_150_mib_with_bytecode(built):
    assert built.record("lightrag")["bytecode"]
    assert built.record("core")["bytecode"]
    folders = [built.folder("lightrag"), built.folder("core"), ROOT / "functions"]
    assert sum(map(size, folders)) <= 150 * 2**20


def test_all_layers_of_each_function_stay_within_lambdas_250_mib_and_five(built):
    target = Target(built.arch, built.python, None)
    printed = tables(target, built.out, ROOT / "functions/enrich")
    for name, layers in FUNCTIONS.items():
        assert all(built.record(layer)["bytecode"] for layer in layers)
        total = sum(built.record(layer)["unzipped_bytes"] for layer in layers)
        assert total <= 250 * 2**20
        assert len(layers) <= 5
        assert "drivers" in layers or len(layers) <= 3  # a baked store and what traces are others
        assert f"| {name} | {', '.join(layers)} | {total / 2**20:.1f} |" in printed


def test_a_build_refuses_layers_that_lambda_would_refuse(x86_64, tmp_path, monkeypatch):
    monkeypatch.setattr("layers.lightrag.build.LIMIT", 1)
    with pytest.raises(BuildError, match="more than Lambda's"):
        check(Target(x86_64.arch, x86_64.python, None), x86_64.out)


def shared_objects(folder):
    objects = list(folder.rglob("*.so*"))
    assert objects
    return objects


def test_every_module_has_bytecode_that_is_not_checked_and_names_where_lambda_mounts_it(built):
    tag = f"cpython-{built.python.replace('.', '')}"
    for layer in LAYERS[:-1]:
        modules = list(built.folder(layer).rglob("*.py"))
        assert modules
        for module in modules:
            bytecode = (module.parent / "__pycache__" / f"{module.stem}.{tag}.pyc").read_bytes()
            assert bytecode[4:8] == b"\x01\x00\x00\x00"
            assert str(ROOT).encode() not in bytecode
            assert b"/opt/python/" in bytecode


def test_shared_objects_are_for_the_architecture_and_hold_no_symbols(built):
    for path in [path for layer in LAYERS[1:-1] for path in shared_objects(built.folder(layer))]:
        image = path.read_bytes()
        assert image[18] == MACHINES[built.arch]
        assert stripped(image) == image


def test_modes_and_dates_are_the_same_everywhere(built):
    for path in built.folder("lightrag").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)
        assert path.stat().st_mtime == 315_532_800


def test_versions_and_licences_can_be_read(built):
    folder = built.folder("lightrag") / "python"
    for info in folder.glob("*.dist-info"):
        assert "\nVersion: " in (info / "METADATA").read_text()
    assert list(folder.glob("lightrag_hku-*.dist-info/licenses/LICENSE"))
    assert list(folder.glob("wordllama-*.dist-info/**/LICENSE*"))


def test_packages_of_the_lambda_runtime_are_in_no_layer(built):
    for layer in LAYERS[:-1]:
        folder = built.folder(layer) / "python"
        assert not [name for name in ("boto3", "botocore", "s3transfer", "six.py") if (folder / name).exists()]
    assert (built.folder("runtime") / "python/boto3").is_dir()


def test_the_same_input_gives_the_same_hash(x86_64, tmp_path):
    again = build(tmp_path / "elsewhere", x86_64.arch, x86_64.python)
    for layer in LAYERS:
        assert again.record(layer) == x86_64.record(layer)


def test_an_intact_layer_is_reused_and_a_damaged_one_rebuilt(x86_64, tmp_path):
    for layer in LAYERS[1:]:
        shutil.copytree(x86_64.folder(layer), tmp_path / x86_64.folder(layer).name, copy_function=os.link)
        shutil.copy(f"{x86_64.folder(layer)}.json", tmp_path)
    first = build(tmp_path, x86_64.arch, x86_64.python)
    assert first.log.count("as it was") == len(LAYERS) - 1
    assert build(tmp_path, x86_64.arch, x86_64.python).log.count("as it was") == len(LAYERS)
    damaged = tmp_path / x86_64.folder("core").name / "python/cragside/__init__.py"
    damaged.unlink()
    assert build(tmp_path, x86_64.arch, x86_64.python).log.count("as it was") == len(LAYERS) - 1
    assert damaged.exists()


def test_without_an_interpreter_of_the_version_the_build_says_what_is_missing(tmp_path):
    other = "3.13" if sys.version_info[:2] != (3, 13) else "3.12"
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to(shutil.which("sh"))
    built = build(tmp_path / "out", "x86_64", other, PATH=str(tools), PYENV_ROOT=str(tmp_path), UV=uv())
    assert f"No Python {other} was found, so the layers get no bytecode" in built.log
    assert not built.record("lightrag")["bytecode"]
    assert not list(Path(built.out).rglob("*.pyc"))
