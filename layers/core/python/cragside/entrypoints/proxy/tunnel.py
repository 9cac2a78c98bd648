"""Opens a connection to a model host with TLS through an HTTP proxy, which passes bytes on unread (CONNECT)."""

import asyncio
import re
import ssl

from typing_extensions import override

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.forward_proxy import ForwardProxy
from cragside.entrypoints.proxy.upstream_connection import UpstreamConnection

_LONGEST_ANSWER = 16 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")


async def tunnelled(proxy: ForwardProxy, host: str, port: int, tls: ssl.SSLContext) -> UpstreamConnection:
    """A connection to the host. Raises `ServiceUnavailable("ollama", ...)` if the proxy refuses, and `OSError`."""
    loop = asyncio.get_running_loop()
    transport, answer = await loop.create_connection(_Answer, proxy.host, proxy.port)
    try:
        transport.write(_request(proxy, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"))
        status = _STATUS.match(await answer.head)
        if status is None or not status[1].startswith(b"2"):
            told = f"answered {status[1].decode()}" if status else "did not answer HTTP"
            raise ServiceUnavailable("ollama", f"the proxy {proxy.url} {told}")
        connection = UpstreamConnection()
        encrypted = await loop.start_tls(transport, connection, tls, server_hostname=host)
        if encrypted is None:
            raise ConnectionError("closed during the handshake")
        connection.connection_made(encrypted)
    except BaseException:
        transport.abort()
        raise
    return connection


def _request(proxy: ForwardProxy, authority: str) -> bytes:
    headers = {"Host": authority, **proxy.headers}
    lines = [f"CONNECT {authority} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


class _Answer(asyncio.Protocol):
    """Waits for the head of the proxy's answer."""

    def __init__(self) -> None:
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._received = b""

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        if self.head.done():
            return
        if b"\r\n\r\n" in self._received:
            self.head.set_result(self._received)
        elif len(self._received) > _LONGEST_ANSWER:
            self.head.set_exception(ConnectionError("an endless answer"))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.head.done():
            self.head.set_exception(exc or ConnectionError("closed"))
