"""Where the real servers of the tests come from: a cache folder, and virtual environments of their own in it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from filelock import FileLock

_START_SECONDS = 60.0


class Unavailable(Exception):
    """This machine cannot run the server; the message says why, for the test report."""


def cache(name: str) -> Path:
    """A folder that outlives the test run."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "cragside" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


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
    uv = shutil.which("uv")
    if uv:
        run([uv, "venv", "--quiet", "--seed", "--python", interpreter, str(folder / "venv")])
    else:
        run([interpreter, "-m", "venv", str(folder / "venv")])
    if requirements:
        run([str(python), "-m", "pip", "install", "--quiet", *requirements])
    made.write_text(wanted)
    return python


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    inherit: bool = True,
    cwd: Path | None = None,
    seconds: float = 1800,
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


class Server:
    """A process group of its own that answers on a free loopback port, with a folder that goes when it does."""

    def __init__(self, name: str, health: str) -> None:
        self._name = name
        self._health = health
        self._folder = tempfile.TemporaryDirectory(prefix=f"cragside-{name}-")
        self._process: subprocess.Popen[bytes] | None = None
        self.home = Path(self._folder.name)
        self.port = free_port()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it has written."""
        return (self.home / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start and wait until it answers. Raises `Unavailable`."""
        command, environment = self.command(), self.environment()
        with (self.home / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}{self._health}", timeout=2):
                return
            time.sleep(0.1)
        self.kill()
        raise Unavailable(f"{self._name} did not come up: {self.log.strip()[-400:]}")

    def command(self) -> list[str]:
        """What starts it. Raises `Unavailable`."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """All that it finds in its environment."""
        raise NotImplementedError

    def stop(self) -> None:
        """End it in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it and what it started at once."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        for signalled in (how, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signalled)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(15)
                break
        self._process = None
