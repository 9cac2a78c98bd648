"""Adds evidence to a request to Ollama, as much as the model's context window takes."""

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from cragside.application.enricher import Enriched
from cragside.application.explainer import WatchedRun
from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, ProcessingError
from cragside.domain.explanation import Explanation
from cragside.domain.outcome import RagContext, Watch
from cragside.domain.token_counts import brought, count_tokens, most_tokens
from cragside.entrypoints.end_user_in_request import end_user_of
from cragside.entrypoints.proxy.context_window import (
    SMALLEST_DEFAULT,
    ContextWindow,
    own_window,
    tokens_of,
    window_of,
)
from cragside.entrypoints.proxy.headers import PERSONA_HEADER, Header, value_of
from cragside.entrypoints.proxy.prompts import Asked
from cragside.entrypoints.proxy.shapes import OLLAMA_ROUTES, asked_form, in_one_form, with_evidence
from cragside.entrypoints.rag_headers import memory_asked

_OWN_FIELDS = ("workspace", "persona", "compress", "memory", "tell_none")
# Seconds to wait for the host's answer about a model, which is cached. The host loads the model if necessary.
_HOST_PATIENCE = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EnrichedRequest:
    """The body for Ollama, headers for the client, the texts that memory contributed, and the outcome."""

    body: bytes
    headers: tuple[Header, ...]
    recalled: tuple[str, ...]
    outcome: Enriched

    @property
    def context(self) -> RagContext | None:
        """The evidence."""
        return self.outcome.rag_context


class RequestEnricher:
    """Enriches requests with the command on the routes that carry prompts."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._settings = container.settings

    async def enrich(
        self,
        path: str,
        asked: Asked,
        headers: Sequence[Header],
        workspace: str,
        watch: Watch | None = None,
    ) -> EnrichedRequest:
        """The request with evidence. Raises what `Enricher.enrich` raises. `watch` is called with each step.

        `persona` in the body, else `X-RAG-Persona`, chooses the instruction. `memory` in the body, else `X-RAG-Memory`,
        asks for earlier exchanges. `tell_none` in the body, else for a prompt with the command the setting, has the
        model told where there is no evidence. None of them, nor `compress` and `workspace`, is forwarded.
        """
        try:
            return await self._enriched(path, asked, headers, workspace, watch)
        except CragsideError:
            raise
        except Exception as error:
            logger.exception("Enrichment failed")
            raise ProcessingError("The request could not be enriched.") from error

    async def explain(
        self, path: str, asked: Asked, headers: Sequence[Header], workspace: str, watch: Watch
    ) -> Explanation:
        """What the model would get and why. Raises what `enrich` raises."""
        explainer = self._container.explainer
        deadline, run = explainer.deadline(), WatchedRun(watch)
        enriched = await self.enrich(path, asked, headers, workspace, run.note)
        return await explainer.explained(enriched.outcome, run, deadline)

    async def _enriched(
        self, path: str, asked: Asked, headers: Sequence[Header], workspace: str, watch: Watch | None
    ) -> EnrichedRequest:
        request = asked.request
        forwarded = {name: value for name, value in request.items() if name not in _OWN_FIELDS}
        whole = in_one_form(path, forwarded)
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
        bringing = path in OLLAMA_ROUTES and own_window(whole) is not None
        with brought(str(whole.get("model")), window.current) if window and bringing else nullcontext():
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
        recalled = tuple(passage.content for passage in (context.memory or ())) if context else ()
        outcome = replace(enriched, request=in_one_form(path, forwarded))
        return EnrichedRequest(
            json.dumps(forwarded).encode(), _result_headers(context, cut or without), recalled, outcome
        )

    async def _window(self, path: str, request: Mapping[str, Any]) -> tuple[ContextWindow | None, bool]:
        """The window of a request, and whether its model has it already, as far as the host says."""
        adjustable = path in OLLAMA_ROUTES
        limit, reported = await self._lengths(request.get("model"), load=not adjustable)
        loaded = reported != 0
        reported = reported if loaded else min(limit or SMALLEST_DEFAULT, SMALLEST_DEFAULT)
        return window_of(request, limit=limit, reported=reported, adjustable=adjustable), loaded

    async def _lengths(self, model: object, *, load: bool) -> tuple[int | None, int | None]:
        if not isinstance(model, str):
            return None, None
        try:
            async with asyncio.timeout(min(_HOST_PATIENCE, self._settings.timeout_seconds / 2)):
                host = self._container.upstream
                return await host.context_length(model), await host.window(model, load=load)
        except (CragsideError, TimeoutError):
            return None, None

    def _fit(self, path: str, forwarded: dict[str, Any], window: ContextWindow) -> bool:
        """Set `num_ctx` so that Ollama reads the whole enriched request. True if the window is too small for that."""
        question = in_one_form(path, forwarded)
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
