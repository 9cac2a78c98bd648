"""The scope that each of our own routes needs. A route that is not named here keeps the application from starting."""

from collections.abc import Mapping

from fastapi import APIRouter
from fastapi.routing import APIRoute

from cragside.domain.tokens import TokenScope

SCOPES: Mapping[str, TokenScope] = {
    "GET /openapi.json": "read",
    "GET /health": "read",
    "POST /v1/enrich": "read",
    "POST /v1/documents": "write",
    "GET /v1/documents": "read",
    "GET /v1/documents/{document_id}": "read",
    "GET /v1/documents/{document_id}/content": "read",
    "GET /v1/documents/{document_id}/events": "read",
    "DELETE /v1/documents/{document_id}": "write",
    "PATCH /v1/documents/{document_id}": "write",
    "POST /v1/documents/{document_id}/reprocess": "write",
    "POST /v1/documents/uploads": "write",
    "POST /v1/memories": "write",
    "GET /v1/memories": "read",
    "DELETE /v1/memories/{memory_id}": "write",
    "POST /v1/memories/search": "read",
    "GET /v1/settings": "read",
    "PATCH /v1/settings": "write",
    "GET /v1/queue/dead": "read",
    "POST /v1/queue/revive": "write",
    "POST /ingest": "write",
    "POST /query": "read",
    "POST /query/data": "read",
    "GET /enrichment/status/{baseId:path}": "read",
    "GET /enrichment/stats": "read",
    "POST /enrichment/enqueue": "write",
    "GET /graph/entity/{name:path}": "read",
    "POST /documents/text": "write",
    "POST /documents/texts": "write",
    "GET /documents/track_status/{track_id}": "read",
    "GET /documents/status_counts": "read",
    "GET /documents/pipeline_status": "read",
    "DELETE /documents/delete_document": "write",
}


def check(router: APIRouter) -> APIRouter:
    """The router, all of whose routes have a scope. Raises `KeyError` that names one without."""
    for route in router.routes:
        for method in getattr(route, "methods", None) or {"*"}:
            if not isinstance(route, APIRoute) or f"{method} {route.path}" not in SCOPES:
                raise KeyError(
                    f"{method} {getattr(route, 'path', route)} has no scope in entrypoints/http/route_scopes.py"
                )
    return router
