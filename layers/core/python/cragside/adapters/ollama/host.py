"""An Ollama host: its models, the choice of a model, and calls to them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import FIFOCache
from typing_extensions import override

from cragside.adapters.host_address import HostAddress
from cragside.adapters.model_host.refusals import embedded
from cragside.adapters.model_host.sizes import parameters_in
from cragside.adapters.model_host.text import sendable
from cragside.adapters.model_host.text_host import QUESTION_TEXTS, Reply, TextHost
from cragside.adapters.model_host.token_chances import TOP_TOKENS, probabilities
from cragside.adapters.ollama.connection import Connections, HostSilent, ModelMissing
from cragside.adapters.ollama.model_card import ModelCard, card_of, is_number
from cragside.adapters.remembered import RememberedAnswer
from cragside.adapters.renewable import Fixed, Renewable
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.exchange import without_thoughts
from cragside.domain.token_counts import ModelWindows, most_tokens, spelt_alike, window_brought
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.models import EMBEDDED

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

NO_KEY = Fixed("")
FALLBACK_MODEL = "qwen2.5:7b"
# Ollama's smallest default window. On GPUs of 23 and 47 GiB the default is 32,768 and 262,144 tokens (server/routes.go
# of 0.17.4). A client sees it only in /api/ps, once the model is loaded.
_SMALLEST_DEFAULT = 4096
_LOADED_SECONDS = 5.0
_MODELS_REMEMBERED = 64
# Room that is kept for an answer whose length nobody has limited.
ANSWER_TOKENS = 1024
# Some models think although they are told not to. Their answers need this many tokens more.
_THINKING_TOKENS = 1024


class OllamaHost(TextHost):
    """Calls models, at most `parallel` at once; other calls wait.

    Answers about the host are cached for 30 seconds, and its silence for five. So a new Ollama is noticed soon, and a
    dead one costs nothing. `window` loads the model if it must, as a request would. No message shows the key, or the
    credentials in `base_url`.
    """

    def __init__(
        self,
        base_url: str,
        key: Renewable[str] = NO_KEY,
        *,
        parallel: int,
        chat_model: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._connections = Connections(HostAddress.parse(base_url), key, parallel)
        self._chat_model = chat_model
        self._clock = clock
        self.windows = ModelWindows()
        self._version = RememberedAnswer(self._fetch_version, clock=clock)
        self._models = RememberedAnswer(self._fetch_models, clock=clock)
        self._loaded = RememberedAnswer(self._fetch_loaded, fine=_LOADED_SECONDS, clock=clock)
        self._cards: FIFOCache[str, RememberedAnswer[ModelCard]] = FIFOCache(_MODELS_REMEMBERED)
        self._windows: FIFOCache[str, RememberedAnswer[int | None]] = FIFOCache(_MODELS_REMEMBERED)

    @property
    @override
    def url(self) -> str:
        return self._connections.address.url

    @override
    async def version(self) -> str:
        return await self._version.get()

    @override
    async def models(self) -> frozenset[str]:
        return await self._models.get()

    @override
    async def has(self, model: str) -> bool:
        return await self._listed_as(model) is not None

    @override
    def lacking(self, model: str) -> ServiceUnavailable:
        return ServiceUnavailable("ollama", f"Ollama does not have {model}. Run `ollama pull {model}`").at(self.url)

    @override
    async def context_length(self, model: str) -> int | None:
        return (await self._card(model)).context_length if await self.has(model) else None

    @override
    async def window(self, model: str, *, load: bool = True) -> int | None:
        name = spelt_alike(model)
        loaded = await self._loaded.get()
        kept = None if loaded is None or load else self.windows.kept(name)
        if kept or loaded is None or name in loaded or not await self.has(name):
            return max(kept or 0, (loaded or {}).get(name, 0)) or None
        card = await self._card(name)
        if card.num_ctx is not None:
            return min(card.num_ctx, card.context_length or card.num_ctx)
        if not load:
            return 0
        return await self._windows.setdefault(name, RememberedAnswer(lambda: self._load(name), clock=self._clock)).get()

    @override
    async def choose(self, requested: str | None) -> str | None:
        if self._chat_model == EMBEDDED:
            return None
        if self._chat_model is not None:
            return await self._writing(self._chat_model)
        for model in (requested, FALLBACK_MODEL):
            listed = await self._listed_as(model) if model else None
            if listed and (await self._card(listed)).completes:
                return listed
        return None

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
        """See `TextHost`.

        `num_ctx` is the host's window, or larger if the text needs it: Ollama reloads the model for another value.
        """
        turns = [*([("system", system)] if system else []), *((t["role"], t["content"]) for t in history)]
        asked = await self._asked(model, [*turns, ("user", prompt)], max_tokens)
        if schema is not None:
            asked["format"] = schema
        message = await self._chat(asked)
        return Reply(without_thoughts(str(message.text)), message.response_metadata.get("done_reason") != "length")

    @override
    async def first_tokens(self, model: str, prompt: str, *, system: str) -> Mapping[str, float]:
        asked = await self._asked(model, [("system", system), ("user", prompt)], 1)
        asked["options"]["num_predict"] = 1
        message = await self._chat({**asked, "logprobs": True, "top_logprobs": TOP_TOKENS})
        return probabilities(message.response_metadata.get("logprobs"))

    @override
    async def parameters(self, model: str) -> int | None:
        return (await self._card(model)).parameters or parameters_in(model)

    @override
    async def writer(self, wanted: str | None) -> str:
        named = wanted or (self._chat_model if self._chat_model != EMBEDDED else None)
        if named:
            return await self._writing(named)
        for model in (FALLBACK_MODEL, *sorted(await self.models())):
            if await self.has(model) and (await self._card(model)).completes:
                return model
        raise ServiceUnavailable(
            "ollama", f"Ollama has no model that writes text. Run `ollama pull {FALLBACK_MODEL}`"
        ).at(self.url)

    @override
    async def write(self, model: str, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> AsyncIterator[str]:
        turns = [(message["role"], sendable(message["content"])) for message in messages]
        context = await self._context_for(model, ANSWER_TOKENS + sum(most_tokens(text) + 8 for _, text in turns))
        options = {"num_predict": max_tokens, **({} if context is None else {"num_ctx": context})}
        connection = self._connections.here()
        try:
            chat = await connection.chat_model()
            from langsmith import tracing_context

            async with connection.limiter:
                with tracing_context(enabled=False):
                    async for piece in chat.astream(turns, model=model, options=options):
                        yield str(piece.text)
        except Exception as error:
            failure = self._connections.translated(error)
            self._note(failure)
            raise failure from error

    @override
    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        sent = [sendable(text) for text in texts]
        async with self._connections.here().bulk_limiter if len(texts) > QUESTION_TEXTS else nullcontext():
            # Some versions refuse a text that is too long, though they are told to cut it.
            return await embedded(partial(self._vectors, model), sent)

    @override
    async def prepare(self) -> None:
        await self._connections.here().chat_model()

    @override
    async def close(self) -> None:
        await self._connections.close()

    async def _vectors(self, model: str, texts: list[str]) -> list[list[float]]:
        try:
            answer = await self._connections.answer("/api/embed", {"model": model, "input": texts, "truncate": True})
        except ServiceUnavailable as failure:
            self._note(failure)
            raise
        vectors = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(vectors, list) or len(vectors) != len(texts):
            raise ServiceUnavailable("ollama", f"{model} did not answer one vector for each text").at(self.url)
        return vectors

    async def _asked(self, model: str, turns: Sequence[tuple[str, str]], max_tokens: int) -> dict[str, Any]:
        """The arguments of a call that is answered alike each time, whatever the model's own settings are."""
        turns = [(role, sendable(text)) for role, text in turns]
        thinks = (await self._card(model)).thinks
        limit = max_tokens + (_THINKING_TOKENS if thinks else 0)
        # A penalty for repeated words changes grades, and forbids what a schema demands.
        options: dict[str, Any] = {"temperature": 0, "repeat_penalty": 1.0, "num_predict": limit}
        context = await self._context_for(model, limit + sum(most_tokens(text) + 8 for _, text in turns))
        if context is not None:
            options["num_ctx"] = context
        asked: dict[str, Any] = {"input": turns, "model": model, "options": options, "stream": False}
        return {**asked, "reasoning": False} if thinks else asked

    async def _chat(self, asked: Mapping[str, Any]) -> "AIMessage":
        connection = self._connections.here()
        try:
            chat = await connection.chat_model()
            from langsmith import tracing_context

            async with connection.limiter:
                # Prompts contain the user's evidence: only the host gets them, whatever LANGSMITH_* says.
                with tracing_context(enabled=False):
                    return await chat.ainvoke(**asked)
        except Exception as error:
            failure = self._connections.translated(error)
            self._note(failure)
            raise failure from error

    def _note(self, failure: ServiceUnavailable) -> None:
        if isinstance(failure, HostSilent):
            self._version.failed(failure)
            self._models.failed(failure)
        elif isinstance(failure, ModelMissing):
            self._models.forget()

    async def _writing(self, model: str) -> str:
        listed = await self._listed_as(model)
        if listed is None:
            raise self.lacking(model)
        if not (await self._card(listed)).completes:
            raise ServiceUnavailable("ollama", f"{model} writes no text. Name a chat model")
        return listed

    async def _listed_as(self, model: str) -> str | None:
        """The name under which the host lists a model, however it is spelt here."""
        wanted = spelt_alike(model)
        return next((name for name in await self.models() if spelt_alike(name) == wanted), None)

    async def _context_for(self, model: str, tokens: int) -> int | None:
        window = window_brought(model) or self.windows.kept(model) or await self.window(model)
        if tokens <= (window or _SMALLEST_DEFAULT):
            return window
        longest = (await self._card(model)).context_length
        wanted = 1 << (tokens - 1).bit_length()
        raised = max(window or 0, min(wanted, longest or wanted))
        self.windows.keep(model, raised)
        return raised

    async def _card(self, model: str) -> ModelCard:
        name = await self._listed_as(model) or model
        return await self._cards.setdefault(
            name, RememberedAnswer(lambda: self._fetch_card(name), clock=self._clock)
        ).get()

    async def _fetch_card(self, model: str) -> ModelCard:
        try:
            return card_of(await self._connections.json("POST", "/api/show", {"model": model}))
        except HostSilent:
            raise
        except ServiceUnavailable:  # gateways and llama.cpp have no such route
            return ModelCard()

    async def _load(self, model: str) -> int | None:
        """Have the host load a model. Return its window."""
        listed = await self._listed_as(model) or model
        await self._connections.answer("/api/generate", {"model": listed, "stream": False})
        self._loaded.forget()
        return (await self._loaded.get() or {}).get(model)

    async def _fetch_version(self) -> str:
        answer = await self._connections.json("GET", "/api/version")
        return str(_field(answer, "version", str, self.url))

    async def _fetch_models(self) -> frozenset[str]:
        models = _field(await self._connections.json("GET", "/api/tags"), "models", list, self.url)
        return frozenset(str(m["name"]) for m in models if isinstance(m, dict) and m.get("name"))

    async def _fetch_loaded(self) -> dict[str, int] | None:
        """The windows of loaded models; None if the host has no /api/ps."""
        try:
            models = _field(await self._connections.json("GET", "/api/ps"), "models", list, self.url)
        except HostSilent:
            raise
        except ServiceUnavailable:
            return None
        contexts = ((m.get("name"), m.get("context_length")) for m in models if isinstance(m, dict))
        return {
            spelt_alike(name): context for name, context in contexts if isinstance(name, str) and is_number(context)
        }


def _field(answer: Any, name: str, kind: type, url: str) -> Any:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise ServiceUnavailable("ollama", f"OLLAMA_BASE_URL does not speak Ollama's API: no {name} in its answer").at(
            url
        )
    return value
