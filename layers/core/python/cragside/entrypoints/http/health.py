"""The routes of health: what answers, what is ready, how components do, and figures for Prometheus."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from cragside import __version__
from cragside.bootstrap import Container
from cragside.composition.databases import standing
from cragside.composition.store_files import outside_checks
from cragside.domain.errors import CragsideError, NotFound, ServiceUnavailable
from cragside.domain.faults import Fault
from cragside.domain.indexing import QueueStats
from cragside.entrypoints.component_checks import (
    CheckOptions,
    Finding,
    State,
    examine_components,
    examine_folder,
    examine_installation,
    host_component,
)
from cragside.entrypoints.http.errors import error_responses, for_client
from cragside.entrypoints.http.models import Shape
from cragside.entrypoints.http.request_access import (
    AppContainer,
    choose_workspace,
    container_of,
    require_all_workspaces,
    shared,
)
from cragside.entrypoints.log import one_line
from cragside.ports.clock import Clock
from cragside.ports.telemetry import Standing

# Seconds to wait for each component.
_PATIENCE_SECONDS = 2.0
# Seconds for which an answer holds.
_HOLDS_SECONDS = 1.0

_log = logging.getLogger("cragside")

T = TypeVar("T")

open_router = APIRouter(tags=["health"])
router = APIRouter(tags=["health"])

Exposition = Callable[[QueueStats | None, Standing | None], bytes]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METRICS_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}
}
# Seconds for which a report holds.
REPORT_SECONDS = 5.0


class SharedLook(Generic[T]):
    """Runs `look` once for all who ask at the same time, or within `holds` seconds after it began."""

    def __init__(self, look: Callable[[], Coroutine[Any, Any, T]], clock: Clock, holds: float | None = None) -> None:
        self._look = look
        self._clock = clock
        self._holds = _HOLDS_SECONDS if holds is None else holds
        self._begun = 0.0
        self._looking: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """Return what the latest look found."""
        now = self._clock.monotonic()
        if self._looking is None or (self._looking.done() and now - self._begun >= self._holds):
            self._begun = now
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)


async def answer_of(
    component: str, ask: Callable[[], Awaitable[T]], *, patience: float = _PATIENCE_SECONDS, places: bool = False
) -> tuple[T | None, str]:
    """Return a component's answer, and why it cannot be used; "" if it can. With `places`, the log reads addresses."""
    try:
        async with asyncio.timeout(patience):
            return await ask(), ""
    except TimeoutError:
        return None, str(Fault.late(component, patience))
    except CragsideError as error:
        fault = Fault.of(component, error, error.message if places else for_client(error).message)
        return None, f"{fault} [{error.where}]" if places and error.where else str(fault)
    except Exception:
        _log.exception("The %s failed", component)
        return None, str(Fault.unexpected(component))


async def reasons(
    checks: Mapping[str, Callable[[], Awaitable[object]]], *, patience: float = _PATIENCE_SECONDS, places: bool = False
) -> dict[str, str]:
    """Ask all components at once. Return why each cannot be used; "" if it can."""
    answers = await asyncio.gather(
        *(answer_of(name, ask, patience=patience, places=places) for name, ask in checks.items())
    )
    return {name: reason for name, (_, reason) in zip(checks, answers, strict=True)}


async def check_store(container: Container, workspace: str) -> None:
    """Raise `ServiceUnavailable` if a workspace's store cannot be read, or its disk is full."""
    if container.spare_room is not None:
        container.spare_room.check()
    await container.workspaces.check(workspace)
    await (await container.workspaces.open(workspace)).documents.documents(limit=1)


