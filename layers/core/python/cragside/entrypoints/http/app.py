"""The FastAPI application: every route of cragside's own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Security
from fastapi.security import APIKeyHeader, HTTPBearer

from cragside import __version__
from cragside.bootstrap import Container
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.http import errors, health, route_scopes
from cragside.entrypoints.http.audited_routes import AuditedRoutes
from cragside.entrypoints.http.cross_origin import CrossOrigin
from cragside.entrypoints.http.peers import failures as peers
from cragside.entrypoints.http.peers import query
from cragside.entrypoints.http.peers.lightrag import documents as lightrag_documents
from cragside.entrypoints.http.peers.rag_stack import enrichment, graph, ingest
from cragside.entrypoints.http.tenancy import Access
from cragside.entrypoints.http.v1 import documents, enrich, memories, queue, settings, uploads
from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.origins import Origins

# The routes by topic, each `router(container, access)`; all of them ask for a token.
ROUTERS = (
    health.router,
    enrich.router,
    documents.router,
    uploads.router,
    memories.router,
    settings.router,
    queue.router,
    ingest.router,
    query.router,
    enrichment.router,
    graph.router,
    lightrag_documents.router,
)


def create_app(container: Container, *, keys: Keys | None = None, raises: bool = False) -> FastAPI:
    """cragside's routes for a container, which is closed when the application stops.

    `keys` are asked at each request for the tokens, on the event loop; unset, they are the container's. A host that
    grants a request less time than the settings says so in the ASGI scope's `state`: `ends` is when the time is up, by
    `time.monotonic`. After the answer it finds the `rag_context` there.

    With `raises` the errors of the use cases are raised as they are instead of answered: for callers in this process,
    who may know what clients are not told.
    """
    configured = container.settings
    access = Access(keys or Keys(container), default=configured.workspace)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await container.close()

    # FastAPI's own routes would ask for no token.
    app = FastAPI(title="cragside", version=__version__, lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    audit = Audit(container.audit_log)
    if audit.wanted:
        app.add_middleware(AuditedRoutes, audit=audit)
    app.add_middleware(CrossOrigin, origins=Origins(configured.allowed_origins))
    errors.install(app, raises=raises)
    peers.install(app)
    app.include_router(health.open_router())
    # The two schemes are for the document; `authorise` reads the headers.
    schemes = [Security(HTTPBearer(auto_error=False)), Security(APIKeyHeader(name="X-API-Key", auto_error=False))]
    guard = [Depends(access.authorise), *schemes]
    for router in ROUTERS:
        app.include_router(route_scopes.check(router(container, access)), dependencies=guard)

    @app.get("/openapi.json", dependencies=guard, include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        """The routes in OpenAPI's form."""
        return app.openapi()

    return app
