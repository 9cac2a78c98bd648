"""Closes connections: what was done with them is done, however they end."""

import asyncio
import logging
from collections.abc import Awaitable

CLOSE_SECONDS = 3.0
_log = logging.getLogger("cragside")


async def close_quietly(server: str, closing: Awaitable[object], *, seconds: float = CLOSE_SECONDS) -> None:
    """Wait for the end of connections to a server, for so many seconds at most. The log tells of one that does not end.

    A relay may keep a connection open, and a server may be gone.
    """
    try:
        async with asyncio.timeout(seconds):
            await closing
    except Exception as error:  # whatever its driver raises
        _log.info("Connections to %s did not end when they were closed (%s).", server, type(error).__name__)
