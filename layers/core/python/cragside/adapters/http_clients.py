"""Clients of HTTP hosts: addresses without credentials, a session for each event loop, answers up to a size."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit, urlunsplit
from weakref import WeakKeyDictionary

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from typing_extensions import override

from cragside.domain import hops
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.forward_proxy import signed_proxy, way_to


@dataclass(frozen=True, slots=True)
class HostAddress:
    """An address without credentials, and the credentials, which no message shows."""

    url: str
    credentials: tuple[str, str] | None = field(repr=False)

    @classmethod
    def parse(cls, base_url: str) -> "HostAddress":
        """Split `user:password@` off an address."""
        parts = urlsplit(base_url if "://" in base_url else f"http://{base_url}")
        bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        if parts.username is None:
            return cls(bare, None)
        return cls(bare, (unquote(parts.username), unquote(parts.password or "")))

    @property
    def authorization(self) -> dict[str, str]:
        """The header with the credentials, if there are any."""
        return {"Authorization": aiohttp.encode_basic_auth(*self.credentials)} if self.credentials else {}


_CHUNK_BYTES = 65_536


class Closable(Protocol):
    """A thing that has connections, and can close them."""

    async def close(self) -> object:
        """Close them."""


T = TypeVar("T", bound=Closable)


class PerLoop(Generic[T]):
    """Makes a session, or another thing with connections, for each event loop that asks for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def here(self) -> T:
        """Return the running loop's."""
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
    """Return a session that keeps no cookie and takes the proxy that the environment has for `url`.

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
    """Return the body of an answer; None if it has more bytes."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > most_bytes:
            return None
    return bytes(body)


# 64 vectors of 4,096 figures take 6 MB of JSON, which is the longest that a host is asked for.
MOST_BYTES = 64 * 1024 * 1024


class AnswerTooLong(httpx.TransportError):
    """An answer has more bytes than any expected one, or is packed so that its size cannot be told."""


class BoundedTransport(AiohttpTransport):
    """Carries httpx's requests over an aiohttp session. Reading beyond `MOST_BYTES` raises `AnswerTooLong`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        super().__init__(client=session)

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # A packed megabyte can be a gigabyte.
        request.headers["Accept-Encoding"] = "identity"
        request.headers[hops.HEADER] = hops.marked()
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise AnswerTooLong("The answer is compressed, which was not asked for.")
        response.stream = _Bounded(cast(httpx.AsyncByteStream, response.stream))
        return response


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise AnswerTooLong(f"The answer has more than {MOST_BYTES:,} bytes.")
            yield piece

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()
