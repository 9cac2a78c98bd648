"""The route that adds the files of a repository to a workspace."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import ConfigDict, Field

from cragside.bootstrap import Container
from cragside.composition.files import Refused
from cragside.composition.repositories import cloned, files_of
from cragside.domain.errors import (
    CragsideError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    ProcessingError,
    ServiceUnavailable,
    ValidationError,
)
from cragside.entrypoints.http.errors import Events, json_error_responses, with_failure
from cragside.entrypoints.http.models import Shape, WorkspaceRequest
from cragside.entrypoints.http.request_access import (
    AppContainer,
    choose_workspace,
    end_of,
    note_documents,
    shared,
    token_of,
)
from cragside.entrypoints.http.request_bodies import BoundedRoute
from cragside.entrypoints.runs import stop
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


class RefusedRepositoryFile(Shape):
    """A refused file, and why."""

    name: str = Field(description="Path of the file.")
    message: str = Field(description="Why it was refused.")


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Counts the accepted and refused files, and names the latest one. The last such value is `complete`."""

    accepted: int = 0
    refused: int = 0
    name: str = ""
    document: str = ""
    repo_id: str = ""
    errors: tuple[RefusedRepositoryFile, ...] = field(default=(), repr=False)
    complete: bool = False


class RepositoryRuns:
    """Lets few repositories be added at once: one to a workspace, and one by a token."""

    def __init__(self) -> None:
        self._tokens: dict[str, str | None] = {}

    def begin(self, workspace: str, token: str | None) -> None:
        """Begin a run. `token` is None without tokens. Raises `ServiceUnavailable` if too many run."""
        busy = "Other repositories are being added."
        if workspace in self._tokens:
            busy = "A repository is being added to this workspace."
        elif token is not None and token in self._tokens.values():
            busy = "A repository is being added with this token."
        elif len(self._tokens) < _MOST_RUNS:
            self._tokens[workspace] = token
            return
        raise ServiceUnavailable("repositories", f"{busy} Try again later.")

    def end(self, workspace: str) -> None:
        """End the run of a workspace."""
        self._tokens.pop(workspace, None)


async def added_files(
    container: Container, url: str, *, branch: str | None, workspace: str
) -> AsyncGenerator[RunProgress]:
    """Each file of the newest commit when it is accepted or refused, and at last the whole run.

    Guards and limits are those of `cragside index`, but no folder of this machine is read. Raises what ends the run,
    `ValidationError` for a repository that is not cloned.
    """
    if not container.settings.fetch_pages:
        raise ValidationError(FETCHING_IS_OFF, field="url")
    allow = (container.settings.fetch_allow or "").split(",")
    errors: list[RefusedRepositoryFile] = []
    taken = RunProgress()
    clone = cloned(url, branch=branch, allow=allow, folders=False)
    async with clone as checkout, aclosing(files_of(checkout)) as files:
        taken = RunProgress(repo_id=checkout.repo_id)
        async for found in files:
            if isinstance(found, Refused):
                name, document, reason = found.name, "", found.reason
            else:
                name = found.path
                document, reason = await _add(container, found.name, found.content, found.metadata, workspace)
            if reason and len(errors) < MOST_ERRORS:
                errors.append(RefusedRepositoryFile(name=name, message=reason))
            accepted, refused = taken.accepted + (not reason), taken.refused + bool(reason)
            taken = replace(taken, accepted=accepted, refused=refused, name=name, document=document)
            yield taken
    yield replace(taken, errors=tuple(errors), complete=True)


