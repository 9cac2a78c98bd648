"""The routes of workspaces: which ones a token opens, their settings, and building them anew."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import ServerSentEvent
from pydantic import BaseModel, ConfigDict, Field

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, DeadlineExceeded, Unauthorized, ValidationError
from cragside.domain.names import memory_of, owner_of
from cragside.domain.preferences import (
    CHANGEABLE,
    MODES,
    PERSONAS,
    PROMPTS,
    RANGES,
    STRATEGIES,
    EvidenceMode,
    Preferences,
    Prompts,
)
from cragside.domain.query import Strategy, least_similarity
from cragside.domain.tokens import TokenScope, in_order
from cragside.entrypoints.access import Grant
from cragside.entrypoints.http.errors import EVENTS, Events, error_responses, event_stream, for_client
from cragside.entrypoints.http.models import WorkspaceRequest
from cragside.entrypoints.http.request_access import AppContainer, QueryWorkspace, choose_workspace, seconds_of
from cragside.entrypoints.http.request_bodies import BoundedRoute
from cragside.entrypoints.runs import first_of, followed
from cragside.ports.models import EMBEDDED
from cragside.settings import Settings, variable_of

router = APIRouter(route_class=BoundedRoute, responses=error_responses())

# A refusal comes at once and has a status of its own. What takes longer has begun.
_PATIENCE_SECONDS = 1.0
# Seconds that a host with a time limit needs after the last event.
_MARGIN_SECONDS = 1.0
_DESCRIPTION = (
    'Server-sent events: `progress` with `{"done", "total", "name"}` after each document, then `done` with '
    '`{"documents"}` or `failed` with an ErrorBody.'
)
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {EVENTS: {"schema": {"type": "string", "description": _DESCRIPTION}}}, "description": "Progress."}
}


class WorkspaceBody(BaseModel):
    """A workspace."""

    name: str = Field(description="Its name.")
    documents: int | None = Field(description="How many documents it has; null while its store cannot be read.")


class WorkspacesBody(BaseModel):
    """The workspaces that the token opens, and what the token may do."""

    default: str | None = Field(
        description="The workspace of a request that names none; null if the token opens several others."
    )
    workspaces: list[WorkspaceBody] = Field(description="The workspaces, in the order of their names.")
    read_only: bool = Field(description="Whether nothing can be added or changed, because the store is baked.")
    scopes: list[TokenScope] = Field(description="What the token may do.")
    token_needed: bool = Field(description="Whether requests need a token.")


@router.get("/v1/workspaces", tags=["workspaces"])
async def list_workspaces(request: Request, container: AppContainer) -> WorkspacesBody:
    """The workspaces that the token opens, those without a store too if the token or the settings name them."""
    grant: Grant = request.state.narrowed_grant
    default = _default(grant, container.settings.workspace)
    known = await container.workspaces.names()
    opened = map(owner_of, known) if grant.workspaces is None else grant.workspaces
    names = sorted({*opened, *([default] if default else [])})
    everything: Grant = request.state.grant
    return WorkspacesBody(
        default=default,
        workspaces=[
            WorkspaceBody(name=name, documents=await _documents(container, name) if name in known else 0)
            for name in names
        ],
        read_only=(await container.workspaces.open(container.settings.workspace)).read_only,
        scopes=in_order({scope for each in everything.passes for scope in each.scopes}),
        token_needed=not request.app.state.keys.keyring().empty,
    )


def _default(grant: Grant, configured: str) -> str | None:
    try:
        return grant.choose(None, configured)
    except Unauthorized:
        return None


async def _documents(container: Container, workspace: str) -> int | None:
    try:
        return (await container.workspaces.stored(workspace)).documents
    except CragsideError as error:
        for_client(error)  # the log has the reason
        return None


class Range(BaseModel):
    """The valid values of a setting."""

    least: float = Field(description="The smallest valid value.")
    most: float = Field(description="The largest valid value.")


class StoreBody(BaseModel):
    """The store of the workspace."""

    status: Literal["ready", "empty", "unavailable"] = Field(description="`empty` without documents.")
    reason: str = Field("", description="Why it is unavailable; empty if it is not.")
    embedding_model: str | None = Field(None, description="The model that built the store.")
    documents: int = Field(0, description="Number of documents.")
    passages: int = Field(0, description="Number of passages.")
    entities: int = Field(0, description="Number of entities.")
    relations: int = Field(0, description="Number of relations.")
    bytes: int | None = Field(None, description="Size of the store; null where several workspaces share one.")


class HostBody(BaseModel):
    """The model host."""

    status: Literal["ready", "not configured", "unavailable"] = Field(
        description="`not configured` with the embedded models."
    )
    reason: str = Field("", description="Why it is unavailable; empty if it is not.")


class SettingsBody(BaseModel):
    """The settings of a workspace. `changeable` lists those that `PATCH` accepts."""

    workspace: str = Field(description="The workspace.")
    chunk_tokens: int = Field(description="Longest passage of new documents, in tokens.")
    chunk_overlap_tokens: int = Field(description="Tokens that neighbouring passages of new documents share.")
    similarity_results: int = Field(description="Passages that a plain similarity search returns.")
    similarity_threshold: float = Field(
        description="Least cosine of a passage that such a search returns. The default fits the embedding model."
    )
    similarity_strategy: Strategy = Field(description="How such a search chooses passages.")
    mode: EvidenceMode = Field(
        description="How prompts get evidence: `corrective` (graded), `similarity` (a plain search) or `off` (none)."
    )
    prompts: Prompts = Field(
        description="Which prompts through the proxy get evidence: those with the `command`, `always` or `never`."
    )
    threshold: float = Field(description="A passage with a higher relevance is evidence.")
    max_documents: int = Field(description="Most passages of evidence in a prompt.")
    persona: str | None = Field(description="Template of the system prompt; null for the plain instruction.")
    max_file_bytes: int = Field(description="Largest size of a file.")
    embedding_model: str | None = Field(description="The configured one; with None the store's own is used.")
    chat_model: str | None = Field(description="The configured chat model; null if the request's own is used.")
    models: list[str] = Field(description="Models that the settings can name.")
    changeable: list[str] = Field(description="Names of the settings that `PATCH` accepts.")
    ranges: dict[str, Range] = Field(description="The valid values of numeric settings, by name.")
    strategies: list[Strategy] = Field(description="The valid values of `similarity_strategy`.")
    modes: list[EvidenceMode] = Field(description="The valid values of `mode`.")
    prompt_choices: list[Prompts] = Field(description="The valid values of `prompts`.")
    personas: list[str] = Field(description="The valid values of `persona`.")
    store: StoreBody = Field(description="The store of the workspace.")
    host: HostBody = Field(description="The model host.")


def _number(name: str, description: str) -> Any:
    least, most = RANGES[name]
    return Field(None, ge=least, le=most, description=description)


class SettingsChange(WorkspaceRequest):
    """Settings to change. null restores the default."""

    model_config = ConfigDict(extra="allow")

    chunk_tokens: int | None = _number("chunk_tokens", "Longest passage of new documents, in tokens.")
    chunk_overlap_tokens: int | None = _number(
        "chunk_overlap_tokens", "Tokens that neighbouring passages of new documents share."
    )
    similarity_results: int | None = _number("similarity_results", "Passages that a plain similarity search returns.")
    similarity_threshold: float | None = _number(
        "similarity_threshold", "Least cosine of a passage that such a search returns."
    )
    similarity_strategy: Strategy | None = Field(None, description="How such a search chooses passages.")
    mode: EvidenceMode | None = Field(None, description="How prompts get evidence.")
    prompts: Prompts | None = Field(None, description="Which prompts through the proxy get evidence.")
    threshold: float | None = _number("threshold", "A passage with a higher relevance is evidence.")
    max_documents: int | None = _number("max_documents", "Most passages of evidence in a prompt.")
    persona: str | None = Field(None, description="Template of the system prompt, one of `personas`.")


@router.get("/v1/settings", tags=["settings"])
async def get_settings(container: AppContainer, workspace: QueryWorkspace) -> SettingsBody:
    """The settings of a workspace, which of them can be changed, and the state of its store and the model host."""
    return await _body(container, workspace, await container.preferences.of(workspace))


@router.patch("/v1/settings", tags=["settings"])
async def change_settings(request: Request, change: SettingsChange, container: AppContainer) -> SettingsBody:
    """Change settings of a workspace in all processes. A new chunk size applies to new documents."""
    workspace = choose_workspace(request, change.workspace)
    given = {name: getattr(change, name) for name in change.model_fields_set - {"workspace"}}
    for name in sorted(given.keys() - set(CHANGEABLE)):
        raise ValidationError(_why_not(name), field=name)
    await container.limits.check_workspace(workspace)
    return await _body(container, workspace, await container.preferences.change(workspace, given))


async def _body(container: Container, workspace: str, preferences: Preferences) -> SettingsBody:
    settings = container.settings
    models, host = await _host(container)
    store = await _store(container, workspace)
    shown = {name: getattr(preferences, name) for name in CHANGEABLE}
    if preferences.similarity_threshold is None:
        model = store.embedding_model if store.status == "ready" else settings.embedding_model
        shown["similarity_threshold"] = least_similarity(model or EMBEDDED)
    return SettingsBody(
        workspace=workspace,
        **shown,
        max_file_bytes=settings.max_file_bytes,
        embedding_model=settings.embedding_model,
        chat_model=settings.chat_model,
        models=[EMBEDDED, *models],
        changeable=list(CHANGEABLE),
        ranges={name: Range(least=least, most=most) for name, (least, most) in RANGES.items()},
        strategies=list(STRATEGIES),
        modes=list(MODES),
        prompt_choices=list(PROMPTS),
        personas=list(PERSONAS),
        store=store,
        host=host,
    )


def _why_not(name: str) -> str:
    if name == "embedding_model":
        return (
            "A store keeps the embedding model that built it: set RAG_EMBEDDING_MODEL, then run cragside reindex, or "
            "POST /v1/reindex."
        )
    if name in Settings.model_fields:
        return f"{name} applies to all workspaces: set {variable_of(name)} where cragside is started."
    return f"{name} is not a setting. These can be changed: {', '.join(CHANGEABLE)}."


async def _store(container: Container, workspace: str) -> StoreBody:
    try:
        status = await (await container.workspaces.open(workspace)).passages.status()
    except CragsideError as error:
        return StoreBody(status="unavailable", reason=for_client(error).message)
    return StoreBody(
        status="ready" if status.documents else "empty",
        embedding_model=status.embedding_model or None,
        documents=status.documents,
        passages=status.passages,
        entities=status.entities,
        relations=status.relations,
        bytes=status.size,
    )


async def _host(container: Container) -> tuple[list[str], HostBody]:
    if container.host is None:
        return [], HostBody(status="not configured")
    try:
        return sorted(await container.host.models()), HostBody(status="ready")
    except CragsideError as error:
        return [], HostBody(status="unavailable", reason=error.message)


@router.post("/v1/reindex", tags=["settings"], response_class=StreamingResponse, responses=_ANSWER)
async def reindex_workspace(request: Request, body: WorkspaceRequest, container: AppContainer) -> Response:
    """Build a workspace and its memory anew with the configured embedding model.

    The old store answers until the new one is complete. If the client leaves, the build stops and the old store stays.
    Only one build of a workspace may run.
    """
    workspace = choose_workspace(request, body.workspace)
    workspaces = container.workspaces
    await (await workspaces.open(workspace)).documents.check_writable()
    total = sum([(await workspaces.stored(name)).documents for name in (workspace, memory_of(workspace))])
    items = followed(_run(container, workspace, seconds_of(request)))
    first = asyncio.ensure_future(first_of(items))
    await asyncio.wait({first}, timeout=_PATIENCE_SECONDS)
    if first.done() and (refused := first.exception()) is not None:
        raise refused
    return event_stream(request, _events(first, items, total))


def _run(container: Container, workspace: str, left: float | None) -> Any:
    async def run(progress: Callable[[str], None]) -> int:
        seconds = None if left is None else max(0.0, left - _MARGIN_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                return await container.workspaces.reindex(workspace, progress)
        except TimeoutError as error:
            message = "The host's time was over before all was built. Run cragside reindex where no limit applies."
            raise DeadlineExceeded(message) from error

    return run


async def _events(first: asyncio.Future[str | int], items: AsyncIterator[str | int], total: int) -> Events:
    done = 0
    if not first.done():
        yield _progress(0, total, "")
    try:
        item = await first
        while isinstance(item, str):
            done += 1
            yield _progress(done, max(total, done), item)
            item = await anext(items)
        yield ServerSentEvent(event="done", data={"documents": item})
    finally:
        first.cancel()
        await items.aclose()  # type: ignore[attr-defined]  # it is a generator


def _progress(done: int, total: int, name: str) -> ServerSentEvent:
    return ServerSentEvent(event="progress", data={"done": done, "total": total, "name": name})
