"""Checks Ollama and the models that are in use."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.findings import Finding, Manner

if TYPE_CHECKING:
    from cragside.bootstrap import Container

# A model that is not loaded takes as long as its file takes to read.
LOAD_SECONDS = 60
_DEFAULT_CHAT_MODEL, _DEFAULT_EMBEDDING_MODEL, _EMBEDDED = "qwen2.5:7b", "nomic-embed-text", "embedded"


async def examine_ollama(container: "Container", manner: Manner) -> list[Finding]:
    """Check Ollama and the models in use. A thorough examination gives each of them a test call."""
    host, settings = container.host, container.settings
    if host is None:
        remedy = "Set OLLAMA_BASE_URL to let its models grade. Without it the embedded models do the work."
        return [Finding("ollama", "not configured", remedy=remedy)]
    found, models = await host.version(), await host.models()
    chat = _model("chat model", settings.chat_model, _DEFAULT_CHAT_MODEL, "RAG_CHAT_MODEL", models)
    embedding = _model(
        "embedding model", settings.embedding_model, _DEFAULT_EMBEDDING_MODEL, "RAG_EMBEDDING_MODEL", models
    )
    if manner.thorough:
        chat = await _tried(chat, host.check_chat, manner)
        embedding = await _tried(embedding, host.check_embedding, manner)
    return [Finding("ollama", "ok", found), chat, embedding]


async def _tried(finding: Finding, call: Callable[[str], Awaitable[object]], manner: Manner) -> Finding:
    """Check a model of the host with one call."""
    model = finding.detail
    if finding.state != "ok" or model.startswith(_EMBEDDED):
        return finding
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            await call(model)
    except TimeoutError:
        remedy = f"It may still be loading: try `ollama run {model}`, then run `cragside doctor` again."
        return Finding(finding.component, "error", detail=f"{model} gave no answer in {LOAD_SECONDS} s", remedy=remedy)
    except ServiceUnavailable as error:
        remedy = f"Try `ollama run {model}`, and see Ollama's log."
        return Finding(finding.component, "error", detail=f"{model}: {manner.told(error)}", remedy=remedy)
    return Finding(finding.component, "ok", detail=f"{model}, answered a test call")


def _model(component: str, chosen: str | None, default: str, variable: str, models: frozenset[str]) -> Finding:
    if chosen == _EMBEDDED:
        return Finding(component, "ok", detail=f"embedded, as {variable} says")
    name = chosen or default
    if name in models or f"{name}:latest" in models:
        return Finding(component, "ok", detail=name)
    if chosen:
        return Finding(
            component, "error", detail=f"{name} is not installed", remedy=f"Get it with `ollama pull {name}`."
        )
    remedy = f"Get it with `ollama pull {name}`, or name an installed one in {variable}."
    return Finding(component, "warning", detail=f"{name} is not installed; the embedded model is used", remedy=remedy)
