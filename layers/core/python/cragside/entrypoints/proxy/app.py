"""The proxy as an ASGI application: our own routes go to FastAPI, all others to Ollama."""

import asyncio
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cragside.bootstrap import Container
from cragside.domain import hops
from cragside.domain.errors import CragsideError, Unauthorized
from cragside.entrypoints.access import Grant, Keys, near_host
from cragside.entrypoints.audit import Audit, Sent
from cragside.entrypoints.http.middleware import CrossOrigin, cors_send_if_accepted
from cragside.entrypoints.http.pages import START
from cragside.entrypoints.http.request_access import is_open
from cragside.entrypoints.origins import Origins, is_preflight, preflight_headers
from cragside.entrypoints.proxy.errors import send_error
from cragside.entrypoints.proxy.forwarding import Forwarder
from cragside.entrypoints.proxy.messages import Header, hops_of, send_whole, value_of
from cragside.entrypoints.proxy.routes import is_own, scopes_of

# Caches must not give a browser's answer to Ollama's clients.
_TO_START = [(b"location", START.lstrip("/").encode()), (b"vary", b"Accept")]

_NOT_NEAR = "The Host header names neither this machine nor a private address. Use localhost, or set RAG_API_TOKEN."


class Proxy:
    """An ASGI application in front of `app` (cragside's own routes) and Ollama (all others, byte for byte).

    A request needs one of the `keys`, with the scope of its route. If `check_host` is set and no token is required,
    `Host` must name this machine, its network or `bound_host`.
    """

    def __init__(
        self, container: Container, app: ASGIApp, *, keys: Keys, check_host: bool = True, bound_host: str = ""
    ) -> None:
        self._app = app
        self._origins = Origins(container.settings.allowed_origins)
        self._own = CrossOrigin(self._authorised, self._origins)
        self._audit = Audit(container)
        self._answer = self._audited if self._audit.wanted else self._guarded
        self._forwarder = Forwarder(container, self._origins, self._audit)
        self._keys = keys
        self._check_host = check_host and not keys.asked
        self._bound_host = bound_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's entry."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            try:
                await self._app(scope, self._draining(receive), send)
            finally:
                self._forwarder.close()
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _audited(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_open(scope["path"]):
            await self._guarded(scope, receive, send)
            return
        sent = Sent(send)
        try:
            await self._guarded(scope, receive, sent)
        finally:
            self._note(scope, sent.status)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse loops, other hosts and foreign origins. Answer preflights, which bring no token."""
        path, headers = scope["path"], scope["headers"]
        own = is_own(path)
        if not own and hops.is_loop(hops_of(headers)):
            await self._forwarder.refuse_loop(path, send)
        elif not is_open(path) and self._check_host and not near_host(headers, self._bound_host):
            scope.setdefault("state", {})["refused"] = True
            await send_error(send, path, "forbidden", _NOT_NEAR)
        elif own:
            await self._own(scope, receive, send)
        elif path == "/" and _is_browser(scope["method"], headers):
            await send_whole(send, 307, _TO_START)
        elif not is_preflight(scope["method"], headers):
            await self._authorised(scope, receive, send)
        elif self._forwarder.accepts_preflight(headers):
            await send_whole(send, 204, preflight_headers(headers))
        else:  # the host answers the preflights of other pages, unless it would get a credential of ours with them
            await self._forwarder.forward(Grant(), scope, receive, send)

    async def _authorised(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if its token allows it."""
        path: str = scope["path"]
        own, state = is_own(path), scope.setdefault("state", {})
        if is_open(path):
            await self._app(scope, receive, send)
            return
        try:
            grant = state["grant"] = self._keys.keyring().grant(scope["headers"])
            if grant is None:
                raise Unauthorized("Send a valid token as Authorization: Bearer or X-API-Key.")
            if not own:
                grant.narrowed(*scopes_of(scope["method"], path))
        except CragsideError as error:
            state["refused"] = True
            sending = cors_send_if_accepted(send, scope["headers"], self._origins)
            await send_error(sending, path, error.code, error.message, error=error)
            return
        if own:
            await self._app(scope, receive, send)
        else:
            await self._forwarder.forward(grant, scope, receive, send)

    def _note(self, scope: Scope, status: int) -> None:
        """Write to the audit log. Our own routes write their own events, unless the proxy refused the request."""
        state, own = scope.setdefault("state", {}), is_own(scope["path"])
        scopes = () if own else scopes_of(scope["method"], scope["path"])
        action = "models" if scopes == ("models",) else "search" if "workspace" in state else "request"
        refused = state.get("refused") or (status == 403 and "grant" not in state)
        if refused or (not own and action != "request"):
            workspace, grant = state.get("workspace"), state.get("grant")
            self._audit.note(scope, action, status, grant=grant, scopes=scopes, workspace=workspace)

    def _draining(self, receive: Receive) -> Receive:
        """Wrap `receive`: the shutdown waits until pending exchanges are in memory.

        An interrupted server cancels `receive`. Then the application is told to shut down at once.
        """

        async def received() -> Message:
            try:
                message = await receive()
            except asyncio.CancelledError:  # the framework would log it as a failure, with a stack trace
                return {"type": "lifespan.shutdown"}
            if message["type"] == "lifespan.shutdown":
                await self._forwarder.drain()
            return message

        return received


def _is_browser(method: str, headers: Sequence[Header]) -> bool:
    """Tell if a person opens an address in a browser. Scripts and Ollama's clients do not ask for HTML."""
    return method in ("GET", "HEAD") and b"text/html" in (value_of(headers, b"accept") or b"")
