"""Health routes."""

from collections.abc import Mapping
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from cragside import __version__
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.models import Shape
from cragside.entrypoints.http.readiness import SharedLook, answer_of, check_store
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace


class QueueHealth(Shape):
    """The workspace's tasks that are queued, in process, and failed for good."""

    pending: int = Field(description="Tasks that wait.")
    processing: int = Field(description="Tasks that a worker processes now.")
    dead: int = Field(description="Tasks that were given up.")


class ComponentHealth(BaseModel):
    """Whether a component answers, and if not, why, and what to do."""

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


open_router = APIRouter(tags=["health"])
router = APIRouter(tags=["health"])


@open_router.get("/healthz")
async def healthz() -> dict[str, bool]:
    """Whether the process answers; never asks for a token."""
    return {"ok": True}


class Ready(BaseModel):
    """Whether the server can do all its work, and if not, what does not answer."""

    ready: bool = Field(description="Whether everything that is configured answers.")
    not_ready: list[str] = Field(
        description="What does not answer: `store`, `queue`, `ollama`, `search`; `graph` (Neo4j), `vectors` (Qdrant), "
        "`values` (Redis)."
    )


@open_router.get("/ready", responses={503: {"model": Ready, "description": "Something does not answer."}})
async def ready(request: Request, response: Response) -> Ready:
    """Whether the store, the queue and the configured hosts answer; never asks for a token.

    A load balancer that sends requests elsewhere on 503 can use this. The log has the reasons.
    """
    missing = await request.app.state.readiness.missing()
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
    outside: SharedLook[Mapping[str, str]] = request.app.state.outside
    return await outside.result()
