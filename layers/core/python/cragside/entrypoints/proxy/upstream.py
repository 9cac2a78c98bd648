"""Knows Ollama's address, and keeps the HTTP/1.1 connections to it.

The cost per chunk and per request decides how fast the proxy is, so this does only what a relay needs. Nothing is
decoded, and of a header only the name changes: to lower case, which our server would do anyway."""

import asyncio
import base64
import ctypes
import socket
import ssl
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast
from urllib.parse import unquote, urlsplit

import httptools
from typing_extensions import override

from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.forward_proxy import ForwardProxy, forward_proxy, way_to
from cragside.entrypoints.proxy.messages import Header

# Tells the key of the host.
Key = Callable[[], Awaitable[str]]
_PORTS = {"http": 80, "https": 443}
# Once the last of so many exchanges at a time has ended, the memory that they took is given back.
_MANY = 50
_CONNECT_SECONDS = 10.0
_READ_AHEAD = 64 * 1024  # bytes to buffer for a slow client before reading pauses
# Bytes that a host may send without a byte of a body: its head, trailers, what stands beside the sizes of chunks. The
# parser keeps an unfinished header, so the bytes count before it has read them.
_MOST_BESIDE_BODY = 256 * 1024
_MOST_INTERIM = 32  # answers such as 103 before the answer
_HEAD_SECONDS = 10.0  # from the first byte of the head to its last
# A host that vanishes sends no end of its stream. The system asks it after 30 seconds of silence, and four times.
_PROBES = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class UpstreamConnection(asyncio.Protocol):
    """Carries one exchange at a time: `begin`, `write` the rest of the body, `response`, then `read` to the end."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.finished = True
        self._begun = 0
        self._body_sent = True
        self._keep_alive = True
        self._until_close = False
        self._in_head = False
        self._head_ends: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self._chunks: deque[bytes] = deque()
        self._reading_paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.on_body = self._chunks.append  # the parser's callback for each chunk must be cheap
        self._parser = httptools.HttpResponseParser(self)
        self._reset(bodiless=False)

    def _reset(self, *, bodiless: bool) -> None:
        self.status = 0
        self.headers: list[Header] = []
        self._heard = False
        self._bodiless = bodiless
        self._beside_body = 0
        self._header_bytes = 0
        self._interim = 0
        self._buffered = 0

    @property
    def reusable(self) -> bool:
        """Tell if the next exchange may use this connection."""
        return self.finished and self._body_sent and self._keep_alive and self._failure is None and not self._chunks

    @property
    def was_stale(self) -> bool:
        """Tell if a kept connection was closed without a byte in answer to what `begin` sent."""
        return self._begun > 1 and not self._heard and self._transport.is_closing()

    def begin(self, data: bytes, *, body_sent: bool, bodiless: bool) -> None:
        """Send the head of a request and the available part of its body. `bodiless`: the answer has no body (HEAD)."""
        self._reset(bodiless=bodiless)
        self._begun += 1
        self._body_sent = body_sent
        self.finished = False
        if not self._transport.is_closing():
            self._transport.write(data)

    async def write(self, data: bytes, *, last: bool) -> None:
        """Send more of the body at the upstream's pace. Sends nothing once the upstream has closed the connection."""
        if self._failure is None and not self._transport.is_closing():
            self._transport.write(data)
            self._body_sent = last
            await self._writable.wait()

    async def response(self) -> None:
        """Wait for status and headers. Raises `ServiceUnavailable("ollama", ...)` if the upstream breaks off."""
        while not self.status:
            await self._news()

    async def read(self) -> bytes:
        """The part of the body that has arrived, or b"" at its end. `finished` tells that nothing follows.

        Raises `ServiceUnavailable("ollama", ...)` if the upstream breaks off.
        """
        while not self._chunks:
            if self.finished:
                return b""
            await self._news()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._reading_paused:
            self._reading_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    def abort(self, reason: Exception | None = None) -> None:
        """Close at once, which cancels the request in Ollama. Waiting calls raise `reason`."""
        self._fail(reason or ServiceUnavailable("ollama", "the connection was closed"))
        self._transport.abort()

    def _news(self) -> "asyncio.Future[None]":
        """Return what ends with the next piece, or with the connection."""
        if self._failure is not None:
            # Kept here or in the frame, the error would keep the frames that it passes, and the pieces of the answer
            # in them, until all garbage is collected.
            failure, self._failure = self._failure, ServiceUnavailable("ollama", "the connection was closed")
            try:
                raise failure
            finally:
                del failure
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
        self._writable.set()
        self._wake()

    def _head_has_ended(self) -> None:
        self._in_head = False
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None

    # asyncio.Protocol

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _PROBES.items():
            if hasattr(socket, name):  # macOS calls the first one TCP_KEEPALIVE
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    @override
    def data_received(self, data: bytes) -> None:
        if self.finished:  # unrequested data must not become the answer to the next request
            self._keep_alive = False
            self._transport.abort()
            return
        self._heard = True
        known = len(self._chunks)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.abort(ServiceUnavailable("ollama", "the answer is not HTTP"))
            return
        if len(self._chunks) > known:
            self._beside_body = 0
            self._buffered += len(data)
        else:
            self._beside_body += len(data)
        if self._beside_body > _MOST_BESIDE_BODY and not self.finished:
            self.abort(ServiceUnavailable("ollama", "the answer has endless headers"))
            return
        if self._in_head and self._head_ends is None and self._failure is None:
            late = ServiceUnavailable("ollama", f"the headers of its answer did not end within {_HEAD_SECONDS:g} s")
            self._head_ends = asyncio.get_running_loop().call_later(_HEAD_SECONDS, self.abort, late)
        if self._buffered > _READ_AHEAD and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        if self._waiter is not None and (self._chunks or self.status):
            self._wake()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._until_close and self.status and exc is None and self._failure is None:
            self.finished = True
        self._keep_alive = False
        self._fail(ServiceUnavailable("ollama", "the connection broke off"))
        self._head_has_ended()

    @override
    def pause_writing(self) -> None:
        self._writable.clear()

    @override
    def resume_writing(self) -> None:
        self._writable.set()

    # httptools

    def on_message_begin(self) -> None:
        """Begin to read an answer. The parser calls it."""
        if self.finished:
            raise ValueError("an unrequested answer")
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. The parser calls it."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _MOST_BESIDE_BODY:
            raise ValueError("headers too long")
        if self.status:  # a trailer: the headers have been sent to the client already
            return
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Read the status, and how the answer ends. The parser calls it."""
        self._head_has_ended()
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = []
            self._interim += 1
            if self._interim > _MOST_INTERIM:
                raise ValueError("too many answers before the answer")
            return
        named = dict(self.headers)
        self._until_close = not named.keys() & {b"content-length", b"transfer-encoding"} and status not in (204, 304)
        # llama.cpp closes the connection behind each stream, though it says otherwise.
        closes_unsaid = b"transfer-encoding" in named and named.get(b"server") == b"llama.cpp"
        self._keep_alive = self._parser.should_keep_alive() and not self._until_close and not closes_unsaid
        self.status = status
        if self._bodiless:  # the parser cannot be told that no body follows
            self.finished, self._keep_alive = True, False

    def on_message_complete(self) -> None:
        """Note that the answer has ended. The parser calls it."""
        if self.status:
            self.finished = True


async def tunnelled(proxy: ForwardProxy, host: str, port: int, tls: ssl.SSLContext) -> UpstreamConnection:
    """A connection to a host with TLS through an HTTP proxy, which passes its bytes on unread (CONNECT).

    Raises `ServiceUnavailable("ollama", ...)` if the proxy refuses, and `OSError`.
    """
    loop = asyncio.get_running_loop()
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    lines += [f"{name}: {value}" for name, value in proxy.headers.items()]
    transport, asked = await loop.create_connection(UpstreamConnection, proxy.host, proxy.port)
    try:
        asked.begin("\r\n".join([*lines, "", ""]).encode(), body_sent=True, bodiless=True)
        with suppress(ServiceUnavailable):
            await asked.response()
        if not 200 <= asked.status < 300:
            outcome = f"answered {asked.status}" if asked.status else "did not answer HTTP"
            raise ServiceUnavailable("ollama", f"the proxy {proxy.url} {outcome}")
        connection = UpstreamConnection()
        encrypted = await loop.start_tls(transport, connection, tls, server_hostname=host)
        if encrypted is None:
            raise ConnectionError("closed during the handshake")
        connection.connection_made(encrypted)
    except BaseException:
        transport.abort()
        raise
    return connection


class Upstream:
    """Connections to one Ollama: one for each request in flight, opened on demand and kept for later requests.

    They take the proxy that the environment has for the host. `key` tells the host's key, if it needs one. `address`
    is the base URL without credentials, for messages.
    """

    def __init__(self, base_url: str, key: Key | None = None, *, keep_seconds: float = 15.0) -> None:
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
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        self._basic = None if parts.username is None else b"Basic " + base64.b64encode(pair.encode())
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
        """Give what takes the place of a client's `Authorization`, None if that is passed on.

        Raises `ServiceUnavailable("model_host", ...)` if the key cannot be read.
        """
        return self._basic if self._key is None else b"Bearer " + (await self._key()).encode()

    async def connection(self, *, new: bool = False) -> UpstreamConnection:
        """A free connection, none of the kept ones if `new`.

        Raises `ServiceUnavailable("ollama", ...)` if none can be made.
        """
        now, connection = asyncio.get_running_loop().time(), None
        while self._idle and not new and connection is None:
            kept = self._idle.pop()
            if kept.reusable and now - kept.idle_since < self._keep_seconds:
                connection = kept
            else:
                kept.abort()
        connection = connection or await self._connected()
        self._in_use += 1
        self._most_in_use = max(self._most_in_use, self._in_use)
        return connection

    def release(self, connection: UpstreamConnection) -> None:
        """Give a connection back after its exchange. Closes it if it cannot be used again."""
        self._in_use -= 1
        if not self._in_use and self._most_in_use >= _MANY:
            self._most_in_use = 0
            asyncio.get_running_loop().call_later(1.0, asyncio.get_running_loop().run_in_executor, None, free_memory)
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
            async with asyncio.timeout(_CONNECT_SECONDS):
                if self._proxy is not None and self._tls is not None:
                    return await tunnelled(self._proxy, self._host, self._port, self._tls)
                host, port = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
                _, connection = await loop.create_connection(UpstreamConnection, host, port, ssl=self._tls)
        except (OSError, UnicodeError) as error:
            raise ServiceUnavailable("ollama", _reason(error) + way_to(self.address)) from error
        return connection

    def _prune(self) -> None:
        loop = asyncio.get_running_loop()
        while self._idle and loop.time() - self._idle[0].idle_since >= self._keep_seconds:
            self._idle.popleft().abort()
        self._pruning = loop.call_later(self._keep_seconds, self._prune) if self._idle else None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {_CONNECT_SECONDS:g} s"
    if isinstance(error, ConnectionRefusedError) or "refused" in str(error).lower():
        return "connection refused"
    if isinstance(error, socket.gaierror | UnicodeError):
        return "its name cannot be resolved"
    if isinstance(error, ssl.SSLError):
        return "the TLS handshake failed"
    return "no connection"


def free_memory() -> None:
    """Give free memory back to the system, if the allocator is glibc's. It takes some 10 ms: use a thread."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
