"""The layer of the function that ours is measured against."""

import importlib.metadata
import sys
import tomllib

import pytest

from benchmarks import coldstart
from benchmarks.emulator import Runtime
from tests.layers.built_layers import ROOT, uv

pytestmark = pytest.mark.layers


def test_all_that_the_bare_function_imports_is_of_the_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("UV", uv())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    version = "{}.{}".format(*sys.version_info[:2])
    layer = coldstart.bare_layer(Runtime(sys.executable, emulator=tmp_path), version)
    locked = {
        package["name"]: package["version"] for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    }
    found = {
        dist.name.lower().replace("_", "-"): dist.version
        for dist in importlib.metadata.distributions(path=[str(layer)])
    }
    assert {"fastapi", "mangum", "starlette", "idna"} <= found.keys()
    assert found == {name: locked[name] for name in found}
