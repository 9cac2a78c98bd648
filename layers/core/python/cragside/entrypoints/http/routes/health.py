"""Whether it answers, and what is configured."""

from typing import Any

from fastapi import APIRouter, Request

from cragside import __version__
from cragside.entrypoints.http.application import Application
from cragside.entrypoints.http.errors import failures
from cragside.entrypoints.http.tenancy import Access


def open_router() -> APIRouter:
    """The route that asks for no token."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz")
    async def healthz() -> dict[str, bool]:
        """Whether the process answers; never asks for a token."""
        return {"ok": True}

    return routes


def router(container: Application, access: Access) -> APIRouter:
    """`GET /health`."""
    routes = APIRouter(tags=["health"])
    settings = container.settings

    @routes.get("/health", responses=failures("unauthorized"))
    async def health(request: Request) -> dict[str, Any]:
        """LightRAG's health shape, with what is configured."""
        return {
            "status": "healthy",
            "core_version": __version__,
            "api_version": __version__,
            "auth_mode": "enabled" if settings.asks_for_token else "disabled",
            "webui_available": False,
            "pipeline_busy": False,
            "configuration": {
                "workspace": access.workspace(request),
                "threshold": settings.threshold,
                "ollama": settings.ollama_base_url is not None,
                "search": settings.searxng_host is not None,
            },
        }

    return routes
