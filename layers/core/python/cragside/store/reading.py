"""Reads the passages that LightRAG finds for a query, in few round trips."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import orjson

from cragside.domain.indexing import DocumentRecord, Passage
from cragside.store.engine.engine import Engine
from cragside.store.engine.tokens import CHARACTERS_PER_TOKEN
from cragside.store.lean import QueryParam
from cragside.store.storages.interface import Expansion, Found, Search
from cragside.store.storages.prefetch import ExpandedGraph, FoundRows, FoundTexts
from cragside.store.store import Store

Known = dict[str, tuple[DocumentRecord, Passage]]
Texts = Mapping[str, Mapping[str, Any] | None]

_WITH_ENTITIES = ("local", "hybrid", "mix")
_WITH_RELATIONS = ("global", "hybrid", "mix")
_WITH_PASSAGES = ("naive", "mix")
# More than LightRAG's templates take, which have 3,400 characters, and its reserve of 200 tokens.
_PROMPT_TOKENS = 4000
# More than the names of the fields, the number of the reference and rounding take.
_TOKENS_AROUND_A_PASSAGE = 30


async def read_passages(store: Store, query: str, parameters: QueryParam) -> list[tuple[DocumentRecord, Passage]]:
    """Find passages with LightRAG, best first.

    Where each question to the store is a round trip, all that LightRAG will read is fetched ahead. Raises
    `StoreReplaced`.
    """
    reader, search = store.reader, await _search(store, query, parameters)
    beside = (reader.entities_vdb, reader.relationships_vdb, reader.chunk_entity_relation_graph)
    if reader.chunks_vdb.finds_with(*beside):
        found = await reader.chunks_vdb.find(search, *beside)
        await store.check(found.now)
        chosen, known = await _ahead(store, query, parameters, search, found)
    else:
        chosen, known = await _chosen(store, reader, query, parameters, search), Known()
    if missing := [key for key in chosen if key not in known]:
        known |= await store.ledger.passages_by_id(missing)
    return [known[key] for key in chosen if key in known]


async def _ahead(
    store: Store, query: str, parameters: QueryParam, search: Search, found: Found
) -> tuple[list[str], Known]:
    """Return the ids of the passages, and what was read for them.

    Which texts LightRAG picks is known once it has run, so it runs over texts that are empty. It picks the same ones
    again with the texts, unless one of them is gone or it has no room for all. Only then it runs twice.
    """
    reader = store.reader
    expansion = found.expansion or await reader.chunk_entity_relation_graph.expand(found.names, found.ends)
    rehearsal = _on(reader, search, found, expansion, None)
    chosen = await _chosen(store, rehearsal, query, parameters, search)
    ids = [*dict.fromkeys([*(key for key, _ in found.passages), *rehearsal.text_chunks.asked])]
    known = await store.ledger.passages_by_id(ids)
    if known.keys() >= set(ids) and _have_room([known[key][1].text for key in chosen], query, parameters):
        return chosen, known
    texts = {key: _text(known, key) for key in ids}
    return await _chosen(store, _on(reader, search, found, expansion, texts), query, parameters, search), known


async def _chosen(store: Store, engine: Engine, query: str, parameters: QueryParam, search: Search) -> list[str]:
    """Return the ids of the passages that LightRAG picks, best first."""
    with store.embedder.made(search.vectors):
        answer = await engine.aquery_data(query, parameters)
    return [chunk["chunk_id"] for chunk in answer.get("data", {}).get("chunks", [])]


def _have_room(texts: Sequence[str], query: str, parameters: QueryParam) -> bool:
    """Return True if LightRAG has room for all these passages, even beside the largest other content.

    It counts passages as JSON, in which orjson takes at least as much.
    """
    sizes = [len(orjson.dumps(text)) // CHARACTERS_PER_TOKEN + _TOKENS_AROUND_A_PASSAGE for text in texts]
    described = parameters.max_entity_tokens + parameters.max_relation_tokens
    return bool(sum(sizes) + described + len(query) + _PROMPT_TOKENS <= parameters.max_total_tokens)


async def _search(store: Store, query: str, parameters: QueryParam) -> Search:
    """Put the texts together as LightRAG does."""
    mode = parameters.mode
    entities = ", ".join(parameters.ll_keywords) if mode in _WITH_ENTITIES else None
    relations = ", ".join(parameters.hl_keywords) if mode in _WITH_RELATIONS else None
    texts = [*dict.fromkeys(text for text in (query, entities, relations) if text)]
    vectors = dict(zip(texts, await store.embedder.embed_in_time(texts), strict=True))
    passages = query if mode in _WITH_PASSAGES else None
    return Search(entities, relations, passages, vectors, parameters.top_k, parameters.chunk_top_k)


def _on(engine: Engine, search: Search, found: Found, expansion: Expansion, texts: Texts | None) -> Engine:
    """Run LightRAG on what was found. Without `texts`, all passages are there and empty."""
    passages: Sequence[dict[str, Any]] = [
        {"id": key, "content": text["content"], "file_path": "", "distance": cosine}
        for key, cosine in found.passages
        if (text := {"content": ""} if texts is None else texts[key]) is not None
    ]
    return engine.on(
        entities_vdb=FoundRows(engine.entities_vdb, search.entities, found.entities),
        relationships_vdb=FoundRows(engine.relationships_vdb, search.relations, found.relations),
        chunks_vdb=FoundRows(engine.chunks_vdb, search.passages, list(passages)),
        chunk_entity_relation_graph=ExpandedGraph(engine.chunk_entity_relation_graph, expansion),
        text_chunks=FoundTexts(engine.text_chunks, search.vectors, texts),
    )


def _text(known: Known, key: str) -> dict[str, Any] | None:
    """Return a passage as LightRAG's storage of texts has it."""
    if key not in known:
        return None
    record, passage = known[key]
    return {"content": passage.text, "file_path": quote(record.name, safe="")}
