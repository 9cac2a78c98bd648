"""A host with OpenAI's API: its models, the choice of a model, and calls to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import openai
from cachetools import TTLCache
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from typing_extensions import override

from cragside.adapters.model_host.text_host import (
    TOP_TOKENS,
    Connection,
    HostSilent,
    Refused,
    Reply,
    TextHost,
    Turns,
    parameters_in,
)
from cragside.databases.renewable import RememberedAnswer, Renewable
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.exchange import without_thoughts
from cragside.ports.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


COMPONENT = "model_host"
_MODELS_REMEMBERED = 64
_LEARNT_SECONDS = 600.0
# A model whose thoughts took all of an answer's tokens gets this many more.
_THINKING_TOKENS = 1024
# OpenAI's own models refuse `max_tokens`; other hosts may not know the newer name.
_OPENAIS = ("api.openai.com",)
# llama.cpp closes the connection behind each stream, though it says otherwise: the next request would be lost on it.
_LAST_REQUEST = {"Connection": "close"}
# OpenAI's client insists on a key. `KeyAuth` puts the real one, or none, in its place.
_NO_KEY = "none"
# In the words of vLLM, OpenRouter and Groq.
_WINDOWS = ("max_model_len", "context_length", "context_window")


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model's longest context, and the context that the host gives it, in tokens, and its number of parameters.

    None where the host is silent.
    """

    longest: int | None = None
    window: int | None = None
    parameters: int | None = None


def models_in(answer: Any) -> Mapping[str, ListedModel]:
    """Return the models of `GET /v1/models`. Raises `ValueError` for an answer that is no such list."""
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no data")
    return {each["id"]: _model(each) for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)}


def _model(listed: Mapping[str, Any]) -> ListedModel:
    meta = listed.get("meta")  # llama.cpp's
    meta = meta if isinstance(meta, dict) else {}
    window = _first(*(listed.get(name) for name in _WINDOWS), meta.get("n_ctx"))
    return ListedModel(window or _first(meta.get("n_ctx_train")), window, _first(meta.get("n_params")))


def _first(*values: object) -> int | None:
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), None)