@asynccontextmanager
async def followed(
    run: AsyncGenerator[RunProgress], *, ends: float | None, clock: Clock, over: Callable[[], None]
) -> AsyncIterator[AsyncIterator[RunProgress]]:
    """Follow a run: its values, and what it raises. The end of the block stops it, and waits until its clone is gone.

    A run that goes on waits for a slow reader; one that ends does not. `ends` (by `clock.monotonic`) is when the host's
    time is over. `over` is called when the run has ended, which may be long before a slow reader has heard of it.
    """
    seconds = min(_MOST_SECONDS, float("inf") if ends is None else ends - clock.monotonic())
    limit, room = asyncio.timeout(seconds), asyncio.Semaphore(_AHEAD)
    results: asyncio.Queue[RunProgress | Exception] = asyncio.Queue()

    async def work() -> None:
        try:
            async with limit, aclosing(run):
                async for taken in run:
                    if not taken.complete:
                        await room.acquire()
                    results.put_nowait(taken)
        except Exception as error:
            results.put_nowait(_too_long() if limit.expired() else error)

    async def read() -> AsyncIterator[RunProgress]:
        complete = False
        while not complete:
            taken = await results.get()
            if isinstance(taken, Exception):
                raise taken
            room.release()
            yield taken
            complete = taken.complete

    # In a task of its own, which is cancelled once: then its clean-up is not cancelled too.
    working = asyncio.create_task(work())
    working.add_done_callback(lambda _: over())
    try:
        yield read()
    finally:
        if limit.expired():
            await asyncio.wait({working})  # it is cleaning up already
        else:
            await stop(working)


def _too_long() -> DeadlineExceeded:
    return DeadlineExceeded("The repository takes too long. What was accepted stays: add it again for the rest.")


async def _add(
    container: Container, name: str, content: bytes, metadata: dict[str, object], workspace: str
) -> tuple[str, str]:
    """Return the id of the document, or why the file is refused. Raises what would refuse every file."""
    try:
        accepted = await container.intake.file(content, name=name, metadata=metadata, workspace=workspace)
    except (Forbidden, NotFound, ProcessingError, ValidationError) as error:
        if isinstance(error, Forbidden) and "limit" not in error.details:
            raise
        return "", _reason(error)
    return accepted.record.id, ""


def _reason(error: CragsideError) -> str:
    return str(error.details.get("reason", error.message))


class RepositoryRequest(WorkspaceRequest):
    """A repository to add."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": "https://git.example/sea/lighthouse.git"}]})

    url: str = Field(
        min_length=1,
        max_length=4096,
        description="Its https URL. Credentials in it are sent to its host, and are neither stored nor shown.",
    )
    branch: str | None = Field(None, max_length=250, description="A branch or a tag; the repository's own without it.")


class RepositoryProgress(Shape):
    """The data of `progress`."""

    accepted: int = Field(description="How many files were accepted so far.")
    refused: int = Field(description="How many were refused so far.")
    name: str = Field(description="Path of the latest file.")


class RepositoryDone(Shape):
    """The data of `done`."""

    accepted: int = Field(description="How many files were accepted.")
    refused: int = Field(description="How many were refused.")
    errors: list[RefusedRepositoryFile] = Field(description=f"The refused files, at most {MOST_ERRORS:,}.")
    repo_id: str = Field(description="What the files are filed under: `repoId` in their metadata.")


router = APIRouter(
    prefix="/v1/repositories", tags=["documents"], route_class=BoundedRoute, responses=json_error_responses()
)


async def _run(
    request: Request, asked: RepositoryRequest, container: AppContainer
) -> AsyncIterator[AsyncIterator[RunProgress]]:
    workspace = choose_workspace(request, asked.workspace)
    await (await container.workspaces.open(workspace)).documents.check_writable()
    runs = shared(request.app, RepositoryRuns)
    runs.begin(workspace, token_of(request, workspace))
    run = added_files(container, asked.url, branch=asked.branch, workspace=workspace)
    # A client that leaves ends the request, and with it the clone.
    async with followed(run, ends=end_of(request), clock=container.clock, over=lambda: runs.end(workspace)) as progress:
        yield progress


@router.post("", response_class=EventSourceResponse)
async def add_repository(
    request: Request, run: Annotated[AsyncIterator[RunProgress], Depends(_run)]
) -> AsyncIterator[ServerSentEvent]:
    """Add the files of a git repository's newest commit, and tell of each as a server-sent event.

    The files are indexed afterwards. What was accepted before a failure stays. A client that leaves stops the run.
    """
    async for event in with_failure(request, _events(request, run)):
        yield event


async def _events(request: Request, run: AsyncIterator[RunProgress]) -> Events:
    async for taken in run:
        if taken.complete:
            yield ServerSentEvent(event="done", data=RepositoryDone.model_validate(taken))
            return
        note_documents(request, [taken.document] if taken.document else [])
        yield ServerSentEvent(event="progress", data=RepositoryProgress.model_validate(taken))
