"""Installs what the lock says for another platform, with uv."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from layers.lightrag.errors import BuildError
from layers.lightrag.target import PLATFORMS, Target

ROOT = Path(__file__).parents[2]
EXTRAS = ("--extra", "aws", "--extra", "otel", "--extra", "servers")


def requirements(uv: str, pruned: Sequence[str]) -> dict[str, str]:
    """The lock's distributions with versions, markers and hashes, without pruned ones and their own dependencies."""
    command = [uv, "export", "--frozen", "--no-dev", "--no-emit-project", *EXTRAS, "--no-header"]
    pruning = [part for name in pruned for part in ("--prune", name)]
    found: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", run([*command, "--no-annotate", *pruning])):
        name = re.match(r"[\w.-]+", block)
        if name:
            found[name[0]] = found.get(name[0], "") + block.strip() + "\n"
    return found


def install(uv: str, target: Target, platform: str, requirements: dict[str, str], folder: Path) -> None:
    """Install the wheels of these distributions for a platform into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch, "requirements.txt")
        listed.write_text("".join(requirements.values()))
        options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--link-mode", "copy"]
        options += ["--python-platform", platform, "--python-version", target.python]
        run([uv, "pip", "install", *options, "--target", str(folder), "--requirements", str(listed)])


def add_data(uv: str, target: Target, requirements: dict[str, str], wanted: dict[str, list[str]], folder: Path) -> None:
    """Add only the wanted files of these distributions."""
    with tempfile.TemporaryDirectory() as scratch:
        # x86_64 has wheels of everything.
        install(uv, target, PLATFORMS["x86_64"], requirements, Path(scratch))
        for name, paths in wanted.items():
            for path in paths:
                (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(scratch, name, path), folder / name / path)
        for metadata in Path(scratch).glob("*.dist-info"):
            shutil.copytree(metadata, folder / metadata.name)


def run(command: Sequence[str]) -> str:
    """Run uv, and return its output. Raises `BuildError`."""
    environment = {**os.environ, "UV_PYTHON": sys.executable}
    try:
        done = subprocess.run(  # noqa: S603 - uv, with arguments of this file
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise BuildError("uv was not found. Name it with --uv, or run `make layers`, which installs it.") from error
    if done.returncode:
        raise BuildError(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout
