"""Share servers, each started once, and a folder among the processes of one test run.

The process that pytest was called in owns the folder, and removes it with all servers at the end. If it was killed, the
next run does that.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from tests.services import server, tools
from tests.services.server import Server
from tests.services.tools import Unavailable


@dataclass(frozen=True)
class Report:
    """State of a server: its address and version, or the reason why it is missing."""

    name: str
    uri: str = ""
    version: str = ""
    started: str = ""
    reason: str = ""


class Run:
    """One test run, known to its processes by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._own = ExitStack()
        Server.homes = folder

    @property
    def name(self) -> str:
        """Return a name that no other run has."""
        return self.folder.name.rpartition("-")[2]

    @classmethod
    def begin(cls) -> Self:
        """Own a new run, after removing what killed ones left."""
        prefix = f"cragside-servers-{os.geteuid()}-"
        with tools.exclusive(tools.cache("runs")):
            for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
                _remove_if_abandoned(left)
            run = cls(Path(tempfile.mkdtemp(prefix=prefix)))
            run._own.enter_context(FileLock(run.folder / "owner", timeout=0))
        run.folder.chmod(0o711)  # servers that don't run as root pass through it
        return run

    def end(self) -> None:
        """End the servers and remove the folder."""
        _remove(self.folder)
        self._own.close()
        Server.homes = None

    def report(self, key: str, start: Callable[[], Report]) -> Report:
        """Return the state of the server. The first process that asks starts it, and the others wait."""
        note = self.folder / f"{key}.json"
        with FileLock(self.folder / f"{key}.lock"):
            if not note.exists():
                began = time.monotonic()
                try:
                    report = start()
                except Unavailable as reason:
                    report = Report(key, reason=str(reason))
                took = report.started or f"up in {time.monotonic() - began:.1f} s"
                note.write_text(json.dumps(asdict(report) | {"started": took}))
        return _read(note)

    def reports(self) -> list[Report]:
        """Return the states of all servers so far, by name."""
        return sorted(map(_read, self.folder.glob("*.json")), key=lambda report: report.name)


def _read(note: Path) -> Report:
    return Report(**json.loads(note.read_text()))


def _remove_if_abandoned(folder: Path) -> None:
    with suppress(Timeout, OSError), FileLock(folder / "owner", timeout=0):
        _remove(folder)


def _remove(folder: Path) -> None:
    for home in folder.iterdir():
        if home.is_dir():
            server.end_survivor(home)
    tools.remove(folder)
