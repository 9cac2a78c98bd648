"""The clients of one event loop: OpenAI's API through langchain-openai, over one aiohttp session."""

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
import httpx
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from cragside.adapters.bounded_answers import BoundedTransport
from cragside.adapters.model_host.key_auth import KeyAuth
from cragside.adapters.openai.failures import refused
from cragside.adapters.renewable import Renewable
from cragside.adapters.sessions import session_with

CONNECT_SECONDS = 5.0
METADATA_SECONDS = 10.0
# Answers are not streamed, and a long extraction on a CPU takes minutes. Requests have a shorter deadline of their own.
ANSWER_SECONDS = 900.0
# Hosts embed texts in the order of asking. A long line of passages would keep every question waiting.
_BULK_AT_ONCE = 2
# OpenAI's client insists on a key. `KeyAuth` puts the real one, or none, in its place.
_NO_KEY = "none"


class LoopClients:
    """The session, limiters and clients of one event loop. Each call names its model."""

    def __init__(self, url: str, key: Renewable[str], parallel: int) -> None:
        self.limiter = asyncio.Semaphore(parallel)
        self.bulk_limiter = asyncio.Semaphore(_BULK_AT_ONCE)
        self._url = url
        # The limiter bounds concurrent calls. A second limit here would only hide a queue.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        self._session = session_with(url, connector=connector)
        self.auth = KeyAuth(key)
        self._http = httpx.AsyncClient(
            transport=BoundedTransport(self._session),
            auth=self.auth,
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, pool=None),
            follow_redirects=False,
        )
        shared: dict[str, Any] = {
            "model": "",
            "base_url": url,
            "api_key": _NO_KEY,
            "http_async_client": self._http,
            # The library would make a client for calls that wait, which nobody makes here, and read the environment.
            "http_client": httpx.Client(transport=httpx.BaseTransport()),
            "openai_proxy": None,
            "max_retries": 0,
        }
        self.chat = ChatOpenAI(**shared, temperature=0.0, use_responses_api=False, stream_usage=False)
        self.embeddings = OpenAIEmbeddings(**shared, check_embedding_ctx_length=False)

    async def json(self, path: str) -> Any:
        """What the host answers to a short request. Raises `Refused`, and errors of httpx."""
        response = await self._http.get(self._url + path, timeout=METADATA_SECONDS)
        if response.status_code != httpx.codes.OK:
            raise refused(self._url, response.status_code, response.text, self.auth.sent)
        return response.json()

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()


class Clients:
    """The clients of each event loop that uses the host."""

    def __init__(self, url: str, key: Renewable[str], parallel: int) -> None:
        self.url = url
        self._key = key
        self._parallel = parallel
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopClients] = WeakKeyDictionary()

    def here(self) -> LoopClients:
        """Those of the running loop."""
        loop = asyncio.get_running_loop()
        clients = self._by_loop.get(loop)
        if clients is None:
            clients = self._by_loop[loop] = LoopClients(self.url, self._key, self._parallel)
        return clients

    async def close(self) -> None:
        """Close those of the running loop."""
        clients = self._by_loop.pop(asyncio.get_running_loop(), None)
        if clients is not None:
            await clients.close()
