"""The layer of the function that ours is measured against."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib

import pytest

from benchmarks import coldstart
from benchmarks.emulator import Runtime
from tests.layers.built_layers import ROOT, uv

pytestmark = pytest.mark.layers

OLDER = "3.10"


def test_all_that_the_bare_function_imports_is_of_the_lock(tmp_path, monkeypatch):
    def run(command, **options):
        """uv, with a lock that has an older idna than the registry."""
        done = subprocess_run(command, **options)
        if "export" in command:
            done.stdout = re.sub(r"^idna==\S+", f"idna=={OLDER}", done.stdout, flags=re.MULTILINE)
        return done

    subprocess_run = subprocess.run
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("UV", uv())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    version = "{}.{}".format(*sys.version_info[:2])
    layer = coldstart.bare_layer(Runtime(sys.executable, emulator=tmp_path), version)
    lock = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    locked = {package["name"]: package["version"] for package in lock} | {"idna": OLDER}
    found = {
        distribution.name.lower().replace("_", "-"): distribution.version
        for distribution in importlib.metadata.distributions(path=[str(layer)])
    }
    assert {"fastapi", "mangum", "starlette", "idna"} <= found.keys()
    assert found == {name: locked[name] for name in found}
