"""Signs requests with a key that may be exchanged."""

from collections.abc import AsyncGenerator, Iterable

import httpx
from typing_extensions import override

from cragside.adapters.renewable import Renewable


class KeyAuth(httpx.Auth):
    """Send `Authorization: Bearer KEY`. Without a key, send `otherwise`, or no such header.

    A refused key is read anew once.
    It replaces the header of the clients: OpenAI's cannot do without a key, and Ollama's takes one of the environment.
    """

    def __init__(self, key: Renewable[str], otherwise: str = "") -> None:
        self._key = key
        self._otherwise = otherwise
        # The keys of all requests, some of which are under way when a key is exchanged: hosts quote them, and no
        # message may.
        self.sent: set[str] = set()

    @override
    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        key = await self._key.current()
        self.sent.add(key)
        response = yield self._signed(request, key)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            other = await self._key.after_refusal(key)
            if other is not None:
                self.sent.add(other)
                yield self._signed(request, other)

    def _signed(self, request: httpx.Request, key: str) -> httpx.Request:
        request.headers.pop("Authorization", None)
        if value := f"Bearer {key}" if key else self._otherwise:
            request.headers["Authorization"] = value
        return request


def without(keys: Iterable[str], text: str) -> str:
    """The text without the keys: some hosts quote the headers of a request that they refuse."""
    for key in sorted(filter(None, keys), key=len, reverse=True):  # one may begin with another
        text = text.replace(key, "********")
    return text
