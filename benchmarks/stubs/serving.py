"""How a stub serves: uvloop, loopback, a free port that it prints as its first line."""

import asyncio
import socket
import time

import uvloop
from aiohttp import web


def serve(app: web.Application) -> None:
    """Serve until the process is told to end."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvloop.run(_run(app, listener))


async def until(moment: float) -> None:
    """Wait for a moment of `time.monotonic()`: the stub's own work counts as part of the latency it plays."""
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


async def _run(app: web.Application, listener: socket.socket) -> None:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener, backlog=1024).start()
    await asyncio.Event().wait()
