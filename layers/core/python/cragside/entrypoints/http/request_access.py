"""Decides what a request may use: the rules of the routes, the container, and the workspaces that its tokens open."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.routing import APIRoute

from cragside.application.allowance import allow
from cragside.bootstrap import Container
from cragside.domain.errors import Forbidden, Unauthorized
from cragside.domain.tokens import TokenScope
from cragside.entrypoints.access import ANONYMOUS, Grant, workspace_of
from cragside.entrypoints.http.models import WORKSPACE

T = TypeVar("T")
P = ParamSpec("P")


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
    """Tell if a path needs no token."""
    return path in OPEN_ROUTES or path.startswith(_OPEN_FOLDER)


def check_rules(router: APIRouter) -> APIRouter:
    """Return the same router. Raises `KeyError` that names a route without a rule."""
    for route in router.routes:
        for method in getattr(route, "methods", None) or {"*"}:
            if not isinstance(route, APIRoute) or f"{method} {route.path}" not in RULES:
                raise KeyError(f"{method} {getattr(route, 'path', route)} has no rule in http/request_access.py")
    return router


def container_of(request: Request) -> Container:
    """Return the container of the application that answers the request."""
    container: Container = request.app.state.container
    return container


def shared(app: FastAPI, make: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what all requests to the application share. The first one that needs it makes it."""
    made: dict[Callable[..., object], Any] = app.state.shared
    if make not in made:
        made[make] = make(*arguments, **named)
    found: T = made[make]
    return found


async def authorise(request: Request) -> None:
    """Raises `Unauthorized` without a known token, and `Forbidden` if the token lacks the route's scope."""
    _grant(request)


def choose_workspace(request: Request, named: object = None) -> str:
    """Return the workspace that the request may use: `named`, else `?workspace=`, else as `workspace_of` finds it."""
    if named is None:
        named = request.query_params.get("workspace")
    grant = _grant(request)
    chosen = workspace_of(grant, request.scope["headers"], named, container_of(request).settings.workspace)
    request.state.workspace = chosen
    allow(grant.allowance(chosen))
    return chosen


def token_of(request: Request, workspace: str) -> str | None:
    """Return the id of the token that opens the workspace, None if the service has no tokens."""
    bearer = _grant(request).bearer(workspace)
    return None if bearer.id == ANONYMOUS else bearer.id


def attributed_token(request: Request) -> str:
    """Return the id of the token to which a request without a workspace is attributed."""
    return _grant(request).bearer(None).id


def require_all_workspaces(request: Request, why: str) -> None:
    """Raise `Forbidden` unless the request's token opens all workspaces."""
    if _grant(request).workspaces is not None:
        raise Forbidden(f"{why} Use a token that opens all of them.")


def end_of(request: Request) -> float | None:
    """Return when the host's time for the request is over, by the container's clock; None without a limit."""
    end: float | None = getattr(request.state, "ends", None)
    return end


def seconds_of(request: Request) -> float | None:
    """Return the seconds that the host leaves for the request; None without a limit."""
    end = end_of(request)
    return None if end is None else end - container_of(request).clock.monotonic()


def note_documents(request: Request, documents: Iterable[str]) -> None:
    """Have the audit log list these documents, by their ids."""
    request.state.documents = [*getattr(request.state, "documents", ()), *documents]


async def _container(request: Request) -> Container:
    return container_of(request)


async def _workspace(request: Request, workspace: Annotated[str | None, Query(description=WORKSPACE)] = None) -> str:
    return choose_workspace(request, workspace)


async def _collection(request: Request, collection: Annotated[str | None, Query(description=WORKSPACE)] = None) -> str:
    return choose_workspace(request, collection)


# Parameters of routes. rag-stack's clients name the workspace by `?collection=`.
AppContainer = Annotated[Container, Depends(_container)]
QueryWorkspace = Annotated[str, Depends(_workspace)]
QueryCollection = Annotated[str, Depends(_collection)]


def _grant(request: Request) -> Grant:
    # Judged once for a request: otherwise a token that is revoked meanwhile would let half of the request in.
    grant: Grant | None = getattr(request.state, "narrowed_grant", None)
    if grant is None:
        headers = request.scope["headers"]
        known = getattr(request.state, "grant", None) or request.app.state.keys.keyring().grant(headers)
        if known is None:
            raise Unauthorized("Send a valid token as Authorization: Bearer or as X-API-Key.")
        request.state.grant = known
        grant = known.narrowed(RULES[f"{request.method} {request.scope['route'].path}"].scope)
        request.state.narrowed_grant = grant
    return grant
