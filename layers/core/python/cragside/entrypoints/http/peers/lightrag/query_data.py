"""LightRAG's `POST /query/data`: passages with the entities and relationships that they mention."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel

from cragside.application.passages import Hit, Lookup
from cragside.entrypoints.http.peers.failures import QueryDataFailure, peer_router
from cragside.entrypoints.http.peers.passage_search import PassageSearch
from cragside.entrypoints.http.peers.query_models import DEFAULT_PASSAGES, LookupBody, Reference, references_of
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace
from cragside.ports.knowledge_graph import Neighbourhood, Relationship

# LightRAG's separator in lists of ids and paths.
_SEPARATOR = "<SEP>"


class DataEntity(BaseModel):
    """An entity that the passages mention. `source_id` has the ids of these passages."""

    entity_name: str
    entity_type: str
    description: str
    source_id: str
    file_path: str
    created_at: str
    reference_id: str


class DataRelationship(BaseModel):
    """A relationship between two of the entities. `weight` is the number of passages that mention both."""

    src_id: str
    tgt_id: str
    description: str
    keywords: str
    weight: float
    source_id: str
    file_path: str
    created_at: str
    reference_id: str


class DataChunk(BaseModel):
    """A passage."""

    reference_id: str
    content: str
    file_path: str
    chunk_id: str


class QueryData(BaseModel):
    """The passages, and the graph around them."""

    entities: list[DataEntity]
    relationships: list[DataRelationship]
    chunks: list[DataChunk]
    references: list[Reference]


class QueryDataAnswer(BaseModel):
    """The data from which LightRAG would generate an answer. `failure`: nothing was found."""

    status: Literal["success", "failure"]
    message: str
    data: QueryData
    metadata: dict[str, Any]


router = peer_router("LightRAG", QueryDataFailure)


@router.post("/query/data")
async def query_data(request: Request, body: LookupBody, container: AppContainer) -> QueryDataAnswer:
    """The data from which LightRAG would generate an answer: passages, and the entities and relationships in them."""
    search = PassageSearch(container, request, choose_workspace(request))
    return await search.within(_data(search, body))


async def _data(search: PassageSearch, body: LookupBody) -> QueryDataAnswer:
    mode = body.mode or "mix"
    hits = await search.find(Lookup(body.question, body.limit or DEFAULT_PASSAGES, mode))
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
