"""An HTTP proxy on loopback: it takes every host for one port of this machine, and notes what it was asked."""

import asyncio
import base64
from contextlib import suppress
from typing import Self


class HttpProxy:
    """Passes requests on (absolute form) and bytes through (CONNECT) while its context is open.

    With `credentials` ("user:password") it refuses requests without them.
    """

    def __init__(self, port_behind: int, credentials: str | None = None) -> None:
        self.port_behind = port_behind
        self.credentials = credentials
        self.lines: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{f'{self.credentials}@' if self.credentials else ''}127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._passed(reader, writer)
        writer.close()

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *headers = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        self.lines.append(first.decode())
        method, target, _ = first.split(b" ")
        named = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in headers)}
        if named.get(b"proxy-authorization") != self._expected():
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        behind, ahead = await asyncio.open_connection("127.0.0.1", self.port_behind)
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            assert target.startswith(b"http://"), target
            path = target.removeprefix(b"http://").partition(b"/")[2]
            kept = (line for line in headers if not line.lower().startswith((b"proxy-", b"connection:")) and line)
            ahead.write(b"\r\n".join([method + b" /" + path + b" HTTP/1.1", *kept, b"Connection: close", b"", b""]))
        await asyncio.gather(_pumped(reader, ahead), _pumped(behind, writer))

    def _expected(self) -> bytes | None:
        return None if self.credentials is None else b"Basic " + base64.b64encode(self.credentials.encode())


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.close()
