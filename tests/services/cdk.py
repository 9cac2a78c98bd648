"""The CDK's command line, from npm, kept in the cache folder. Node comes with the dependency group `infra`."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.services import tools

_ROOT = Path(__file__).parents[2]
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
    version = _version()
    folder = tools.cache(f"aws-cdk-{version}")
    program = folder / "node_modules" / "aws-cdk" / "bin" / "cdk"
    with tools.exclusive(folder):
        if not program.exists():
            npm = [str(_BESIDE_PYTHON / "npm"), "install", "--silent", "--ignore-scripts", "--no-save"]
            path = os.pathsep.join([str(_BESIDE_PYTHON), os.environ["PATH"]])
            tools.run([*npm, "--prefix", str(folder), f"aws-cdk@{version}"], env={"PATH": path}, cwd=folder)
    return program


def _version() -> str:
    """The version that `make deploy` takes."""
    (version,) = re.findall(r"aws-cdk@([\d.]+)", (_ROOT / "Makefile").read_text())
    return str(version)
