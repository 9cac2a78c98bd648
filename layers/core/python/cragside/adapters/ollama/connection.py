"""HTTP to the host: one aiohttp session for each event loop, and translated errors."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import aiohttp
import httpx
import orjson

from cragside.adapters.bounded_answers import AnswerTooLong, BoundedTransport
from cragside.adapters.host_address import HostAddress
from cragside.adapters.model_host.key_auth import KeyAuth, without
from cragside.adapters.model_host.refusals import Refused
from cragside.adapters.renewable import Renewable, Unreadable
from cragside.adapters.sessions import session_with
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.forward_proxy import way_to

if TYPE_CHECKING:
    from langchain_ollama import ChatOllama

CONNECT_SECONDS = 1.0
METADATA_SECONDS = 5.0
# Answers are not streamed, and a long extraction on a CPU takes minutes. Requests have a shorter deadline of their own.
ANSWER_SECONDS = 900.0
_REASON_CHARACTERS = 200
# Hosts embed texts in the order of asking. A long line of passages would keep every question waiting.
_BULK_AT_ONCE = 2


class HostSilent(ServiceUnavailable):
    """The host does not answer."""


class ModelMissing(ServiceUnavailable):
    """The host does not have the model."""


class LoopConnection:
    """The session, limiters and chat client of one event loop."""

    def __init__(self, address: HostAddress, key: Renewable[str], parallel: int) -> None:
        self.limiter = asyncio.Semaphore(parallel)
        self.bulk_limiter = asyncio.Semaphore(_BULK_AT_ONCE)
        self._address = address
        # The key goes before a password in the address.
        self.auth = KeyAuth(key, address.authorization.get("Authorization", ""))
        # The limiter bounds concurrent calls. A second limit here would only hide a queue.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        self._session = session_with(address.url, connector=connector)
        self._clients: dict[str, Any] = {
            "transport": BoundedTransport(self._session),
            "auth": self.auth,
            "timeout": httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, pool=None),
            "follow_redirects": False,
        }
        self._http = httpx.AsyncClient(**self._clients)
        self._chat: asyncio.Task[ChatOllama] | None = None

    async def exchange(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        """The JSON of the answer. Raises errors of httpx, and `ServiceUnavailable` for a status other than 200."""
        response = await self._http.request(
            method,
            self._address.url + path,
            content=None if body is None else orjson.dumps(body),
            headers={"Content-Type": "application/json"},
            timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS, pool=None),
        )
        if response.status_code != httpx.codes.OK:
            raise refused(self._address.url, response.status_code, response.text, self.auth.sent)
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError:
            return json.loads(response.content)  # it knows NaN, which some hosts answer for a vector

    async def chat_model(self) -> "ChatOllama":
        """The chat client. Each call names its model."""
        if self._chat is None:
            # The imports take a second. In a thread they do not block other requests.
            self._chat = asyncio.create_task(asyncio.to_thread(self._build_chat))
        try:
            return await asyncio.shield(self._chat)
        except asyncio.CancelledError:
            raise
        except Exception:
            self._chat = None
            raise

    def _build_chat(self) -> "ChatOllama":
        from cragside.adapters.ollama.chat_client import chat_client

        return chat_client(self._address.url, **self._clients)

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()


class Connections:
    """One connection for each event loop that uses the host."""

    def __init__(self, address: HostAddress, key: Renewable[str], parallel: int) -> None:
        self.address = address
        self._key = key
        self._parallel = parallel
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopConnection] = WeakKeyDictionary()

    def here(self) -> LoopConnection:
        """The running loop's connection."""
        loop = asyncio.get_running_loop()
        connection = self._by_loop.get(loop)
        if connection is None:
            connection = self._by_loop[loop] = LoopConnection(self.address, self._key, self._parallel)
        return connection

    async def json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A short request about the host itself. Raises `ServiceUnavailable("ollama", ...)`."""
        return await self._exchange(method, path, body, METADATA_SECONDS)

    async def answer(self, path: str, body: Mapping[str, Any]) -> Any:
        """A request to a model, under the limiter. Raises `ServiceUnavailable("ollama", ...)`."""
        async with self.here().limiter:
            return await self._exchange("POST", path, body, ANSWER_SECONDS)

    async def close(self) -> None:
        """Close the running loop's session."""
        connection = self._by_loop.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    async def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        try:
            return await self.here().exchange(method, path, body, seconds)
        except ServiceUnavailable:
            raise
        except Exception as error:
            raise self.translated(error) from error

    def translated(self, error: Exception) -> ServiceUnavailable:
        """The error for a failed call."""
        return translated(self.address.url, error, self.here().auth.sent)


def refused(url: str, status: int, text: str, keys: Iterable[str]) -> ServiceUnavailable:
    """The error for a status other than 200, to a request that was sent with one of the keys."""
    message = without(keys, _message_in(text))[:_REASON_CHARACTERS]
    if status == 404 and "model" in message.lower():
        return ModelMissing("ollama", message)
    if status in (401, 403):
        return ServiceUnavailable(
            "ollama",
            f"Ollama refused the credentials ({status}). Correct OLLAMA_API_KEY, or the password in Ollama's address",
        ).at(url)
    if status == 404:
        return ServiceUnavailable(
            "ollama", "Its address does not speak Ollama's API (404). Correct OLLAMA_BASE_URL or RAG_MODEL_HOST"
        ).at(url)
    return Refused("ollama", status, f"Ollama answered {status}{f': {message}' if message else ''}").at(url)


def translated(url: str, error: Exception, keys: Iterable[str]) -> ServiceUnavailable:
    """The error for a failed exchange. It never quotes the request."""
    if isinstance(error, ServiceUnavailable):
        return error
    if isinstance(error, Unreadable | ConfigurationError):  # of the key
        return ServiceUnavailable("ollama", str(error)).at(url)
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 300:
        return refused(url, status, str(getattr(error, "error", "")), keys)
    if isinstance(error, AnswerTooLong):
        return ServiceUnavailable("ollama", "Ollama's answer is too long").at(url)
    if isinstance(error, httpx.ReadTimeout | aiohttp.SocketTimeoutError):
        return ServiceUnavailable("ollama", "Ollama took too long to answer").at(url)
    if isinstance(error, httpx.TransportError | ConnectionError | aiohttp.ClientError | TimeoutError | OSError):
        return HostSilent("ollama", f"Ollama does not answer{way_to(url)}").at(url)
    return ServiceUnavailable(
        "ollama", f"the answer is not Ollama's ({type(error).__name__}). Correct OLLAMA_BASE_URL"
    ).at(url)


def _message_in(text: str) -> str:
    message = text
    with suppress(ValueError):
        body = json.loads(text)
        if isinstance(body, dict):
            message = str(body.get("error", ""))
    return " ".join(message.split())
