"""Checks each component that cragside depends on, and says what to do if it fails."""

import asyncio
import os
import platform
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import SplitResult, urlsplit

from cragside import __version__
from cragside.application.grading import GRADE_SHARE, LEAST_ASKED
from cragside.composition.databases import DatabaseState, examine, examine_graphs, examine_qdrant, examine_redis
from cragside.composition.store_files import damage_in, is_baked, may_be_damaged, misplaced
from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.faults import Fault, counted
from cragside.domain.forward_proxy import signed_proxy
from cragside.domain.languages import REMEDY, crosses_languages, languages_of
from cragside.entrypoints.log import address_of, message_of
from cragside.ports.models import EMBEDDED

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.settings import Settings

State = Literal["ok", "warning", "error", "not configured"]

# A model that is not loaded takes as long as its file takes to read.
LOAD_SECONDS = 60
_TEST_QUESTION = "Who designed the Eiffel Tower?"
_TEST_PASSAGES = ("Engineers of Gustave Eiffel's company designed the Eiffel Tower.", "Cats sleep for most of the day.")
_OPINION = "second opinion"
_DEFAULT_CHAT_MODEL, _DEFAULT_EMBEDDING_MODEL = "qwen2.5:7b", "nomic-embed-text"
# What its settings.yml lacks, by the status that it answers to a search.
_LINES = {403: "search:\n  formats:\n    - html\n    - json", 429: "server:\n  limiter: false"}
_PASSING = (
    "\nTo keep its limiter, let cragside's address pass in its limiter.toml:\n"
    '  [botdetection.ip_lists]\n  pass_ip = ["ADDRESS"]'
)
# Paths below which reverse proxies serve it.
_USUAL = ("", "/searxng", "/searx", "/search")
_PROBE_SECONDS = 3.0
_MOST_PROBES = 6
_PACKAGES = ("lightrag-hku", "langgraph", "langchain-ollama", "wordllama", "fastapi", "uvicorn")
_OLDEST_PYTHON, _NEWEST_PYTHON = (3, 11), (3, 13)
_BAKE_REMEDY = "Bake it again with `cragside bake`, or copy it again."


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one component. `remedy` says what to do, if anything."""

    component: str
    state: State
    version: str = ""
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Says how components are examined. Each has `seconds` to answer.

    A `thorough` examination reads whole stores and tries models and searches. With `places`, it tells paths and
    addresses. `message` makes one line of an error.
    """

    seconds: float
    thorough: bool
    places: bool
    message: Callable[[Exception], str]


# An operator at the terminal may wait, and knows the machine.
FOR_OPERATORS = CheckOptions(10.0, thorough=True, places=True, message=message_of)


async def examine_host(container: "Container", options: CheckOptions) -> list[Finding]:
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
    if options.thorough:
        chat = await _tried(chat, host.check_chat, options, on_ollama)
        embedding = await _tried(embedding, host.check_embedding, options, on_ollama)
    opinion = await _opinion(container) if options.thorough and chat.state == "ok" else []
    if not on_ollama and not models and "ok" not in (chat.state, embedding.state):
        remedy = "Does RAG_MODEL_HOST have the right path before /v1? Some hosts list no models."
        return [Finding("model_host", "warning", found, remedy=remedy), chat, embedding]
    return [Finding(host_component(settings), "ok", found), chat, embedding, *opinion]


async def examine_reranker(container: "Container", options: CheckOptions) -> list[Finding]:
    """Check the rerank endpoint with one call. It may cost money, so that only a thorough examination makes it."""
    if container.settings.rerank_url is None:
        return []
    if not options.thorough:
        return [Finding("reranker", "ok", detail="was not asked")]
    about, other = [Document(str(n), text, "local") for n, text in enumerate(_TEST_PASSAGES)]
    high, low = await container.grader.grade(_TEST_QUESTION, [about, other])
    detail = f"answered a test call: {high:.2f} for a passage with the answer, {low:.2f} for another"
    if high > container.settings.threshold > low:
        return [Finding("reranker", "ok", detail=detail)]
    remedy = "Calibrate it, or see whether its model is one that ranks: docs/model-hosts.md tells how."
    return [Finding("reranker", "warning", detail=detail, remedy=remedy)]


