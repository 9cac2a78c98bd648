"""The OpenAPI document of cragside's own routes, and the route that shows it."""

import asyncio
from functools import cache
from threading import Lock
from typing import Any

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi

from cragside import __version__
from cragside.entrypoints.http.route_groups import GROUPS

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
router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
async def openapi(request: Request) -> dict[str, Any]:
    """The routes in OpenAPI's form."""
    document: dict[str, Any] = await asyncio.to_thread(request.app.openapi)
    return document


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
