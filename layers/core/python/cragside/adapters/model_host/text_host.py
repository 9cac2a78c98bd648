"""A host whose models write and embed: requests, failures, keys, and what Ollama and OpenAI have in common."""

import asyncio
import json
import math
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import aiohttp
import httpx
import orjson
from pydantic import BaseModel, Field, TypeAdapter
from pydantic import ValidationError as Malformed
from typing_extensions import override

from cragside.adapters.http_clients import AnswerTooLong, BoundedTransport, HostAddress, PerLoop, session_with
from cragside.databases.renewable import Renewable, Unreadable
from cragside.domain.characters import encodable
from cragside.domain.errors import ConfigurationError, InputRefused, ServiceUnavailable
from cragside.domain.forward_proxy import way_to
from cragside.domain.token_counts import ModelWindows
from cragside.ports.models import EMBEDDED, ModelHost

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage


class KeyAuth(httpx.Auth):
    """Sends `Authorization: Bearer KEY`. Without a key it sends `otherwise`, or no such header.

    If the host refuses a key, it is read again once. This replaces the header of the clients' libraries: OpenAI's needs
    a key, and Ollama's takes one of the environment.
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
    """Return the text without the keys: some hosts quote the headers of a request that they refuse."""
    for key in sorted(filter(None, keys), key=len, reverse=True):  # one may begin with another
        text = text.replace(key, "********")
    return text


# What hosts answer to a text that is longer than the model reads. llama.cpp and older versions of Ollama answer 500.
_TOO_LONG = frozenset({400, 413, 422, 500})
_OUT_OF_ORDER = 500
# JSON has no word for such a number, so that Ollama answers 500 to a text whose vector has one.
_NO_NUMBER = re.compile(r"unsupported value: [+-]?(?:NaN|Inf)")
SHORTEST_CUT = 200


class HostSilent(ServiceUnavailable):
    """The host does not answer."""


class Refused(ServiceUnavailable):
    """The host refused a request; `status` is what it answered."""

    def __init__(self, component: str, status: int, message: str) -> None:
        super().__init__(component, message)
        self.status = status

    @property
    def may_be_length(self) -> bool:
        """Tell if a text may be too long. No answer says, in a way that all hosts share, which one and by how much."""
        return self.status in _TOO_LONG

    @property
    def may_be_form(self) -> bool:
        """Tell if the host may have refused the form of answer that was asked for, which not every host knows."""
        return self.status in (400, 422)


@contextmanager
def failures_of(component: str, *, refusals: bool = False) -> Iterator[None]:
    """Raise a host's failures as those of `component`, with `refusals` also those of an input as refused input."""
    try:
        yield
    except ServiceUnavailable as failure:
        kind = InputRefused if refusals and isinstance(failure, InputRefused) else ServiceUnavailable
        raise kind(component, failure.message) from failure


