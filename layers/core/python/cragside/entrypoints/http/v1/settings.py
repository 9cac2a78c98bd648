"""The settings of a workspace: what the settings panel shows and changes."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, ValidationError
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
from cragside.entrypoints.http.body_limit import BoundedRoute
from cragside.entrypoints.http.errors import error_responses, for_client
from cragside.entrypoints.http.request_access import WORKSPACE, AppContainer, QueryWorkspace, choose_workspace
from cragside.ports.models import EMBEDDED
from cragside.settings import Settings, variable_of


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


class SettingsChange(BaseModel):
    """Settings to change. null restores the default."""

    model_config = ConfigDict(extra="allow")

    workspace: str | None = Field(None, description=WORKSPACE)
    chunk_tokens: int | None = Field(None, ge=500, le=2000, description="Longest passage of new documents, in tokens.")
    chunk_overlap_tokens: int | None = Field(
        None, ge=0, le=1000, description="Tokens that neighbouring passages of new documents share."
    )
    similarity_results: int | None = Field(
        None, ge=3, le=10, description="Passages that a plain similarity search returns."
    )
    similarity_threshold: float | None = Field(
        None, ge=0, le=0.9, description="Least cosine of a passage that such a search returns."
    )
    similarity_strategy: Strategy | None = Field(None, description="How such a search chooses passages.")
    mode: EvidenceMode | None = Field(None, description="How prompts get evidence.")
    prompts: Prompts | None = Field(None, description="Which prompts through the proxy get evidence.")
    threshold: float | None = Field(None, ge=0, le=0.95, description="A passage with a higher relevance is evidence.")
    max_documents: int | None = Field(None, ge=1, le=20, description="Most passages of evidence in a prompt.")
    persona: str | None = Field(None, description="Template of the system prompt, one of `personas`.")


router = APIRouter(tags=["settings"], route_class=BoundedRoute, responses=error_responses())


@router.get("/v1/settings")
async def get_settings(container: AppContainer, workspace: QueryWorkspace) -> SettingsBody:
    """The settings of a workspace, which of them can be changed, and the state of its store and the model host."""
    return await _body(container, workspace, await container.preferences.of(workspace))


@router.patch("/v1/settings")
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
