"""Conversations: taken into memory, and recalled."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.application.memory import DEFAULT_LIMIT
from cragside.domain.exchange import Exchange
from cragside.domain.search import Mode
from cragside.entrypoints.http.application import Application
from cragside.entrypoints.http.bounded import bounded_route
from cragside.entrypoints.http.errors import failures
from cragside.entrypoints.http.schemas import Citation, Degraded
from cragside.entrypoints.http.tenancy import Access

_MOST_RESULTS = 100


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
    id: str | None = Field(None, description="The document that holds it.")
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


def router(container: Application, access: Access) -> APIRouter:
    """`POST /v1/memories` and `POST /v1/memories/search`."""
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
