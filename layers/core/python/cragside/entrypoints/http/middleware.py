"""Middleware of our own routes: it keeps foreign web pages away, and writes the audit log."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cragside.domain.errors import Forbidden
from cragside.entrypoints.audit import Audit, Sent
from cragside.entrypoints.http.errors import error_response
from cragside.entrypoints.http.request_access import RULES
from cragside.entrypoints.origins import FOREIGN_PAGE, Origins, cors_headers, is_preflight, preflight_headers


class CrossOrigin:
    """Refuses pages of unknown origins, answers preflights, and lets allowed pages read the answers (ASGI middleware).

    Requests that no page sent pass through. A preflight needs no token, because browsers send none with it.
    """

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's entry."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        if not self._origins.may_call(headers):
            refusal = error_response(Forbidden(FOREIGN_PAGE), Request(scope), headers={"Vary": "Origin"})
            await refusal(scope, receive, send)
        elif is_preflight(scope["method"], headers):
            preflight = Response(status_code=204)
            preflight.raw_headers = preflight_headers(headers)
            await preflight(scope, receive, send)
        else:
            await self._app(scope, receive, cors_send(send, headers))


def cors_send(send: Send, request: list[tuple[bytes, bytes]]) -> Send:
    """Wrap `send`: answers get the headers that let the page behind the request read them."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": cors_headers(message.get("headers", []), request)}
        await send(message)

    return sending if any(name == b"origin" for name, _ in request) else send


def cors_send_if_accepted(send: Send, request: list[tuple[bytes, bytes]], origins: Origins) -> Send:
    """Wrap `send` for our answers on Ollama's routes: only pages that Ollama accepts may read them."""
    return cors_send(send, request) if origins.may_ask(request) else send


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
    """Return the id of the document or exchange in the path."""
    parameters = scope.get("path_params", {})
    return [parameters[name] for name in ("document_id", "memory_id") if name in parameters]
