"""Writes requests to our own routes to the audit log."""

from starlette.types import ASGIApp, Receive, Scope, Send

from cragside.entrypoints.audit import Audit, Sent
from cragside.entrypoints.http.route_rules import RULES


class AuditedRoutes:
    """ASGI middleware: writes an event for each request that was denied or whose route has an action."""

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
        action = RULES[route].action if route in RULES else None
        if status in (401, 403):
            return action or "request"
        # A prompt without the command causes no search.
        return None if action == "search" and state.get("workspace") is None else action


def _named(scope: Scope) -> list[str]:
    """The id of the document or exchange in the path."""
    parameters = scope.get("path_params", {})
    return [parameters[name] for name in ("document_id", "memory_id") if name in parameters]
