"""A way to a server that tests can block."""

import asyncio
from contextlib import suppress
from typing import Self


class Way:
    """Passes bytes between a port of its own and a server's, until it is shut, silenced or cut."""

    def __init__(self, port: int, *, keep: bool = False) -> None:
        self._target = port
        self._keep = keep
        self._server: asyncio.Server | None = None
        self._open: list[asyncio.StreamWriter] = []
        self.port = 0
        self.accepted = 0
        self.most = 0
        self.silent = False
        self._lost = 0
        self.lingers = False  # while it is set, clients are not told that the server has ended their connection
        self.holds_after = b""  # while it is set, the rest of an answer of HTTP waits behind the piece that has this
        self.holding = False
        self.heard = bytearray()  # what clients sent, if it is kept

    async def open(self) -> None:
        """Accept connections, always on the same port."""
        self._server = await asyncio.start_server(self._passed, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def shut(self) -> None:
        """Refuse connections, and cut those that are there."""
        if self._server is not None:
            self._server.close()
        self.cut()

    def cut(self, *, but: int = 0) -> None:
        """End all connections but so many of the first."""
        for writer in self._open[but:]:
            writer.transport.abort()

    def lose(self) -> None:
        """Pass nothing on any more for the connections that are open, and let them be. Later ones work."""
        self._lost = self.accepted

    @property
    def connections(self) -> int:
        """Count the open connections."""
        return len(self._open)

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        number = self.accepted
        self._open.append(writer)
        self.most = max(self.most, len(self._open))
        try:
            if self.silent:
                await reader.read()
                return
            theirs, ours = await asyncio.open_connection("127.0.0.1", self._target)
            back = asyncio.create_task(self._copied(theirs, writer, number, answers=True))
            await self._copied(reader, ours, number, self.heard if self._keep else None)
            await back
        finally:
            self._open.remove(writer)
            writer.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.shut()

    async def _copied(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        number: int,
        kept: bytearray | None = None,
        *,
        answers: bool = False,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if kept is not None:
                    kept += data
                if answers and self.holds_after and self.holds_after in data:
                    data = await self._held(data, writer)
                if not self.silent and number > self._lost:
                    writer.write(data)
                    await writer.drain()
        if not (answers and self.lingers):
            writer.close()

    async def _held(self, data: bytes, writer: asyncio.StreamWriter) -> bytes:
        """Pass on what comes up to the end of the piece, and return the rest when it is its turn."""
        self.holding = True
        before, mark, behind = data.partition(self.holds_after)
        piece, end, rest = behind.partition(b"\r\n")
        writer.write(before + mark + piece + end)
        await writer.drain()
        while self.holds_after:
            await asyncio.sleep(0.01)
        self.holding = False
        return rest
