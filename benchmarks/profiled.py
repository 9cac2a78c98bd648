"""Runs `cragside`, and profiles its process between two signals. It is a script, so that any checkout can run it.

    python benchmarks/profiled.py FOLDER serve ...

SIGUSR1 begins and ends the profile of CPU, which FOLDER/cpu then has. SIGUSR2 does so for the count of allocated
blocks in FOLDER/blocks. FOLDER/overhead has the seconds that the profiler itself adds to each call: to the called
function, and to its caller. Threads that start meanwhile count too.
"""

import asyncio
import cProfile
import json
import marshal
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

_CALLS = 20_000
Function = tuple[str, int, str]


class Measure(Protocol):
    """Measures what each function takes, in the main thread and in those that start meanwhile."""

    def begin(self) -> None:
        """Measure the thread that calls this."""

    def write(self, file: Path) -> None:
        """End the measurement of the main thread, and write the figures of all threads."""


class Cpu:
    """Profiles by the CPU time of each thread, which no other program's load changes."""

    def __init__(self) -> None:
        self._profiles: list[cProfile.Profile] = []

    def begin(self) -> None:
        profile = cProfile.Profile(time.thread_time)
        self._profiles.append(profile)
        profile.enable()

    def write(self, file: Path) -> None:
        self._profiles[0].disable()
        file.write_bytes(marshal.dumps(figures(self._profiles)))


def figures(profiles: Iterable[cProfile.Profile]) -> dict[Function, Any]:
    """The figures in `pstats`' form. Functions of one place count together, as the `__init__` of all dataclasses.

    `cProfile` itself keeps only one of these.
    """
    found: dict[Function, list[Any]] = {}
    for entry in (entry for profile in profiles for entry in profile.getstats()):
        for called, caller in [(entry, None), *((call, _place(entry.code)) for call in entry.calls or ())]:
            known = found.setdefault(_place(called.code), [0, 0, 0.0, 0.0, {}])
            more = (called.callcount, called.callcount, called.inlinetime, called.totaltime)
            if caller is None:
                known[:4] = [a + b for a, b in zip(known, more, strict=False)]
            else:
                before = known[4].get(caller, (0, 0, 0.0, 0.0))
                known[4][caller] = tuple(a + b for a, b in zip(before, more, strict=True))
    return {function: tuple(each) for function, each in found.items()}


def _place(code: CodeType | str) -> Function:
    return ("~", 0, code) if isinstance(code, str) else (code.co_filename, code.co_firstlineno, code.co_name)


class Blocks:
    """Counts the blocks of memory that are allocated while a function runs, without what it calls."""

    def __init__(self) -> None:
        self._allocated: Counter[CodeType] = Counter()
        self._known = 0

    def begin(self) -> None:
        self._known = sys.getallocatedblocks()
        sys.setprofile(self._event)

    def write(self, file: Path) -> None:
        sys.setprofile(None)
        found = [
            [code.co_filename, code.co_firstlineno, code.co_name, count] for code, count in self._allocated.items()
        ]
        file.write_text(json.dumps(found))

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        more = sys.getallocatedblocks() - self._known
        ran = frame.f_back if event == "call" else frame
        if more > 0 and ran is not None:
            self._allocated[ran.f_code] += more
        self._known = sys.getallocatedblocks()


def overhead() -> tuple[float, float]:
    """Seconds that the profiler adds to a called function and to its caller."""

    def call(function: Callable[[], object]) -> None:
        for _ in range(_CALLS):
            function()

    began = time.thread_time()
    call(time.perf_counter)
    alone = time.thread_time() - began
    profile = cProfile.Profile(time.thread_time)
    profile.runcall(call, time.perf_counter)
    found = {name: own for (_, _, name), (_, _, own, _, _) in figures([profile]).items()}
    called = found["<built-in method time.perf_counter>"]
    return called / _CALLS, (found["call"] - alone) / _CALLS


class Switch:
    """Begins a measurement at a signal, and ends it at the next one."""

    def __init__(self, make: Callable[[], Measure], file: Path) -> None:
        self._make = make
        self._file = file
        self._running: Measure | None = None

    def __call__(self, *_: object) -> None:
        # The threads of the event loop begin anew, as no profiler reaches one that runs.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=8))
        if self._running is None:
            measure = self._running = self._make()
            threading.setprofile(lambda *_: measure.begin())
            measure.begin()
            return
        threading.setprofile(None)  # type: ignore[arg-type]  # None ends it
        self._running.write(self._file.with_suffix(".new"))
        self._running = None
        self._file.with_suffix(".new").replace(self._file)


def main() -> None:
    """Run `cragside` with the arguments behind the folder."""
    folder = Path(sys.argv[1])
    sys.path[0] = os.devnull  # the folder of this script has modules of common names
    (folder / "overhead").write_text(json.dumps(overhead()))
    signal.signal(signal.SIGUSR1, Switch(Cpu, folder / "cpu"))
    signal.signal(signal.SIGUSR2, Switch(Blocks, folder / "blocks"))
    sys.argv = ["cragside", *sys.argv[2:]]
    (command,) = (each for each in entry_points(group="console_scripts") if each.name == "cragside")
    sys.exit(command.load()())


if __name__ == "__main__":
    main()
