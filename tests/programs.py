"""cragside's command, and scripts, in processes of their own."""

import subprocess
import sys
from collections.abc import Mapping

CRAGSIDE = (sys.executable, "-c", "from cragside.entrypoints.cli.main import main; main()")


def output_of(script: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Return what a script prints in an interpreter of its own; it has to succeed."""
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout
