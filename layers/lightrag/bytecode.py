"""Bytecode for a layer. Lambda mounts layers read-only: what has none is compiled at every cold start."""

import os
import subprocess
import sys
from pathlib import Path

MOUNTED = "/opt/python"

NO_BYTECODE = (
    "No Python {python} was found, so the layers get no bytecode. A layer is read-only on Lambda: every cold start "
    "compiles what it imports; for a first /rag that took 7.7 s instead of 2.7 s (docs/layers.md). Put a "
    "python{python} on the PATH, or choose another --python."
)

_FINDER = Path(__file__).parents[2] / "tools/find_python.sh"


def interpreter(version: str) -> tuple[str, str] | None:
    """An interpreter of a minor version such as 3.12, with its full version; None when the machine has none."""
    mine = "{}.{}".format(*sys.version_info[:2])
    found = sys.executable if mine == version else _output(["sh", str(_FINDER), version])
    return (found, _output([found, "-c", "import sys; print(sys.version)"])) if found else None


def compiled(folder: Path, python: str) -> list[str]:
    """Compile every module below the folder, for `/opt/python`; returns what could not be compiled.

    Unchecked: Python does not look at the sources' dates. In one process with a fixed hash seed: bytecode depends on
    what else its compiler has seen.
    """
    options = ["-q", "-f", "-s", str(folder), "-p", MOUNTED, "--invalidation-mode", "unchecked-hash"]
    command = [python, "-W", "ignore", "-s", "-S", "-m", "compileall", *options, str(folder)]
    done = subprocess.run(  # noqa: S603 - an interpreter that was found, with arguments of this file
        command,
        env={"PYTHONHASHSEED": "0", "PATH": os.defpath},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return [line.removeprefix("*** ").strip() for line in done.stdout.splitlines() if line.startswith("*** ")]


def _output(command: list[str]) -> str:
    return subprocess.run(  # noqa: S603 - sh or an interpreter that was found, with arguments of this file
        command, capture_output=True, text=True, check=True
    ).stdout.strip()
