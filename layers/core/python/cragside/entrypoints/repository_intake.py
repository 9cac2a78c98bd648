"""Takes a repository in, file by file, for a client of the service."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from cragside.bootstrap import Container
from cragside.composition.files import Refused
from cragside.composition.repositories import clone
from cragside.domain.errors import (
    CragsideError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    ProcessingError,
    ServiceUnavailable,
    ValidationError,
)
from cragside.entrypoints.stopping import stop
from cragside.ports.clock import Clock
from cragside.ports.files import FETCHING_IS_OFF

# The longest time that a repository is taken in, with the clone's own ten minutes.
_MOST_SECONDS = 1800.0
# Of so many refused files the reasons are told; all of them are counted.
MOST_ERRORS = 500
# Runs of a process at once: each takes disk for a clone, and a thread for its files.
_MOST_RUNS = 2
# A run is at most so many files ahead of a client that reads slowly.
_AHEAD = 8


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that is not taken in, and why."""

    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Taken:
    """How many files are accepted and refused, and the path of the latest one. `complete` is that of the last one."""

    accepted: int = 0
    refused: int = 0
    name: str = ""
    document: str = ""
    repo_id: str = ""
    errors: tuple[RefusedFile, ...] = field(default=(), repr=False)
    complete: bool = False


class RepositoryTurns:
    """Lets few repositories be taken in at once: one of a workspace, and one of a token."""

    def __init__(self) -> None:
        self._tokens: dict[str, str | None] = {}

    def take(self, workspace: str, token: str | None) -> None:
        """Take a turn. `token` is None without tokens. Raises `ServiceUnavailable`."""
        busy = "Other repositories are being added."
        if workspace in self._tokens:
            busy = "A repository is being added to this workspace."
        elif token is not None and token in self._tokens.values():
            busy = "A repository is being added with this token."
        elif len(self._tokens) < _MOST_RUNS:
            self._tokens[workspace] = token
            return
        raise ServiceUnavailable("repositories", f"{busy} Try again later.")

    def give_back(self, workspace: str) -> None:
        """End a turn."""
        self._tokens.pop(workspace, None)


async def taken_in(container: Container, url: str, *, branch: str | None, workspace: str) -> AsyncGenerator[Taken]:
    """Each file of the newest commit when it is accepted or refused, and at last the whole run.

    Guards and limits are those of `cragside index`, but no folder of this machine is read. Raises what ends the run,
    `ValidationError` for a repository that is not cloned.
    """
    if not container.settings.fetch_pages:
        raise ValidationError(FETCHING_IS_OFF, field="url")
    allow = (container.settings.fetch_allow or "").split(",")
    errors: list[RefusedFile] = []
    taken = Taken()
    cloned = clone(url, branch=branch, allow=allow, folders=False)
    async with cloned as repository, aclosing(repository.files()) as files:
        taken = Taken(repo_id=repository.checkout.repo_id)
        async for found in files:
            if isinstance(found, Refused):
                name, document, reason = found.name, "", found.reason
            else:
                name = found.path
                document, reason = await _take(container, found.name, found.content, found.metadata, workspace)
            if reason and len(errors) < MOST_ERRORS:
                errors.append(RefusedFile(name, reason))
            accepted, refused = taken.accepted + (not reason), taken.refused + bool(reason)
            taken = replace(taken, accepted=accepted, refused=refused, name=name, document=document)
            yield taken
    yield replace(taken, errors=tuple(errors), complete=True)


@asynccontextmanager
async def followed(
    run: AsyncGenerator[Taken], *, ends: float | None, clock: Clock, over: Callable[[], None]
) -> AsyncIterator[AsyncIterator[Taken]]:
    """What a run tells, and what it raises. The end of the block stops it, and waits until its clone is gone.

    `ends` (by `clock.monotonic`) is when the host's time is over. `over` is called when the run has ended, which may be
    long before a slow reader has heard of it.
    """
    seconds = min(_MOST_SECONDS, float("inf") if ends is None else ends - clock.monotonic())
    progress, limit = _Progress(), asyncio.timeout(seconds)
    # In a task of its own, which is cancelled once: then its clean-up is not cancelled too.
    working = asyncio.create_task(_tell(run, progress, limit))
    working.add_done_callback(lambda _: over())
    try:
        yield progress.read()
    finally:
        if limit.expired():
            await asyncio.wait({working})  # it is cleaning up already
        else:
            await stop(working)


async def _tell(run: AsyncGenerator[Taken], progress: "_Progress", limit: asyncio.Timeout) -> None:
    try:
        async with limit, aclosing(run):
            async for taken in run:
                await progress.put(taken)
    except Exception as error:
        progress.fail(_too_long() if limit.expired() else error)


def _too_long() -> DeadlineExceeded:
    return DeadlineExceeded("The repository takes too long. What was accepted stays: add it again for the rest.")


class _Progress:
    """What a run tells its reader. A run that goes on waits for a slow reader; one that ends does not."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Taken | Exception] = asyncio.Queue()
        self._room = asyncio.Semaphore(_AHEAD)

    async def put(self, taken: Taken) -> None:
        if not taken.complete:
            await self._room.acquire()
        self._queue.put_nowait(taken)

    def fail(self, error: Exception) -> None:
        self._queue.put_nowait(error)

    async def read(self) -> AsyncIterator[Taken]:
        complete = False
        while not complete:
            taken = await self._queue.get()
            if isinstance(taken, Exception):
                raise taken
            self._room.release()
            yield taken
            complete = taken.complete


async def _take(
    container: Container, name: str, content: bytes, metadata: dict[str, object], workspace: str
) -> tuple[str, str]:
    """The id of the document, or why the file is refused. Raises what would refuse every file."""
    try:
        accepted = await container.intake.file(content, name=name, metadata=metadata, workspace=workspace)
    except (Forbidden, NotFound, ProcessingError, ValidationError) as error:
        if isinstance(error, Forbidden) and "limit" not in error.details:
            raise
        return "", _reason(error)
    return accepted.record.id, ""


def _reason(error: CragsideError) -> str:
    return str(error.details.get("reason", error.message))
