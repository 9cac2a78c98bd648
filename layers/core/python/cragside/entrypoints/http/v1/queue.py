"""Indexing tasks that were given up."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.bootstrap import Container
from cragside.domain.indexing import Stage
from cragside.entrypoints.http.body_limit import bounded_route
from cragside.entrypoints.http.errors import failures
from cragside.entrypoints.http.tenancy import Access


class DeadTask(BaseModel):
    """A task that was given up, and why. `at` is ISO 8601 in UTC."""

    id: str
    document_id: str
    part: int
    stage: Stage
    reason: str
    attempts: int
    at: str


class DeadTasks(BaseModel):
    """The tasks that were given up, latest first, and how many of each kind a workspace and its memory have."""

    letters: list[DeadTask]
    pending: int
    processing: int
    dead: int


class Revival(BaseModel):
    """Whose tasks come back."""

    model_config = ConfigDict(extra="forbid")

    document_id: str | None = Field(None, max_length=1024, description="Of one document; of all without it.")
    workspace: str | None = Field(None, description="The workspace; the default without it.")


class Revived(BaseModel):
    """How many tasks were queued."""

    tasks: int


def router(container: Container, access: Access) -> APIRouter:
    """`/v1/queue/dead` and `/v1/queue/revive`."""
    routes = APIRouter(prefix="/v1/queue", tags=["queue"], route_class=bounded_route(container.settings.max_body_bytes))

    @routes.get("/dead", responses=failures())
    async def dead(
        workspace: Annotated[str, Depends(access.asked)], limit: Annotated[int, Query(ge=1, le=1000)] = 100
    ) -> DeadTasks:
        """The tasks that were given up after their last try, with the reasons."""
        letters = await container.intake.given_up(workspace, limit=limit)
        stats = await container.intake.backlog(workspace)
        return DeadTasks(
            letters=[
                DeadTask(
                    id=letter.id,
                    document_id=letter.task.document_id,
                    part=letter.task.part,
                    stage=letter.task.stage,
                    reason=letter.reason,
                    attempts=letter.attempts,
                    at=letter.at,
                )
                for letter in letters
            ],
            pending=stats.pending,
            processing=stats.processing,
            dead=stats.dead,
        )

    @routes.post("/revive", status_code=202, responses=failures())
    async def revive(request: Request, revival: Revival) -> Revived:
        """Queue tasks again that were given up, and with them what else is not done."""
        workspace = access.workspace(request, revival.workspace)
        access.note(request, [revival.document_id] if revival.document_id else [])
        return Revived(tasks=await container.intake.revive(revival.document_id, workspace=workspace))

    return routes
