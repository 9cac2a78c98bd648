"""All of cragside's own routes, built once for all applications of the process: FastAPI needs some time for it."""

import asyncio
from typing import Any

from fastapi import APIRouter, Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer

from cragside.entrypoints.console import files as console
from cragside.entrypoints.http import health, mcp, metrics_route, pages, route_rules
from cragside.entrypoints.http.peers import query
from cragside.entrypoints.http.peers.lightrag import documents as lightrag_documents
from cragside.entrypoints.http.peers.lightrag import query_data
from cragside.entrypoints.http.peers.rag_stack import enrichment, graph, ingest
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
    mcp.router,
    ingest.router,
    query.router,
    query_data.router,
    enrichment.router,
    graph.router,
    lightrag_documents.router,
)


def _all() -> APIRouter:
    routes = APIRouter(redirect_slashes=False, generate_unique_id_function=lambda route: route.name)
    for router in (health.open_router, pages.router, console.router):
        routes.include_router(router)
    # The two schemes appear in the OpenAPI document only; `authorise` reads the headers.
    schemes = [Security(HTTPBearer(auto_error=False)), Security(APIKeyHeader(name="X-API-Key", auto_error=False))]
    guard = [Depends(authorise), *schemes]
    for router in ROUTERS:
        routes.include_router(route_rules.check(router), dependencies=guard)

    @routes.get("/openapi.json", dependencies=guard, include_in_schema=False)
    async def openapi(request: Request) -> dict[str, Any]:
        """The routes in OpenAPI's form."""
        document: dict[str, Any] = await asyncio.to_thread(request.app.openapi)
        return document

    return routes


ROUTES = _all()
