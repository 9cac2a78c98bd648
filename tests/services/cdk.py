"""The CDK's command line, from npm, kept in the cache folder. Node comes with the dependency group `infra`."""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.services import tools

_ROOT = Path(__file__).parents[2]
# What `make deploy` takes, with its hashes.
_PINNED = _ROOT / "tools/cdk"
_BESIDE_PYTHON = Path(sys.executable).parent


class Cdk:
    """`cdk` on this project's app, with nothing of the user's AWS configuration. Raises `Unavailable`."""

    def __init__(self, environment: Mapping[str, str], out: Path) -> None:
        self._program = install()
        self._out = out
        self._environment = {
            **environment,
            "PATH": os.pathsep.join([str(_BESIDE_PYTHON), os.environ["PATH"]]),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CI": "true",
        }

    def __call__(self, *arguments: str, context: Mapping[str, str]) -> str:
        """What a command wrote. Raises `Unavailable` when it fails."""
        said = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
        quiet = ["--no-notices", "--no-color", "--output", str(self._out)]
        return tools.run(
            [str(_BESIDE_PYTHON / "node"), str(self._program), *arguments, *said, *quiet],
            env=self._environment,
            inherit=False,
            cwd=_ROOT,
            seconds=600,
        )


def install() -> Path:
    """The program, fetched at the first time. Raises `Unavailable`."""
    lock = (_PINNED / "package-lock.json").read_bytes()
    folder = tools.cache(f"aws-cdk-{hashlib.sha256(lock).hexdigest()[:16]}")
    program = folder / "node_modules" / "aws-cdk" / "bin" / "cdk"
    with tools.exclusive(folder):
        if not program.exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_PINNED / name, folder)
            npm = [str(_BESIDE_PYTHON / "npm"), "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
            path = os.pathsep.join([str(_BESIDE_PYTHON), os.environ["PATH"]])
            tools.run([*npm, "--prefix", str(folder)], env={"PATH": path}, cwd=folder)
    return program
