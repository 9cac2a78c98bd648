"""A stub Ollama that only streams: 20 chunks, each written separately, `--interval` milliseconds apart.

It uses plain asyncio, because it stands for a server in Go: the cheaper direct access, the harder the comparison.
"""

import argparse
import asyncio
import json
from typing import cast

import uvloop

TOKENS = 20
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def token(number: int) -> bytes:
    """A line of a streamed chat, as an HTTP chunk."""
    message = {"role": "assistant", "content": f" token{number:02}"}
    line = {"model": "m", "created_at": "2026-01-01T00:00:00.000000Z", "message": message, "done": number == TOKENS - 1}
    content = json.dumps(line).encode() + b"\n"
    return b"%x\r\n%b\r\n" % (len(content), content)


CHUNKS = [token(number) for number in range(TOKENS)]


class Streaming(asyncio.Protocol):
    """Answers every request with the same stream."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's callback."""
        self._transport = cast(asyncio.WriteTransport, transport)
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        """asyncio's callback."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n") + 4) > 3:
            head = self._received[:end].lower()
            _, named, rest = head.partition(b"content-length:")
            end += int(rest.split(b"\r\n", 1)[0]) if named else 0
            if len(self._received) < end:
                return
            self._received = self._received[end:]
            self._transport.write(HEAD)
            self._send(0)

    def _send(self, number: int) -> None:
        if self._transport.is_closing():
            return
        if number == TOKENS:
            self._transport.write(b"0\r\n\r\n")
            return
        self._transport.write(CHUNKS[number])
        if self._interval:
            self._loop.call_later(self._interval, self._send, number + 1)
        else:
            self._loop.call_soon(self._send, number + 1)


async def main() -> None:
    """Serve on a free loopback port, which is the first line printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interval", type=float, default=0.0, help="milliseconds between two chunks")
    interval = parser.parse_args().interval / 1000
    server = await asyncio.get_running_loop().create_server(lambda: Streaming(interval), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
