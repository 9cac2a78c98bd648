"""Our own routes as the audit log tells of them."""

from starlette.types import ASGIApp, Receive, Scope, Send

from cragside.entrypoints.audit import Audit, Sent
from cragside.entrypoints.http.route_scopes import SCOPES

# What our own routes do. Other routes that need `write` are told as `write`; other reading is not told.
ACTIONS = {
    "POST /v1/documents": "ingest",
    "POST /v1/documents/uploads": "upload",
    "POST /v1/memories": "ingest",
    "POST /ingest": "ingest",
    "POST /documents/text": "ingest",
    "POST /documents/texts": "ingest",
    "GET /v1/documents/{document_id}": "read",
    "GET /v1/documents/{document_id}/content": "read",
    "GET /v1/memories": "read",
    "POST /v1/enrich": "search",
    "POST /v1/memories/search": "search",
    "POST /query": "search",
    "POST /query/data": "search",
    "DELETE /v1/documents/{document_id}": "delete",
    "DELETE /documents/delete_document": "delete",
    "DELETE /v1/memories/{memory_id}": "delete",
    "PATCH /v1/documents/{document_id}": "move",
    "PATCH /v1/settings": "settings",
    "POST /v1/documents/{document_id}/reprocess": "reprocess",
    "POST /v1/queue/revive": "reprocess",
    "POST /enrichment/enqueue": "reprocess",
}


class AuditedRoutes:
    """Our own routes, with an event for what they did and for everything that was denied."""

    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not self._audit.wanted:
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        sent = Sent(send)
        try:
            await self._app(scope, receive, sent)
        finally:
            action = self._action(scope, state, sent.status)
            if action is not None:
                self._audit.note(
                    scope,
                    action,
                    sent.status,
                    grant=state.get("narrowed_grant") or state.get("grant"),
                    workspace=state.get("workspace"),
                    documents=state.get("documents") or _named(scope),
                )

    def _action(self, scope: Scope, state: Scope, status: int) -> str | None:
        route = f"{scope['method']} {getattr(scope.get('route'), 'path', '')}"
        action = ACTIONS.get(route) or ("write" if SCOPES.get(route) == "write" else None)
        if status in (401, 403):
            return action or "request"
        # A prompt without the command was not searched for.
        return None if action == "search" and state.get("workspace") is None else action


def _named(scope: Scope) -> list[str]:
    """The id of the document or of the exchange that the address names."""
    parameters = scope.get("path_params", {})
    return [parameters[name] for name in ("document_id", "memory_id") if name in parameters]
