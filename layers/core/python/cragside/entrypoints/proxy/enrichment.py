"""Adds evidence to a request to Ollama, as much as the model's context window takes. All sizes are in tokens.

Ollama silently drops the oldest messages of a request that exceeds its window. So the evidence is limited to what the
request and the answer leave of the largest possible window:

- `num_ctx` in the request is the user's limit and never changed;
- without it, the window that the host reports is used. If the enriched request does not fit, it is raised, at most to
  the model's limit. It is never lowered, because each change makes Ollama reload the model, which takes seconds;
- a model that is not loaded is loaded once, with the window for as much evidence as may come. A raised window is kept:
  prompts without evidence get it too, if they fit and name none;
- OpenAI's and Anthropic's APIs have no `num_ctx`, so the window that the host reports is the limit.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from cragside.application.enricher import Enriched
from cragside.application.explainer import WatchedRun
from cragside.bootstrap import Container
from cragside.domain.context import CountTokens
from cragside.domain.errors import CragsideError
from cragside.domain.explanation import Explanation
from cragside.domain.outcome import RagContext, Watch
from cragside.domain.token_counts import ModelWindows, count_tokens, most_tokens, use_window
from cragside.entrypoints.proxy.errors import failing_as
from cragside.entrypoints.proxy.messages import PERSONA_HEADER, Header, value_of
from cragside.entrypoints.proxy.prompts import Call, EvidenceRequest, asked_form, ollama_form, with_evidence
from cragside.entrypoints.proxy.routes import OLLAMA_ROUTES
from cragside.entrypoints.request_headers import end_user_of, memory_asked

# What Ollama gives a model that it loads, at least.
SMALLEST_DEFAULT = 4096
# Each new num_ctx makes Ollama reload the model, so there are few values.
_STEP = 4096
_ANSWER = 1024
_MESSAGE_FRAME = 8
# An image's patches: 256 (Gemma 3), 576 (LLaVA), 1,601 (Llama 3.2 Vision).
_IMAGE = 1024
_TEXT_FIELDS = ("prompt", "system", "suffix", "template")
# Evidence may take more tokens than estimated: rare Chinese takes 1.47 times as many with Llama 2's tokenizer.
_EVIDENCE_MARGIN = 1.5
_ANSWER_FIELDS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
_OWN_FIELDS = ("workspace", "persona", "compress", "memory", "tell_none")
# Seconds to wait for the host's answer about a model, which is cached. The host loads the model if necessary.
_HOST_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """`current` is the window for the unchanged request, `largest` the window that the proxy may set.

    `reserve` is kept for the answer. `adjustable` tells whether `num_ctx` may be set, `stated` whether the request has
    one.
    """

    current: int
    largest: int
    reserve: int
    adjustable: bool = True
    stated: bool = False

    def evidence_tokens(self, budget: int, request_tokens: int) -> int:
        """The evidence that fits in addition to the request and the answer: 0 to `budget`."""
        return max(0, min(budget, int((self.largest - self.reserve - request_tokens) / _EVIDENCE_MARGIN)))

    def planned(self, budget: int, request_tokens: int) -> int | None:
        """The `num_ctx` for the request with as much evidence as may come."""
        return self.num_ctx_for(request_tokens + int(budget * _EVIDENCE_MARGIN))

    def num_ctx_for(self, request_tokens: int) -> int | None:
        """The `num_ctx` for an enriched request, None if it must not be set."""
        needed = request_tokens + self.reserve
        if not self.adjustable:
            return None
        if needed <= self.current:
            return self.current
        return min(-(-needed // _STEP) * _STEP, self.largest)


def with_kept_window(request: Mapping[str, Any], windows: ModelWindows) -> dict[str, Any] | None:
    """Give a request the window that its model keeps. None if it keeps none, or the request has one or does not fit.

    A request that does not fit gets the window of the host, which the model has from then on.
    """
    model, options = request.get("model"), request.get("options") or {}
    kept = windows.kept(model) if isinstance(model, str) else None
    if kept is None or not isinstance(options, dict) or "num_ctx" in options:
        return None
    if tokens_of(request, most_tokens) + _reserve(request, options, kept) > kept:
        windows.forget(str(model))
        return None
    return {**request, "options": {**options, "num_ctx": kept}}


def window_of(
    request: Mapping[str, Any], *, limit: int | None, reported: int | None, adjustable: bool
) -> ContextWindow | None:
    """The window for a request, None if neither the host nor the request defines one.

    `limit` is the model's, `reported` the host's window for requests without `num_ctx`. `adjustable` tells that the API
    has a `num_ctx`.
    """
    options = request.get("options")
    given = options if adjustable and isinstance(options, dict) else {}
    own = _positive(given.get("num_ctx"))
    current = own or reported
    if current is None:
        return None
    current = min(current, limit or current)
    changeable = adjustable and "num_ctx" not in given and (options is None or isinstance(options, dict))
    largest = max(current, limit or 0) if changeable else current
    return ContextWindow(current, largest, _reserve(request, given, largest), changeable, own is not None)


def _reserve(request: Mapping[str, Any], options: Mapping[str, Any], largest: int) -> int:
    asked = (options.get("num_predict"), *(request.get(name) for name in _ANSWER_FIELDS))
    wanted = next((tokens for tokens in map(_positive, asked) if tokens), None)
    # An unlimited answer must leave room for evidence.
    return min(_ANSWER, largest // 4) if wanted is None else min(wanted, largest // 2)


def _positive(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**53:
        return None
    return int(value) or None


def tokens_of(request: Mapping[str, Any], count_tokens: CountTokens) -> int:
    """Estimate the tokens of a prompt: texts, tools, images, earlier context and the frames of messages."""
    total = sum(count_tokens(text) for name in _TEXT_FIELDS if isinstance(text := request.get(name), str))
    if tools := request.get("tools"):
        total += count_tokens(json.dumps(tools))
    total += _IMAGE * _length(request.get("images")) + _length(request.get("context"))
    messages = request.get("messages")
    if isinstance(messages, list):
        total += sum(_message_tokens(message, count_tokens) for message in messages if isinstance(message, dict))
    return total


def _message_tokens(message: Mapping[str, Any], count_tokens: CountTokens) -> int:
    total = _MESSAGE_FRAME + _IMAGE * _length(message.get("images"))
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            total += count_tokens(part)
        elif isinstance(part, dict):
            text = part.get("text")
            total += count_tokens(text) if isinstance(text, str) else _IMAGE
    for name in ("thinking", "tool_calls"):
        if value := message.get(name):
            total += count_tokens(value if isinstance(value, str) else json.dumps(value))
    return total


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


class RequestEnricher:
    """Enriches requests with the command on the routes that carry prompts."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._settings = container.settings

    async def enrich(self, call: Call, asked: EvidenceRequest, workspace: str, watch: Watch | None = None) -> Enriched:
        """Give a call its evidence, and the client the headers that tell of it. `watch` is called with each step.

        Raises what `Enricher.enrich` raises. `persona` in the body, else `X-RAG-Persona`, chooses the instruction.
        `memory` in the body, else `X-RAG-Memory`, asks for earlier exchanges. `tell_none` in the body, else for a
        prompt with the command the setting, has the model told where there is no evidence. None of them, nor
        `compress` and `workspace`, is forwarded.
        """
        with failing_as("The request could not be enriched."):
            return await self._enrich(call, asked, workspace, watch)

    async def explain(self, call: Call, asked: EvidenceRequest, workspace: str, watch: Watch) -> Explanation:
        """Explain what the model would get and why. Raises what `enrich` raises."""
        explainer = self._container.explainer
        deadline, run = explainer.deadline(), WatchedRun(watch)
        return await explainer.explained(await self.enrich(call, asked, workspace, run.note), run, deadline)

    async def _enrich(self, call: Call, asked: EvidenceRequest, workspace: str, watch: Watch | None) -> Enriched:
        path, headers, request = call.path, call.headers, asked.request
        forwarded = {name: value for name, value in request.items() if name not in _OWN_FIELDS}
        whole = ollama_form(path, forwarded)
        options = {name: request[name] for name in _OWN_FIELDS if name != "workspace" and name in request}
        persona = value_of(headers, PERSONA_HEADER)
        began = self._container.clock.monotonic()
        window, loaded = await self._window(path, whole)
        budget = self._settings.context_tokens
        if window is not None:
            tokens = tokens_of(whole, most_tokens)
            budget = window.evidence_tokens(budget, tokens)
            if not loaded and (planned := window.planned(budget, tokens)):
                # The models that grade may be the same one: all of the request's work has one window.
                self._container.upstream.windows.keep(str(whole["model"]), planned)
        with use_window(str(whole.get("model")), window.current) if window and window.stated else nullcontext():
            enriched = await self._container.enricher.enrich(
                {**asked_form(whole, asked.place), **options},
                question=asked.question,
                workspace=workspace,
                persona=None if persona is None else persona.decode("latin-1").strip() or None,
                memory=memory_asked(headers),
                tell_none=asked.commanded and self._settings.tell_none,
                end_user=end_user_of(headers, request),
                evidence_tokens=budget,
                timeout=self._settings.timeout_seconds - (self._container.clock.monotonic() - began),
                watch=watch,
            )
        forwarded = with_evidence(path, forwarded, asked.place, asked.question, enriched.request)
        cut = window is not None and self._fit(path, forwarded, window)
        context = enriched.rag_context
        without = budget < self._settings.context_tokens and not (context and context.documents)
        call.replace(json.dumps(forwarded).encode())
        call.added = _result_headers(context, cut or without)
        return replace(enriched, request=ollama_form(path, forwarded))

    async def _window(self, path: str, request: Mapping[str, Any]) -> tuple[ContextWindow | None, bool]:
        """The window of a request, and whether its model has it already, as far as the host says."""
        adjustable = path in OLLAMA_ROUTES
        host, model, limit, reported = self._container.upstream, request.get("model"), None, None
        if isinstance(model, str):
            with suppress(CragsideError, TimeoutError):
                async with asyncio.timeout(min(_HOST_PATIENCE, self._settings.timeout_seconds / 2)):
                    limit, reported = await host.context_length(model), await host.window(model, load=not adjustable)
        loaded = reported != 0
        reported = reported if loaded else min(limit or SMALLEST_DEFAULT, SMALLEST_DEFAULT)
        return window_of(request, limit=limit, reported=reported, adjustable=adjustable), loaded

    def _fit(self, path: str, forwarded: dict[str, Any], window: ContextWindow) -> bool:
        """Set `num_ctx` so that Ollama reads the whole enriched request. True if the window is too small for that."""
        question = ollama_form(path, forwarded)
        num_ctx = window.num_ctx_for(tokens_of(question, most_tokens))
        if num_ctx is not None:
            model, windows = str(forwarded.get("model")), self._container.upstream.windows
            num_ctx = max(num_ctx, windows.kept(model) or 0)
            if num_ctx > window.current:
                windows.keep(model, num_ctx)
            forwarded["options"] = {**(forwarded.get("options") or {}), "num_ctx": num_ctx}
        return tokens_of(question, count_tokens) > (num_ctx or window.current)


def _result_headers(context: RagContext | None, beyond_window: bool) -> tuple[Header, ...]:
    if context is None:
        return ()
    degraded = [degradation.component for degradation in context.degraded]
    if beyond_window:
        degraded.append("context_window")
    headers = [(b"x-rag-verdict", context.verdict), (b"x-rag-documents", str(len(context.documents)))]
    if context.memory is not None:
        headers.append((b"x-rag-memory", str(len(context.memory))))
    if degraded:
        headers.append((b"x-rag-degraded", ", ".join(dict.fromkeys(degraded))))
    return tuple((name, re.sub(r"[^A-Za-z0-9_,. -]", "_", value).encode()) for name, value in headers)
