"""Repositories, whose files are added to a workspace."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import ConfigDict, Field

from cragside.entrypoints.http.body_limit import BoundedRoute
from cragside.entrypoints.http.errors import json_error_responses
from cragside.entrypoints.http.models import Shape, WorkspaceRequest
from cragside.entrypoints.http.request_access import (
    AppContainer,
    choose_workspace,
    end_of,
    note_documents,
    token_of,
)
from cragside.entrypoints.http.sent_events import Events, with_failure
from cragside.entrypoints.repository_intake import MOST_ERRORS, RepositoryTurns, Taken, followed, taken_in


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


class RefusedRepositoryFile(Shape):
    """A refused file, and why."""

    name: str = Field(description="Path of the file.")
    message: str = Field(description="Why it was refused.")


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
) -> AsyncIterator[AsyncIterator[Taken]]:
    workspace = choose_workspace(request, asked.workspace)
    await (await container.workspaces.open(workspace)).documents.check_writable()
    turns: RepositoryTurns = request.app.state.repository_turns
    turns.take(workspace, token_of(request, workspace))
    run = taken_in(container, asked.url, branch=asked.branch, workspace=workspace)
    # A client that leaves ends the request, and with it the clone.
    async with followed(
        run, ends=end_of(request), clock=container.clock, over=lambda: turns.give_back(workspace)
    ) as progress:
        yield progress


@router.post("", response_class=EventSourceResponse)
async def add_repository(
    request: Request, run: Annotated[AsyncIterator[Taken], Depends(_run)]
) -> AsyncIterator[ServerSentEvent]:
    """Add the files of a git repository's newest commit, and tell of each as a server-sent event.

    The files are indexed afterwards. What was accepted before a failure stays. A client that leaves stops the run.
    """
    async for event in with_failure(request, _events(request, run)):
        yield event


async def _events(request: Request, run: AsyncIterator[Taken]) -> Events:
    async for taken in run:
        if taken.complete:
            yield ServerSentEvent(event="done", data=RepositoryDone.model_validate(taken))
            return
        note_documents(request, [taken.document] if taken.document else [])
        yield ServerSentEvent(event="progress", data=RepositoryProgress.model_validate(taken))
