"""Conversations: add them to memory, recall, list and forget them."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.application.memory import DEFAULT_LIMIT, Recollection
from cragside.domain.errors import NotFound
from cragside.domain.exchange import Exchange
from cragside.domain.names import END_USER_FIELD, end_user_name
from cragside.domain.query import Mode
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.models import Citation, Degraded, Shape, WorkspaceRequest
from cragside.entrypoints.http.request_access import (
    AppContainer,
    QueryWorkspace,
    choose_workspace,
    note_documents,
)
from cragside.entrypoints.http.request_bodies import BoundedRoute
from cragside.entrypoints.request_headers import end_user_of

_MOST_RESULTS = 100
_LONGEST_END_USER = 1000
_END_USER = "Who the user is, if several share a token; else the header `X-RAG-User` or that of the host."
EndUser = Annotated[str | None, Field(max_length=_LONGEST_END_USER, description=_END_USER)]
_MOST_LISTED = 100
_MOST_OFFSET = 10**9


class ExchangeBody(WorkspaceRequest):
    """An exchange: a user's words and the assistant's answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"user": "Who lights the lamp?", "assistant": "The keeper lights it at dusk."}]
        },
    )

    user: str | None = Field(description="Null is blank.")
    assistant: str | None = Field(description="Null is blank, as when nothing was answered.")
    skill: str | None = Field(None, max_length=200, description="The skill that was active, if any.")
    date: datetime | None = Field(None, description="ISO 8601, in UTC without a zone; now when missing.")
    end_user: EndUser = None


class RememberedBody(BaseModel):
    """Says if the exchange was added to memory, its id there, or why it was not added."""

    indexed: bool = Field(description="Whether it was added.")
    reason: str | None = Field(
        None, description="`blank_answer`, `too_short`, `greeting`, `known`, or what failed. None when it was taken."
    )
    id: str | None = Field(None, description="The exchange's id in memory.")
    retryable: bool = Field(False, description="Whether the same request may succeed later.")
    searchable: bool | None = Field(
        None, description="Whether it can be recalled now, or is queued for that. None when it was not added."
    )


class MemoryQuery(WorkspaceRequest):
    """A search in memory."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "Who lights the lamp?"}]})

    query: str = Field(description="The question.")
    mode: Mode | None = Field(None, description="As LightRAG's; RAG_MEMORY_MODE when missing.")
    limit: Annotated[int, Field(ge=1, le=_MOST_RESULTS, description="Most passages.")] = DEFAULT_LIMIT
    end_user: EndUser = None


class RecollectionBody(Shape):
    """Earlier exchanges on a question: a section for a system prompt ("" for nothing) and its passages."""

    text: str = Field(description="Under `# Relevant Memory`.")
    documents: list[Citation] = Field(description="The passages, best first.")
    degraded: list[Degraded] = Field(description="Components that failed.")


class MemoryBody(BaseModel):
    """An exchange in memory."""

    id: str = Field(description="Id of the exchange.")
    at: str = Field(description="When it took place, ISO 8601 in UTC.")
    text: str = Field(description="The exchange as it was written down.")
    searchable: bool = Field(description="Whether all of it can be recalled.")
    end_user: str | None = Field(None, description="Who the user is, if the request named one.")


class MemoryPage(BaseModel):
    """Some of the exchanges in memory, latest first."""

    memories: list[MemoryBody] = Field(description="The exchanges.")
    total: int = Field(description="How many there are in all.")
    limit: int = Field(description="The requested number.")
    offset: int = Field(description="How many were skipped.")


router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=BoundedRoute, responses=error_responses())


@router.post("", response_model_exclude_none=True)
async def add_memory(request: Request, exchange: ExchangeBody, container: AppContainer) -> RememberedBody:
    """Add an exchange to memory, unless it is trivial. `searchable` says if it can be recalled now, or soon."""
    workspace = choose_workspace(request, exchange.workspace)
    said = Exchange(
        exchange.user or "",
        exchange.assistant or "",
        exchange.skill or "",
        end_user=_end_user(request, exchange.end_user),
    )
    dated = said if exchange.date is None else replace(said, at=exchange.date)
    remembered = await container.memory.remember(dated, workspace=workspace)
    note_documents(request, [remembered.document_id] if remembered.document_id else [])
    return RememberedBody(
        indexed=remembered.indexed,
        reason=remembered.reason or None,
        id=remembered.document_id,
        retryable=remembered.retryable,
        searchable=remembered.searchable,
    )


@router.get("")
async def list_memories(
    request: Request,
    container: AppContainer,
    workspace: QueryWorkspace,
    limit: Annotated[int, Query(ge=1, le=_MOST_LISTED)] = _MOST_LISTED,
    offset: Annotated[int, Query(ge=0, le=_MOST_OFFSET)] = 0,
) -> MemoryPage:
    """The exchanges in memory, latest first."""
    kept, total = await container.memory.exchanges(workspace=workspace, limit=limit, offset=offset)
    note_documents(request, (each.record.id for each in kept))
    memories = [
        MemoryBody(
            id=each.record.id,
            at=each.at,
            text=each.text,
            searchable=each.record.searchable,
            end_user=each.record.metadata.get(END_USER_FIELD),
        )
        for each in kept
    ]
    return MemoryPage(memories=memories, total=total, limit=limit, offset=offset)


@router.delete("/{memory_id}", status_code=204)
async def delete_memory(memory_id: str, container: AppContainer, workspace: QueryWorkspace) -> None:
    """Forget an exchange, and what only it contributed to memory's graph."""
    if not await container.memory.forget(memory_id, workspace=workspace):
        raise NotFound(f"There is no exchange {memory_id} in memory. GET /v1/memories lists them.")


@router.post("/search", response_model=RecollectionBody)
async def search_memories(request: Request, asked: MemoryQuery, container: AppContainer) -> Recollection:
    """Recall earlier exchanges on a question, as a section for a system prompt."""
    workspace = choose_workspace(request, asked.workspace)
    return await container.memory.recall(
        asked.query,
        workspace=workspace,
        mode=asked.mode,
        limit=asked.limit,
        end_user=_end_user(request, asked.end_user),
    )


def _end_user(request: Request, given: str | None) -> str:
    return end_user_name(given) or end_user_of(request.scope["headers"])
