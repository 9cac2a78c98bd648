"""Reads a request's body from ASGI."""

from dataclasses import dataclass

from starlette.types import Receive

from cragside.entrypoints.client_gone import ClientGone


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