async def _opinion(container: "Container") -> list[Finding]:
    """Let the chat model judge two passages, if it gives second opinions."""
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
    """Name the host of models as reports do."""
    return "ollama" if settings.openai_address is None else "model_host"


async def _tried(
    finding: Finding, call: Callable[[str], Awaitable[object]], options: CheckOptions, on_ollama: bool
) -> Finding:
    """Check a model of the host with one call to it."""
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
        return Finding(finding.component, "error", detail=f"{model}: {options.message(error)}", remedy=remedy)
    return Finding(finding.component, "ok", detail=f"{model}, answered a test call")


def _listed(models: frozenset[str], component: str, chosen: str | None, _default: str, variable: str) -> Finding:
    """Check a model of a host with OpenAI's API, which has no models of usual names, and may list none."""
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


async def examine_searxng(container: "Container", options: CheckOptions) -> list[Finding]:
    """Ask SearXNG whether it is up, or with a thorough options for results."""
    address = container.settings.searxng_host
    if container.search is None or address is None:
        return [Finding("searxng", "not configured", remedy="Set SEARXNG_HOST to fall back on the web.")]
    if not options.thorough:
        await container.search.check()
        return [Finding("searxng", "ok", await version_at(address), "answers")]
    try:
        results = await container.search.search("cragside")
    except ServiceUnavailable as error:
        fault = Fault.of("searxng", error, options.message(error))
        remedy = await _remedy(error.details.get("answered"), fault.remedy, address)
        return [Finding("searxng", "error", detail=fault.cause, remedy=remedy)]
    found = f"answers in JSON, {len(results)} results for a test search"
    return [Finding("searxng", "ok", await version_at(address), found)]


async def version_at(address: str) -> str:
    """Return the version from SearXNG's /config, "" if it has none."""
    import httpx

    try:
        async with httpx.AsyncClient(timeout=_PROBE_SECONDS, trust_env=False, proxy=signed_proxy(address)) as client:
            return str((await client.get(f"{address}/config")).json().get("version", ""))[:40]
    except (httpx.HTTPError, ValueError, AttributeError):
        return ""


async def _remedy(status: int | None, remedy: str, address: str) -> str:
    """Return the `remedy`, with the lines of settings.yml that carry it out."""
    if lines := _LINES.get(status or 0):
        shown = f"{remedy} Its settings.yml then has these lines. Restart it:\n{_indented(lines)}"
        return shown + (_PASSING if status == 429 else "")
    if status not in (200, 404):  # a page, or nothing, where the search should be
        return remedy
    elsewhere = await _elsewhere(urlsplit(address))
    if elsewhere is None:
        return (
            "Correct SEARXNG_HOST. Behind a reverse proxy it has the path of SearXNG, without /search, such as "
            "https://HOST/searxng."
        )
    there = f"Set SEARXNG_HOST={address_of(elsewhere)}, where SearXNG answers."
    if not address.startswith(f"{elsewhere}/") or address.endswith("/search"):
        return there
    lines = f"server:\n  base_url: {address_of(address)}/"
    return (
        f"{there} Or have it answer where you look for it: write this into its settings.yml, and restart it:\n"
        f"{_indented(lines)}"
    )


async def _elsewhere(parts: SplitResult) -> str | None:
    """Return the address on the same host at which a SearXNG answers: above the path, or below a usual one."""
    names = parts.path.strip("/").split("/")
    above = ["".join(f"/{name}" for name in names[:count]) for count in range(len(names) - 1, 0, -1)]
    for path in list(dict.fromkeys((*above, *_USUAL)))[:_MOST_PROBES]:
        address = parts._replace(path=path, query="", fragment="").geturl()
        if path != parts.path.rstrip("/") and await version_at(address):
            return address
    return None


def _indented(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.splitlines())


def examine_installation() -> list[Finding]:
    """Check Python and the packages."""
    running = sys.version_info[:2]
    supported = _OLDEST_PYTHON <= running <= _NEWEST_PYTHON
    remedy = "" if supported else "Use Python 3.11, 3.12 or 3.13."
    return [
        Finding("python", "ok" if supported else "warning", platform.python_version(), remedy=remedy),
        Finding("cragside", "ok", __version__),
        *(_package(name) for name in _PACKAGES),
    ]