class Readiness:
    """Asks the store, the queue, and the hosts and databases that are configured."""

    def __init__(self, container: Container, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._container = container
        self._patience = patience
        self._shared = SharedLook(self.look, container.clock)
        self._reported: list[str] = []

    async def missing(self) -> list[str]:
        """Name the components that do not answer. The log has the reasons, once for each change."""
        return await self._shared.result()

    async def look(self) -> list[str]:
        """Ask all components now."""
        found = await reasons(self._checks(), patience=self._patience, places=True)
        missing = {name: reason for name, reason in found.items() if reason}
        if list(missing) != self._reported:
            self._reported = list(missing)
            if missing:
                _log.warning("Not ready: %s", " ".join(f"{name}: {reason}" for name, reason in missing.items()))
            else:
                _log.info("Ready again.")
        return list(missing)

    def _checks(self) -> Mapping[str, Callable[[], Awaitable[object]]]:
        container = self._container
        checks: dict[str, Callable[[], Awaitable[object]]] = {
            "store": partial(check_store, container, container.settings.workspace)
        }
        if container.keeps_worker() or container.settings.queue_url is not None:
            checks["queue"] = container.queue.stats
        if (host := container.host) is not None:
            checks[host_component(container.settings)] = host.version
        if (search := container.search) is not None:
            checks["search"] = search.check
        return {**checks, **outside_checks(container)}


@router.get(
    "/metrics",
    response_class=Response,
    responses={**_METRICS_ANSWER, **error_responses("unauthorized", "forbidden", "not_found")},
)
async def metrics(request: Request, container: AppContainer) -> Response:
    """The counts of all processes of this server, in Prometheus' text format.

    They count the requests of all workspaces, so a token must open all of them.
    """
    require_all_workspaces(request, "The figures are about all workspaces.")
    exposition: Exposition | None = request.app.state.exposition
    if exposition is None:
        raise NotFound("Only cragside serve counts requests.")
    database = container.database
    # What does not answer soon is left out.
    (stats, _), (known, _) = await asyncio.gather(
        answer_of("queue", container.queue.stats),
        answer_of("postgres", partial(standing, database)) if database is not None else _nothing(),
    )
    return Response(exposition(stats, known), media_type=CONTENT_TYPE)


async def _nothing() -> tuple[None, str]:
    return None, ""


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


@router.get("/v1/components", responses=error_responses())
async def list_components(request: Request) -> ComponentsBody:
    """Examine what `cragside doctor` does, without its long tests: no model is called, no store is read as a whole.

    It is about the whole service, so a token must open all workspaces. An answer holds for five seconds.
    """
    require_all_workspaces(request, "The components serve all workspaces.")
    report = shared(request.app, component_report, container_of(request))
    return ComponentsBody(components=await report.result())


def message_for_clients(error: Exception) -> str:
    """Return one line without paths and addresses. The log has them."""
    if not isinstance(error, CragsideError):
        _log.warning("A component failed", exc_info=error)
        return f"something inside failed ({type(error).__name__}); the log has the details"
    shown = for_client(error)
    return one_line(f"{shown.component}: {shown.message}" if isinstance(shown, ServiceUnavailable) else shown.message)


FOR_CLIENTS = CheckOptions(3.0, thorough=False, places=False, message=message_for_clients)


def component_report(container: Container, options: CheckOptions = FOR_CLIENTS) -> SharedLook[Sequence[Finding]]:
    """Examine what `cragside doctor` examines, without its long tests."""

    async def examine() -> Sequence[Finding]:
        folder = await asyncio.to_thread(examine_folder, container.settings, options)
        components = await examine_components(container, options)
        return [*examine_installation(), Finding("settings", "ok"), folder, *components]

    return SharedLook(examine, container.clock, REPORT_SECONDS)


class QueueHealth(Shape):
    """The workspace's tasks that are queued, in process, and failed for good."""

    pending: int = Field(description="Tasks that wait.")
    processing: int = Field(description="Tasks that a worker processes now.")
    dead: int = Field(description="Tasks that were given up.")


class ComponentHealth(BaseModel):
    """Says if a component answers, and if not, why, and what to do."""

    ok: bool = Field(description="Whether the component answers.")
    reason: str = Field("", description="Why it does not, and what to do; empty if it does.")


class Configuration(BaseModel):
    """The configuration, without secrets."""

    workspace: str = Field(description="The workspace of the request.")
    threshold: float = Field(description="A passage with a higher relevance is evidence.")
    ollama: bool = Field(description="Whether an Ollama is configured.")
    search: bool = Field(description="Whether a web search is configured.")


class Health(BaseModel):
    """LightRAG's health answer with the state of each component. `pipeline_busy`: there are unfinished tasks."""

    status: Literal["healthy", "unhealthy"] = Field(
        description="`unhealthy` if the store or the queue does not answer."
    )
    core_version: str = Field(description="cragside's version.")
    api_version: str = Field(description="cragside's version.")
    auth_mode: Literal["enabled", "disabled"] = Field(description="Whether requests need a token.")
    webui_available: bool = Field(description="Always false: cragside has no LightRAG web UI.")
    pipeline_busy: bool = Field(description="Whether there are unfinished tasks.")
    pipeline_active: bool = Field(description="The same as `pipeline_busy`.")
    configuration: Configuration = Field(description="The configuration, without secrets.")
    components: dict[str, ComponentHealth] = Field(
        description="The state of `knowledge_base` and `queue`, and of other databases that are configured: `graph` "
        "(Neo4j), `vectors` (Qdrant), `values` (Redis)."
    )
    queue: QueueHealth | None = Field(description="The workspace's tasks; null if the queue does not answer.")


@open_router.get("/healthz")
async def healthz() -> dict[str, bool]:
    """Tell that the process answers; never ask for a token."""
    return {"ok": True}


class Ready(BaseModel):
    """Says if the server can do all its work, and if not, what does not answer."""

    ready: bool = Field(description="Whether everything that is configured answers.")
    not_ready: list[str] = Field(
        description="What does not answer: `store`, `queue`, `ollama`, `search`; `graph` (Neo4j), `vectors` (Qdrant), "
        "`values` (Redis)."
    )


@open_router.get("/ready", responses={503: {"model": Ready, "description": "Something does not answer."}})
async def ready(request: Request, response: Response) -> Ready:
    """Tell if the store, the queue and the configured hosts answer; never ask for a token.

    A load balancer that sends requests elsewhere on 503 can use this. The log has the reasons.
    """
    missing = await shared(request.app, Readiness, container_of(request)).missing()
    response.status_code = 503 if missing else 200
    return Ready(ready=not missing, not_ready=missing)


@router.get("/health", responses=error_responses("validation_error", "unauthorized"))
async def health(request: Request, container: AppContainer) -> Health:
    """LightRAG's health answer: the configuration, and whether the workspace's store and queue answer.

    The health is `unhealthy` if one of them is damaged or does not answer; the status stays 200. Databases outside of
    PostgreSQL are components too, but leave the health as it is: questions are answered without them. No model and no
    other host is asked. All pages of a store are checked at most every ten minutes, in the background.
    """
    workspace, settings = choose_workspace(request), container.settings
    tasks, queue = await answer_of("queue", lambda: container.intake.backlog(workspace))
    _, store = await answer_of("knowledge_base", lambda: check_store(container, workspace))
    components = {"knowledge_base": store, "queue": queue, **await _outside(request)}
    busy = tasks is not None and tasks.pending + tasks.processing > 0
    return Health(
        status="unhealthy" if store or queue else "healthy",
        core_version=__version__,
        api_version=__version__,
        auth_mode="enabled" if settings.asks_for_token else "disabled",
        webui_available=False,
        pipeline_busy=busy,
        pipeline_active=busy,
        configuration=Configuration(
            workspace=workspace,
            threshold=settings.threshold,
            ollama=settings.ollama_address is not None,
            search=settings.searxng_host is not None,
        ),
        components={name: ComponentHealth(ok=not reason, reason=reason) for name, reason in components.items()},
        queue=tasks,
    )


async def _outside(request: Request) -> Mapping[str, str]:
    return await shared(request.app, _outside_look, container_of(request)).result()


def _outside_look(container: Container) -> SharedLook[Mapping[str, str]]:
    return SharedLook(lambda: reasons(outside_checks(container)), container.clock)
