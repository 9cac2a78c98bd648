"""Answers of model hosts, up to a size: a broken or hostile host could fill the memory with one."""

from collections.abc import AsyncIterator
from typing import cast

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from typing_extensions import override

from cragside.domain import hops

# 64 vectors of 4,096 figures take 6 MB of JSON, which is the longest that a host is asked for.
MOST_BYTES = 64 * 1024 * 1024


class AnswerTooLong(httpx.TransportError):
    """An answer has more bytes than any that a host is asked for, or packs them so that nobody can tell."""


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
