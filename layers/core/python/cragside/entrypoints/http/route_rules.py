"""The rules of our own routes. A route without a rule prevents the application from starting."""

from collections.abc import Mapping
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.routing import APIRoute

from cragside.domain.tokens import TokenScope


class Rule(NamedTuple):
    """The scope that a route needs, and its action in the audit log. None: only denied requests are logged."""

    scope: TokenScope
    action: str | None = None


RULES: Mapping[str, Rule] = {
    "GET /openapi.json": Rule("read"),
    "GET /health": Rule("read"),
    "POST /v1/enrich": Rule("read", "search"),
    "POST /v1/documents": Rule("write", "ingest"),
    "GET /v1/documents": Rule("read"),
    "GET /v1/documents/{document_id}": Rule("read", "read"),
    "GET /v1/documents/{document_id}/content": Rule("read", "read"),
    "GET /v1/documents/{document_id}/events": Rule("read"),
    "DELETE /v1/documents/{document_id}": Rule("write", "delete"),
    "PATCH /v1/documents/{document_id}": Rule("write", "move"),
    "POST /v1/documents/{document_id}/reprocess": Rule("write", "reprocess"),
    "POST /v1/documents/uploads": Rule("write", "upload"),
    "POST /v1/memories": Rule("write", "ingest"),
    "GET /v1/memories": Rule("read", "read"),
    "DELETE /v1/memories/{memory_id}": Rule("write", "delete"),
    "POST /v1/memories/search": Rule("read", "search"),
    "GET /v1/settings": Rule("read"),
    "PATCH /v1/settings": Rule("write", "settings"),
    "GET /v1/queue/dead": Rule("read"),
    "POST /v1/queue/revive": Rule("write", "reprocess"),
    "POST /ingest": Rule("write", "ingest"),
    "POST /query": Rule("read", "search"),
    "POST /query/data": Rule("read", "search"),
    "GET /enrichment/status/{baseId:path}": Rule("read"),
    "GET /enrichment/stats": Rule("read"),
    "POST /enrichment/enqueue": Rule("write", "reprocess"),
    "GET /graph/entity/{name:path}": Rule("read"),
    "POST /documents/text": Rule("write", "ingest"),
    "POST /documents/texts": Rule("write", "ingest"),
    "GET /documents/track_status/{track_id}": Rule("read"),
    "GET /documents/status_counts": Rule("read"),
    "GET /documents/pipeline_status": Rule("read"),
    "DELETE /documents/delete_document": Rule("write", "delete"),
}


def check(router: APIRouter) -> APIRouter:
    """The same router. Raises `KeyError` that names a route without a rule."""
    for route in router.routes:
        for method in getattr(route, "methods", None) or {"*"}:
            if not isinstance(route, APIRoute) or f"{method} {route.path}" not in RULES:
                raise KeyError(f"{method} {getattr(route, 'path', route)} has no rule in http/route_rules.py")
    return router
