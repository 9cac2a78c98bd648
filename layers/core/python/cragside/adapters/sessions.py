"""Sessions of aiohttp with one host, one for each event loop."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import aiohttp

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.forward_proxy import signed_proxy, way_to

_CHUNK_BYTES = 65_536


class Closable(Protocol):
    """A thing with connections."""

    async def close(self) -> object:
        """Close them."""


T = TypeVar("T", bound=Closable)


class PerLoop(Generic[T]):
    """Makes a session, or another thing with connections, for each event loop that asks for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def here(self) -> T:
        """The running loop's."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if found is None:
            found = self._by_loop[loop] = self._make()
        return found

    async def close(self) -> None:
        """Close the running loop's."""
        found = self._by_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.close()


def session_with(url: str, **options: Any) -> aiohttp.ClientSession:
    """A session that keeps no cookie and takes the proxy that the environment has for `url`.

    `options` are those of `aiohttp.ClientSession`.
    """
    return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), proxy=signed_proxy(url), **options)


@contextmanager
def failing_as(failure: Callable[[str], ServiceUnavailable], url: str) -> Iterator[None]:
    """Raise `failure` with the reason where an exchange with the host at `url` fails."""
    try:
        yield
    except TimeoutError as error:
        raise failure("took too long to answer") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise failure(f"does not answer{way_to(url)}") from error


async def body_of(response: aiohttp.ClientResponse, most_bytes: int) -> bytes | None:
    """The body of an answer; None if it has more bytes."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > most_bytes:
            return None
    return bytes(body)
