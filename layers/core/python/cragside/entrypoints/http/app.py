"""The FastAPI application with all of cragside's own routes, and their OpenAPI document."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from cragside import __version__
from cragside.bootstrap import Container
from cragside.entrypoints.access import Keys
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.http.errors import install_error_handlers
from cragside.entrypoints.http.middleware import AuditedRoutes, CrossOrigin
from cragside.entrypoints.http.request_bodies import UploadMemory
from cragside.entrypoints.http.route_groups import RouteGroup, guard, new_router
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
)

_DESCRIPTION = """Gives any Ollama prompt the evidence it needs (Corrective RAG).

A request to `/v1/enrich` whose prompt begins with `/rag` is returned with graded, cited evidence in it. The other
routes manage documents, memories, settings and the queue. The routes of rag-stack and of LightRAG's server have their
peers' shapes.

If the service has tokens, every route but `/healthz` and `/ready` needs one, as `Authorization: Bearer` or `X-API-Key`.
"""
_TAGS = {
    "health": "Whether the service works.",
    "enrich": "Evidence for prompts.",
    "query": "Passages for a question.",
    "documents": "The documents of a workspace.",
    "workspaces": "The workspaces of a token.",
    "memories": "Earlier conversations.",
    "settings": "The settings of a workspace.",
    "queue": "Indexing tasks that were given up.",
    "rag-stack": "Routes in the shapes of rag-stack.",
    "LightRAG": "Routes in the shapes of LightRAG's server.",
}
_EVENTS = {
    ("/v1/documents/{document_id}/events", "get"): (
        "Server-sent events: `progress` with a DocumentProgress, then `done`, `failed` or `later`."
    ),
    ("/v1/repositories", "post"): (
        'Server-sent events: `progress` with `{"accepted", "refused", "name"}` after each file, then `done` with '
        '`{"accepted", "refused", "errors": [{"name", "message"}], "repo_id"}`, or `failed` with an ErrorBody.'
    ),
}
# Several first requests wait for one document.
_building = Lock()
# The files of all requests together may take the memory of this many files of the largest size.
_LARGEST_FILES = 4


def _own() -> Sequence[BaseRoute]:
    routes = new_router()

    @routes.get("/openapi.json", dependencies=guard(), include_in_schema=False)
    async def openapi(request: Request) -> dict[str, Any]:
        """The routes in OpenAPI's form."""
        document: dict[str, Any] = await asyncio.to_thread(request.app.openapi)
        return document

    return routes.routes


# Built once for all applications of the process: FastAPI needs some time for it.
ROUTES: Sequence[BaseRoute] = (*GROUPS, *_own())


def openapi_document(prefix: str | None) -> dict[str, Any]:
    """Return cragside's routes below a prefix in OpenAPI 3.1. All applications of the process share the document.

    The first call imports all routes and takes half a second, so call it in a thread.
    """
    with _building:
        return _built(prefix)


@cache
def _built(prefix: str | None) -> dict[str, Any]:
    document = get_openapi(
        title="cragside",
        version=__version__,
        description=_DESCRIPTION,
        license_info={"name": "MIT", "identifier": "MIT"},
        tags=[{"name": name, "description": description} for name, description in _TAGS.items()],
        routes=[route for group in GROUPS for route in group.routes],
        servers=[{"url": prefix}] if prefix else None,
    )
    _describe_events(document)
    return document


def _describe_events(document: dict[str, Any]) -> None:
    """Describe server-sent events as OpenAPI 3.1 can: FastAPI uses `itemSchema`, which came with 3.2."""
    for (path, method), description in _EVENTS.items():
        answer = document["paths"][path][method]["responses"]["200"]
        answer["content"] = {"text/event-stream": {"schema": {"type": "string", "description": description}}}


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
        routes=list(ROUTES),
    )
    app.openapi = partial(openapi_document, configured.path_prefix)  # type: ignore[method-assign]  # FastAPI's way to replace it
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
