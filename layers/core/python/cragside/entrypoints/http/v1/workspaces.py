"""The workspaces that a token opens."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, Unauthorized
from cragside.domain.names import owner_of
from cragside.domain.tokens import TokenScope, in_order
from cragside.entrypoints.access import Grant
from cragside.entrypoints.http.errors import error_responses, for_client
from cragside.entrypoints.http.request_access import AppContainer


class WorkspaceBody(BaseModel):
    """A workspace."""

    name: str = Field(description="Its name.")
    documents: int | None = Field(description="How many documents it has; null while its store cannot be read.")


class WorkspacesBody(BaseModel):
    """The workspaces that the token opens, and what the token may do."""

    default: str | None = Field(
        description="The workspace of a request that names none; null if the token opens several others."
    )
    workspaces: list[WorkspaceBody] = Field(description="The workspaces, in the order of their names.")
    read_only: bool = Field(description="Whether nothing can be added or changed, because the store is baked.")
    scopes: list[TokenScope] = Field(description="What the token may do.")
    token_needed: bool = Field(description="Whether requests need a token.")


router = APIRouter(prefix="/v1/workspaces", tags=["workspaces"], responses=error_responses())


@router.get("")
async def list_workspaces(request: Request, container: AppContainer) -> WorkspacesBody:
    """The workspaces that the token opens, those without a store too if the token or the settings name them."""
    grant: Grant = request.state.narrowed_grant
    default = _default(grant, container.settings.workspace)
    known = await container.workspaces.names()
    opened = map(owner_of, known) if grant.workspaces is None else grant.workspaces
    names = sorted({*opened, *([default] if default else [])})
    everything: Grant = request.state.grant
    return WorkspacesBody(
        default=default,
        workspaces=[
            WorkspaceBody(name=name, documents=await _documents(container, name) if name in known else 0)
            for name in names
        ],
        read_only=(await container.workspaces.open(container.settings.workspace)).read_only,
        scopes=in_order({scope for each in everything.passes for scope in each.scopes}),
        token_needed=not request.app.state.keys.keyring().empty,
    )


def _default(grant: Grant, configured: str) -> str | None:
    try:
        return grant.choose(None, configured)
    except Unauthorized:
        return None


async def _documents(container: Container, workspace: str) -> int | None:
    try:
        return (await container.workspaces.stored(workspace)).documents
    except CragsideError as error:
        for_client(error)  # the log has the reason
        return None
