"""A server of the tests: a process that listens on loopback, with a folder of its own."""

import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

import psutil

from tests.services import tools
from tests.services.forks import Forked
from tests.services.tools import Unavailable

PID = "pid"
_STOP_SECONDS = 15.0


class Server:
    """A process group of its own on a free loopback port, with a folder that is removed with it."""

    # Where the folders of all servers of this test run are; unset outside of test runs.
    homes: ClassVar[Path | None] = None
    # Some servers refuse to run as root.
    unprivileged: ClassVar[bool] = False
    start_seconds: ClassVar[float] = 60.0
    stops_on: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, name: str, health: str = "/") -> None:
        self.name = name
        self._health = health
        self.home = Path(tempfile.mkdtemp(prefix=f"cragside-{name}-", dir=self.homes))
        self._account = tools.unprivileged() if self.unprivileged else {}
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self.port = tools.free_port()
        if self._account:
            os.chown(self.home, self._account["user"], self._account["group"])

    @property
    def url(self) -> str:
        """Its address for HTTP."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def uri(self) -> str:
        """Its address, with whatever gives access."""
        return self.url

    @property
    def log(self) -> str:
        """Return its output since it was started."""
        return (self.home / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start and wait until it answers. Raises `Unavailable`."""
        self._process = self._begun()
        (self.home / PID).write_text(f"{self._process.pid} {psutil.Process(self._process.pid).create_time()}")
        deadline = time.monotonic() + self.start_seconds
        while time.monotonic() < deadline and self._process.poll() is None:
            if self.answers():
                return
            time.sleep(0.05)
        self.kill()
        raise Unavailable(f"{self.name} did not come up: {self.log.strip()[-400:]}")

    def command(self) -> list[str]:
        """Return the command that starts it. Raises `Unavailable`."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """All that it finds in its environment."""
        return {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}

    def version(self) -> str:
        """Describe the running server for the report at the end. Raises `Unavailable`."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Return True if the server is ready for requests."""
        try:
            with urllib.request.urlopen(f"{self.url}{self._health}", timeout=2):
                return True
        except OSError:
            return False

    def pause(self) -> None:
        """Stop it and its children, as a machine does that hangs; their connections stay open."""
        stopped = self._family()
        for each in stopped:
            each.suspend()
        _wait(lambda: all(each.status() == psutil.STATUS_STOPPED for each in stopped))

    def resume(self) -> None:
        """Let it go on after a pause."""
        resumed = self._family()
        for each in resumed:
            with suppress(psutil.NoSuchProcess):  # it ended when its parent went on
                each.resume()
        _wait(lambda: not any(map(_is_stopped, resumed)))

    def stop(self) -> None:
        """End it in good order. It can be started again."""
        if self._process is not None:
            family = self._family()
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, self.stops_on)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
            self._end(family)

    def kill(self) -> None:
        """End it and its children at once, as a crash does. It can be started again."""
        if self._process is not None:
            self._end(self._family())

    def remove(self) -> None:
        """End it at once and remove its folder."""
        self.kill()
        tools.remove(self.home)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _begun(self) -> subprocess.Popen[bytes] | Forked:
        """A process that leads a group of its own and writes into the log. Raises `Unavailable`."""
        command, environment = self.command(), self.environment()
        with (self.home / "log").open("wb") as log:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._account,
            )

    def _end(self, family: Iterable[psutil.Process]) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            end(family)
            self._process.wait()
            self._process = None

    def _family(self) -> list[psutil.Process]:
        return family(self._process.pid) if self._process is not None else []


class LoggingServer(Server):
    """A server that logs a line when it is ready."""

    ready: ClassVar[str]

    def answers(self) -> bool:
        """Return True if the line was logged."""
        return self.ready in self.log


def family(pid: int) -> list[psutil.Process]:
    """The process and its descendants, which may be in groups of their own."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill the processes and wait until they are gone."""
    ended = list(processes)
    for each in ended:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    _wait(lambda: not any(map(_runs, ended)))


def end_survivor(home: Path) -> None:
    """Kill the server that was started with this folder if it still runs."""
    with suppress(FileNotFoundError, psutil.NoSuchProcess):
        pid, began = (home / PID).read_text().split()
        if psutil.Process(int(pid)).create_time() == float(began):  # else another program has its number
            end(family(int(pid)))


def _wait(until: Callable[[], bool]) -> None:
    """Signals take effect a moment after they are sent."""
    deadline = time.monotonic() + _STOP_SECONDS
    while not until() and time.monotonic() < deadline:
        time.sleep(0.01)


def _is_stopped(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_STOPPED)
    return False


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
