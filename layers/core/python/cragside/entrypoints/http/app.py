"""The FastAPI application with all of cragside's own routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import Depends, FastAPI, Security
from fastapi.security import APIKeyHeader, HTTPBearer

from cragside import __version__
from cragside.bootstrap import Container
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.console import files as console
from cragside.entrypoints.http import health, metrics_route, pages, route_rules
from cragside.entrypoints.http.audited_routes import AuditedRoutes
from cragside.entrypoints.http.component_report import ComponentReport
from cragside.entrypoints.http.cross_origin import CrossOrigin
from cragside.entrypoints.http.errors import install_error_handlers
from cragside.entrypoints.http.metrics_route import Exposition
from cragside.entrypoints.http.multipart import UploadMemory
from cragside.entrypoints.http.openapi import openapi_document
from cragside.entrypoints.http.outside import Outside
from cragside.entrypoints.http.peers import query
from cragside.entrypoints.http.peers.failures import install_peer_handlers
from cragside.entrypoints.http.peers.lightrag import documents as lightrag_documents
from cragside.entrypoints.http.peers.lightrag import query_data
from cragside.entrypoints.http.peers.rag_stack import enrichment, graph, ingest
from cragside.entrypoints.http.readiness import Readiness
from cragside.entrypoints.http.request_access import authorise
from cragside.entrypoints.http.v1 import (
    citations,
    components,
    documents,
    enrich,
    explain,
    memories,
    queue,
    reindex,
    repositories,
    samples,
    settings,
    uploads,
    workspaces,
)
from cragside.entrypoints.http.v1 import graph as graph_parts
from cragside.entrypoints.http.v1 import query as passages
from cragside.entrypoints.http.v1.document_events import ProgressStreams
from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.origins import Origins
from cragside.entrypoints.repository_intake import RepositoryTurns

# The routers in the order of the OpenAPI document. All of these routes need a token.
ROUTERS = (
    health.router,
    metrics_route.router,
    enrich.router,
    explain.router,
    citations.router,
    passages.router,
    documents.router,
    uploads.router,
    samples.router,
    repositories.router,
    workspaces.router,
    components.router,
    memories.router,
    graph_parts.router,
    settings.router,
    reindex.router,
    queue.router,
    ingest.router,
    query.router,
    query_data.router,
    enrichment.router,
    graph.router,
    lightrag_documents.router,
)
# The files of all requests together may take the memory of this many files of the largest size.
_LARGEST_FILES = 4


def create_app(
    container: Container, *, keys: Keys | None = None, raises: bool = False, exposition: Exposition | None = None
) -> FastAPI:
    """cragside's routes for a container. The container is closed when the application stops.

    `keys` provide the known tokens at each request; without them the container's are used. A host with its own time
    limit sets `ends` (by `time.monotonic`) in the ASGI scope's `state`, and finds `rag_context` there after the answer.

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
        generate_unique_id_function=lambda route: route.name,
    )
    app.openapi = partial(openapi_document, app)  # type: ignore[method-assign]  # FastAPI's way to replace it
    app.state.container = container
    app.state.keys = keys or Keys(container)
    app.state.exposition = exposition
    app.state.readiness = Readiness(container)
    app.state.repository_turns = RepositoryTurns()
    app.state.progress_streams = ProgressStreams(container)
    app.state.components = ComponentReport(container)
    app.state.outside = Outside(container)
    app.state.upload_memory = UploadMemory(_LARGEST_FILES * configured.max_file_bytes)
    audit = Audit(container.audit_log)
    if audit.wanted:
        app.add_middleware(AuditedRoutes, audit=audit)
    app.add_middleware(CrossOrigin, origins=Origins(configured.allowed_origins))
    install_error_handlers(app, raises=raises)
    install_peer_handlers(app)
    app.include_router(health.open_router)
    app.include_router(pages.router)
    app.include_router(console.router)
    # The two schemes appear in the OpenAPI document only; `authorise` reads the headers.
    schemes = [Security(HTTPBearer(auto_error=False)), Security(APIKeyHeader(name="X-API-Key", auto_error=False))]
    guard = [Depends(authorise), *schemes]
    for router in ROUTERS:
        app.include_router(route_rules.check(router), dependencies=guard)

    @app.get("/openapi.json", dependencies=guard, include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        """The routes in OpenAPI's form."""
        return app.openapi()

    return app
