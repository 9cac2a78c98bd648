"""Indexing tasks that failed for good."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AliasPath, BaseModel, Field

from cragside.domain.indexing import Stage
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.models import Shape, WorkspaceRequest
from cragside.entrypoints.http.request_access import (
    AppContainer,
    QueryWorkspace,
    choose_workspace,
    note_documents,
)
from cragside.entrypoints.http.request_bodies import BoundedRoute


class DeadTask(Shape):
    """A task that failed for good, and why. `at` is ISO 8601 in UTC."""

    id: str = Field(description="Id of the task.")
    document_id: str = Field(validation_alias=AliasPath("task", "document_id"), description="Id of its document.")
    part: int = Field(validation_alias=AliasPath("task", "part"), description="Number of its part, from 0.")
    stage: Stage = Field(validation_alias=AliasPath("task", "stage"), description="What it was to do.")
    reason: str = Field(description="Why it was given up.")
    attempts: int = Field(description="How often it was tried.")
    at: str = Field(description="When it was given up, ISO 8601 in UTC.")


class DeadTasks(Shape):
    """The tasks that failed for good, latest first, and how many tasks a workspace and its memory have."""

    letters: list[DeadTask] = Field(description="The tasks, latest first.")
    pending: int = Field(description="Tasks that wait.")
    processing: int = Field(description="Tasks that a worker processes now.")
    dead: int = Field(description="Tasks that were given up.")


class Revival(WorkspaceRequest):
    """The tasks to queue again."""

    document_id: str | None = Field(None, max_length=1024, description="Of one document; of all without it.")


class Revived(BaseModel):
    """The number of tasks that were queued."""

    tasks: int = Field(description="Number of tasks that were queued.")


router = APIRouter(prefix="/v1/queue", tags=["queue"], route_class=BoundedRoute, responses=error_responses())


@router.get("/dead")
async def list_dead_letters(
    container: AppContainer, workspace: QueryWorkspace, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> DeadTasks:
    """The tasks that failed for good, with the reasons."""
    letters = await container.intake.given_up(workspace, limit=limit)
    stats = await container.intake.backlog(workspace)
    return DeadTasks(letters=letters, pending=stats.pending, processing=stats.processing, dead=stats.dead)


@router.post("/revive", status_code=202)
async def revive_dead_letters(request: Request, revival: Revival, container: AppContainer) -> Revived:
    """Queue failed tasks again, and other unfinished ones with them."""
    workspace = choose_workspace(request, revival.workspace)
    note_documents(request, [revival.document_id] if revival.document_id else [])
    return Revived(tasks=await container.intake.revive(revival.document_id, workspace=workspace))
