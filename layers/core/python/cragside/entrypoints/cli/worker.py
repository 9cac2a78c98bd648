"""`cragside worker`: indexes queued documents."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import CragsideError
from cragside.domain.names import is_memory, owner_of, spoken
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import Session, session_of
from cragside.entrypoints.cli.terminal import output, printable, progress

if TYPE_CHECKING:
    from cragside.application.attempts import Handled
    from cragside.application.worker import Worker
    from cragside.bootstrap import Container
    from cragside.entrypoints.metrics import DatabaseCounts, TaskCounts
    from cragside.settings import Settings

_ARENA_MAX = -8  # M_ARENA_MAX in glibc's malloc.h
_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
_OUTCOMES = ("done", "retried", "buried")
_ANOTHER_LEADS = (
    "Another worker does the tasks of this knowledge base: that of a running server, or of one that was killed, which "
    "ends a minute after its last task. What a crash left without tasks is queued by this command once no other runs."
)
# How often somebody who watches is told what is left.
_SECONDS = 0.5


def worker(
    context: typer.Context,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="End when there is nothing left to do.")] = False,
    idle: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="End after so many seconds without work."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each task that was tried.")] = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep/--no-sweep",
            help="Begin with documents that a crash left without tasks. Default: yes.",
            show_default=False,
        ),
    ] = True,
    nice: Annotated[
        int, typer.Option(min=0, max=19, help="How much this process yields the CPU to other processes.")
    ] = 0,
) -> None:
    """Index queued documents: embed, annotate, extend the graph.

    `cragside serve` runs one of these by itself whenever there is something to do. One process does the work of a
    RAG_HOME; a second one waits for its turn. On PostgreSQL any number may run.

    Ctrl-C and SIGTERM give running tasks 5 seconds to end, return the rest to the queue, and end the command with 0.
    With --until-idle or --idle the code is 1 when a task was given up.
    """
    from cragside.composition.process import raise_limit
    from cragside.entrypoints.log import logged

    session = session_of(context)
    settings, ends = session.settings(), until_idle or idle is not None

    async def work(container: "Container") -> tuple[Counter[str], bool]:
        made, progress = container.worker(), _Progress(as_json, _task_counts(session.environment), nice)
        with _stopping(made), progress.status:
            async with _totals(container, progress, seconds=_SECONDS):
                tally = await made.run(
                    until_idle=ends,
                    idle_seconds=idle or 0.0,
                    sweep=sweep,
                    progress=progress,
                )
                return tally, made.leads()

    raise_limit()
    with logged(settings.log_level, settings.log_format):
        figures = _database_counts(settings, session.environment)
        tally, leads = session.run(settings, work, members={"figures": figures})
    if not as_json:
        output().print(", ".join(f"{tally[outcome]} {outcome}" for outcome in _OUTCOMES))
        if not leads and ends:
            output().print(_ANOTHER_LEADS, soft_wrap=True)
    if tally["buried"] and ends:
        raise typer.Exit(exit_codes.FAILED)


def command(idle_seconds: float, nice: int) -> Sequence[str]:
    """Return the command line of a worker process that ends after so many idle seconds.

    Its environment has to hold all settings: files of settings may have changed since the server started.
    """
    program = [sys.executable, "-c", "from cragside.entrypoints.cli.main import main; main(complete=True)"]
    return [*program, *arguments_for(idle_seconds, nice)]


def run_forked(program: Callable[..., object], arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run `cragside` with these arguments in a process that was forked for it."""
    os.environ.clear()
    os.environ.update(environment)
    logging.getLogger().handlers.clear()  # the server's; the command adds its own
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)
    _keep_few_heaps()
    program(list(arguments), obj=Session(complete=True))


