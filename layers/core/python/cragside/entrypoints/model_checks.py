"""Checks the host of models, and the models that are in use."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from cragside.application.grading import GRADE_SHARE, LEAST_ASKED
from cragside.domain.document import Document
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.findings import Finding, Manner
from cragside.ports.models import EMBEDDED

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.settings import Settings

# A model that is not loaded takes as long as its file takes to read.
LOAD_SECONDS = 60
_TEST_QUESTION = "Who designed the Eiffel Tower?"
_TEST_PASSAGES = ("Engineers of Gustave Eiffel's company designed the Eiffel Tower.", "Cats sleep for most of the day.")
_OPINION = "second opinion"
_DEFAULT_CHAT_MODEL, _DEFAULT_EMBEDDING_MODEL = "qwen2.5:7b", "nomic-embed-text"


async def examine_host(container: "Container", manner: Manner) -> list[Finding]:
    """Check the host and the models in use. A thorough examination gives each of them a test call."""
    host, settings = container.host, container.settings
    if host is None:
        remedy = "Set OLLAMA_BASE_URL to let its models grade. Without it the embedded models do the work."
        return [Finding("ollama", "not configured", remedy=remedy)]
    found, models = await host.version(), await host.models()
    on_ollama = settings.openai_address is None
    finding = partial(_model, models) if on_ollama else partial(_listed, models)
    chat = finding("chat model", settings.chat_model, _DEFAULT_CHAT_MODEL, "RAG_CHAT_MODEL")
    embedding = finding("embedding model", settings.embedding_model, _DEFAULT_EMBEDDING_MODEL, "RAG_EMBEDDING_MODEL")
    if manner.thorough:
        chat = await _tried(chat, host.check_chat, manner, on_ollama)
        embedding = await _tried(embedding, host.check_embedding, manner, on_ollama)
    opinion = await _opinion(container) if manner.thorough and chat.state == "ok" else []
    if not on_ollama and not models and "ok" not in (chat.state, embedding.state):
        remedy = "Does RAG_MODEL_HOST have the right path before /v1? Some hosts list no models."
        return [Finding("model_host", "warning", found, remedy=remedy), chat, embedding]
    return [Finding(host_component(settings), "ok", found), chat, embedding, *opinion]


async def examine_reranker(container: "Container", manner: Manner) -> list[Finding]:
    """Check the rerank endpoint with one call. It may cost money, so that only a thorough examination makes it."""
    if container.settings.rerank_url is None:
        return []
    if not manner.thorough:
        return [Finding("reranker", "ok", detail="was not asked")]
    about, other = [Document(str(n), text, "local") for n, text in enumerate(_TEST_PASSAGES)]
    high, low = await container.grader.grade(_TEST_QUESTION, [about, other])
    detail = f"answered a test call: {high:.2f} for a passage with the answer, {low:.2f} for another"
    if high > container.settings.threshold > low:
        return [Finding("reranker", "ok", detail=detail)]
    remedy = "Calibrate it, or see whether its model is one that ranks: docs/model-hosts.md tells how."
    return [Finding("reranker", "warning", detail=detail, remedy=remedy)]


async def _opinion(container: "Container") -> list[Finding]:
    """Have the chat model judge two passages, if it gives second opinions."""
    judge = container.judge
    if judge is None:
        return []
    model = await judge.ready(None)
    if model is None:
        detail = "none: the embedded grader decides alone, without a chat model or with one of few parameters"
        return [Finding(_OPINION, "ok", detail=detail)]
    about, other = [Document(str(n), text, "local") for n, text in enumerate(_TEST_PASSAGES)]
    high, low = [await judge.probability(model, _TEST_QUESTION, each) for each in (about, other)]
    seconds, most = judge.seconds(model), container.settings.timeout_seconds * GRADE_SHARE
    detail = f"{model} says {high:.2f} to a passage with the answer, {low:.2f} to another, in {seconds:.1f} s each"
    if seconds * LEAST_ASKED > most:
        remedy = f"It has {most:.0f} s for {LEAST_ASKED} passages, so it is not asked. Raise RAG_TIMEOUT_SECONDS."
        return [Finding(_OPINION, "warning", detail=detail, remedy=remedy)]
    if high > low:
        return [Finding(_OPINION, "ok", detail=detail)]
    remedy = "It does not tell them apart. Name another RAG_CHAT_MODEL, or set RAG_SECOND_OPINION=never."
    return [Finding(_OPINION, "warning", detail=detail, remedy=remedy)]


def host_component(settings: "Settings") -> str:
    """What the host of models is called in reports."""
    return "ollama" if settings.openai_address is None else "model_host"


async def _tried(
    finding: Finding, call: Callable[[str], Awaitable[object]], manner: Manner, on_ollama: bool
) -> Finding:
    """Check a model of the host with one call."""
    model = finding.detail
    if finding.state != "ok" or model.startswith(EMBEDDED):
        return finding
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            await call(model)
    except TimeoutError:
        tried = f"try `ollama run {model}`, then run" if on_ollama else "see its log, and run"
        remedy = f"It may still be loading: {tried} `cragside doctor` again."
        return Finding(finding.component, "error", detail=f"{model} gave no answer in {LOAD_SECONDS} s", remedy=remedy)
    except ServiceUnavailable as error:
        remedy = f"Try `ollama run {model}`, and see Ollama's log." if on_ollama else "See the log of the model host."
        if ". " in error.message:  # a second sentence says what to do
            remedy = ""
        return Finding(finding.component, "error", detail=f"{model}: {manner.message(error)}", remedy=remedy)
    return Finding(finding.component, "ok", detail=f"{model}, answered a test call")


def _listed(models: frozenset[str], component: str, chosen: str | None, _default: str, variable: str) -> Finding:
    """A model of a host with OpenAI's API, which has no models of usual names, and may list none."""
    if chosen == EMBEDDED:
        return Finding(component, "ok", detail=f"embedded, as {variable} says")
    if chosen is None:
        remedy = f"Name one of the host's models in {variable}."
        return Finding(component, "warning", detail="none is named; the embedded model is used", remedy=remedy)
    if not models or not models.isdisjoint({chosen, f"{chosen}:latest"}):
        return Finding(component, "ok", detail=chosen)
    remedy = f"Name a model in {variable} that the host lists."
    return Finding(component, "error", detail=f"{chosen} is not listed by the host", remedy=remedy)


def _model(models: frozenset[str], component: str, chosen: str | None, default: str, variable: str) -> Finding:
    if chosen == EMBEDDED:
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
