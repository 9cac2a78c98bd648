"""rag-stack's graph route: one entity and its connections."""

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import BaseModel, Field

from cragside.domain.errors import NotFound
from cragside.entrypoints.http.peers.failures import RagStackFailure, peer_router
from cragside.entrypoints.http.peers.rag_stack.camel_model import CamelModel
from cragside.entrypoints.http.request_access import AppContainer, QueryCollection
from cragside.ports.workspaces import EntityView


class EntityDetails(CamelModel):
    """An entity. Times are ISO 8601 in UTC; `mention_count` is how many passages name it."""

    name: str = Field(description="Name of the entity.")
    type: str = Field(description="Its type.")
    description: str = Field(description="What the documents say about it.")
    first_seen: str | None = Field(description="When the first document with it was added, ISO 8601 in UTC.")
    last_seen: str | None = Field(description="When the last document with it was added, ISO 8601 in UTC.")
    mention_count: int = Field(description="Number of passages that mention it.")


class EntityConnection(BaseModel):
    """A relationship, as seen from the entity."""

    entity: str = Field(description="Name of the other entity.")
    relationship: str = Field(description="Kind of the relationship.")
    direction: Literal["incoming", "outgoing"] = Field(description="Whether it leads to the entity or away from it.")
    description: str = Field(description="What the documents say about it.")


class MentioningDocument(BaseModel):
    """A document that mentions the entity."""

    id: str = Field(description="Id of the document.")
    source: str = Field(description="Name of the document.")


class EntityAnswer(BaseModel):
    """An entity with its connections, strongest first, and the documents that mention it."""

    entity: EntityDetails = Field(description="The entity.")
    connections: list[EntityConnection] = Field(description="Its relationships, strongest first.")
    documents: list[MentioningDocument] = Field(description="The documents that mention it.")


router = peer_router("rag-stack", RagStackFailure)


@router.get("/graph/entity/{name:path}")
async def graph_entity(
    container: AppContainer,
    name: Annotated[str, Path(description="The entity's name, in any case.")],
    workspace: QueryCollection,
    limit: Annotated[int, Query(ge=1, le=500, description="Most connections, and most documents.")] = 100,
) -> EntityAnswer:
    """An entity with its connections and the documents that mention it."""
    graph = (await container.workspaces.open(workspace)).graph
    view = await graph.entity(name, connections=limit, documents=limit)
    if view is None:
        raise NotFound("Entity not found")
    return _answer(view)


def _answer(view: EntityView) -> EntityAnswer:
    entity = view.entity
    return EntityAnswer(
        entity=EntityDetails(
            name=entity.name,
            type=entity.type,
            description=entity.description,
            first_seen=entity.first_seen,
            last_seen=entity.last_seen,
            mention_count=entity.mentions,
        ),
        connections=[EntityConnection.model_validate(each, from_attributes=True) for each in view.connections],
        documents=[MentioningDocument(id=identifier, source=source) for identifier, source in view.documents],
    )