def _keep_few_heaps() -> None:
    """Limit the heaps of this process. MALLOC_ARENA_MAX would do so only when a program starts."""
    import ctypes

    if sys.platform == "linux" and (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def arguments_for(idle_seconds: float, nice: int) -> Sequence[str]:
    """Return the arguments of a worker that ends after so many idle seconds."""
    return ["worker", "--idle", str(idle_seconds), "--nice", str(nice)]


def _task_counts(environment: Mapping[str, str]) -> "TaskCounts | None":
    """Return the counts of tasks, if a server that counts has started this worker."""
    if _COUNTS not in environment:
        return None
    from cragside.entrypoints.metrics import TaskCounts

    with suppress(OSError):  # the disk is full; the server has said so
        return TaskCounts()
    return None


def _database_counts(settings: "Settings", environment: Mapping[str, str]) -> "DatabaseCounts | None":
    """Return the counts of statements to databases, if a server that counts has started this worker."""
    if _COUNTS not in environment or not settings.on_postgres:
        return None
    from cragside.entrypoints.metrics import database_counts
    from cragside.entrypoints.metrics import worker as name

    return database_counts(name)


@contextmanager
def _stopping(worker: "Worker") -> Iterator[None]:
    """End gracefully on SIGINT and SIGTERM."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    if sys.platform == "win32":
        yield
        return
    for number in numbers:
        loop.add_signal_handler(number, worker.stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class _Progress:
    """Prints the outcome of tasks: each as JSON, or failures and counts.

    It lowers the priority of this process after the first task: somebody may wait to search that document.
    """

    def __init__(self, as_json: bool, tasks: "TaskCounts | None", nice: int) -> None:
        self._as_json = as_json
        self._tasks = tasks
        self._nice = nice if hasattr(os, "nice") else 0
        self._console = output()
        self._counts = Counter[str]()
        self._left: int | None = None
        console = progress(as_json=as_json)
        self.watched = not console.quiet
        self.status = console.status("Looking for tasks ...")

    def count(self, left: int) -> None:
        """Show how many tasks wait or are in hand."""
        self._left = left
        self._show()

    def __call__(self, handled: "Handled") -> None:
        if self._nice:
            os.nice(self._nice)
            self._nice = 0
        if self._tasks is not None:
            self._tasks.count(handled)
        self._counts[handled.outcome] += 1
        task = handled.task
        if self._as_json:
            line = {
                "workspace": owner_of(task.workspace),
                **({"memory": True} if is_memory(task.workspace) else {}),
                "document": task.document_id,
                "part": task.part,
                "stage": task.stage,
                "outcome": handled.outcome,
                "attempt": handled.attempt,
                "seconds": round(handled.seconds, 3),
                **({"reason": handled.reason} if handled.reason else {}),
            }
            typer.echo(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace"))
            return
        if handled.outcome != "done":
            remark = f"{spoken(task.workspace)} {task.document_id} part {task.part} {task.stage}: {handled.reason}"
            self._console.print(f"{handled.outcome:<9}{printable(remark)}", soft_wrap=True)
        if self._left is not None and handled.outcome != "retried":
            self._left = max(0, self._left - 1)
        self._show()

    def _show(self) -> None:
        over = self._counts["done"] + self._counts["buried"]
        troubles = [f"{self._counts[outcome]} {outcome}" for outcome in ("retried", "buried") if self._counts[outcome]]
        counts = ", ".join([f"{over} of {over + (self._left or 0)} tasks", *troubles])
        self.status.update(f"Indexing: {counts} ..." if self._left else f"Waiting for tasks ({counts}) ...")


@asynccontextmanager
async def _totals(container: "Container", progress: _Progress, *, seconds: float) -> AsyncIterator[None]:
    """Show how many tasks are left while the block runs. The queue is asked only if a person watches."""
    if not progress.watched:
        yield
        return

    async def count() -> None:
        while True:
            with suppress(CragsideError):  # the worker reports what is down
                stats = await container.queue.stats()
                progress.count(stats.pending + stats.processing)
            await container.clock.sleep(seconds)

    counting = asyncio.create_task(count())
    try:
        yield
    finally:
        counting.cancel()
