"""Finds installed interpreters and uv. Installs nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def uv() -> str | None:
    """uv: $UV, the checkout's own, or the one on the PATH."""
    own = _ROOT / ".uv/bin/uv"
    return os.environ.get("UV") or (str(own) if own.exists() else shutil.which("uv"))


def interpreter(version: str) -> str | None:
    """An interpreter of a minor version such as 3.12: this one if it has that version."""
    if version == "{}.{}".format(*sys.version_info[:2]):
        return sys.executable
    command = ["sh", str(_ROOT / "tools/find_python.sh"), version]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own script
    return found.stdout.strip() or None