class OpenAIHost(TextHost):
    """Remembers the list of models for 30 seconds, and the host's silence for five.

    A host without such a list is asked for whatever model is named.
    """

    component = COMPONENT
    called = "The model host"
    foreign = "The answer is not one of OpenAI's API ({}). Correct RAG_MODEL_HOST"
    connect_seconds = 5.0
    metadata_seconds = 10.0
    lost = (openai.APIConnectionError,)

    def __init__(
        self,
        base_url: str,
        key: Renewable[str],
        *,
        parallel: int,
        chat_model: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(base_url, key, parallel=parallel, chat_model=chat_model)
        self._limit = "max_completion_tokens" if urlsplit(base_url).hostname in _OPENAIS else "max_tokens"
        self._listed = RememberedAnswer(self._fetch_list, component=COMPONENT, clock=clock)
        self._schemaless: TTLCache[str, bool] = TTLCache(_MODELS_REMEMBERED, _LEARNT_SECONDS, timer=clock.monotonic)
        self._thinking: TTLCache[str, bool] = TTLCache(_MODELS_REMEMBERED, _LEARNT_SECONDS, timer=clock.monotonic)

    @override
    async def version(self) -> str:
        listed = await self._listed.get()
        return "OpenAI's API, no list of models" if listed is None else f"OpenAI's API, {len(listed)} models"

    @override
    async def models(self) -> frozenset[str]:
        return frozenset(await self._listed.get() or ())

    @override
    async def has(self, model: str) -> bool:
        listed = await self._listed.get()
        return listed is None or _name_in(listed, model) is not None

    @override
    def lacking(self, model: str) -> ServiceUnavailable:
        return self._failure(f"The model host does not list {model}. Name one of its models")

    @override
    async def context_length(self, model: str) -> int | None:
        return (await self._model(model)).longest

    @override
    async def window(self, model: str, *, load: bool = True) -> int | None:
        return (await self._model(model)).window

    @override
    async def parameters(self, model: str) -> int | None:
        return (await self._model(model)).parameters or parameters_in(model)

    @override
    async def _chosen(self, requested: str | None) -> str | None:
        return await self._named(requested) if requested and await self.has(requested) else None

    @override
    async def _named(self, model: str) -> str:
        listed = await self._listed.get()
        name = model if listed is None else _name_in(listed, model)
        if name is None:
            raise self.lacking(model)
        return name

    @override
    async def _usual_writer(self) -> str:
        models = await self.models()
        if len(models) == 1:
            return next(iter(models))
        # Which of several models writes, and at what price, their names do not say.
        raise self._failure("No model is named that writes. Name one in RAG_CHAT_MODEL")

    @override
    async def _reply(self, model: str, turns: Turns, schema: Mapping[str, Any] | None, max_tokens: int) -> Reply:
        known = model in self._thinking
        reply = await self._answered(model, turns, schema, max_tokens + (_THINKING_TOKENS if known else 0))
        if known or reply.complete or reply.text.strip():
            return reply
        self._thinking[model] = True
        return await self._answered(model, turns, schema, max_tokens + _THINKING_TOKENS)

    @override
    async def _first_tokens(self, model: str, turns: Turns) -> object:
        fields = {self._limit: 1, "logprobs": True, "top_logprobs": TOP_TOKENS}
        try:
            message = await self._message(turns, model=model, extra_body=fields)
        except Refused as refusal:
            if not refusal.may_be_form:
                raise
            return None  # models that think, and some hosts, do not know the request
        logprobs = message.response_metadata.get("logprobs")
        return logprobs.get("content") if isinstance(logprobs, dict) else None

    @override
    async def _writing_options(self, model: str, turns: Turns, max_tokens: int) -> dict[str, Any]:
        return {"extra_headers": _LAST_REQUEST, "extra_body": {self._limit: max_tokens}}

    @override
    async def _vectors(self, model: str, texts: list[str]) -> object:
        connection = self._connections.here()
        await self._built(connection)
        return await connection.embeddings.aembed_documents(texts, model=model, encoding_format="float")

    @override
    def _build_chat(self, connection: Connection) -> ChatOpenAI:
        shared: dict[str, Any] = {
            "model": "",
            "base_url": self.url,
            "api_key": _NO_KEY,
            "http_async_client": connection.http,
            # The library would make a client for calls that wait, which nobody makes here, and read the environment.
            "http_client": httpx.Client(transport=httpx.BaseTransport()),
            "openai_proxy": None,
            "max_retries": 0,
        }
        connection.embeddings = OpenAIEmbeddings(**shared, check_embedding_ctx_length=False)
        return ChatOpenAI(**shared, temperature=0.0, use_responses_api=False, stream_usage=False)

    @override
    def _refused(self, status: int, reason: str, *, keyed: bool) -> ServiceUnavailable:
        if status in (401, 403):
            # Hosts quote a part of the key in their answer.
            problem = f"refused the key ({status}). Correct" if keyed else f"asks for a key ({status}). Set"
            return Refused(COMPONENT, status, f"The model host {problem} OPENAI_API_KEY")
        remedy = ". Correct RAG_MODEL_HOST, or name one of its models" if status == 404 else ""
        return Refused(COMPONENT, status, f"The model host answered {status}{f': {reason}' if reason else ''}{remedy}")

    @override
    def _note(self, failure: ServiceUnavailable) -> None:
        if isinstance(failure, HostSilent):
            self._listed.failed(failure)

    async def _answered(self, model: str, turns: Turns, schema: Mapping[str, Any] | None, most: int) -> Reply:
        fields: dict[str, Any] = {self._limit: most}
        if schema is None or model in self._schemaless:
            return _reply_of(await self._message(turns, model=model, extra_body=fields))
        form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        try:
            return _reply_of(await self._message(turns, model=model, extra_body={**fields, "response_format": form}))
        except Refused as refusal:
            if not refusal.may_be_form:
                raise
            # Some hosts know no schemas. The prompt asks for JSON too, and whoever asked checks the answer.
            message = await self._message(turns, model=model, extra_body=fields)
            self._schemaless[model] = True
            return _reply_of(message)

    async def _model(self, model: str) -> ListedModel:
        listed = await self._listed.get() or {}
        return listed.get(_name_in(listed, model) or "", ListedModel())

    async def _fetch_list(self) -> Mapping[str, ListedModel] | None:
        """Return the models; None if the host has no list of them."""
        try:
            with self._translated():
                return models_in(await self._json("GET", "/models"))
        except Refused as refusal:
            if refusal.status in (404, 405):
                return None
            raise


def _reply_of(message: "AIMessage") -> Reply:
    return Reply(without_thoughts(str(message.text)), message.response_metadata.get("finish_reason") != "length")


def _name_in(listed: Mapping[str, ListedModel], model: str) -> str | None:
    """Return the name under which the host lists a model. Ollama adds the tag `latest`."""
    return next((name for name in (model, f"{model}:latest") if name in listed), None)
