"""Builds layers as the command line does."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools import toolchain

ROOT = Path(__file__).parents[2]


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
    return toolchain.uv() or pytest.skip("uv was not found; `make check` installs it")


def build(out: Path, arch: str, python: str, **environment: str) -> Built:
    options = ["--arch", arch, "--python", python, "--out", str(out), "--uv", uv()]
    done = subprocess.run(
        [sys.executable, "-m", "layers.lightrag.build", *options],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Built(out, arch, python, done.stderr)
