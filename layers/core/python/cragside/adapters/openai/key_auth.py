"""Signs requests with a key that may be exchanged."""

from collections.abc import AsyncGenerator

import httpx
from typing_extensions import override

from cragside.adapters.renewable import Renewable


class KeyAuth(httpx.Auth):
    """`Authorization: Bearer KEY`, or no such header with the key "". A refused key is read anew once.

    It replaces the header of OpenAI's client, which cannot do without a key.
    """

    def __init__(self, key: Renewable[str]) -> None:
        self._key = key
        # The keys of all requests, some of which are under way when a key is exchanged: hosts quote them, and no
        # message may.
        self.sent: set[str] = set()

    @override
    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        key = await self._key.current()
        self.sent.add(key)
        response = yield _signed(request, key)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            other = await self._key.after_refusal(key)
            if other is not None:
                self.sent.add(other)
                yield _signed(request, other)


def _signed(request: httpx.Request, key: str) -> httpx.Request:
    request.headers.pop("Authorization", None)
    if key:
        request.headers["Authorization"] = f"Bearer {key}"
    return request
