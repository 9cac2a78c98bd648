"""The proxy as a bare ASGI application: own routes to FastAPI, everything else to Ollama."""

import logging
from typing import Any

from cragside.domain.errors import CragsideError, ProcessingError
from cragside.entrypoints.access import Grant, Keyring, credential, local_host, workspace_of
from cragside.entrypoints.http import peers
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.proxy.asgi import Application, Body, Message, Receive, Scope, Send, read_body, while_connected
from cragside.entrypoints.proxy.commanded import ROUTES, CommandFinder
from cragside.entrypoints.proxy.connection import ClientGone
from cragside.entrypoints.proxy.enrichment import Parts, Preparation, Prepared
from cragside.entrypoints.proxy.errors import answer, code_of
from cragside.entrypoints.proxy.exchanges import Exchanges, Recording
from cragside.entrypoints.proxy.headers import Header, value_of
from cragside.entrypoints.proxy.relay import BrokenOff, relay
from cragside.entrypoints.proxy.upstream import DEFAULT_ADDRESS, Upstream

# What is cragside's: these paths, and all that lies below these prefixes. Everything else is Ollama's.
OWN_ROUTES = frozenset({"/v1/enrich", "/healthz", "/health", "/openapi.json"})
OWN_PREFIXES = ("/v1/documents", "/v1/memories", "/v1/settings", "/v1/queue", *peers.PREFIXES)
_OPEN_ROUTES = frozenset({"/healthz"})

logger = logging.getLogger(__name__)


def is_own(path: str) -> bool:
    """Whether a path is one of cragside's own routes."""
    return path in OWN_ROUTES or any(path == prefix or path.startswith(f"{prefix}/") for prefix in OWN_PREFIXES)


def create_proxy(
    container: Parts, app: Application, *, token: str | None, check_host: bool = True, bound_host: str | None = None
) -> Application:
    """An ASGI application in front of `app` (cragside's own routes) and Ollama (all others, byte for byte).

    Requests have to bring the `token`, or one that the settings bind to workspaces. With `check_host`, and no tokens at
    all, they have to name this machine or `bound_host` in `Host`.
    """
    return _Proxy(container, app, token=token, check_host=check_host, bound_host=bound_host)


class _Proxy:
    def __init__(
        self, container: Parts, app: Application, *, token: str | None, check_host: bool, bound_host: str | None
    ) -> None:
        settings = container.settings
        self._app = app
        self._upstream = Upstream(settings.ollama_base_url or DEFAULT_ADDRESS)
        self._finder = CommandFinder(settings.command_prefix)
        self._preparation = Preparation(container)
        self._body_limit = settings.max_body_bytes
        self._keyring = Keyring(token, settings.bound_tokens)
        self._check_host = check_host and self._keyring.empty
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
        path: str = scope["path"]
        own = is_own(path)
        if path in _OPEN_ROUTES:
            await self._app(scope, receive, send)
            return
        grant = self._keyring.grant(scope["headers"])
        if grant is None:
            await answer(send, path, "unauthorized", "Send the token as Authorization: Bearer or X-API-Key.", own=own)
        elif self._check_host and not local_host(scope["headers"], self._bound_host):
            await answer(send, path, "forbidden", "The Host header does not name this machine.", own=own)
        elif own:
            await self._app(scope, receive, send)
        else:
            await self._forward(path, grant, scope, receive, send)

    async def _forward(self, path: str, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            commandable = scope["method"] == "POST" and path in ROUTES
            body = await read_body(receive, self._body_limit if commandable else 0)
            request = self._commanded(path, scope["headers"], body) if commandable else None
            if self._exchanges is not None and commandable and self._readable(scope["headers"], body):
                await self._remembered(self._exchanges, path, request, body, grant, scope, receive, send)
            else:
                await self._passed_on(path, request, body, grant, scope, receive, send)
        except ClientGone:
            pass
        except BrokenOff as event:
            # Returning without a last message makes the server cut the client's connection: no clean end is pretended.
            logger.warning("Ollama at %s broke off during an answer: %s.", self._upstream.address, event)
        except CragsideError as error:
            await answer(send, path, code_of(error), self._message(for_client(error)))

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
            await relay(self._upstream, scope, receive, send, body, dropped=self._own_headers(scope["headers"]))
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
            workspace = workspace_of(grant, scope["headers"], named, self._default_workspace)
        except CragsideError:  # of a request that passes through, this is no business of ours
            await self._passed_on(path, request, body, grant, scope, receive, send)
            return
        recording = exchanges.record(send, path=path, request=body.data, workspace=workspace)
        try:
            await self._passed_on(path, request, body, grant, scope, receive, recording)
        finally:
            recording.finish()

    def _commanded(self, path: str, headers: list[Header], body: Body) -> dict[str, Any] | None:
        return self._finder.commanded(path, body.data) if self._readable(headers, body) else None

    def _readable(self, headers: list[Header], body: Body) -> bool:
        # What is too long to be held, or packed, is Ollama's alone.
        held = body.complete and len(body.data) <= self._body_limit
        return held and value_of(headers, b"content-encoding") is None

    def _draining(self, receive: Receive) -> Receive:
        """`receive`, which tells of the server's end when what is on its way into memory has arrived there."""

        async def received() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown" and self._exchanges is not None:
                await self._exchanges.drain()
            return message

        return received

    async def _enriched(
        self, path: str, request: dict[str, Any], grant: Grant, scope: Scope, receive: Receive, send: Send
    ) -> None:
        prepared = await while_connected(receive, self._prepared(path, request, scope["headers"], grant))
        if isinstance(send, Recording):
            send.told = prepared.recalled
        await relay(
            self._upstream,
            scope,
            receive,
            send,
            Body(prepared.body, complete=True),
            dropped=self._own_headers(scope["headers"]),
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

    def _own_headers(self, headers: list[Header]) -> tuple[bytes, ...]:
        """Names of the headers that bring our token, which is no business of Ollama's."""
        if self._keyring.empty:
            return ()
        brought = ((name, credential(name, value)) for name, value in headers)
        return tuple(name for name, given in brought if given is not None and self._keyring.knows(given))

    def _message(self, error: CragsideError) -> str:
        if code_of(error) != "bad_gateway":
            return error.message
        return (
            f"Ollama at {self._upstream.address} does not answer ({error.message}). "
            "Start it with `ollama serve`, or set OLLAMA_BASE_URL to where it runs."
        )
