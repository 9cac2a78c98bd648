"""rag-stack's way into the graph: one entity, and what it is connected with."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel

from cragside.bootstrap import Container
from cragside.domain.errors import NotFound
from cragside.entrypoints.http.peers.failures import RagStackFailure, peer_router
from cragside.entrypoints.http.peers.rag_stack.camel_model import CamelModel
from cragside.entrypoints.http.tenancy import Access
from cragside.ports.knowledge_graph import EntityView


class EntityDetails(CamelModel):
    """An entity. Times are ISO 8601 in UTC; `mention_count` is how many passages name it."""

    name: str
    type: str
    description: str
    first_seen: str | None
    last_seen: str | None
    mention_count: int


class EntityConnection(BaseModel):
    """A relationship, as seen from the entity."""

    entity: str
    relationship: str
    direction: Literal["incoming", "outgoing"]
    description: str


class MentioningDocument(BaseModel):
    """A document that mentions the entity."""

    id: str
    source: str


class EntityAnswer(BaseModel):
    """An entity with its connections, strongest first, and the documents that mention it."""

    entity: EntityDetails
    connections: list[EntityConnection]
    documents: list[MentioningDocument]


def router(container: Container, access: Access) -> APIRouter:
    """`GET /graph/entity/{name}`."""
    routes = peer_router("rag-stack", RagStackFailure, limit=container.settings.max_body_bytes)

    @routes.get("/graph/entity/{name:path}")
    async def entity(
        request: Request,
        name: Annotated[str, Path(description="The entity's name, in any case.")],
        collection: Annotated[str | None, Query(description="The workspace; the default without it.")] = None,
        limit: Annotated[int, Query(ge=1, le=500, description="Most connections, and most documents.")] = 100,
    ) -> EntityAnswer:
        """What the graph knows of an entity."""
        graph = (await container.workspaces.open(access.workspace(request, collection))).graph
        view = await graph.entity(name, connections=limit, documents=limit)
        if view is None:
            raise NotFound("Entity not found")
        return _answer(view)

    return routes


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
        connections=[
            EntityConnection(
                entity=each.entity,
                relationship=each.relationship,
                direction=each.direction,
                description=each.description,
            )
            for each in view.connections
        ],
        documents=[MentioningDocument(id=identifier, source=source) for identifier, source in view.documents],
    )
