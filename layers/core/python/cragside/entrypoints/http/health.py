"""Whether it answers, and what is configured."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from fastapi import APIRouter, Request
from pydantic import BaseModel

from cragside import __version__
from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError
from cragside.entrypoints.http.errors import failures, for_client
from cragside.entrypoints.http.tenancy import Access

# Whoever asks for health waits for no component longer than this.
_PATIENCE_SECONDS = 2.0

T = TypeVar("T")
_log = logging.getLogger("cragside")


def open_router() -> APIRouter:
    """The route that asks for no token."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz")
    async def healthz() -> dict[str, bool]:
        """Whether the process answers; never asks for a token."""
        return {"ok": True}

    return routes


class QueueHealth(BaseModel):
    """The tasks of the workspace that wait, are being done, and were given up."""

    pending: int
    processing: int
    dead: int


class ComponentHealth(BaseModel):
    """Whether a component answers, and if not, why."""

    ok: bool
    reason: str = ""


class Configuration(BaseModel):
    """What is configured, without what is secret."""

    workspace: str
    threshold: float
    ollama: bool
    search: bool


class Health(BaseModel):
    """LightRAG's health shape, with each component's. `pipeline_busy` is whether there are tasks."""

    status: Literal["healthy", "unhealthy"]
    core_version: str
    api_version: str
    auth_mode: Literal["enabled", "disabled"]
    webui_available: bool
    pipeline_busy: bool
    pipeline_active: bool
    configuration: Configuration
    components: dict[str, ComponentHealth]
    queue: QueueHealth | None


def router(container: Container, access: Access) -> APIRouter:
    """`GET /health`."""
    routes = APIRouter(tags=["health"])
    settings = container.settings

    @routes.get("/health", responses=failures("validation_error", "unauthorized"))
    async def health(request: Request) -> Health:
        """LightRAG's health shape: what is configured, and whether the workspace's store and queue answer.

        It is `unhealthy` when one of them is damaged or does not answer; the status stays 200. Neither models nor other
        hosts are asked. All pages of a store are checked every ten minutes at most, beside the answer.
        """
        workspace = access.workspace(request)
        tasks, queue = await _asked("queue", lambda: container.intake.backlog(workspace))
        _, store = await _asked("knowledge_base", lambda: _readable(container, workspace))
        busy = tasks is not None and tasks.pending + tasks.processing > 0
        return Health(
            status="healthy" if store.ok and queue.ok else "unhealthy",
            core_version=__version__,
            api_version=__version__,
            auth_mode="enabled" if settings.asks_for_token else "disabled",
            webui_available=False,
            pipeline_busy=busy,
            pipeline_active=busy,
            configuration=Configuration(
                workspace=workspace,
                threshold=settings.threshold,
                ollama=settings.ollama_base_url is not None,
                search=settings.searxng_host is not None,
            ),
            components={"knowledge_base": store, "queue": queue},
            queue=None
            if tasks is None
            else QueueHealth(pending=tasks.pending, processing=tasks.processing, dead=tasks.dead),
        )

    return routes


async def _readable(container: Container, workspace: str) -> None:
    await container.workspaces.check(workspace)
    await (await container.workspaces.open(workspace)).documents.documents(limit=1)


async def _asked(component: str, ask: Callable[[], Awaitable[T]]) -> tuple[T | None, ComponentHealth]:
    """What a component answers in time, and how it is."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await ask(), ComponentHealth(ok=True)
    except TimeoutError:
        return None, ComponentHealth(ok=False, reason=f"The {component} does not answer in time.")
    except CragsideError as error:
        return None, ComponentHealth(ok=False, reason=for_client(error).message)
    except Exception:
        _log.exception("The %s failed", component)
        return None, ComponentHealth(ok=False, reason=f"The {component} failed; the log has the details.")
