"""The FastAPI application with all of cragside's own routes, and their OpenAPI document."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from threading import Lock
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Security
from fastapi.openapi.utils import get_openapi
from fastapi.security import APIKeyHeader, HTTPBearer

from cragside import __version__
from cragside.bootstrap import Container
from cragside.composition.store_files import outside_checks
from cragside.entrypoints.access import Keys
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.console import files as console
from cragside.entrypoints.http import health, mcp, pages
from cragside.entrypoints.http.errors import install_error_handlers
from cragside.entrypoints.http.health import Exposition, Readiness, SharedLook, component_report, reasons
from cragside.entrypoints.http.middleware import AuditedRoutes, CrossOrigin
from cragside.entrypoints.http.peers import lightrag, query, rag_stack
from cragside.entrypoints.http.request_access import authorise, check_rules
from cragside.entrypoints.http.request_bodies import UploadMemory
from cragside.entrypoints.http.v1 import (
    citations,
    documents,
    enrich,
    graph,
    intake,
    memories,
    queue,
    repositories,
    workspaces,
)
from cragside.entrypoints.http.v1 import query as passages
from cragside.entrypoints.http.v1.documents import ProgressStreams
from cragside.entrypoints.http.v1.repositories import RepositoryRuns
from cragside.entrypoints.origins import Origins

# The routers in the order of the OpenAPI document. All of these routes need a token.
ROUTERS = (
    health.router,
    enrich.router,
    citations.router,
    passages.router,
    documents.router,
    intake.router,
    repositories.router,
    workspaces.router,
    memories.router,
    graph.router,
    queue.router,
    mcp.router,
    rag_stack.router,
    query.router,
    lightrag.router,
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


def _all() -> APIRouter:
    routes = APIRouter(redirect_slashes=False, generate_unique_id_function=lambda route: route.name)
    for router in (health.open_router, pages.router, console.router):
        routes.include_router(router)
    # The two schemes appear in the OpenAPI document only; `authorise` reads the headers.
    schemes = [Security(HTTPBearer(auto_error=False)), Security(APIKeyHeader(name="X-API-Key", auto_error=False))]
    guard = [Depends(authorise), *schemes]
    for router in ROUTERS:
        routes.include_router(check_rules(router), dependencies=guard)

    @routes.get("/openapi.json", dependencies=guard, include_in_schema=False)
    async def openapi(request: Request) -> dict[str, Any]:
        """The routes in OpenAPI's form."""
        document: dict[str, Any] = await asyncio.to_thread(request.app.openapi)
        return document

    return routes


# Built once for all applications of the process: FastAPI needs some time for it.
ROUTES = _all()


def openapi_document(prefix: str | None) -> dict[str, Any]:
    """Return cragside's routes below a prefix in OpenAPI 3.1. All applications of the process share the document.

    The first call takes half a second, so call it in a thread.
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
        routes=ROUTES.routes,
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
    container: Container, *, keys: Keys | None = None, raises: bool = False, exposition: Exposition | None = None
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
        routes=ROUTES.routes,
    )
    app.openapi = partial(openapi_document, configured.path_prefix)  # type: ignore[method-assign]  # FastAPI's way to replace it
    app.state.container = container
    app.state.keys = keys or Keys(container)
    app.state.exposition = exposition
    app.state.readiness = Readiness(container)
    app.state.repository_runs = RepositoryRuns()
    app.state.progress_streams = ProgressStreams(container)
    app.state.components = component_report(container)
    app.state.outside = SharedLook(lambda: reasons(outside_checks(container)), container.clock)
    app.state.upload_memory = UploadMemory(_LARGEST_FILES * configured.max_file_bytes)
    audit = Audit(container)
    if audit.wanted:
        app.add_middleware(AuditedRoutes, audit=audit)
    app.add_middleware(CrossOrigin, origins=Origins(configured.allowed_origins))
    install_error_handlers(app, raises=raises)
    return app
