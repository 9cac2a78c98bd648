"""Install the real servers of the tests into a cache folder, each in a virtual environment of its own."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock


class Unavailable(Exception):
    """This machine cannot run the server; the message says why, for the test report."""


def cache(name: str, *, shared: bool = False) -> Path:
    """A folder that outlives the test run. If it is shared, servers that don't run as root can read it too."""
    own = Path("/var/cache") if shared and os.geteuid() == 0 else Path.home() / ".cache"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or own) / "cragside" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def unprivileged() -> dict[str, Any]:
    """Arguments of `subprocess` for servers that refuse to run as root: they run as nobody then."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """One process at a time fills the folder; the others wait."""
    with FileLock(folder / ".lock"):
        yield


def environment(folder: Path, requirements: Sequence[str], interpreter: str = sys.executable) -> Path:
    """The Python of a virtual environment with pip and exactly these requirements, made once with the interpreter."""
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    made = folder / "venv" / "requirements.txt"
    wanted = "\n".join(requirements)
    if made.exists() and made.read_text() == wanted:
        return python
    shutil.rmtree(folder / "venv", ignore_errors=True)
    uv = shutil.which("uv") or os.environ.get("UV")  # `uv run` says in UV where it is
    if uv:
        run([uv, "venv", "--quiet", "--seed", "--python", interpreter, str(folder / "venv")])
    else:
        run([interpreter, "-m", "venv", str(folder / "venv")])
    if requirements:
        pip = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
        run([*pip, "--quiet", *requirements])
    made.write_text(wanted)
    return python


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    inherit: bool = True,
    cwd: Path | None = None,
    seconds: float = 1800,
    **how: Any,
) -> str:
    """The command's output; `env` is all of its environment unless it inherits this one.

    Raises `Unavailable` with the end of what it wrote when it fails.
    """
    try:
        done = subprocess.run(
            command,
            env={**(os.environ if inherit else {}), **(env or {})},
            cwd=cwd,
            timeout=seconds,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            **how,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name}: {error}") from error
    if done.returncode:
        shown = " ".join([Path(command[0]).name, *command[1:4]])
        raise Unavailable(f"{shown} failed ({done.returncode}): {done.stdout.strip()[-400:]}")
    return done.stdout


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
