"""What the settings panel shows, and what can be changed there."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, ValidationError
from cragside.domain.preferences import CHANGEABLE, RANGES, STRATEGIES, Preferences
from cragside.domain.search import Strategy
from cragside.entrypoints.http.body_limit import bounded_route
from cragside.entrypoints.http.errors import failures, for_client
from cragside.entrypoints.http.tenancy import Access
from cragside.settings import Settings, variable_of

_EMBEDDED = "embedded"


class Range(BaseModel):
    """The values that a setting takes."""

    least: float
    most: float


class StoreBody(BaseModel):
    """The store of the workspace."""

    status: Literal["ready", "empty", "unavailable"]
    reason: str = ""
    embedding_model: str | None = None
    documents: int = 0
    passages: int = 0
    entities: int = 0
    relations: int = 0


class HostBody(BaseModel):
    """The model host."""

    status: Literal["ready", "not configured", "unavailable"]
    reason: str = ""


class SettingsBody(BaseModel):
    """What holds for a workspace; `changeable` lists what `PATCH` takes."""

    workspace: str
    chunk_tokens: int = Field(description="Longest passage of new documents, in tokens.")
    chunk_overlap_tokens: int = Field(description="Tokens that neighbouring passages of new documents share.")
    similarity_results: int = Field(description="Passages that a plain similarity search returns.")
    similarity_threshold: float = Field(description="Least cosine of a passage that such a search returns.")
    similarity_strategy: Strategy
    threshold: float = Field(description="What a passage's relevance has to exceed to be evidence.")
    max_documents: int
    max_file_bytes: int
    embedding_model: str | None = Field(description="The one asked for; None leaves it to the store.")
    chat_model: str | None
    models: list[str] = Field(description="Models that can be named.")
    changeable: list[str]
    ranges: dict[str, Range]
    strategies: list[Strategy]
    store: StoreBody
    host: HostBody


class SettingsChange(BaseModel):
    """Settings to change; null goes back to the default."""

    model_config = ConfigDict(extra="allow")

    workspace: str | None = Field(None, description="The workspace; the default without it.")
    chunk_tokens: int | None = Field(None, ge=500, le=2000)
    chunk_overlap_tokens: int | None = Field(None, ge=0, le=1000)
    similarity_results: int | None = Field(None, ge=3, le=10)
    similarity_threshold: float | None = Field(None, ge=0.5, le=0.9)
    similarity_strategy: Strategy | None = None


def router(container: Container, access: Access) -> APIRouter:
    """`GET` and `PATCH /v1/settings`."""
    settings = container.settings
    routes = APIRouter(tags=["settings"], route_class=bounded_route(settings.max_body_bytes))

    async def body(workspace: str, preferences: Preferences) -> SettingsBody:
        models, host = await _host(container)
        return SettingsBody(
            workspace=workspace,
            **{name: getattr(preferences, name) for name in CHANGEABLE},
            threshold=settings.threshold,
            max_documents=settings.max_documents,
            max_file_bytes=settings.max_file_bytes,
            embedding_model=settings.embedding_model,
            chat_model=settings.chat_model,
            models=[_EMBEDDED, *models],
            changeable=list(CHANGEABLE),
            ranges={name: Range(least=least, most=most) for name, (least, most) in RANGES.items()},
            strategies=list(STRATEGIES),
            store=await _store(container, workspace),
            host=host,
        )

    @routes.get("/v1/settings", responses=failures())
    async def shown(workspace: Annotated[str, Depends(access.asked)]) -> SettingsBody:
        """What holds for a workspace, what can be changed, and how its store and the model host are."""
        return await body(workspace, container.preferences.of(workspace))

    @routes.patch("/v1/settings", responses=failures())
    async def changed(request: Request, change: SettingsChange) -> SettingsBody:
        """Change settings of a workspace, for all processes that serve it; a new chunk size is for new documents."""
        workspace = access.workspace(request, change.workspace)
        given = {name: getattr(change, name) for name in change.model_fields_set - {"workspace"}}
        for name in sorted(given.keys() - set(CHANGEABLE)):
            raise ValidationError(_why_not(name), field=name)
        # In a thread: it waits for other processes that change settings, and for the disk.
        return await body(workspace, await asyncio.to_thread(container.preferences.change, workspace, given))

    return routes


def _why_not(name: str) -> str:
    if name == "embedding_model":
        return "The embedding model is the one that built the store: set RAG_EMBEDDING_MODEL, then cragside reindex."
    if name in Settings.model_fields:
        return f"{name} holds for all workspaces: set {variable_of(name)} where cragside is started."
    return f"{name} is no setting. These can be changed: {', '.join(CHANGEABLE)}."


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
    )


async def _host(container: Container) -> tuple[list[str], HostBody]:
    if container.host is None:
        return [], HostBody(status="not configured")
    try:
        return sorted(await container.host.models()), HostBody(status="ready")
    except CragsideError as error:
        return [], HostBody(status="unavailable", reason=error.message)
