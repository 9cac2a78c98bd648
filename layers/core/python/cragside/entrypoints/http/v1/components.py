"""How the components of the service do."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cragside.domain.errors import Forbidden
from cragside.entrypoints.findings import State
from cragside.entrypoints.http.component_report import ComponentReport
from cragside.entrypoints.http.errors import error_responses


class ComponentBody(BaseModel):
    """The state of one component."""

    name: str = Field(description="Name of the component, such as `store` or `ollama`.")
    state: State = Field(description="`not configured` if no setting asks for it.")
    version: str = Field(description="Its version; empty if it tells none.")
    detail: str = Field(description="What was found; empty if there is nothing to tell.")
    remedy: str = Field(description="What to do; empty if nothing is to be done.")


class ComponentsBody(BaseModel):
    """The components, in the order of `cragside doctor`."""

    components: list[ComponentBody] = Field(description="The components.")


router = APIRouter(prefix="/v1/components", tags=["health"], responses=error_responses())


@router.get("")
async def list_components(request: Request) -> ComponentsBody:
    """What `cragside doctor` examines, without its long tests: no model is called, and no store is read as a whole.

    It is about the whole service, so a token must open all workspaces. An answer holds for five seconds.
    """
    if request.state.narrowed_grant.workspaces is not None:
        raise Forbidden("The components serve all workspaces. Use a token that opens all of them.")
    report: ComponentReport = request.app.state.components
    return ComponentsBody(
        components=[
            ComponentBody(
                name=finding.component,
                state=finding.state,
                version=finding.version,
                detail=finding.detail,
                remedy=finding.remedy,
            )
            for finding in await report.findings()
        ]
    )
