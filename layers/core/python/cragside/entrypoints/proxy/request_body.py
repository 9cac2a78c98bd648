"""Reads a request's body from ASGI, and notices clients that leave."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.types import Receive

from cragside.entrypoints.proxy.upstream_connection import ClientGone

Result = TypeVar("Result")


@dataclass(slots=True)
class Body:
    """The part of a request's body that has been read. `complete`: it is the whole body."""

    data: bytes
    complete: bool


async def read_body(receive: Receive, limit: int) -> Body:
    """The body, or its beginning if it has more than `limit` bytes. Raises `ClientGone`."""
    data = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        data += message.get("body", b"")
        more = message.get("more_body", False)
        if not more or len(data) > limit:
            return Body(bytes(data), not more)


async def until_gone(receive: Receive) -> None:
    """Wait until the client leaves. The body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of the work. If the client leaves, cancels the work and raises `ClientGone`."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
