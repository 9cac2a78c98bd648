"""The graph of a workspace: its best connected entities, those around one, and the passages that name them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.knowledge import Neighbourhood
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.models import GraphEntity, GraphRelationship, Shape
from cragside.entrypoints.http.request_access import AppContainer, QueryWorkspace, note_documents
from cragside.entrypoints.http.request_bodies import BoundedRoute

# More than any name that a model reads out of a text.
_LONGEST_NAME = 1000


class GraphNode(GraphEntity):
    """An entity of the graph."""

    mentions: int = Field(description="Number of passages that name it.")


class FoundEntities(BaseModel):
    """Entities, the best connected first."""

    entities: list[GraphNode] = Field(description="The entities.")


class GraphPart(Shape):
    """Some entities, and the relationships among them: at most four for each entity, the strongest first."""

    entities: list[GraphNode] = Field(description="The entities.")
    relationships: list[GraphRelationship] = Field(description="The relationships among them.")
    capped: bool = Field(description="Whether there are more entities or relationships than the limits allow.")


class GraphOverview(GraphPart):
    """The best connected entities of a workspace, and how many entities there are."""

    total: int = Field(description="Number of entities in the whole graph, of all types.")
    types: dict[str, int] = Field(description="How many entities there are of each type, the most frequent first.")


class NamingPassage(BaseModel):
    """A passage that names an entity, or that says how two are related."""

    id: str = Field(description="Id of the passage.")
    document: str = Field(description="Id of its document.")
    title: str = Field(description="Title of the document.")
    name: str = Field(description="Name of the document, with the folders that tell it from others of its name.")
    text: str = Field(description="Text of the passage.")
    page: int | None = Field(description="Its page, where known.")
    section: str | None = Field(description="Its section, where known.")


class NamingPassages(BaseModel):
    """Passages, those of the earliest documents first."""

    passages: list[NamingPassage] = Field(description="The passages.")
    total: int = Field(description="How many there are in all.")


Name = Annotated[str | None, Query(max_length=_LONGEST_NAME)]
Kind = Annotated[str, Query(alias="type", max_length=_LONGEST_NAME, description="Only entities of this type.")]

router = APIRouter(prefix="/v1/graph", tags=["graph"], route_class=BoundedRoute, responses=error_responses())


@router.get("")
async def show_graph(
    container: AppContainer,
    workspace: QueryWorkspace,
    limit: Annotated[int, Query(ge=1, le=2000, description="Most entities.")] = 300,
    kind: Kind = "",
) -> GraphOverview:
    """The best connected entities of a workspace and the relationships among them."""
    graph = (await container.workspaces.open(workspace)).graph
    types = await graph.kinds()
    part = await graph.overview(limit=limit, kind=kind)
    named = {name: count for name, count in types.items() if name}
    return GraphOverview(
        entities=part.entities,
        relationships=part.relationships,
        capped=part.capped,
        total=sum(types.values()),
        types=named,
    )


@router.get("/search")
async def search_graph(
    container: AppContainer,
    workspace: QueryWorkspace,
    text: Annotated[str, Query(max_length=_LONGEST_NAME, description="Part of the name, in any case.")] = "",
    limit: Annotated[int, Query(ge=1, le=100, description="Most entities.")] = 20,
    kind: Kind = "",
) -> FoundEntities:
    """Entities by a part of their name, the best connected first; without a text all of them."""
    graph = (await container.workspaces.open(workspace)).graph
    return FoundEntities(entities=await graph.search(text, limit=limit, kind=kind))


@router.get("/neighbourhood", response_model=GraphPart)
async def graph_neighbourhood(
    container: AppContainer,
    workspace: QueryWorkspace,
    entity: Annotated[str, Query(max_length=_LONGEST_NAME, description="Name of the entity, in any case.")],
    depth: Annotated[int, Query(ge=1, le=2, description="How many steps away from the entity.")] = 1,
    limit: Annotated[int, Query(ge=1, le=200, description="Most entities.")] = 50,
    kind: Annotated[
        str, Query(alias="type", max_length=_LONGEST_NAME, description="Only neighbours of this type, and by them.")
    ] = "",
) -> Neighbourhood:
    """An entity, what is around it and the relationships among them. The strongest connections come first."""
    graph = (await container.workspaces.open(workspace)).graph
    part = await graph.expand([entity], depth=depth, limit=limit, kind=kind)
    if not part.entities:
        raise _unknown(entity)
    return part


@router.get("/passages")
async def graph_passages(
    request: Request,
    container: AppContainer,
    workspace: QueryWorkspace,
    entity: Annotated[Name, Query(description="Name of an entity, in any case.")] = None,
    source: Annotated[Name, Query(description="Name of one entity of a relationship.")] = None,
    target: Annotated[Name, Query(description="Name of its other entity.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Most passages.")] = 20,
) -> NamingPassages:
    """The passages that name an entity, or those that say how two entities are related."""
    names = [name for name in ((entity,) if entity is not None else (source, target)) if name is not None]
    if len(names) != (2 if entity is None else 1) or (entity is not None and (source or target)):
        raise ValidationError("Name one entity, or a source and a target.", field="entity")
    opened = await container.workspaces.open(workspace)
    found = await opened.graph.naming(*names, limit=limit)
    if found is None:
        raise _unknown(*names)
    ids, total = found
    known = await opened.documents.passages_by_id(ids)
    note_documents(request, dict.fromkeys(record.id for record, _ in known.values()))
    return NamingPassages(passages=[_passage(*known[each]) for each in ids if each in known], total=total)


def _passage(record: DocumentRecord, passage: Passage) -> NamingPassage:
    return NamingPassage(
        id=passage.id,
        document=record.id,
        title=record.title,
        name=record.label,
        text=passage.text,
        page=passage.page,
        section=passage.section or None,
    )


def _unknown(*names: str) -> NotFound:
    one = f"an entity {names[0]}" if len(names) == 1 else f"the entities {names[0]} and {names[1]} both"
    return NotFound(f"This workspace does not have {one}.")
