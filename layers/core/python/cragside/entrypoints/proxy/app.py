"""The proxy as a bare ASGI application: own routes to FastAPI, everything else to Ollama."""

import asyncio
import logging
import posixpath
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cragside.application.allowance import allow
from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, Forbidden, ProcessingError, Unauthorized
from cragside.entrypoints.access import Grant, local_host, workspace_of
from cragside.entrypoints.audit import Audit, Sent
from cragside.entrypoints.http.cross_origin import CrossOrigin, readably
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.http.peers import failures as peers
from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.origins import FOREIGN, Origins, is_preflight, permission
from cragside.entrypoints.proxy.asgi import Body, read_body, while_connected
from cragside.entrypoints.proxy.commanded import ROUTES, CommandFinder
from cragside.entrypoints.proxy.connection import ClientGone
from cragside.entrypoints.proxy.enrichment import Preparation, Prepared
from cragside.entrypoints.proxy.errors import answer, code_of
from cragside.entrypoints.proxy.exchanges import Exchanges, Recording
from cragside.entrypoints.proxy.headers import Header, value_of
from cragside.entrypoints.proxy.ollama_scopes import scopes_of
from cragside.entrypoints.proxy.relay import BrokenOff, relay
from cragside.entrypoints.proxy.upstream import Upstream

# What is cragside's: these paths, and all that lies below them. Everything else is Ollama's.
OWN_PREFIXES = (
    "/v1/enrich",
    "/v1/documents",
    "/v1/memories",
    "/v1/settings",
    "/v1/queue",
    "/healthz",
    "/health",
    "/openapi.json",
    *peers.PREFIXES,
)
_OPEN_ROUTES = frozenset({"/healthz"})

logger = logging.getLogger(__name__)


@lru_cache(maxsize=256)
def is_own(path: str) -> bool:
    """Whether a path is one of cragside's own routes, or no route but meant to be one: `//V1/documents/`.

    What only looks like a route of ours is answered 404 by our own application, whether or not Ollama is there.
    """
    return _is_below(path) or _is_below(_plain(path))


def _is_below(path: str) -> bool:
    return path.startswith(OWN_PREFIXES) and any(
        path == prefix or path.startswith(f"{prefix}/") for prefix in OWN_PREFIXES
    )


def _plain(path: str) -> str:
    """The path as it may have been meant: decoded once more, in lower case, without empty segments and dots."""
    decoded = unquote(path).replace("\\", "/").lower()
    return posixpath.normpath("/" + decoded.lstrip("/"))


def create_proxy(
    container: Container, app: ASGIApp, *, keys: Keys, check_host: bool = True, bound_host: str | None = None
) -> ASGIApp:
    """An ASGI application in front of `app` (cragside's own routes) and Ollama (all others, byte for byte).

    Requests have to bring one of the `keys`, with the scope that its route needs. With `check_host`, and where no token
    is asked for, they have to name this machine or `bound_host` in `Host`.
    """
    return _Proxy(container, app, keys=keys, check_host=check_host, bound_host=bound_host)


