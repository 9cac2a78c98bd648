"""`cragside serve`: the proxy and cragside's own routes on one port."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from starlette.types import ASGIApp

from cragside.composition.process import most_connections
from cragside.domain.addresses import Nearness, nearness
from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.access import Keys
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.proxy.app import Proxy
from cragside.entrypoints.proxy.clients import ClientConnection, Clients, ConnectionLimits
from cragside.entrypoints.proxy.observed import Answered, Observer
from cragside.entrypoints.proxy.processes import Receiver
from cragside.entrypoints.proxy.routes import KNOWN, below

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.entrypoints.metrics import RequestCounts

_log = logging.getLogger("cragside")
_GRACE_SECONDS = 5
_TICKS_A_SECOND = 10  # uvicorn's


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of the fastest event loop here, for `asyncio.Runner`. None is asyncio's own."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


async def serve(
    container: "Container",
    listening: socket.socket,
    host: str,
    *,
    announce: Callable[[str], None],
    metrics: str | None = None,
) -> None:
    """Serve on a socket that `listen` opened for `host`, until SIGINT or SIGTERM. `metrics` is the folder of counts.

    `announce` is called with the address once requests are taken. Running requests get 5 seconds to end. Raises
    `ServiceUnavailable` if the token cannot be read.
    """
    async with _fresh_token(container):
        application, clients = _application(container, host, metrics)
        await Server(application, lambda: announce(address_of(listening, host)), clients).serve([listening])


async def serve_handed(
    container: "Container", channel: socket.socket, host: str, *, metrics: str | None = None
) -> None:
    """Serve connections that a `Handover` accepted at `host`, until SIGINT or SIGTERM, or until its process ends.

    Running requests get 5 seconds to end. Raises `ServiceUnavailable` if the token cannot be read.
    """
    async with _fresh_token(container):
        application, clients = _application(container, host, metrics)
        await HandedServer(application, channel, clients).serve()


def address_of(listening: socket.socket, host: str) -> str:
    """Return the address of a server on this socket, without a path."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def _fresh_token(container: "Container") -> contextlib.AbstractAsyncContextManager[None]:
    """Refresh a token from a secret in the background, so that no request waits for it."""
    return contextlib.nullcontext() if container.secret is None else container.secret.keep_fresh()


def _application(container: "Container", host: str, metrics: str | None) -> tuple[ASGIApp, Clients]:
    """The application, and the clients whose refusals are logged and counted as its answers."""
    count = exposition = None
    if metrics is not None:
        from cragside.entrypoints.metrics import RequestCounts
        from cragside.entrypoints.metrics import exposition as exposed

        try:
            counts = RequestCounts()
        except OSError as error:
            _log.warning("Requests are not counted for /metrics: %s", error.strerror)
        else:
            count, exposition = partial(_count, counts), partial(exposed, metrics)
    # Both layers share it, as either may be the first to check a request.
    keys = Keys(container)
    container.api_tokens()
    container.issued_tokens()
    proxy = Proxy(
        container,
        create_app(container, keys=keys, exposition=exposition),
        keys=keys,
        check_host=nearness(host) is Nearness.MACHINE,
        bound_host=host,
    )
    settings = container.settings
    observer = Observer(settings.slow_seconds, count=count, tracer=container.tracer)
    limits = ConnectionLimits(most_connections(settings.max_connections))
    return observer.wrap(below(settings.path_prefix, proxy)), Clients(limits, container.clock, observer.wrap)


def _count(counts: "RequestCounts", answered: Answered) -> None:
    known = answered.path if not answered.own and answered.path in KNOWN else None
    verdict = answered.context.verdict if answered.context else None
    counts.count(answered.template or known, answered.method, answered.status, answered.seconds, verdict)


class Server(uvicorn.Server):
    """uvicorn with limits for clients, own signal handling, its messages in our log, and no headers of its own."""

    def __init__(self, application: ASGIApp, on_started: Callable[[], None], clients: Clients | None = None) -> None:
        self._clients = clients or Clients(ConnectionLimits(most_connections()))
        self._on_started = on_started
        connection: Any = partial(ClientConnection, clients=self._clients)
        super().__init__(
            uvicorn.Config(
                application,
                http=connection,
                ws="none",
                lifespan="on",
                access_log=False,  # `Observer` writes ours
                log_config=None,
                log_level="warning",
                server_header=False,  # the upstream's headers are the response's headers
                date_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the sockets, then announce the server."""
        await super().startup(sockets=sockets)
        self._on_started()

    async def on_tick(self, counter: int) -> bool:
        """uvicorn's callback, ten times a second."""
        if counter % max(1, round(self._clients.limits.check_seconds * _TICKS_A_SECOND)) == 0:
            self._clients.check()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End gracefully on SIGINT and SIGTERM. uvicorn would raise them again and skip our clean-up."""
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            with super().capture_signals():
                yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


class HandedServer(Server):
    """A worker's server. It does not listen itself but gets connections over a `Handover`'s channel."""

    def __init__(self, application: ASGIApp, channel: socket.socket, clients: Clients | None = None) -> None:
        self._receiver = Receiver(channel, self._protocol, self._end)
        super().__init__(application, self._receiver.open, clients)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve the connections from the channel."""
        await super().serve(sockets=[])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop receiving connections, and end the existing ones."""
        await self._receiver.close()
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        # As `uvicorn.Server.startup` does for its own sockets.
        create = cast(Callable[..., asyncio.Protocol], self.config.http_protocol_class)
        return create(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def _end(self) -> None:
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A bound socket. Port 0 chooses a free port. Raises `ConfigurationError` if the address is unavailable."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"Cannot listen on {host}:{port}: {reason}. Choose another --host or --port."
        ) from error
    return listening
