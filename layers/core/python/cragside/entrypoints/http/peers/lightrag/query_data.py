"""LightRAG's `POST /query/data`: passages with the entities and relationships that they mention."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, Field

from cragside.application.passages import Hit, Lookup
from cragside.entrypoints.http.passage_search import PassageSearch
from cragside.entrypoints.http.peers.failures import QueryDataFailure, peer_router
from cragside.entrypoints.http.peers.query_models import DEFAULT_PASSAGES, LookupBody, Reference, references_of
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace
from cragside.ports.workspaces import Neighbourhood, Relationship

# LightRAG's separator in lists of ids and paths.
_SEPARATOR = "<SEP>"


class DataEntity(BaseModel):
    """An entity that the passages mention. `source_id` has the ids of these passages."""

    entity_name: str = Field(description="Name of the entity.")
    entity_type: str = Field(description="Its type.")
    description: str = Field(description="What the documents say about it.")
    source_id: str = Field(description="Ids of the passages that mention it.")
    file_path: str = Field(description="Names of the documents that mention it.")
    created_at: str = Field(description="When it was found first.")
    reference_id: str = Field(description="Number of the reference that mentions it.")


class DataRelationship(BaseModel):
    """A relationship between two of the entities. `weight` is the number of passages that mention both."""

    src_id: str = Field(description="Name of the first entity.")
    tgt_id: str = Field(description="Name of the second entity.")
    description: str = Field(description="What the documents say about it.")
    keywords: str = Field(description="Words that describe it.")
    weight: float = Field(description="Its strength.")
    source_id: str = Field(description="Ids of the passages that mention it.")
    file_path: str = Field(description="Names of the documents that mention it.")
    created_at: str = Field(description="When it was found first.")
    reference_id: str = Field(description="Number of the reference that mentions it.")


class DataChunk(BaseModel):
    """A passage."""

    reference_id: str = Field(description="Number of its reference.")
    content: str = Field(description="The text of the passage.")
    file_path: str = Field(description="Name of its document.")
    chunk_id: str = Field(description="Id of the passage.")


class QueryData(BaseModel):
    """The passages, and the graph around them."""

    entities: list[DataEntity] = Field(description="Entities in the passages or near them.")
    relationships: list[DataRelationship] = Field(description="Relationships between the entities.")
    chunks: list[DataChunk] = Field(description="The passages.")
    references: list[Reference] = Field(description="The passages' documents, numbered.")


class QueryDataAnswer(BaseModel):
    """The data from which LightRAG would generate an answer. `failure`: nothing was found."""

    status: Literal["success", "failure"] = Field(description="`failure` if nothing was found.")
    message: str = Field(description="What happened, for people.")
    data: QueryData = Field(description="What was found.")
    metadata: dict[str, Any] = Field(description="The mode, the keywords and the numbers of results.")


router = peer_router("LightRAG", QueryDataFailure)


@router.post("/query/data")
async def query_data(request: Request, body: LookupBody, container: AppContainer) -> QueryDataAnswer:
    """The data from which LightRAG would generate an answer: passages, and the entities and relationships in them."""
    search = PassageSearch(container, request, choose_workspace(request))
    return await search.within(_data(search, body))


async def _data(search: PassageSearch, body: LookupBody) -> QueryDataAnswer:
    mode = body.mode or "mix"
    hits = (await search.find(Lookup(body.question, body.limit or DEFAULT_PASSAGES, mode=mode))).hits
    if not hits:
        return _nothing(mode)
    mentions = {} if mode == "naive" else await search.passages.mentions(hits, workspace=search.workspace)
    around = await search.passages.among(mentions, workspace=search.workspace)
    numbers = {hit.passage.id: str(number) for number, hit in enumerate(hits, 1)}
    data = QueryData(
        entities=_entities(around, mentions, numbers),
        relationships=[_relationship(each, mentions, numbers) for each in around.relationships],
        chunks=[_chunk(hit, numbers) for hit in hits],
        references=references_of(hits),
    )
    sizes = {
        "total_entities_found": len(mentions),
        "total_relations_found": len(data.relationships),
        "entities_after_truncation": len(data.entities),
        "relations_after_truncation": len(data.relationships),
        "final_chunks_count": len(hits),
    }
    keywords = {"high_level": body.hl_keywords, "low_level": body.ll_keywords}
    metadata = {"query_mode": mode, "keywords": keywords, "processing_info": sizes}
    return QueryDataAnswer(status="success", message="Passages were found.", data=data, metadata=metadata)


def _nothing(mode: str) -> QueryDataAnswer:
    empty = QueryData(entities=[], relationships=[], chunks=[], references=[])
    metadata = {"failure_reason": "no_results", "mode": mode}
    return QueryDataAnswer(status="failure", message="No passages were found.", data=empty, metadata=metadata)


def _entities(
    around: Neighbourhood, mentions: Mapping[str, Sequence[Hit]], numbers: Mapping[str, str]
) -> list[DataEntity]:
    return [
        DataEntity(
            entity_name=entity.name,
            entity_type=entity.type,
            description=entity.description,
            created_at=entity.last_seen or "",
            **_provenance(mentions[entity.name], numbers),
        )
        for entity in around.entities
        if entity.name in mentions
    ]


def _relationship(
    relationship: Relationship, mentions: Mapping[str, Sequence[Hit]], numbers: Mapping[str, str]
) -> DataRelationship:
    others = {hit.passage.id for hit in mentions.get(relationship.target, ())}
    both = [hit for hit in mentions.get(relationship.source, ()) if hit.passage.id in others]
    return DataRelationship(
        src_id=relationship.source,
        tgt_id=relationship.target,
        description=relationship.description,
        keywords=relationship.type,
        weight=float(len(both)),
        created_at="",
        **_provenance(both, numbers),
    )


def _provenance(hits: Sequence[Hit], numbers: Mapping[str, str]) -> dict[str, str]:
    return {
        "source_id": _SEPARATOR.join(hit.passage.id for hit in hits),
        "file_path": _SEPARATOR.join(dict.fromkeys(hit.record.label for hit in hits)),
        "reference_id": numbers[hits[0].passage.id] if hits else "",
    }


def _chunk(hit: Hit, numbers: Mapping[str, str]) -> DataChunk:
    return DataChunk(
        reference_id=numbers[hit.passage.id],
        content=hit.passage.text,
        file_path=hit.record.label,
        chunk_id=hit.passage.id,
    )
