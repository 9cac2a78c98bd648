"""The CDK's command line, from npm."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.services import npm, tools

_ROOT = Path(__file__).parents[2]
# What `make deploy` takes, with its hashes.
_PINNED = _ROOT / "tools/cdk"


class Cdk:
    """`cdk` on this project's app or another one, without the user's AWS configuration. Raises `Unavailable`."""

    def __init__(self, environment: Mapping[str, str], out: Path, app: str | None = None) -> None:
        self._program = install()
        self._out = out
        self._app = ["--app", app] if app else []
        self._environment = {
            **environment,
            "PATH": os.pathsep.join([str(npm.BESIDE_PYTHON), os.environ["PATH"]]),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CI": "true",
        }

    def __call__(self, *arguments: str, context: Mapping[str, str]) -> str:
        """Return the output of a command. Raises `Unavailable` when it fails."""
        app = [] if "--app" in arguments else self._app
        said = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
        quiet = [*app, "--no-notices", "--no-color", "--output", str(self._out)]
        return tools.run(
            [str(npm.NODE), str(self._program), *arguments, *said, *quiet],
            env=self._environment,
            inherit=False,
            cwd=_ROOT,
            seconds=600,
        )


def install() -> Path:
    """The program, fetched at the first time. Raises `Unavailable`."""
    return npm.installed(_PINNED, "aws-cdk", "aws-cdk/bin/cdk")
