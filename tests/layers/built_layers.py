"""Builds layers as the command line does."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "layers/lightrag/build.py"


@dataclass(frozen=True)
class Built:
    """The layers of an architecture in a folder."""

    out: Path
    arch: str
    python: str
    log: str = ""

    def folder(self, layer: str) -> Path:
        return self.out / f"{layer}-{self.python}-{self.arch}"

    def record(self, layer: str) -> dict[str, Any]:
        return json.loads(self.folder(layer).with_suffix(self.folder(layer).suffix + ".json").read_text())


def uv() -> str:
    """uv, where `make` or the user has it; the tests are skipped without."""
    own = ROOT / ".uv/bin/uv"
    found = os.environ.get("UV") or (str(own) if own.exists() else shutil.which("uv"))
    if not found:
        pytest.skip("uv was not found; `make check` installs it")
    return found


def build(out: Path, arch: str, python: str, **environment: str) -> Built:
    done = subprocess.run(
        [sys.executable, str(BUILD), "--arch", arch, "--python", python, "--out", str(out), "--uv", uv()],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Built(out, arch, python, done.stderr)
