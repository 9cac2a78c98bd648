"""How the components of the service do."""

import asyncio
import logging
from collections.abc import Sequence

from fastapi import APIRouter, Request
from pydantic import Field

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.entrypoints.component_checks import examine_components, examine_folder, examine_installation
from cragside.entrypoints.error_lines import one_line
from cragside.entrypoints.findings import Finding, Manner, State
from cragside.entrypoints.http.errors import error_responses, for_client
from cragside.entrypoints.http.models import Shape
from cragside.entrypoints.http.readiness import SharedLook
from cragside.entrypoints.http.request_access import require_all_workspaces

# Seconds for which a report holds.
REPORT_SECONDS = 5.0
_log = logging.getLogger("cragside")


class ComponentBody(Shape):
    """The state of one component."""

    name: str = Field(validation_alias="component", description="Name of the component, such as `store` or `ollama`.")
    state: State = Field(description="`not configured` if no setting asks for it.")
    version: str = Field(description="Its version; empty if it tells none.")
    detail: str = Field(description="What was found; empty if there is nothing to tell.")
    remedy: str = Field(description="What to do; empty if nothing is to be done.")


class ComponentsBody(Shape):
    """The components, in the order of `cragside doctor`."""

    components: list[ComponentBody] = Field(description="The components.")


router = APIRouter(prefix="/v1/components", tags=["health"], responses=error_responses())


@router.get("")
async def list_components(request: Request) -> ComponentsBody:
    """What `cragside doctor` examines, without its long tests: no model is called, and no store is read as a whole.

    It is about the whole service, so a token must open all workspaces. An answer holds for five seconds.
    """
    require_all_workspaces(request, "The components serve all workspaces.")
    report: SharedLook[Sequence[Finding]] = request.app.state.components
    return ComponentsBody(components=await report.result())


def message_for_clients(error: Exception) -> str:
    """Return one line without paths and addresses. The log has them."""
    if not isinstance(error, CragsideError):
        _log.warning("A component failed", exc_info=error)
        return f"something inside failed ({type(error).__name__}); the log has the details"
    shown = for_client(error)
    return one_line(f"{shown.component}: {shown.message}" if isinstance(shown, ServiceUnavailable) else shown.message)


FOR_CLIENTS = Manner(3.0, thorough=False, places=False, message=message_for_clients)


def component_report(container: Container, manner: Manner = FOR_CLIENTS) -> SharedLook[Sequence[Finding]]:
    """Examine what `cragside doctor` examines, without its long tests."""

    async def examine() -> Sequence[Finding]:
        folder = await asyncio.to_thread(examine_folder, container.settings, manner)
        components = await examine_components(container, manner)
        return [*examine_installation(), Finding("settings", "ok"), folder, *components]

    return SharedLook(examine, container.clock, REPORT_SECONDS)
