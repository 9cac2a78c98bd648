"""A commanded request on its way to Ollama: evidence in, within what the model's window takes."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError
from cragside.domain.outcome import RagContext
from cragside.domain.token_counts import count_tokens, most_tokens
from cragside.entrypoints.access import Grant, workspace_of
from cragside.entrypoints.options import memory_asked
from cragside.entrypoints.proxy.commanded import OPENAI_CHAT, asked
from cragside.entrypoints.proxy.context_window import ContextWindow, tokens_of, window_of
from cragside.entrypoints.proxy.headers import PERSONA_HEADER, Header, value_of

_OWN_FIELDS = ("workspace", "persona", "compress", "memory")
# Seconds to wait for the host's word on a model, which is remembered. A model that is not loaded is loaded meanwhile.
_HOST_PATIENCE = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The body for Ollama, headers that tell the client what happened to it, and the exchanges that are in it."""

    body: bytes
    headers: tuple[Header, ...]
    recalled: tuple[str, ...] = ()


class Preparation:
    """Prepares commanded requests of the three routes that carry prompts."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._settings = container.settings

    async def prepare(self, path: str, request: Mapping[str, Any], headers: Sequence[Header], grant: Grant) -> Prepared:
        """The request with evidence. Raises what `Enricher.enrich` raises, and `Unauthorized`.

        `workspace` in the body, else the header `X-RAG-Workspace` or `LIGHTRAG-WORKSPACE`, names the workspace, which
        has to be granted. `persona` in the body, else `X-RAG-Persona`, and `compress` say how the evidence is
        presented; `memory` in the body, else `X-RAG-Memory`, whether earlier exchanges come with it. None of them is
        forwarded.
        """
        workspace = workspace_of(grant, headers, request.get("workspace"), self._settings.workspace)
        forwarded = {name: value for name, value in request.items() if name not in _OWN_FIELDS}
        question = asked(path, forwarded)
        told = {name: request[name] for name in _OWN_FIELDS if name != "workspace" and name in request}
        persona = value_of(headers, PERSONA_HEADER)
        began = time.monotonic()
        window = await self._window(path, question)
        budget = self._settings.context_tokens
        if window is not None:
            budget = window.evidence_tokens(budget, tokens_of(question, most_tokens))
        enriched = await self._container.enricher.enrich(
            {**question, **told},
            workspace=workspace,
            persona=None if persona is None else persona.decode("latin-1").strip() or None,
            memory=memory_asked(headers),
            evidence_tokens=budget,
            timeout=self._settings.timeout_seconds - (time.monotonic() - began),
        )
        forwarded.update({name: value for name, value in enriched.request.items() if name not in told})
        cut = window is not None and _fit(forwarded, enriched.request, window)
        context = enriched.rag_context
        without = budget < self._settings.context_tokens and not (context and context.documents)
        recalled = tuple(passage.content for passage in (context.memory or ())) if context else ()
        return Prepared(json.dumps(forwarded).encode(), _told(context, cut or without), recalled)

    async def _window(self, path: str, request: Mapping[str, Any]) -> ContextWindow | None:
        limit, reported = await self._lengths(request.get("model"))
        return window_of(request, limit=limit, reported=reported, adjustable=path != OPENAI_CHAT)

    async def _lengths(self, model: object) -> tuple[int | None, int | None]:
        if not isinstance(model, str):
            return None, None
        try:
            async with asyncio.timeout(min(_HOST_PATIENCE, self._settings.timeout_seconds / 2)):
                host = self._container.upstream
                return await host.context_length(model), await host.window(model)
        except (CragsideError, TimeoutError):
            return None, None


def _fit(forwarded: dict[str, Any], question: Mapping[str, Any], window: ContextWindow) -> bool:
    """Have Ollama read all of an enriched request; True when its window is too small for that."""
    num_ctx = window.num_ctx_for(tokens_of(question, most_tokens))
    if num_ctx is not None:
        forwarded["options"] = {**(forwarded.get("options") or {}), "num_ctx": num_ctx}
    return tokens_of(question, count_tokens) > (num_ctx or window.current)


def _told(context: RagContext | None, beyond_window: bool) -> tuple[Header, ...]:
    if context is None:
        return ()
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("rag_context %s", json.dumps(context.as_dict(), default=str))
    degraded = [degradation.component for degradation in context.degraded]
    if beyond_window:
        degraded.append("context_window")
    told = [(b"x-rag-verdict", context.verdict), (b"x-rag-documents", str(len(context.documents)))]
    if context.memory is not None:
        told.append((b"x-rag-memory", str(len(context.memory))))
    if degraded:
        told.append((b"x-rag-degraded", ", ".join(dict.fromkeys(degraded))))
    return tuple((name, re.sub(r"[^A-Za-z0-9_,. -]", "_", value).encode()) for name, value in told)
