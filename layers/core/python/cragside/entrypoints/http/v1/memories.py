"""Conversations: taken into memory, recalled, listed and forgotten."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.application.memory import DEFAULT_LIMIT
from cragside.bootstrap import Container
from cragside.domain.errors import NotFound
from cragside.domain.exchange import Exchange
from cragside.domain.search import Mode
from cragside.entrypoints.http.body_limit import bounded_route
from cragside.entrypoints.http.errors import failures
from cragside.entrypoints.http.models import Citation, Degraded
from cragside.entrypoints.http.tenancy import Access

_MOST_RESULTS = 100
_MOST_LISTED = 100
_MOST_OFFSET = 10**9


class ExchangeBody(BaseModel):
    """What a user said and what the assistant answered."""

    model_config = ConfigDict(extra="forbid")

    user: str | None = Field(description="Null is blank.")
    assistant: str | None = Field(description="Null is blank, as when nothing was answered.")
    skill: str | None = Field(None, max_length=200, description="The skill that was active, if any.")
    date: datetime | None = Field(None, description="ISO 8601, in UTC without a zone; now when missing.")
    workspace: str | None = Field(None, description="The workspace; the default without it.")


class RememberedBody(BaseModel):
    """Whether the exchange was taken into memory, as which document, and why not."""

    indexed: bool
    reason: str | None = Field(
        None, description="`blank_answer`, `too_short`, `greeting`, `known`, or what failed. None when it was taken."
    )
    id: str | None = Field(None, description="The exchange's id in memory.")
    retryable: bool = False


class MemoryQuery(BaseModel):
    """What to look for in memory."""

    model_config = ConfigDict(extra="forbid")

    query: str
    mode: Mode | None = Field(None, description="As LightRAG's; RAG_MEMORY_MODE when missing.")
    limit: Annotated[int, Field(ge=1, le=_MOST_RESULTS, description="Most passages.")] = DEFAULT_LIMIT
    workspace: str | None = Field(None, description="The workspace; the default without it.")


class RecollectionBody(BaseModel):
    """What memory holds: a section for a system prompt (empty for nothing), and the passages behind it."""

    text: str = Field(description="Under `# Relevant Memory`.")
    documents: list[Citation]
    degraded: list[Degraded]


class MemoryBody(BaseModel):
    """An exchange in memory."""

    id: str
    at: str = Field(description="When it took place, ISO 8601 in UTC.")
    text: str = Field(description="The exchange as it was written down.")
    searchable: bool = Field(description="Whether all of it can be recalled.")


class MemoryPage(BaseModel):
    """Some of the exchanges in memory, latest first."""

    memories: list[MemoryBody]
    total: int = Field(description="How many there are in all.")
    limit: int
    offset: int


def router(container: Container, access: Access) -> APIRouter:
    """`/v1/memories`."""
    settings = container.settings
    routes = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=bounded_route(settings.max_body_bytes))

    @routes.post("", responses=failures(), response_model_exclude_none=True)
    async def remember(request: Request, exchange: ExchangeBody) -> RememberedBody:
        """Take an exchange into memory, unless it is trivial; it is indexed afterwards."""
        workspace = access.workspace(request, exchange.workspace)
        said = Exchange(exchange.user or "", exchange.assistant or "", exchange.skill or "")
        if exchange.date is not None:
            said = Exchange(said.user, said.assistant, said.skill, exchange.date)
        remembered = await container.memory.remember(said, workspace=workspace)
        access.note(request, [remembered.document_id] if remembered.document_id else [])
        return RememberedBody(
            indexed=remembered.indexed,
            reason=remembered.reason or None,
            id=remembered.document_id,
            retryable=remembered.retryable,
        )

    @routes.get("", responses=failures())
    async def remembered(
        request: Request,
        workspace: Annotated[str, Depends(access.asked)],
        limit: Annotated[int, Query(ge=1, le=_MOST_LISTED)] = _MOST_LISTED,
        offset: Annotated[int, Query(ge=0, le=_MOST_OFFSET)] = 0,
    ) -> MemoryPage:
        """What is remembered, latest first."""
        kept, total = await container.memory.exchanges(workspace=workspace, limit=limit, offset=offset)
        access.note(request, (each.record.id for each in kept))
        memories = [
            MemoryBody(id=each.record.id, at=each.at, text=each.text, searchable=each.record.searchable)
            for each in kept
        ]
        return MemoryPage(memories=memories, total=total, limit=limit, offset=offset)

    @routes.delete("/{memory_id}", status_code=204, responses=failures())
    async def forget(memory_id: str, workspace: Annotated[str, Depends(access.asked)]) -> None:
        """Forget an exchange; what only it contributed to memory's graph follows."""
        if not await container.memory.forget(memory_id, workspace=workspace):
            raise NotFound(f"There is no exchange {memory_id} in memory. GET /v1/memories lists them.")

    @routes.post("/search", responses=failures())
    async def recall(request: Request, asked: MemoryQuery) -> RecollectionBody:
        """What memory holds on a question, ready for a system prompt."""
        workspace = access.workspace(request, asked.workspace)
        found = await container.memory.recall(asked.query, workspace=workspace, mode=asked.mode, limit=asked.limit)
        return RecollectionBody(
            text=found.text,
            documents=[
                Citation(
                    id=document.id,
                    title=document.title,
                    content=document.content,
                    source=document.source,
                    score=document.score,
                    url=document.url,
                    metadata=dict(document.metadata),
                )
                for document in found.documents
            ],
            degraded=[Degraded(component=each.component, reason=each.reason) for each in found.degraded],
        )

    return routes
