"""cragside's program without the seconds of its imports: a process that has everything loaded forks for each start.

The process is one for each that runs tests, starts at the first use and ends with it. A fork gets the arguments, the
environment and the log that a new program would get. It is loaded as `cragside serve --workers` loads before it forks.
"""

import asyncio
import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import psutil

_GRACE_SECONDS = 10.0
_FOR_SERVING = (
    "cragside.entrypoints.cli.app",
    "cragside.entrypoints.http.health",
    "cragside.entrypoints.proxy.processes",
    "cragside.entrypoints.proxy.server",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)


class Forked:
    """A forked process, with the part of `subprocess.Popen` that servers need. Its exit code is not known."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)

    def poll(self) -> int | None:
        """None while it runs."""
        with suppress(psutil.NoSuchProcess):
            if self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE:
                return None
        return 0

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended. Raises `subprocess.TimeoutExpired`."""
        try:
            self._process.wait(timeout)
        except psutil.TimeoutExpired:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
        return 0


def fork(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
    """Run `cragside` with these arguments in a session of its own, which writes into the log."""
    return _parent().fork({"arguments": list(arguments), "environment": dict(environment), "log": str(log)})


class _Parent:
    """The process that forks."""

    def __init__(self) -> None:
        paths = os.pathsep.join(filter(None, sys.path))
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "tests.services.forks"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self._process.communicate)  # the end of its input ends it

    def fork(self, task: Mapping[str, Any]) -> Forked:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(json.dumps(task).encode() + b"\n")
            self._process.stdin.flush()
            return Forked(int(self._process.stdout.readline()))


@cache
def _parent() -> _Parent:
    return _Parent()


def _serve() -> None:
    """Fork for each line of the input, and write the number of the process."""
    from cragside.bootstrap import preload
    from cragside.settings import load_settings

    with tempfile.TemporaryDirectory() as home:
        preload(load_settings({"RAG_HOME": home}))
    for module in _FOR_SERVING:
        import_module(module)
    assert "prometheus_client" not in sys.modules, "it reads the environment of a service when it is imported"
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends leaves nothing behind
    for line in sys.stdin.buffer:
        pid = os.fork()
        if not pid:
            _become(json.loads(line))
        print(pid, flush=True)


def _become(task: Mapping[str, Any]) -> None:
    """Go on as a new program would."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(str(task["log"]), os.O_WRONLY)
    for number, opened in enumerate((nothing, log, log)):
        os.dup2(opened, number)
    os.environ.clear()
    os.environ.update(task["environment"])
    tempfile.tempdir = None
    sys.argv = ["cragside", *task["arguments"]]
    _fork_workers()

    from cragside.entrypoints.cli.main import main

    main()
    sys.exit()


def _fork_workers() -> None:
    """Have the service's indexing worker forked as well, as `cragside serve --workers` has, by a process that waits."""
    from cragside.entrypoints import worker_process
    from cragside.entrypoints.proxy.processes import Forker

    forker = Forker(_work)
    if not os.fork():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends when its service has ended
        forker._servers.close()
        with suppress(EOFError, BrokenPipeError):
            while wait([forker.awaited()]):
                forker.attend()
        os._exit(0)
    forker._ours.close()

    def forking(command: Sequence[str], environment: Mapping[str, str]) -> Any:
        own = command[command.index("worker") :]

        async def run(arguments: Sequence[str]) -> int:
            try:
                return await forker.run([json.dumps(dict(environment)), *own, *arguments])
            except asyncio.CancelledError:
                # As that of a service of one process, it gives its tasks back before the service ends.
                with suppress(TimeoutError):
                    await asyncio.wait_for(forker._answer(), _GRACE_SECONDS)
                raise

        return run

    worker_process.executing = forking


def _work(task: Sequence[str]) -> None:
    from typer.main import get_command

    from cragside.entrypoints.cli.app import app
    from cragside.entrypoints.cli.worker import run_forked

    environment, *arguments = task
    run_forked(get_command(app).main, arguments, json.loads(environment))


if __name__ == "__main__":
    _serve()
