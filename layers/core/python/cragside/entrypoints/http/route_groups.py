"""Groups of routes, each of one module. A module is imported with the first request to one of its paths."""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from operator import attrgetter

from fastapi import APIRouter, Depends, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette._utils import get_route_path
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from cragside.entrypoints.http.request_access import authorise, check_rules

_PACKAGE = "cragside.entrypoints"
# What a route depends on that needs a token. The two schemes appear in the OpenAPI document only; `authorise` reads the
# headers.
_GUARD = [
    Depends(authorise),
    Security(HTTPBearer(auto_error=False)),
    Security(APIKeyHeader(name="X-API-Key", auto_error=False)),
]


class RouteGroup(BaseRoute):
    """The routes of one module, all at these paths or below them. They need a token, if `guarded`."""

    def __init__(self, module: str, *paths: str, router: str = "router", guarded: bool = True) -> None:
        self._module = f"{_PACKAGE}.{module}"
        self._paths = paths
        self._below = tuple(f"{path}/" for path in paths)
        self._router = router
        self._guarded = guarded

    @cached_property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes. The first access imports their module, and FastAPI needs some time for each route."""
        router: APIRouter = getattr(import_module(self._module), self._router)
        # The routes have the names of their functions in the OpenAPI document.
        routes = APIRouter(redirect_slashes=False, generate_unique_id_function=attrgetter("name"))
        if self._guarded:
            routes.include_router(check_rules(router), dependencies=_GUARD)
        else:
            routes.include_router(router)
        return routes.routes

    @override
    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http":
            path = get_route_path(scope)
            if path in self._paths or path.startswith(self._below):
                return self._included.matches(scope)
        return Match.NONE, {}

    @override
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._included.handle(scope, receive, send)

    @property
    def _included(self) -> BaseRoute:
        return self.routes[0]


# In the order of the OpenAPI document.
GROUPS = (
    RouteGroup("http.health", "/healthz", "/ready", router="open_router", guarded=False),
    RouteGroup("http.pages", "/docs", "/favicon.ico", guarded=False),
    RouteGroup("console.files", "/", "/console", guarded=False),
    RouteGroup("http.health", "/health", "/metrics", "/v1/components"),
    RouteGroup("http.v1.enrich", "/v1/enrich", "/v1/explain"),
    RouteGroup("http.v1.citations", "/v1/citations"),
    RouteGroup("http.v1.query", "/v1/query"),
    RouteGroup("http.v1.documents", "/v1/documents"),
    RouteGroup("http.v1.intake", "/v1/documents", "/v1/samples"),
    RouteGroup("http.v1.repositories", "/v1/repositories"),
    RouteGroup("http.v1.workspaces", "/v1/workspaces", "/v1/settings", "/v1/reindex"),
    RouteGroup("http.v1.memories", "/v1/memories"),
    RouteGroup("http.v1.graph", "/v1/graph"),
    RouteGroup("http.v1.queue", "/v1/queue"),
    RouteGroup("http.mcp", "/mcp"),
    RouteGroup("http.peers.rag_stack", "/ingest", "/enrichment", "/graph"),
    RouteGroup("http.peers.query", "/query"),
    RouteGroup("http.peers.lightrag", "/documents", "/query/data"),
    RouteGroup("http.openapi", "/openapi.json"),
)
