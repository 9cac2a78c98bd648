"""Checks each component that cragside depends on, and says what to do if it fails."""

import asyncio
import os
import platform
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from cragside import __version__
from cragside.composition.databases import DatabaseState, examine, examine_graphs, examine_qdrant, examine_redis
from cragside.composition.store_files import damage_in, is_baked, may_be_damaged, misplaced
from cragside.domain.errors import CragsideError
from cragside.domain.faults import Fault, counted
from cragside.domain.languages import REMEDY, crosses_languages, languages_of
from cragside.entrypoints import model_checks
from cragside.entrypoints.error_lines import address_of
from cragside.entrypoints.findings import Finding, Manner, State
from cragside.entrypoints.searxng_checks import examine_searxng

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.settings import Settings

_PACKAGES = ("lightrag-hku", "langgraph", "langchain-ollama", "wordllama", "fastapi", "uvicorn")
_OLDEST_PYTHON, _NEWEST_PYTHON = (3, 11), (3, 13)


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


def examine_folder(settings: "Settings", manner: Manner) -> Finding:
    """Check that RAG_HOME exists or can be made, and is writable unless it is a baked store."""

    def found(state: State, place: object, what: str = "", remedy: str = "") -> Finding:
        detail = f"{place if manner.places else 'RAG_HOME'}{what}"
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


async def examine_components(container: "Container", manner: Manner) -> list[Finding]:
    """Check the store, Ollama with its models, and SearXNG."""
    settings = container.settings
    host = model_checks.host_component(settings)
    loading = 2 * model_checks.LOAD_SECONDS if manner.thorough else 0
    container.load_drivers()  # within a limit of time, a server would seem not to answer
    servers = await asyncio.gather(
        _patiently(host, lambda: model_checks.examine_host(container, manner), manner, more_seconds=loading),
        _patiently("reranker", lambda: model_checks.examine_reranker(container, manner), manner),
        _patiently("searxng", lambda: examine_searxng(container, manner), manner),
    )
    shared = await asyncio.gather(
        _patiently("postgres", lambda: _postgres(container, manner), manner),
        _patiently("neo4j", lambda: _neo4j(container, manner), manner),
        _patiently("qdrant", lambda: _qdrant(container, manner), manner),
        _patiently("redis", lambda: _redis(container, manner), manner),
        _patiently("queue", lambda: _queue(container), manner),
        _patiently("workspaces", lambda: _agreement(container), manner),
    )
    # Opening a store imports LightRAG and keeps the event loop busy for seconds: a server would seem not to answer.
    store = await _patiently(
        "store", lambda: _store(container, manner), manner, lambda error: _store_remedy(settings, error, manner)
    )
    places = (
        {
            host: settings.ollama_address or settings.openai_address,
            "reranker": settings.rerank_url,
            "searxng": settings.searxng_host,
        }
        if manner.places
        else {}
    )
    return [
        finding if finding.detail or finding.component not in places else _at(finding, places[finding.component])
        for findings in (*shared, store, *servers)
        for finding in findings
    ]


_BAKE_REMEDY = "Bake it again with `cragside bake`, or copy it again."


async def _patiently(
    component: str,
    ask: Callable[[], Awaitable[list[Finding]]],
    manner: Manner,
    remedy_for: Callable[[Exception], str] = lambda _: "",
    more_seconds: float = 0,
) -> list[Finding]:
    seconds = manner.seconds + more_seconds
    try:
        async with asyncio.timeout(seconds):
            return await ask()
    except TimeoutError:
        fault = Fault.late(component, seconds)
    except Exception as error:
        fault = Fault.of(component, error, manner.message(error))
        if remedy := remedy_for(error):
            fault = Fault(component, str(fault) if isinstance(error, CragsideError) else fault.cause, remedy)
    return [Finding(component, "error", detail=fault.cause, remedy=fault.remedy)]


def _database(component: str, state: State, found: DatabaseState, manner: Manner) -> Finding:
    parts = filter(None, (found.address if manner.places else "", found.detail))
    return Finding(component, state, found.version, ", ".join(parts), found.remedy)


async def _postgres(container: "Container", manner: Manner) -> list[Finding]:
    if container.database is None:
        return []
    found = await examine(container.database, needs_age=container.settings.graph_storage == "PGGraphStorage")
    return [_database("postgres", "error" if found.remedy else "ok", found, manner)]


async def _neo4j(container: "Container", manner: Manner) -> list[Finding]:
    if container.graphs is None:
        return []
    found = await examine_graphs(container.graphs)
    return [_database("neo4j", "error" if found.remedy else "ok", found, manner)]


async def _qdrant(container: "Container", manner: Manner) -> list[Finding]:
    if container.vectors is None:
        return []
    found = await examine_qdrant(container.vectors)
    return [_database("qdrant", "warning" if found.remedy else "ok", found, manner)]


async def _redis(container: "Container", manner: Manner) -> list[Finding]:
    if container.redis is None:
        return []
    found = await examine_redis(container.redis)
    return [_database("redis", "error" if found.remedy else "ok", found, manner)]


async def _agreement(container: "Container") -> list[Finding]:
    """Whether the other databases have what PostgreSQL says that they have."""
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


async def _store(container: "Container", manner: Manner) -> list[Finding]:
    settings = container.settings
    shared = container.database is not None
    if shared and settings.workspace not in await container.workspaces.names():
        detail = f"workspace {settings.workspace} holds nothing yet"
        return [Finding("store", "ok", detail=detail, remedy="Index something with `cragside ingest`.")]
    if not shared and not await asyncio.to_thread(_holds_something, settings):
        folder = await asyncio.to_thread(examine_folder, settings, manner)
        if folder.state != "ok":
            return [Finding("store", folder.state, detail=folder.detail, remedy=folder.remedy)]
        detail = f"workspace {settings.workspace} holds nothing yet"
        return [Finding("store", "ok", detail=detail, remedy="Index something with `cragside ingest`.")]
    workspace = await container.workspaces.open(settings.workspace)
    known = await workspace.passages.status()
    await container.workspaces.check(settings.workspace, whole=manner.thorough)
    detail = f"workspace {known.workspace}: {counted(known.documents, 'document')}, embedded by {known.embedding_model}"
    if not manner.thorough:
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
    """Whether there is a store to open. A baked store is always opened, to check it."""
    home = settings.home
    return not isinstance(home, Path) or is_baked(home) or (home / settings.workspace).exists()


def _damage(settings: "Settings") -> str:
    """The differences from a baked store's manifest, by hash. A fetched store was checked already."""
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


def _store_remedy(settings: "Settings", error: Exception, manner: Manner) -> str:
    if may_be_damaged(error):
        if not isinstance(settings.home, Path) or is_baked(settings.home):
            return ""  # the error of a baked store says what to do
        folder = settings.home / settings.workspace if manner.places else "its folder"
        return f"If it is damaged, move {folder} away and index its texts again with `cragside ingest`."
    # Our other errors say themselves what to do.
    return "" if isinstance(error, CragsideError) else _other_home()


def _other_home() -> str:
    return "Make it writable, or set RAG_HOME to another folder."
