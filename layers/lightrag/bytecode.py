"""Bytecode for a layer. Lambda mounts layers read-only, so modules without it are compiled at every cold start."""

import os
import subprocess
from pathlib import Path

from layers.lightrag.errors import BuildError

MOUNTED = "/opt/python"

NO_BYTECODE = (
    "No Python {python} was found, so the layers get no bytecode. A layer is read-only on Lambda: every cold start "
    "compiles what it imports, which about triples the first /rag (docs/lambda.md). Put a "
    "python{python} on the PATH, or choose another --python."
)


def version_of(python: str) -> str:
    """The interpreter's full version."""
    command = [python, "-c", "import sys; print(sys.version)"]
    return subprocess.run(  # noqa: S603 - an interpreter that was found
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


def compiled(folder: Path, python: str) -> list[str]:
    """Compile every module below the folder, for `/opt/python`. Return the failures.

    The bytecode is unchecked, so Python ignores the sources' dates. It is compiled in one process with a fixed hash
    seed, because it depends on what the compiler has seen before. Raises `BuildError` if the compiler ends early.
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
    failures = [line.removeprefix("*** ").strip() for line in done.stdout.splitlines() if line.startswith("*** ")]
    missing = _without_bytecode(folder)
    if len(missing) > len(failures) or (done.returncode and not failures):
        raise BuildError(
            f"{python} ended with {done.returncode} and left {len(missing)} modules without bytecode: "
            f"{done.stdout.strip()[-400:] or 'it said nothing'}. Is there too little memory? Run the build again."
        )
    return failures


def _without_bytecode(folder: Path) -> set[Path]:
    compiled = {path.parent.parent / path.name.split(".")[0] for path in folder.rglob("__pycache__/*.pyc")}
    return {path for path in folder.rglob("*.py") if path.parent / path.name.split(".")[0] not in compiled}
