"""Read the passages that LightRAG finds for a query, in few round trips.

LightRAG asks its storages a dozen times, one after another, some of it twice, and reads the texts of all passages that
it considers. Where each question is a round trip to a server, most of a query's time is waiting. LightRAG itself stays
as it is: it reads from the views.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from cragside.domain.indexing import DocumentRecord, Passage
from cragside.ports.embedder import Vectors
from cragside.store.engine import CHARACTERS_PER_TOKEN, Engine
from cragside.store.lightrag import QueryParam
from cragside.store.open_store import Store
from cragside.store.storages import Expansion, Found, Properties, Rows, Search, ordered


class _View:
    """A storage of LightRAG's, but for some of its methods."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


class FoundRows(_View):
    """A vector storage that knows the answer to one search."""

    def __init__(self, storage: Any, text: str | None, rows: Rows) -> None:
        super().__init__(storage)
        self._text = text
        self._rows = rows

    async def query(self, query: str, top_k: int, query_embedding: Any = None) -> Rows:
        """As the storage."""
        if query == self._text:
            return [dict(row) for row in self._rows]
        found: Rows = await self._storage.query(query, top_k, query_embedding=query_embedding)
        return found


class ExpandedGraph(_View):
    """A graph storage that knows the surroundings of some entities and relations."""

    def __init__(self, storage: Any, expansion: Expansion) -> None:
        super().__init__(storage)
        self._known = expansion

    async def get_nodes_batch(self, node_ids: list[str]) -> dict[str, Properties]:
        """As the storage."""
        if not self._known.asked.issuperset(node_ids):
            return dict(await self._storage.get_nodes_batch(node_ids))
        nodes = self._known.nodes
        return {name: dict(nodes[name]) for name in node_ids if name in nodes}

    async def node_degrees_batch(self, node_ids: list[str]) -> dict[str, int]:
        """As the storage."""
        if not self._known.degrees.keys() >= set(node_ids):
            return dict(await self._storage.node_degrees_batch(node_ids))
        return {name: self._known.degrees[name] for name in node_ids}

    async def edge_degrees_batch(self, edge_pairs: list[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """As the storage."""
        degrees = await self.node_degrees_batch(list({name for pair in edge_pairs for name in pair}))
        return {(source, target): degrees[source] + degrees[target] for source, target in edge_pairs}

    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        """As the storage."""
        if not self._known.near.keys() >= set(node_ids):
            return dict(await self._storage.get_nodes_edges_batch(node_ids))
        return {name: list(self._known.near[name]) for name in node_ids}

    async def get_edges_batch(self, pairs: list[dict[str, str]]) -> dict[tuple[str, str], Properties]:
        """As the storage."""
        wanted = [(pair["src"], pair["tgt"]) for pair in pairs]
        if not self._known.pairs.issuperset(ordered(*ends) for ends in wanted):
            return dict(await self._storage.get_edges_batch(pairs))
        edges = self._known.edges
        return {ends: dict(edges[ordered(*ends)]) for ends in wanted if ordered(*ends) in edges}


class FoundTexts(_View):
    """The texts of passages. Without `texts` it notes what is asked for, and answers as if each were there."""

    def __init__(
        self, storage: Any, vectors: Mapping[str, Vectors], texts: Mapping[str, Mapping[str, Any] | None] | None
    ) -> None:
        super().__init__(storage)
        self._vectors = vectors
        self._texts = texts
        self.asked: dict[str, None] = {}

    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        """As the storage."""
        if self._texts is None:
            self.asked |= dict.fromkeys(ids)
            return [{"content": "", "file_path": ""} for _ in ids]
        if not self._texts.keys() >= set(ids):
            return list(await self._storage.get_by_ids(ids))
        found = map(self._texts.__getitem__, ids)
        return [None if text is None else dict(text) for text in found]

    async def embedding_func(self, texts: Sequence[str], **named: Any) -> Vectors:
        """As the storage's."""
        if not self._vectors.keys() >= set(texts):
            embedded: Vectors = await self._storage.embedding_func(texts, **named)
            return embedded
        return np.stack([self._vectors[text] for text in texts])


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

    All that LightRAG will read is fetched ahead. Raises `StoreReplaced`.
    """
    reader, search = store.reader, await _search(store, query, parameters)
    beside = (reader.entities_vdb, reader.relationships_vdb, reader.chunk_entity_relation_graph)
    found = await reader.chunks_vdb.find(search, *beside)
    if store.searches_tell_replacement:
        await store.check(found.now)
    chosen, known = await _ahead(store, query, parameters, search, found)
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
    with store.embedder.made(search.vectors):
        if parameters.mode == "naive":
            chosen = await _picked(rehearsal, query, parameters)
        else:  # over empty texts, it need not find out for how many it has room
            chosen = await rehearsal.choice(query, parameters, search.entities or "", search.relations or "")
    known = await store.ledger.passages_by_id(chosen)
    if known.keys() >= set(chosen) and _have_room([known[key][1].text for key in chosen], query, parameters):
        return chosen, known
    ids = [*dict.fromkeys([*(key for key, _ in found.passages), *rehearsal.text_chunks.asked])]
    known |= await store.ledger.passages_by_id([key for key in ids if key not in known])
    texts = {key: _text(known, key) for key in ids}
    with store.embedder.made(search.vectors):
        return await _picked(_on(reader, search, found, expansion, texts), query, parameters), known


async def _picked(engine: Engine, query: str, parameters: QueryParam) -> list[str]:
    """Return the ids of the passages that LightRAG picks, best first."""
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