class _Proxy:
    def __init__(
        self, container: Container, app: ASGIApp, *, keys: Keys, check_host: bool, bound_host: str | None
    ) -> None:
        settings = container.settings
        self._app = app
        self._origins = Origins(settings.allowed_origins)
        self._own = CrossOrigin(partial(self._judged, own=True), self._origins)
        self._upstream = Upstream(settings.upstream)
        self._finder = CommandFinder(settings.command_prefix)
        self._preparation = Preparation(container)
        self._body_limit = settings.max_body_bytes
        self._keys = keys
        self._audit = Audit(container.audit_log)
        self._check_host = check_host and not keys.asked
        self._bound_host = bound_host
        self._default_workspace = settings.workspace
        self._exchanges = Exchanges(container.memory, settings.command_prefix) if settings.store_exchanges else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            try:
                await self._app(scope, self._draining(receive), send)
            finally:
                self._upstream.close()
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._audit.wanted or scope["path"] in _OPEN_ROUTES:
            await self._guarded(scope, receive, send)
            return
        sent = Sent(send)
        try:
            await self._guarded(scope, receive, sent)
        finally:
            self._note(scope, sent.status)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse other hosts and foreign origins; answer preflights, which bring no token."""
        path, headers = scope["path"], scope["headers"]
        own = is_own(path)
        if path not in _OPEN_ROUTES and self._check_host and not local_host(headers, self._bound_host):
            scope.setdefault("state", {})["refused"] = True
            await answer(send, path, "forbidden", "The Host header does not name this machine.", own=own)
        elif own:
            await self._own(scope, receive, send)
        elif not is_preflight(scope["method"], headers):
            await self._judged(scope, receive, send, own=False)
        elif self._origins.lists(headers):
            await send({"type": "http.response.start", "status": 204, "headers": permission(headers)})
            await send({"type": "http.response.body"})
        else:  # a browser sends no token with it, and what it asks is for Ollama to say
            await self._forward(path, Grant(), scope, receive, send)

    async def _judged(self, scope: Scope, receive: Receive, send: Send, *, own: bool) -> None:
        """Let in what the token allows."""
        path: str = scope["path"]
        if path in _OPEN_ROUTES:
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        try:
            grant = state["grant"] = self._keys.keyring().grant(scope["headers"])
            if grant is None:
                raise Unauthorized("Send a valid token as Authorization: Bearer or X-API-Key.")
            if not own:
                grant.narrowed(*scopes_of(scope["method"], path))
        except CragsideError as error:
            state["refused"] = True
            told = self._told(scope["headers"], send)
            await answer(told, path, error.code, error.message, own=own, error=error)
            return
        if own:
            await self._app(scope, receive, send)
        else:
            await self._forward(path, grant, scope, receive, send)

    def _told(self, headers: list[Header], send: Send) -> Send:
        """`send` for an answer of ours on Ollama's routes, which the pages that Ollama accepts may read."""
        return readably(send, headers) if self._origins.may_ask(headers) else send

    def _note(self, scope: Scope, status: int) -> None:
        """What the audit log is to know; our own routes say it themselves once they were asked."""
        state, own = scope.setdefault("state", {}), is_own(scope["path"])
        action = "search" if "workspace" in state else "request"
        if not own and scopes_of(scope["method"], scope["path"]) == ("models",):
            action = "models"
        refused = state.get("refused") or (status == 403 and "grant" not in state)
        if refused or (not own and action != "request"):
            self._audit.note(
                scope,
                action,
                status,
                grant=state.get("grant"),
                scopes=() if own else scopes_of(scope["method"], scope["path"]),
                workspace=state.get("workspace"),
            )

    async def _forward(self, path: str, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope["headers"]
        try:
            commandable = scope["method"] == "POST" and path in ROUTES
            body = await read_body(receive, self._body_limit if commandable else 0)
            request = self._commanded(path, headers, body) if commandable else None
            # What a page says that Ollama does not accept is neither answered with evidence nor remembered.
            concerned = commandable and (request is not None or self._exchanges is not None)
            welcome = not concerned or self._origins.may_ask(headers)
            exchanges = self._exchanges if concerned and welcome and grant.allows("write") else None
            if request is not None and not welcome:
                await answer(send, path, "forbidden", FOREIGN)
            elif exchanges is not None and self._readable(headers, body):
                await self._remembered(exchanges, path, request, body, grant, scope, receive, send)
            else:
                await self._passed_on(path, request, body, grant, scope, receive, send)
        except ClientGone:
            pass
        except BrokenOff as event:
            # Returning without a last message makes the server cut the client's connection: no clean end is pretended.
            logger.warning("Ollama at %s broke off during an answer: %s.", self._upstream.address, event)
        except CragsideError as error:
            scope.setdefault("state", {})["refused"] = isinstance(error, (Forbidden, Unauthorized))
            await answer(self._told(headers, send), path, code_of(error), self._message(for_client(error)))

    async def _passed_on(
        self,
        path: str,
        request: dict[str, Any] | None,
        body: Body,
        grant: Grant,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        if request is None:
            await relay(self._upstream, scope, receive, send, body, dropped=grant.headers)
        else:
            await self._enriched(path, request, grant, scope, receive, send)

    async def _remembered(
        self,
        exchanges: Exchanges,
        path: str,
        request: dict[str, Any] | None,
        body: Body,
        grant: Grant,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """The same, with a copy of the exchange for memory once it is complete."""
        named = None if request is None else request.get("workspace")
        try:
            workspace = workspace_of(grant.narrowed("write"), scope["headers"], named, self._default_workspace)
        except CragsideError:  # of a request that passes through, this is no business of ours
            await self._passed_on(path, request, body, grant, scope, receive, send)
            return
        allow(grant.narrowed("write").allowance(workspace))
        recording = exchanges.record(send, path=path, request=body.data, workspace=workspace)
        if self._audit.wanted:
            recording.told = partial(self._note_exchange, scope, grant.narrowed("write"), workspace)
        try:
            await self._passed_on(path, request, body, grant, scope, receive, recording)
        finally:
            recording.finish()

    def _note_exchange(self, scope: Scope, grant: Grant, workspace: str, document: str | None) -> None:
        named = [] if document is None else [document]
        self._audit.note(scope, "ingest", 202, grant=grant, workspace=workspace, documents=named)

    def _commanded(self, path: str, headers: list[Header], body: Body) -> dict[str, Any] | None:
        return self._finder.commanded(path, body.data) if self._readable(headers, body) else None

    def _readable(self, headers: list[Header], body: Body) -> bool:
        # What is too long to be held, or packed, is Ollama's alone.
        held = body.complete and len(body.data) <= self._body_limit
        return held and value_of(headers, b"content-encoding") is None

    def _draining(self, receive: Receive) -> Receive:
        """`receive`, which tells of the server's end when what is on its way into memory has arrived there.

        A server that was interrupted cancels this instead, and the application is told to end at once.
        """

        async def received() -> Message:
            try:
                message = await receive()
            except asyncio.CancelledError:  # the framework would log it as a failure, with a stack trace
                return {"type": "lifespan.shutdown"}
            if message["type"] == "lifespan.shutdown" and self._exchanges is not None:
                await self._exchanges.drain()
            return message

        return received

    async def _enriched(
        self, path: str, request: dict[str, Any], grant: Grant, scope: Scope, receive: Receive, send: Send
    ) -> None:
        reading = grant.narrowed("read")
        scope["state"]["workspace"] = workspace_of(
            reading, scope["headers"], request.get("workspace"), self._default_workspace
        )
        prepared = await while_connected(receive, self._prepared(path, request, scope["headers"], reading))
        if isinstance(send, Recording):
            send.recalled = prepared.recalled
        await relay(
            self._upstream,
            scope,
            receive,
            readably(send, scope["headers"]),
            Body(prepared.body, complete=True),
            dropped=grant.headers,
            length_changed=True,
            added=prepared.headers,
        )

    async def _prepared(self, path: str, request: dict[str, Any], headers: list[Header], grant: Grant) -> Prepared:
        try:
            return await self._preparation.prepare(path, request, headers, grant)
        except CragsideError:
            raise
        except Exception as error:
            logger.exception("Enrichment failed")
            raise ProcessingError("The request could not be enriched.") from error

    def _message(self, error: CragsideError) -> str:
        if code_of(error) != "bad_gateway":
            return error.message
        logger.warning("Ollama at %s does not answer: %s.", self._upstream.address, error.message)
        return (
            f"Ollama does not answer ({error.message}). "
            "Start it with `ollama serve`, or set OLLAMA_BASE_URL to where it runs."
        )