def examine_folder(settings: "Settings", options: CheckOptions) -> Finding:
    """Check that RAG_HOME exists or can be made, and is writable unless it is a baked store."""

    def found(state: State, place: object, what: str = "", remedy: str = "") -> Finding:
        detail = f"{place if options.places else 'RAG_HOME'}{what}"
        return Finding("folder", state, detail=detail, remedy=remedy)

    if not isinstance(settings.home, Path):
        return found("ok", settings.home, ", a baked store that is fetched at the first use")
    home = settings.home.absolute()
    if is_baked(home):
        return found("ok", home, ", a baked store, opened read-only")
    if problem := misplaced(home):
        return found("warning", home, remedy=problem)
    nearest = next(folder for folder in (home, *home.parents) if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return found("error", nearest, " is not a folder that can be written", _other_home())
    return found("ok", home, "" if home.exists() else " is made when something is indexed")


async def examine_components(container: "Container", options: CheckOptions) -> list[Finding]:
    """Check the store, Ollama with its models, and SearXNG."""
    settings = container.settings
    host = host_component(settings)
    loading = 2 * LOAD_SECONDS if options.thorough else 0
    container.load_drivers()  # within a limit of time, a server would seem not to answer
    servers = await asyncio.gather(
        _patiently(host, lambda: examine_host(container, options), options, more_seconds=loading),
        _patiently("reranker", lambda: examine_reranker(container, options), options),
        _patiently("searxng", lambda: examine_searxng(container, options), options),
    )
    shared = await asyncio.gather(
        *(
            _patiently(name, partial(_database, name, wrong, ask, options), options)
            for name, wrong, ask in _databases(container)
        ),
        _patiently("queue", lambda: _queue(container), options),
        _patiently("workspaces", lambda: _agreement(container), options),
    )
    # Opening a store imports LightRAG and keeps the event loop busy for seconds: a server would seem not to answer.
    store = await _patiently(
        "store", lambda: _store(container, options), options, lambda error: _store_remedy(settings, error, options)
    )
    places = (
        {
            host: settings.ollama_address or settings.openai_address,
            "reranker": settings.rerank_url,
            "searxng": settings.searxng_host,
        }
        if options.places
        else {}
    )
    return [
        finding if finding.detail or finding.component not in places else _at(finding, places[finding.component])
        for findings in (*shared, store, *servers)
        for finding in findings
    ]


async def _patiently(
    component: str,
    ask: Callable[[], Awaitable[list[Finding]]],
    options: CheckOptions,
    remedy_for: Callable[[Exception], str] = lambda _: "",
    more_seconds: float = 0,
) -> list[Finding]:
    seconds = options.seconds + more_seconds
    try:
        async with asyncio.timeout(seconds):
            return await ask()
    except TimeoutError:
        fault = Fault.late(component, seconds)
    except Exception as error:
        fault = Fault.of(component, error, options.message(error))
        if remedy := remedy_for(error):
            fault = Fault(component, str(fault) if isinstance(error, CragsideError) else fault.cause, remedy)
    return [Finding(component, "error", detail=fault.cause, remedy=fault.remedy)]


def _databases(container: "Container") -> Iterator[tuple[str, State, Callable[[], Awaitable[DatabaseState]]]]:
    """List the configured databases: the state of each if something is wrong, and how to examine it."""
    if (database := container.database) is not None:
        needs_age = container.settings.graph_storage == "PGGraphStorage"
        yield "postgres", "error", partial(examine, database, needs_age=needs_age)
    if (graphs := container.graphs) is not None:
        yield "neo4j", "error", partial(examine_graphs, graphs)
    if (vectors := container.vectors) is not None:
        yield "qdrant", "warning", partial(examine_qdrant, vectors)
    if (redis := container.redis) is not None:
        yield "redis", "error", partial(examine_redis, redis)


async def _database(
    component: str, wrong: State, ask: Callable[[], Awaitable[DatabaseState]], options: CheckOptions
) -> list[Finding]:
    found = await ask()
    parts = filter(None, (found.address if options.places else "", found.detail))
    return [Finding(component, wrong if found.remedy else "ok", found.version, ", ".join(parts), found.remedy)]


async def _agreement(container: "Container") -> list[Finding]:
    """Check that the other databases hold what PostgreSQL says."""
    if container.graphs is None and container.redis is None and container.vectors is None:
        return []
    wrong = [name for name in await container.workspaces.names() if await container.workspaces.disagreement(name)]
    if not wrong:
        return []
    detail = f"of {', '.join(wrong)}, another database has something else than PostgreSQL"
    return [Finding("workspaces", "error", detail=detail, remedy="Run `cragside repair`.")]


async def _queue(container: "Container") -> list[Finding]:
    known = await container.queue.stats()
    detail = f"{counted(known.pending, 'task')} waiting, {known.processing} in hand, {known.dead} given up"
    remedy = "See `cragside documents --status failed`; `cragside enrich-docs` tries them again." if known.dead else ""
    return [Finding("queue", "warning" if known.dead else "ok", detail=detail, remedy=remedy)]


async def _store(container: "Container", options: CheckOptions) -> list[Finding]:
    settings = container.settings
    shared = container.database is not None
    if shared and settings.workspace not in await container.workspaces.names():
        detail = f"workspace {settings.workspace} holds nothing yet"
        return [Finding("store", "ok", detail=detail, remedy="Index something with `cragside ingest`.")]
    if not shared and not await asyncio.to_thread(_holds_something, settings):
        folder = await asyncio.to_thread(examine_folder, settings, options)
        if folder.state != "ok":
            return [Finding("store", folder.state, detail=folder.detail, remedy=folder.remedy)]
        detail = f"workspace {settings.workspace} holds nothing yet"
        return [Finding("store", "ok", detail=detail, remedy="Index something with `cragside ingest`.")]
    workspace = await container.workspaces.open(settings.workspace)
    known = await workspace.passages.status()
    await container.workspaces.check(settings.workspace, whole=options.thorough)
    detail = f"workspace {known.workspace}: {counted(known.documents, 'document')}, embedded by {known.embedding_model}"
    if not options.thorough:
        return [Finding("store", "ok", detail=detail)]
    if damage := await asyncio.to_thread(_damage, settings):
        return [Finding("store", "error", detail=damage, remedy=_BAKE_REMEDY)]
    # The store can be opened without its model, but not be searched.
    await container.workspaces.prepare(settings.workspace)
    if waits := known.waiting_changes:
        return [Finding("store", "warning", detail=f"{detail}, {waits} changes waiting for another database")]
    spoken = languages_of(await workspace.documents.languages())
    if not spoken or crosses_languages(known.embedding_model):
        return [Finding("store", "ok", detail=detail)]
    within = f"{detail}, which finds {' and '.join(spoken)} documents by questions in their own language alone"
    return [Finding("store", "ok", detail=within, remedy=REMEDY if len(spoken) > 1 else "")]


def _holds_something(settings: "Settings") -> bool:
    """Tell if there is a store to open. A baked store is always opened, to check it."""
    home = settings.home
    return not isinstance(home, Path) or is_baked(home) or (home / settings.workspace).exists()


def _damage(settings: "Settings") -> str:
    """Return the differences from a baked store's manifest, by hash. A fetched store was checked already."""
    return damage_in(settings.home) if isinstance(settings.home, Path) else ""


def _at(finding: Finding, address: str | None) -> Finding:
    """Add the address of the component, without its credentials."""
    if address is None:
        return finding
    return Finding(finding.component, finding.state, finding.version, address_of(address), finding.remedy)


def _package(name: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, "error", detail="is not installed", remedy="Install cragside again.")


def _store_remedy(settings: "Settings", error: Exception, options: CheckOptions) -> str:
    if may_be_damaged(error):
        if not isinstance(settings.home, Path) or is_baked(settings.home):
            return ""  # the error of a baked store says what to do
        folder = settings.home / settings.workspace if options.places else "its folder"
        return f"If it is damaged, move {folder} away and index its texts again with `cragside ingest`."
    # Our other errors say themselves what to do.
    return "" if isinstance(error, CragsideError) else _other_home()


def _other_home() -> str:
    return "Make it writable, or set RAG_HOME to another folder."
