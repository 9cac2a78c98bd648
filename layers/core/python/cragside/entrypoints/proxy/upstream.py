"""Ollama's address and the connections to it."""

import asyncio
import base64
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from urllib.parse import unquote, urlsplit

from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.forward_proxy import forward_proxy, way_to
from cragside.entrypoints.proxy.freed_memory import give_back
from cragside.entrypoints.proxy.tunnel import tunnelled
from cragside.entrypoints.proxy.upstream_connection import UpstreamConnection

# Tells the key of the host.
Key = Callable[[], Awaitable[str]]
_PORTS = {"http": 80, "https": 443}
# Once the last of so many exchanges at a time has ended, the memory that they took is given back.
_MANY = 50


class Upstream:
    """Connections to one Ollama: one for each request in flight, opened on demand and kept for later requests.

    They take the proxy that the environment has for the host. `key` tells the host's key, if it needs one. `address`
    is the base URL without credentials, for messages.
    """

    def __init__(
        self, base_url: str, key: Key | None = None, *, connect_timeout: float = 10.0, keep_seconds: float = 15.0
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ConfigurationError("OLLAMA_BASE_URL must be an http:// or https:// address.")
        self._host = parts.hostname
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        name = f"[{self._host}]" if ":" in self._host else self._host
        self.authority = name if self._port == _PORTS[parts.scheme] else f"{name}:{self._port}"
        path = parts.path.rstrip("/")
        self.address = f"{parts.scheme}://{self.authority}{path}"
        self._proxy = forward_proxy(self.address)
        # A proxy passes plain requests on to the host that their target names, and bytes with TLS unread.
        self.relayed = self._proxy is not None and self._tls is None
        self.path = (self.address if self.relayed else path).encode()
        self.proxy_headers = self._proxy.headers if self._proxy and self.relayed else {}
        self._key = key
        self._basic = _basic(parts.username, parts.password)
        self._connect_timeout = connect_timeout
        self._keep_seconds = keep_seconds
        self._idle: deque[UpstreamConnection] = deque()
        self._pruning: asyncio.TimerHandle | None = None
        self._in_use = 0
        self._most_in_use = 0

    @property
    def has_credential(self) -> bool:
        """Tell if requests carry a credential of cragside's own: a key, or the password in the address."""
        return self._key is not None or self._basic is not None

    @property
    def keyed(self) -> bool:
        """Tell if requests carry a key of cragside's own in place of the client's."""
        return self._key is not None

    async def authorization(self) -> bytes | None:
        """What takes the place of a client's `Authorization`, None if that is passed on.

        Raises `ServiceUnavailable("model_host", ...)` if the key cannot be read.
        """
        return self._basic if self._key is None else b"Bearer " + (await self._key()).encode()

    async def connection(self, *, new: bool = False) -> UpstreamConnection:
        """A free connection, none of the kept ones if `new`.

        Raises `ServiceUnavailable("ollama", ...)` if none can be made.
        """
        now = asyncio.get_running_loop().time()
        while self._idle and not new:
            kept = self._idle.pop()
            if kept.reusable and now - kept.idle_since < self._keep_seconds:
                return self._used(kept)
            kept.abort()
        return self._used(await self._connected())

    def release(self, connection: UpstreamConnection) -> None:
        """Give a connection back after its exchange. Closes it if it cannot be used again."""
        self._in_use -= 1
        if not self._in_use and self._most_in_use >= _MANY:
            self._most_in_use = 0
            asyncio.get_running_loop().call_later(1.0, asyncio.get_running_loop().run_in_executor, None, give_back)
        if not connection.reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._pruning is None:
            self._pruning = loop.call_later(self._keep_seconds, self._prune)

    def close(self) -> None:
        """Close idle connections."""
        if self._pruning is not None:
            self._pruning.cancel()
            self._pruning = None
        while self._idle:
            self._idle.pop().abort()

    async def _connected(self) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                if self._proxy is not None and self._tls is not None:
                    return await tunnelled(self._proxy, self._host, self._port, self._tls)
                host, port = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
                _, connection = await loop.create_connection(UpstreamConnection, host, port, ssl=self._tls)
        except (OSError, UnicodeError) as error:
            reason = _reason(error, self._connect_timeout) + way_to(self.address)
            raise ServiceUnavailable("ollama", reason) from error
        return connection

    def _used(self, connection: UpstreamConnection) -> UpstreamConnection:
        self._in_use += 1
        self._most_in_use = max(self._most_in_use, self._in_use)
        return connection

    def _prune(self) -> None:
        loop = asyncio.get_running_loop()
        while self._idle and loop.time() - self._idle[0].idle_since >= self._keep_seconds:
            self._idle.popleft().abort()
        self._pruning = loop.call_later(self._keep_seconds, self._prune) if self._idle else None


def _basic(username: str | None, password: str | None) -> bytes | None:
    if username is None:
        return None
    pair = f"{unquote(username)}:{unquote(password or '')}"
    return b"Basic " + base64.b64encode(pair.encode())


def _reason(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {timeout:g} s"
    if isinstance(error, ConnectionRefusedError) or "refused" in str(error).lower():
        return "connection refused"
    if isinstance(error, socket.gaierror | UnicodeError):
        return "its name cannot be resolved"
    if isinstance(error, ssl.SSLError):
        return "the TLS handshake failed"
    return "no connection"
