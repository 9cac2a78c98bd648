"""The FastAPI application with all of cragside's own routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from cragside import __version__
from cragside.bootstrap import Container
from cragside.entrypoints.access import Keys
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.http.errors import install_error_handlers
from cragside.entrypoints.http.middleware import AuditedRoutes, CrossOrigin
from cragside.entrypoints.http.request_bodies import UploadMemory
from cragside.entrypoints.http.route_groups import RouteGroup
from cragside.entrypoints.origins import Origins

if TYPE_CHECKING:
    from cragside.entrypoints.http.health import Exposition

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

# The files of all requests together may take the memory of this many files of the largest size.
_LARGEST_FILES = 4


def _openapi(prefix: str | None) -> dict[str, Any]:
    from cragside.entrypoints.http.openapi import openapi_document

    return openapi_document(prefix)


def create_app(
    container: Container, *, keys: Keys | None = None, raises: bool = False, exposition: "Exposition | None" = None
) -> FastAPI:
    """cragside's routes for a container. The container is closed when the application stops.

    `keys` provide the known tokens at each request; without them the container's are used. A host with its own time
    limit sets `ends` (by the container's clock) in the ASGI scope's `state`, and finds `rag_context` there afterwards.

    With `raises`, errors of the use cases are raised instead of answered: for callers in this process, who may see more
    than clients. `exposition` makes the answer of `/metrics`; without it the route answers 404.
    """
    configured = container.settings

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await container.close()

    # FastAPI's own documentation routes would need no token.
    app = FastAPI(
        title="cragside",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        routes=list(GROUPS),
    )
    app.openapi = partial(_openapi, configured.path_prefix)  # type: ignore[method-assign]  # FastAPI's way to replace it
    app.state.container = container
    app.state.keys = keys or Keys(container)
    app.state.exposition = exposition
    app.state.shared = {}
    app.state.upload_memory = UploadMemory(_LARGEST_FILES * configured.max_file_bytes)
    audit = Audit(container)
    if audit.wanted:
        app.add_middleware(AuditedRoutes, audit=audit)
    app.add_middleware(CrossOrigin, origins=Origins(configured.allowed_origins))
    install_error_handlers(app, raises=raises)
    return app
