"""A host with OpenAI's API: its models, the choice of a model, and calls to them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cachetools import TTLCache
from langsmith import tracing_context
from typing_extensions import override

from cragside.adapters.model_host.refusals import Refused, embedded
from cragside.adapters.model_host.sizes import parameters_in
from cragside.adapters.model_host.text import sendable
from cragside.adapters.model_host.text_host import QUESTION_TEXTS, Reply, TextHost
from cragside.adapters.model_host.token_chances import TOP_TOKENS, probabilities
from cragside.adapters.openai.clients import Clients
from cragside.adapters.openai.failures import COMPONENT, HostSilent, translated
from cragside.adapters.openai.listing import ListedModel, models_in
from cragside.adapters.remembered import RememberedAnswer
from cragside.adapters.renewable import Renewable
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.exchange import without_thoughts
from cragside.domain.token_counts import ModelWindows
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.models import EMBEDDED

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

_MODELS_REMEMBERED = 64
_LEARNT_SECONDS = 600.0
# A model whose thoughts took all of an answer's tokens gets this many more.
_THINKING_TOKENS = 1024
# OpenAI's own models refuse `max_tokens`; other hosts may not know the newer name.
_OPENAIS = ("api.openai.com",)
# llama.cpp closes the connection behind each stream, though it says otherwise: the next request would be lost on it.
_LAST_REQUEST = {"Connection": "close"}


class OpenAIHost(TextHost):
    """Calls models, at most `parallel` at once; other calls wait.

    The list of models is cached for 30 seconds, and the host's silence for five. A host without such a list is asked
    for whatever model is named.
    """

    def __init__(
        self,
        url: str,
        key: Renewable[str],
        *,
        parallel: int,
        chat_model: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clients = Clients(url, key, parallel)
        self._chat_model = chat_model
        self.windows = ModelWindows()  # none: such a host decides its windows itself
        self._limit = "max_completion_tokens" if urlsplit(url).hostname in _OPENAIS else "max_tokens"
        self._listed = RememberedAnswer(self._fetch_list, component=COMPONENT, clock=clock)
        self._schemaless: TTLCache[str, bool] = TTLCache(_MODELS_REMEMBERED, _LEARNT_SECONDS, timer=clock.monotonic)
        self._thinking: TTLCache[str, bool] = TTLCache(_MODELS_REMEMBERED, _LEARNT_SECONDS, timer=clock.monotonic)

    @property
    @override
    def url(self) -> str:
        return self._clients.url

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
        message = f"The model host does not list {model}. Name one of its models"
        return ServiceUnavailable(COMPONENT, message).at(self.url)

    @override
    async def context_length(self, model: str) -> int | None:
        return (await self._model(model)).longest

    @override
    async def window(self, model: str, *, load: bool = True) -> int | None:
        return (await self._model(model)).window

    @override
    async def choose(self, requested: str | None) -> str | None:
        if self._chat_model == EMBEDDED:
            return None
        if self._chat_model is not None:
            return await self._listed_as(self._chat_model)
        return await self._listed_as(requested) if requested and await self.has(requested) else None

    @override
    async def writer(self, wanted: str | None) -> str:
        named = wanted or (self._chat_model if self._chat_model != EMBEDDED else None)
        if named:
            return await self._listed_as(named)
        models = await self.models()
        if len(models) == 1:
            return next(iter(models))
        # Which of several models writes, and at what price, their names do not say.
        raise ServiceUnavailable(COMPONENT, "No model is named that writes. Name one in RAG_CHAT_MODEL").at(self.url)

    @override
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
        turns = [*([("system", system)] if system else []), *((t["role"], t["content"]) for t in history)]
        turns = [(role, sendable(text)) for role, text in (*turns, ("user", prompt))]
        known = model in self._thinking
        reply = await self._answered(model, turns, schema, max_tokens + (_THINKING_TOKENS if known else 0))
        if known or reply.complete or reply.text.strip():
            return reply
        self._thinking[model] = True
        return await self._answered(model, turns, schema, max_tokens + _THINKING_TOKENS)

    @override
    async def first_tokens(self, model: str, prompt: str, *, system: str) -> Mapping[str, float]:
        turns = [("system", sendable(system)), ("user", sendable(prompt))]
        fields = {self._limit: 1, "logprobs": True, "top_logprobs": TOP_TOKENS}
        try:
            message = await self._message(model, turns, fields)
        except Refused as refusal:
            if refusal.status not in (400, 422):
                raise
            return {}  # models that think, and some hosts, do not know the request
        told = message.response_metadata.get("logprobs")
        return probabilities(told.get("content") if isinstance(told, dict) else None)

    @override
    async def parameters(self, model: str) -> int | None:
        return (await self._model(model)).parameters or parameters_in(model)

    @override
    async def write(self, model: str, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> AsyncIterator[str]:
        turns = [(message["role"], sendable(message["content"])) for message in messages]
        limit = {self._limit: max_tokens}
        clients = self._clients.here()
        try:
            async with clients.limiter:
                with tracing_context(enabled=False):
                    async for piece in clients.chat.astream(
                        turns, model=model, extra_headers=_LAST_REQUEST, extra_body=limit
                    ):
                        yield str(piece.text)
        except Exception as error:
            raise self._noted(error) from error

    @override
    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        clients = self._clients.here()
        sent = [sendable(text) for text in texts]
        async with clients.bulk_limiter if len(texts) > QUESTION_TEXTS else nullcontext():
            return await embedded(partial(self._vectors, model), sent)

    @override
    async def prepare(self) -> None:
        self._clients.here()

    @override
    async def close(self) -> None:
        await self._clients.close()

    async def _answered(
        self, model: str, turns: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None, most: int
    ) -> Reply:
        fields: dict[str, Any] = {self._limit: most}
        if schema is None or model in self._schemaless:
            return await self._chat(model, turns, fields)
        form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        try:
            return await self._chat(model, turns, {**fields, "response_format": form})
        except Refused as refusal:
            if refusal.status not in (400, 422):
                raise
            # Some hosts know no schemas. The prompt asks for JSON too, and whoever asked checks the answer.
            reply = await self._chat(model, turns, fields)
            self._schemaless[model] = True
            return reply

    async def _chat(self, model: str, turns: Sequence[tuple[str, str]], fields: Mapping[str, Any]) -> Reply:
        message = await self._message(model, turns, fields)
        return Reply(without_thoughts(str(message.text)), message.response_metadata.get("finish_reason") != "length")

    async def _message(self, model: str, turns: Sequence[tuple[str, str]], fields: Mapping[str, Any]) -> "AIMessage":
        clients = self._clients.here()
        try:
            async with clients.limiter:
                # Prompts contain the user's evidence: only the host gets them, whatever LANGSMITH_* says.
                with tracing_context(enabled=False):
                    return await clients.chat.ainvoke(list(turns), model=model, extra_body=dict(fields))
        except Exception as error:
            raise self._noted(error) from error

    async def _vectors(self, model: str, texts: list[str]) -> list[list[float]]:
        clients = self._clients.here()
        try:
            async with clients.limiter:
                vectors = await clients.embeddings.aembed_documents(texts, model=model, encoding_format="float")
        except Exception as error:
            raise self._noted(error) from error
        if len(vectors) != len(texts):
            raise ServiceUnavailable(COMPONENT, f"{model} did not answer one vector for each text").at(self.url)
        return vectors

    def _noted(self, error: Exception) -> ServiceUnavailable:
        failure = translated(self.url, error, self._clients.here().auth.sent)
        if isinstance(failure, HostSilent):
            self._listed.failed(failure)
        return failure

    async def _listed_as(self, model: str) -> str:
        listed = await self._listed.get()
        name = model if listed is None else _name_in(listed, model)
        if name is None:
            raise self.lacking(model)
        return name

    async def _model(self, model: str) -> ListedModel:
        listed = await self._listed.get() or {}
        return listed.get(_name_in(listed, model) or "", ListedModel())

    async def _fetch_list(self) -> Mapping[str, ListedModel] | None:
        """The models; None if the host has no list of them."""
        try:
            return models_in(await self._clients.here().json("/models"))
        except Refused as refusal:
            if refusal.status in (404, 405):
                return None
            raise
        except Exception as error:
            raise translated(self.url, error, self._clients.here().auth.sent) from error


def _name_in(listed: Mapping[str, ListedModel], model: str) -> str | None:
    """The name under which the host lists a model. Ollama adds the tag `latest`."""
    return next((name for name in (model, f"{model}:latest") if name in listed), None)
