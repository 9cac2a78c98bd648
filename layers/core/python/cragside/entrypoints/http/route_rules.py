"""The rules of our own routes. A route without a rule prevents the application from starting."""

from collections.abc import Mapping
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.routing import APIRoute

from cragside.domain.tokens import TokenScope


class RouteRule(NamedTuple):
    """The scope that a route needs, and its action in the audit log. None: only denied requests are logged."""

    scope: TokenScope
    action: str | None = None


# These need no token.
OPEN_ROUTES = ("/healthz", "/ready", "/docs", "/favicon.ico", "/console")
_OPEN_FOLDER = "/console/"
RULES: Mapping[str, RouteRule] = {
    "GET /openapi.json": RouteRule("read"),
    "GET /health": RouteRule("read"),
    "GET /metrics": RouteRule("read"),
    "POST /v1/enrich": RouteRule("read", "search"),
    "POST /v1/explain": RouteRule("read", "search"),
    "POST /v1/query": RouteRule("read", "search"),
    "POST /v1/citations": RouteRule("read"),
    "POST /v1/documents": RouteRule("write", "ingest"),
    "GET /v1/documents": RouteRule("read"),
    "GET /v1/documents/{document_id}": RouteRule("read", "read"),
    "GET /v1/documents/{document_id}/content": RouteRule("read", "read"),
    "GET /v1/documents/{document_id}/events": RouteRule("read"),
    "DELETE /v1/documents/{document_id}": RouteRule("write", "delete"),
    "PATCH /v1/documents/{document_id}": RouteRule("write", "move"),
    "POST /v1/documents/{document_id}/reprocess": RouteRule("write", "reprocess"),
    "POST /v1/documents/uploads": RouteRule("write", "upload"),
    "POST /v1/repositories": RouteRule("write", "ingest"),
    "GET /v1/workspaces": RouteRule("read"),
    "GET /v1/components": RouteRule("read"),
    "GET /v1/samples": RouteRule("read"),
    "POST /v1/samples": RouteRule("write", "ingest"),
    "POST /v1/memories": RouteRule("write", "ingest"),
    "GET /v1/memories": RouteRule("read", "read"),
    "DELETE /v1/memories/{memory_id}": RouteRule("write", "delete"),
    "POST /v1/memories/search": RouteRule("read", "search"),
    "GET /v1/settings": RouteRule("read"),
    "PATCH /v1/settings": RouteRule("write", "settings"),
    "GET /v1/graph": RouteRule("read"),
    "GET /v1/graph/search": RouteRule("read"),
    "GET /v1/graph/neighbourhood": RouteRule("read"),
    "GET /v1/graph/passages": RouteRule("read", "read"),
    "POST /v1/reindex": RouteRule("write", "reprocess"),
    "GET /v1/queue/dead": RouteRule("read"),
    "POST /v1/queue/revive": RouteRule("write", "reprocess"),
    "POST /mcp": RouteRule("read"),  # each tool needs the scope of the route that it calls
    "POST /mcp/": RouteRule("read"),
    "POST /ingest": RouteRule("write", "ingest"),
    "POST /query": RouteRule("read", "search"),
    "POST /query/data": RouteRule("read", "search"),
    "GET /enrichment/status/{baseId:path}": RouteRule("read"),
    "GET /enrichment/stats": RouteRule("read"),
    "POST /enrichment/enqueue": RouteRule("write", "reprocess"),
    "GET /graph/entity/{name:path}": RouteRule("read"),
    "POST /documents/text": RouteRule("write", "ingest"),
    "POST /documents/texts": RouteRule("write", "ingest"),
    "GET /documents/track_status/{track_id}": RouteRule("read"),
    "GET /documents/status_counts": RouteRule("read"),
    "GET /documents/pipeline_status": RouteRule("read"),
    "DELETE /documents/delete_document": RouteRule("write", "delete"),
}


def is_open(path: str) -> bool:
    """Whether a path needs no token."""
    return path in OPEN_ROUTES or path.startswith(_OPEN_FOLDER)


def check(router: APIRouter) -> APIRouter:
    """The same router. Raises `KeyError` that names a route without a rule."""
    for route in router.routes:
        for method in getattr(route, "methods", None) or {"*"}:
            if not isinstance(route, APIRoute) or f"{method} {route.path}" not in RULES:
                raise KeyError(f"{method} {getattr(route, 'path', route)} has no rule in http/route_rules.py")
    return router