async def embed_shortened(
    embed: Callable[[list[str]], Awaitable[list[list[float]]]], texts: Sequence[str]
) -> list[list[float]]:
    """The vectors of texts, cut by halves until the host takes them. Which one was too long the host does not say.

    Raises what `embed` raises, and `InputRefused` for texts that the host takes at no length.
    """
    sent = list(texts)
    while True:
        try:
            return await embed(sent)
        except Refused as refusal:
            longest = max(map(len, sent), default=0)
            if not refusal.may_be_length:
                raise
            if longest <= SHORTEST_CUT:
                if refusal.status >= _OUT_OF_ORDER and not _NO_NUMBER.search(refusal.message):
                    raise
                raise InputRefused(refusal.component, refusal.message) from refusal
        sent = [text[: max(longest // 2, SHORTEST_CUT)] for text in sent]


def reason_in(body: object) -> str:
    """Return the reason in what a host answers to a request that it refuses: JSON, its text, or any other text.

    OpenAI's client hands out the object `error` itself; hosts also answer a text, or `message` or `detail` alone.
    """
    if isinstance(body, str):
        with suppress(ValueError, RecursionError):
            read = json.loads(body)
            body = read if isinstance(read, dict) else body
    if isinstance(body, dict):
        inner = body.get("error", body)
        named = (inner[name] for name in ("message", "detail") if isinstance(inner, dict) and name in inner)
        body = inner if isinstance(inner, str) else next(named, "")
    return " ".join(body.split()) if isinstance(body, str) else ""


def json_in(answer: str) -> str:
    """Return the JSON object of an answer, without the fence or the words around it."""
    start, end = answer.find("{"), answer.rfind("}")
    return answer[start : end + 1] if 0 <= start < end else answer


def abridged(text: str, characters: int) -> str:
    """Return the beginning and the end of a long text. In a long prompt, one of them has the question."""
    if len(text) <= characters:
        return text
    half = (characters - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


# More than five are refused by some hosts.
TOP_TOKENS = 5


class _Token(BaseModel):
    token: str
    logprob: Annotated[float, Field(le=0, allow_inf_nan=True)]


class _Place(BaseModel):
    top_logprobs: Annotated[list[_Token], Field(max_length=100)]


_PLACES = TypeAdapter(Annotated[list[_Place], Field(min_length=1, max_length=1000)])


def probabilities(logprobs: object) -> Mapping[str, float]:
    """Return the likeliest first tokens with their probabilities, from the `logprobs` of an answer; {} for none.

    The same word with other capitals, or behind a blank, is the same token.
    """
    try:
        first = _PLACES.validate_python(logprobs, from_attributes=True)[0]  # of langchain: dicts, or objects
    except Malformed:
        return {}
    chances: dict[str, float] = {}
    for each in first.top_logprobs:
        word = each.token.strip().lower()
        chances[word] = chances.get(word, 0.0) + math.exp(each.logprob)
    return chances


_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d{1,3})?)\s?([mMbB])(?![A-Za-z0-9])")
_UNITS = {"m": 1_000_000, "b": 1_000_000_000}


def parameters_in(text: str) -> int | None:
    """The number in a size (`134.52M`) or a name (`Qwen2.5-0.5B-Instruct`, `smollm2:135m`); None if it has none."""
    found = _SIZE.search(text)
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found else None


# A question is embedded with its names and its other key words.
_QUESTION_TEXTS = 3
# Answers are not streamed, and a long extraction on a CPU takes minutes. Requests have a shorter deadline of their own.
ANSWER_SECONDS = 900.0
_REASON_CHARACTERS = 200
# Hosts embed texts in the order of asking. A long line of passages would keep every question waiting.
_BULK_AT_ONCE = 2

Turns = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer without its thoughts. `complete` is False if the token limit cut it off."""

    text: str
    complete: bool


class Connection:
    """The session, limiters and clients of one event loop."""

    def __init__(self, address: HostAddress, key: Renewable[str], parallel: int, connect_seconds: float) -> None:
        self.limiter = asyncio.Semaphore(parallel)
        self.bulk_limiter = asyncio.Semaphore(_BULK_AT_ONCE)
        # The key goes before a password in the address.
        self.auth = KeyAuth(key, address.authorization.get("Authorization", ""))
        # The limiter bounds concurrent calls. A second limit here would only hide a queue.
        self._session = session_with(address.url, connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60))
        self.options: dict[str, Any] = {
            "transport": BoundedTransport(self._session),
            "auth": self.auth,
            "timeout": httpx.Timeout(ANSWER_SECONDS, connect=connect_seconds, pool=None),
            "follow_redirects": False,
        }
        self.http = httpx.AsyncClient(**self.options)
        self.chat: asyncio.Task[BaseChatModel] | None = None
        self.embeddings: Any = None

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()


class TextHost(ModelHost):
    """Chooses among the models of a host and calls them, at most `parallel` at once; other calls wait.

    Every call may raise `ServiceUnavailable`. No message shows the key, or the credentials in `base_url`.
    """

    component: ClassVar[str]
    called: ClassVar[str]
    """The host in messages."""
    foreign: ClassVar[str]
    """The message about an answer of another kind of server, with `{}` for the error."""
    connect_seconds: ClassVar[float]
    metadata_seconds: ClassVar[float]
    lost: ClassVar[tuple[type[Exception], ...]] = ()
    """The errors of its library which mean that the host does not answer."""

    def __init__(self, base_url: str, key: Renewable[str], *, parallel: int, chat_model: str | None) -> None:
        address = HostAddress.parse(base_url)
        self.url = address.url
        self.windows = ModelWindows()
        self._chat_model = chat_model
        self._connections = PerLoop(lambda: Connection(address, key, parallel, self.connect_seconds))

    @abstractmethod
    async def has(self, model: str) -> bool:
        """Tell if the host has the model."""

    @abstractmethod
    def lacking(self, model: str) -> ServiceUnavailable:
        """Return the error for a model that the host does not have, with what to do."""

    @abstractmethod
    async def parameters(self, model: str) -> int | None:
        """Return the number of a model's parameters; None if the host does not say."""

    async def choose(self, requested: str | None) -> str | None:
        """Return the model to use, or None for the embedded models.

        Raises `ServiceUnavailable` if the host is silent or lacks the model of the settings.
        """
        if self._chat_model == EMBEDDED:
            return None
        return await (self._chosen(requested) if self._chat_model is None else self._named(self._chat_model))

    @override
    async def writer(self, wanted: str | None) -> str:
        named = wanted or (self._chat_model if self._chat_model != EMBEDDED else None)
        return await (self._named(named) if named else self._usual_writer())

    async def chat(
        self,
        model: str,
        prompt: str,
        *,
        system: str | None = None,
        history: Sequence[Mapping[str, str]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int,
    ) -> Reply:
        """One answer at temperature 0, optionally with a JSON schema."""
        opening = [{"role": "system", "content": system}] if system else []
        turns = _turns([*opening, *history, {"role": "user", "content": prompt}])
        return await self._reply(model, turns, schema, max_tokens)

    async def first_tokens(self, model: str, prompt: str, *, system: str) -> Mapping[str, float]:
        """The likeliest first tokens of an answer and their probabilities; none where the host does not tell them."""
        turns = _turns([{"role": "system", "content": system}, {"role": "user", "content": prompt}])
        return probabilities(await self._first_tokens(model, turns))

    @override
    async def write(self, model: str, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> AsyncIterator[str]:
        turns = _turns(messages)
        options = await self._writing_options(model, turns, max_tokens)
        async with self._chat_client() as chat:
            async for piece in chat.astream(turns, model=model, **options):
                yield str(piece.text)

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text, which is cut if the model cannot read it whole.

        Calls with more texts than a question has wait for each other.
        """
        sent = [encodable(text) for text in texts]
        async with self._connections.here().bulk_limiter if len(texts) > _QUESTION_TEXTS else nullcontext():
            # Some versions of Ollama refuse a text that is too long, though they are told to cut it.
            return await embed_shortened(partial(self._checked_vectors, model), sent)

    async def prepare(self) -> None:
        """Load the client, which takes a second, before the first request."""
        await self._built(self._connections.here())

    async def close(self) -> None:
        """Close the running loop's connections."""
        await self._connections.close()

    @override
    async def check_chat(self, model: str) -> None:
        await self.chat(model, "Answer with one word: ready?", max_tokens=8)

    @override
    async def check_embedding(self, model: str) -> None:
        await self.embed(model, ["ready"])

    @abstractmethod
    async def _chosen(self, requested: str | None) -> str | None:
        """Choose a model where the settings name none."""

    @abstractmethod
    async def _named(self, model: str) -> str:
        """Give the name by which the host lists a model that writes."""

    @abstractmethod
    async def _usual_writer(self) -> str:
        """Choose the model that writes where nobody names one."""

    @abstractmethod
    async def _reply(self, model: str, turns: Turns, schema: Mapping[str, Any] | None, max_tokens: int) -> Reply: ...

    @abstractmethod
    async def _first_tokens(self, model: str, turns: Turns) -> object:
        """Ask for one token, and give what the answer tells of its alternatives."""

    @abstractmethod
    async def _writing_options(self, model: str, turns: Turns, max_tokens: int) -> dict[str, Any]:
        """Give the options with which the chat client streams an answer."""

    @abstractmethod
    async def _vectors(self, model: str, texts: list[str]) -> object: ...

    @abstractmethod
    def _build_chat(self, connection: Connection) -> "BaseChatModel":
        """Make the chat client. Each call names its model."""

    @abstractmethod
    def _refused(self, status: int, reason: str, *, keyed: bool) -> ServiceUnavailable:
        """Make the error for a status other than 200. `keyed` says if the host got a key."""

    @abstractmethod
    def _note(self, failure: ServiceUnavailable) -> None:
        """Update what is remembered of the host after a failure of a model."""

    async def _message(self, turns: Turns, **options: Any) -> "AIMessage":
        async with self._chat_client() as chat:
            return await chat.ainvoke(list(turns), **options)

    @asynccontextmanager
    async def _chat_client(self) -> AsyncIterator["BaseChatModel"]:
        """Yield the chat client once there is room for another call."""
        connection = self._connections.here()
        with self._translated(note=True):
            chat = await self._built(connection)
            from langsmith import tracing_context

            async with connection.limiter:
                # Prompts contain the user's evidence: only the host gets them, whatever LANGSMITH_* says.
                with tracing_context(enabled=False):
                    yield chat

    async def _built(self, connection: Connection) -> "BaseChatModel":
        if connection.chat is None:
            # In a thread the imports do not block other requests.
            connection.chat = asyncio.create_task(asyncio.to_thread(self._build_chat, connection))
        try:
            return await asyncio.shield(connection.chat)
        except Exception:
            connection.chat = None
            raise

    async def _checked_vectors(self, model: str, texts: list[str]) -> list[list[float]]:
        with self._translated(note=True):
            async with self._connections.here().limiter:
                vectors = await self._vectors(model, texts)
        if not isinstance(vectors, list) or len(vectors) != len(texts):
            raise self._failure(f"{model} did not answer one vector for each text")
        return vectors

    async def _json(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, seconds: float | None = None
    ) -> Any:
        """Ask the host something short about itself, or with `seconds` something of a model."""
        with self._translated():
            response = await self._connections.here().http.request(
                method,
                self.url + path,
                content=None if body is None else orjson.dumps(body),
                headers={"Content-Type": "application/json"},
                timeout=httpx.Timeout(seconds or self.metadata_seconds, connect=self.connect_seconds, pool=None),
            )
            if response.status_code != httpx.codes.OK:
                raise self._refusal(response.status_code, response.text)
            try:
                return orjson.loads(response.content)
            except orjson.JSONDecodeError:
                return json.loads(response.content)  # it knows NaN, which some hosts answer for a vector

    @contextmanager
    def _translated(self, *, note: bool = False) -> Iterator[None]:
        """Raise what goes wrong as `ServiceUnavailable`, and `note` it."""
        try:
            yield
        except Exception as error:
            failure = self._failure_of(error)
            if note:
                self._note(failure)
            if failure is error:
                raise
            raise failure from error

    def _failure_of(self, error: Exception) -> ServiceUnavailable:
        """Make the error for a failed call. It quotes neither the request nor a key."""
        if isinstance(error, ServiceUnavailable):
            return error
        causes = [*_causes(error)]
        if wrong := next((each for each in causes if isinstance(each, ConfigurationError | Unreadable)), None):
            return self._failure(str(wrong))  # of the key
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= httpx.codes.MULTIPLE_CHOICES:
            return self._refusal(status, getattr(error, "body", None) or getattr(error, "error", ""))
        if any(isinstance(each, AnswerTooLong) for each in causes):
            return self._failure(f"{self.called}'s answer is too long")
        # httpx-aiohttp reports a refused connection as one that took too long, and OpenAI's client as a late answer.
        unconnected = any(isinstance(each, httpx.ConnectTimeout | httpx.ConnectError) for each in causes)
        late = any(isinstance(each, httpx.TimeoutException | aiohttp.SocketTimeoutError) for each in causes)
        if late and not unconnected:
            return self._failure(f"{self.called} took too long to answer")
        if unconnected or isinstance(error, (httpx.TransportError, aiohttp.ClientError, OSError, *self.lost)):
            return HostSilent(self.component, f"{self.called} does not answer{way_to(self.url)}").at(self.url)
        return self._failure(self.foreign.format(type(error).__name__))

    def _refusal(self, status: int, body: object) -> ServiceUnavailable:
        keys = self._connections.here().auth.sent
        reason = without(keys, reason_in(body))[:_REASON_CHARACTERS]
        return self._refused(status, reason, keyed=any(keys)).at(self.url)

    def _failure(self, message: str) -> ServiceUnavailable:
        return ServiceUnavailable(self.component, message).at(self.url)


def _turns(messages: Sequence[Mapping[str, str]]) -> Turns:
    return [(message["role"], encodable(message["content"])) for message in messages]


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
