"""Connections to one Qdrant server."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from typing_extensions import override

from cragside.databases.gate import Gate, ServerFailure, close_quietly
from cragside.databases.renewable import Fixed, Renewable, Unreadable
from cragside.databases.server_addresses import QdrantAddress
from cragside.domain.forward_proxy import signed_proxy
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.telemetry import DatabaseFigures

CONNECT_SECONDS = 3.0
REQUEST_SECONDS = 30.0
_REFUSED = (401, 403)
_MISSING = 404
_CONFLICT = 409
_SLOW = (httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout)

T = TypeVar("T")


class QdrantFailure(ServerFailure):
    """Qdrant failed, perhaps with a status of HTTP."""

    def __init__(self, reason: str, unusable: str, status: int | None = None) -> None:
        super().__init__(reason, unusable)
        self.is_missing = status == _MISSING
        self.is_conflict = status == _CONFLICT


class QdrantDatabase:
    """At most `most` connections to a server, each made when it is needed. All methods may raise `QdrantFailure`."""

    def __init__(
        self,
        address: QdrantAddress,
        *,
        most: int,
        keys: Renewable[str] | None = None,
        request_seconds: float | None = None,
        figures: DatabaseFigures | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Take `keys` rather than the one in the address."""
        self.address = address
        self._keys = keys or Fixed(address.api_key)
        self._key = address.api_key
        self._most = most
        self._seconds = REQUEST_SECONDS if request_seconds is None else request_seconds
        self._client: AsyncQdrantClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = Gate("Qdrant", QdrantFailure, self._sign_of_life, most=most, clock=clock, figures=figures)

    async def run(self, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Make requests. `work` may run again after a connection that the server closed meanwhile."""
        async with self._gate.passed():
            try:
                key = await self._keys.current()
                try:
                    return await self._once(work, key)
                except UnexpectedResponse as error:
                    if error.status_code not in _REFUSED or (new := await self._keys.after_refusal(key)) is None:
                        raise
                return await self._once(work, new)
            except (ApiException, QdrantException, Unreadable) as error:
                raise self._noted(error) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._gate.stop()
        client, self._client = self._client, None
        if client is not None:
            await close_quietly("Qdrant", client.close())

    async def _once(self, work: Callable[[AsyncQdrantClient], Awaitable[T]], key: str) -> T:
        try:
            return await work(self._opened(key))
        except ResponseHandlingException as error:
            if not isinstance(error.source, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
                raise
            return await work(self._opened(key))

    def _noted(self, error: Exception) -> QdrantFailure:
        failure = _failure(error)
        if isinstance(error, UnexpectedResponse):
            self._gate.answered()
        elif isinstance(error, ResponseHandlingException) and _is_outage(error.source):
            self._gate.close_for_a_while(failure)
        return failure

    async def _sign_of_life(self) -> None:
        client = self._made(await self._keys.current(), most=1)  # the gate ends the wait
        try:
            with suppress(UnexpectedResponse):  # a refusal is an answer
                await client.info()
        finally:
            await close_quietly("Qdrant", client.close())

    def _opened(self, key: str) -> AsyncQdrantClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop or self._key != key:
            # Connections belong to the event loop that made them. Those with an old key end with what uses them.
            self._loop, self._key, self._client = loop, key, self._made(key, self._most)
        return self._client

    def _made(self, key: str, most: int) -> AsyncQdrantClient:
        with warnings.catch_warnings():
            # `doctor` tells of a key without TLS.
            warnings.simplefilter("ignore", UserWarning)
            return AsyncQdrantClient(
                url=self.address.url,
                api_key=key or None,
                check_compatibility=False,
                trust_env=False,
                transport=_Bounded(self.address.url, most, self._seconds),
            )


class _Bounded(httpx.AsyncHTTPTransport):
    """Connects in a few seconds. The client has one limit for connecting, writing and reading."""

    def __init__(self, url: str, most: int, seconds: float) -> None:
        super().__init__(limits=httpx.Limits(max_connections=most), retries=0, proxy=signed_proxy(url))
        bounds = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), pool=CONNECT_SECONDS + seconds)
        self._bounds = bounds.as_dict()

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions = {**request.extensions, "timeout": self._bounds}
        return await super().handle_async_request(request)


def _is_outage(error: Exception) -> bool:
    """Return True if other requests would fail too. A request that takes too long tells nothing about the server."""
    return isinstance(error, httpx.HTTPError) and not isinstance(error, _SLOW)


def _failure(error: BaseException) -> QdrantFailure:
    """Translate an error of the client into what an operator has to know."""
    if isinstance(error, Unreadable):
        unread = "what QDRANT_API_KEY_SECRET names cannot be read"
        return QdrantFailure(unread, f"is out of reach: {unread}. The log has the reason")
    if isinstance(error, UnexpectedResponse):
        status = error.status_code
        if status in _REFUSED:
            return QdrantFailure("the key of Qdrant is wrong", "is refused by Qdrant. Check QDRANT_API_KEY", status)
        return QdrantFailure(f"Qdrant answered with status {status}", "failed in Qdrant. See its log", status)
    if isinstance(error, ResponseHandlingException) and not isinstance(error.source, httpx.HTTPError):
        return QdrantFailure(
            "Qdrant gave an answer that is none of Qdrant's",
            "gave an answer that is none of Qdrant's. Correct QDRANT_URL",
        )
    if isinstance(error, ResponseHandlingException):
        return QdrantFailure("Qdrant does not answer", "is out of reach: Qdrant does not answer")
    return QdrantFailure("Qdrant is too busy", "failed in Qdrant: it is too busy. Try again")
