"""An Ollama host: its models, the choice of a model, and calls to them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from cachetools import FIFOCache
from typing_extensions import override

from cragside.adapters.model_host.text_host import (
    ANSWER_SECONDS,
    TOP_TOKENS,
    Connection,
    HostSilent,
    Refused,
    Reply,
    TextHost,
    Turns,
    parameters_in,
)
from cragside.databases.renewable import Fixed, RememberedAnswer, Renewable
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.exchange import without_thoughts
from cragside.domain.token_counts import most_tokens, spelt_alike, stated_window
from cragside.ports.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from langchain_ollama import ChatOllama

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


class ModelMissing(ServiceUnavailable):
    """The host does not have the model."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The host's description of a model; empty if the host has no /api/show."""

    context_length: int | None = None
    num_ctx: int | None = None
    capabilities: frozenset[str] | None = None
    parameters: int | None = None

    @property
    def completes(self) -> bool:
        """Tell if it writes text. Hosts before 0.6.4 do not say; then it is assumed."""
        return self.capabilities is None or "completion" in self.capabilities

    @property
    def thinks(self) -> bool:
        """Tell if it thinks before it answers."""
        return self.capabilities is not None and "thinking" in self.capabilities


def is_number(value: Any) -> TypeGuard[int]:
    """Tell if a value of the host's JSON is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def card_of(shown: Any) -> ModelCard:
    """Return the card in what /api/show answers."""
    if not isinstance(shown, dict):
        return ModelCard()
    info = shown.get("model_info")
    facts = info.items() if isinstance(info, dict) else ()
    lengths = [value for key, value in facts if key.endswith(".context_length") and is_number(value) and value > 0]
    own = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(shown.get("parameters") or ""), re.MULTILINE)
    capabilities = shown.get("capabilities")
    count = info.get("general.parameter_count") if isinstance(info, dict) else None
    details = shown.get("details")
    size = str(details.get("parameter_size") or "") if isinstance(details, dict) else ""
    return ModelCard(
        context_length=lengths[0] if lengths else None,
        num_ctx=int(own.group(1)) if own and int(own.group(1)) > 0 else None,
        capabilities=frozenset(map(str, capabilities)) if isinstance(capabilities, list) else None,
        parameters=count if is_number(count) and count > 0 else parameters_in(size),
    )


class OllamaHost(TextHost):
    """Remembers answers about the host for 30 seconds, and its silence for five.

    So a new Ollama is noticed soon, and a dead one costs nothing. `window` loads the model if it must, as a request
    would.
    """

    component = "ollama"
    called = "Ollama"
    foreign = "the answer is not Ollama's ({}). Correct OLLAMA_BASE_URL"
    connect_seconds = 1.0
    metadata_seconds = 5.0

    def __init__(
        self,
        base_url: str,
        key: Renewable[str] = NO_KEY,
        *,
        parallel: int,
        chat_model: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(base_url, key, parallel=parallel, chat_model=chat_model)
        self._clock = clock
        self._version = RememberedAnswer(self._fetch_version, clock=clock)
        self._models = RememberedAnswer(self._fetch_models, clock=clock)
        self._loaded = RememberedAnswer(self._fetch_loaded, fine=_LOADED_SECONDS, clock=clock)
        self._cards: FIFOCache[str, RememberedAnswer[ModelCard]] = FIFOCache(_MODELS_REMEMBERED)
        self._windows: FIFOCache[str, RememberedAnswer[int | None]] = FIFOCache(_MODELS_REMEMBERED)

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
        return self._failure(f"Ollama does not have {model}. Run `ollama pull {model}`")

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
    async def parameters(self, model: str) -> int | None:
        return (await self._card(model)).parameters or parameters_in(model)

    @override
    async def _chosen(self, requested: str | None) -> str | None:
        for model in (requested, FALLBACK_MODEL):
            listed = await self._listed_as(model) if model else None
            if listed and (await self._card(listed)).completes:
                return listed
        return None

    @override
    async def _named(self, model: str) -> str:
        listed = await self._listed_as(model)
        if listed is None:
            raise self.lacking(model)
        if not (await self._card(listed)).completes:
            raise ServiceUnavailable("ollama", f"{model} writes no text. Name a chat model")
        return listed

    @override
    async def _usual_writer(self) -> str:
        for model in (FALLBACK_MODEL, *sorted(await self.models())):
            if await self.has(model) and (await self._card(model)).completes:
                return model
        raise self._failure(f"Ollama has no model that writes text. Run `ollama pull {FALLBACK_MODEL}`")

    @override
    async def _reply(self, model: str, turns: Turns, schema: Mapping[str, Any] | None, max_tokens: int) -> Reply:
        asked = await self._asked(model, turns, max_tokens)
        message = await self._message(turns, **asked, **({} if schema is None else {"format": schema}))
        return Reply(without_thoughts(str(message.text)), message.response_metadata.get("done_reason") != "length")

    @override
    async def _first_tokens(self, model: str, turns: Turns) -> object:
        asked = await self._asked(model, turns, 1)
        asked["options"]["num_predict"] = 1
        message = await self._message(turns, **asked, logprobs=True, top_logprobs=TOP_TOKENS)
        return message.response_metadata.get("logprobs")

    @override
    async def _writing_options(self, model: str, turns: Turns, max_tokens: int) -> dict[str, Any]:
        return {"options": {"num_predict": max_tokens, **await self._context_for(model, turns, ANSWER_TOKENS)}}

    @override
    async def _vectors(self, model: str, texts: list[str]) -> object:
        asked = {"model": model, "input": texts, "truncate": True}
        answer = await self._json("POST", "/api/embed", asked, seconds=ANSWER_SECONDS)
        return answer.get("embeddings") if isinstance(answer, dict) else None

    @override
    def _build_chat(self, connection: Connection) -> "ChatOllama":
        from cragside.adapters.ollama.chat_client import chat_client

        return chat_client(self.url, **connection.options)

    @override
    def _refused(self, status: int, reason: str, *, keyed: bool) -> ServiceUnavailable:
        if status == 404 and "model" in reason.lower():
            return ModelMissing("ollama", reason)
        if status in (401, 403):
            remedy = "Correct OLLAMA_API_KEY, or the password in Ollama's address"
            return self._failure(f"Ollama refused the credentials ({status}). {remedy}")
        if status == 404:
            remedy = "Correct OLLAMA_BASE_URL or RAG_MODEL_HOST"
            return self._failure(f"Its address does not speak Ollama's API (404). {remedy}")
        return Refused("ollama", status, f"Ollama answered {status}{f': {reason}' if reason else ''}")

    @override
    def _note(self, failure: ServiceUnavailable) -> None:
        if isinstance(failure, HostSilent):
            self._version.failed(failure)
            self._models.failed(failure)
        elif isinstance(failure, ModelMissing):
            self._models.forget()

    async def _asked(self, model: str, turns: Turns, max_tokens: int) -> dict[str, Any]:
        """Return the arguments of a call that is answered alike each time, whatever the model's own settings are."""
        thinks = (await self._card(model)).thinks
        limit = max_tokens + (_THINKING_TOKENS if thinks else 0)
        # A penalty for repeated words changes grades, and forbids what a schema demands.
        options = {"temperature": 0, "repeat_penalty": 1.0, "num_predict": limit}
        asked = {
            "model": model,
            "options": {**options, **await self._context_for(model, turns, limit)},
            "stream": False,
        }
        return {**asked, "reasoning": False} if thinks else asked

    async def _context_for(self, model: str, turns: Turns, answer: int) -> dict[str, int]:
        """Return the option with the host's window, or a larger one if turns and `answer` (tokens) need it.

        It has to be named: Ollama reloads the model for another value.
        """
        tokens = answer + sum(most_tokens(text) + 8 for _, text in turns)
        window = stated_window(model) or self.windows.kept(model) or await self.window(model)
        if tokens > (window or _SMALLEST_DEFAULT):
            longest = (await self._card(model)).context_length
            wanted = 1 << (tokens - 1).bit_length()
            window = max(window or 0, min(wanted, longest or wanted))
            self.windows.keep(model, window)
        return {} if window is None else {"num_ctx": window}

    async def _listed_as(self, model: str) -> str | None:
        """Return the name under which the host lists a model, however it is spelt here."""
        wanted = spelt_alike(model)
        return next((name for name in await self.models() if spelt_alike(name) == wanted), None)

    async def _card(self, model: str) -> ModelCard:
        name = await self._listed_as(model) or model
        return await self._cards.setdefault(
            name, RememberedAnswer(lambda: self._fetch_card(name), clock=self._clock)
        ).get()

    async def _fetch_card(self, model: str) -> ModelCard:
        try:
            return card_of(await self._json("POST", "/api/show", {"model": model}))
        except HostSilent:
            raise
        except ServiceUnavailable:  # gateways and llama.cpp have no such route
            return ModelCard()

    async def _load(self, model: str) -> int | None:
        """Have the host load a model. Return its window."""
        listed = await self._listed_as(model) or model
        async with self._connections.here().limiter:
            await self._json("POST", "/api/generate", {"model": listed, "stream": False}, seconds=ANSWER_SECONDS)
        self._loaded.forget()
        return (await self._loaded.get() or {}).get(model)

    async def _fetch_version(self) -> str:
        return str(await self._field("/api/version", "version", str))

    async def _fetch_models(self) -> frozenset[str]:
        models = await self._field("/api/tags", "models", list)
        return frozenset(str(m["name"]) for m in models if isinstance(m, dict) and m.get("name"))

    async def _fetch_loaded(self) -> dict[str, int] | None:
        """Return the windows of loaded models; None if the host has no /api/ps."""
        try:
            models = await self._field("/api/ps", "models", list)
        except HostSilent:
            raise
        except ServiceUnavailable:
            return None
        contexts = ((m.get("name"), m.get("context_length")) for m in models if isinstance(m, dict))
        return {
            spelt_alike(name): context for name, context in contexts if isinstance(name, str) and is_number(context)
        }

    async def _field(self, path: str, name: str, kind: type) -> Any:
        answer = await self._json("GET", path)
        value = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(value, kind):
            raise self._failure(f"OLLAMA_BASE_URL does not speak Ollama's API: no {name} in its answer")
        return value
