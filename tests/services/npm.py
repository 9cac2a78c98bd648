"""Programs from npm as a lock file pins them, in the cache folder. Node comes with the dependency group `infra`."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from tests.services import tools

BESIDE_PYTHON = Path(sys.executable).parent
NODE = BESIDE_PYTHON / "node"


def installed(pinned: Path, name: str, program: str) -> Path:
    """A program of the packages that are pinned in a folder, fetched at the first time. Raises `Unavailable`."""
    lock = (pinned / "package-lock.json").read_bytes()
    folder = tools.cache(f"{name}-{hashlib.sha256(lock).hexdigest()[:16]}")
    found = folder / "node_modules" / program
    with tools.exclusive(folder):
        if not found.exists():
            for file in ("package.json", "package-lock.json"):
                shutil.copy(pinned / file, folder)
            npm = [str(BESIDE_PYTHON / "npm"), "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
            path = os.pathsep.join([str(BESIDE_PYTHON), os.environ["PATH"]])
            tools.run([*npm, "--prefix", str(folder)], env={"PATH": path}, cwd=folder)
    return found
