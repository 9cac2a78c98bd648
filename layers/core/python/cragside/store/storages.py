"""Interfaces of LightRAG's storages, with the methods that cragside needs beyond LightRAG's."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from typing_extensions import override

from cragside.domain.query import Filter
from cragside.ports.embedder import Vectors
from cragside.store.driver import Since
from cragside.store.lightrag import BaseGraphStorage, BaseKVStorage, BaseVectorStorage, DocStatusStorage

Properties = dict[str, Any]
Rows = list[dict[str, Any]]


async def unused(*_: object, **__: object) -> Any:
    """Raises `NotImplementedError`: LightRAG's base classes ask for this method, and nothing calls it."""
    raise NotImplementedError("The ledger writes what this storage of LightRAG reads.")


class _Committed:
    """Every write is committed at once."""

    async def index_done_callback(self) -> None:
        """Nothing is left to do."""


@dataclass
class ValueStorage(_Committed, BaseKVStorage):
    """Values by their keys, in namespaces."""

    filter_keys = is_empty = delete = drop = unused


class Expansion(NamedTuple):
    """The surroundings of entities and relations: all that a query of LightRAG's reads of the graph.

    `nodes` are those of `asked` that are there, `edges` those of `pairs`, whose ends are in order. `near` are the edges
    that a query follows from each of the entities. `degrees` are of the entities and of both ends of these edges.
    """

    asked: set[str]
    nodes: dict[str, Properties]
    near: dict[str, list[tuple[str, str]]]
    degrees: dict[str, int]
    pairs: set[tuple[str, str]]
    edges: dict[tuple[str, str], Properties]


@dataclass(frozen=True, slots=True)
class Search:
    """The texts that a query of LightRAG's searches for, with their vectors; None for what its mode leaves out."""

    entities: str | None
    relations: str | None
    passages: str | None
    vectors: Mapping[str, Vectors]
    related: int
    most: int

    def vector(self, text: str) -> Vectors:
        """The vector of one of the texts."""
        return self.vectors[text]


class Found(NamedTuple):
    """The nearest entities and relations, and passages with their cosines, best first.

    `expansion` is None if the graph is in another database. `now` is what the workspace's store was during the search,
    None if that was not read.
    """

    entities: Rows
    relations: Rows
    passages: list[tuple[str, float]]
    expansion: Expansion | None
    now: Since | None = None

    @property
    def names(self) -> list[str]:
        """The names of the entities."""
        return [row["entity_name"] for row in self.entities]

    @property
    def ends(self) -> list[tuple[str, str]]:
        """The ends of the relations."""
        return [(row["src_id"], row["tgt_id"]) for row in self.relations]


@dataclass
class VectorStorage(_Committed, BaseVectorStorage):
    """Rows with vectors. Searches see what is committed; those of passages rank by BM25 and cosine.

    The ledger writes the rows.
    """

    get_by_id = upsert = delete = delete_entity = delete_entity_relation = drop = unused

    async def embedded(self, texts: list[str], *, once: bool = False) -> Vectors:
        """Return a row for each text, embedded in batches. Those embedded `once` are not looked for in the cache."""
        size = int(self.global_config.get("embedding_batch_num", 32))
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        named = {"context": "query"} if once else {}
        parts = await asyncio.gather(*(self.embedding_func(batch, **named) for batch in batches))
        return np.concatenate([np.asarray(part, np.float32) for part in parts])

    # If True, `find` also reads what the workspace's store is now.
    finds_store = False

    @abstractmethod
    def nearest(
        self, question: Vectors, *, least: float, wanted: Filter, size: int
    ) -> AsyncIterator[list[tuple[str, float]]]:
        """Batches of `size` ids of passages with their exact cosines of at least `least`, nearest first.

        All passages that meet the filter come; others may. Of equal cosines the one that was written first comes first.
        """

    @abstractmethod
    async def worded(self, query: str, limit: int) -> list[str]:
        """The ids of the passages that rank best by words alone, best first."""

    @abstractmethod
    async def held(self, terms: Collection[str]) -> dict[str, int]:
        """Count the passages that have each of these terms of full-text search. Terms without one are left out."""

    @abstractmethod
    async def find(self, search: Search, *beside: Any) -> Found:
        """All that a query looks for, in one round trip. `beside` are storages of entities, relations and the graph.

        What the graph says is missing if it is in another database.
        """

    @override
    @abstractmethod
    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, Vectors]:
        """The vectors of those rows that are there."""


class Strong(NamedTuple):
    """An edge of an entity. `forward` tells that the other end is alphabetically later."""

    other: str
    value: Properties
    forward: bool


@dataclass
class GraphStorage(_Committed, BaseGraphStorage):
    """Nodes by name, and undirected edges whose ends are in alphabetical order. The ledger writes them."""

    has_node = has_edge = get_node = get_edge = get_node_edges = node_degree = edge_degree = unused
    upsert_node = upsert_edge = delete_node = remove_nodes = remove_edges = drop = unused
    get_all_labels = get_popular_labels = search_labels = get_knowledge_graph = get_all_nodes = get_all_edges = unused

    # None for all of them.
    edges_per_node: int | None = None

    def bounded(self, edges_per_node: int) -> Self:
        """A view for queries that sees at most so many edges of each node.

        LightRAG fetches, ranks and counts all edges of every node it finds; hubs have hundreds.
        """
        view = copy(self)
        view.edges_per_node = edges_per_node
        return view

    @abstractmethod
    async def nodes(self, names: Iterable[str]) -> dict[str, Properties]:
        """Properties of those nodes that are there."""

    @abstractmethod
    async def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Properties]:
        """Properties of those edges that are there, whose ends are given in order."""

    @abstractmethod
    async def degrees(self, names: Iterable[str]) -> dict[str, int]:
        """Count the edges of each of these nodes that exists."""

    @abstractmethod
    async def named(self, name: str) -> tuple[str, Properties] | None:
        """The name and properties of the node of exactly this name.

        If there is none, of the best connected node whose name differs in case only, then of the alphabetically first.
        """

    @abstractmethod
    async def containing(self, text: str, limit: int, kind: str = "") -> list[str]:
        """Names that contain a text in any case, of a type if one is given: by their degree, then by the alphabet."""

    @abstractmethod
    async def kinds(self) -> dict[str, int]:
        """Count the nodes of each type; "" for those without one."""

    @abstractmethod
    async def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, Properties]]:
        """Edges whose ends are both among these, the heaviest first, then by the alphabet."""

    @abstractmethod
    async def strongest(self, name: str, limit: int) -> list[Strong]:
        """The heaviest edges of a node, then by the other ends."""

    @abstractmethod
    async def neighbours(self, name: str, limit: int) -> list[tuple[str, float | None]]:
        """The ends of the heaviest edges of a node and the weights: at least `limit`, if there are so many."""

    async def expand(self, names: Sequence[str], ends: Sequence[tuple[str, str]]) -> Expansion:
        """The surroundings of entities, and of relations with these ends; edges are those of a `bounded` view."""
        asked = {*names, *(name for pair in ends for name in pair)}
        near = await self.get_nodes_edges_batch(list(names))
        beside = {ordered(*edge) for edges in near.values() for edge in edges}
        pairs = beside | {ordered(*pair) for pair in ends}
        degrees = await self.node_degrees_batch(list({*names, *(name for pair in beside for name in pair)}))
        return Expansion(asked, await self.nodes(asked), near, degrees, pairs, await self.edges(pairs))

    @override
    async def node_degrees_batch(self, node_ids: list[str]) -> dict[str, int]:
        found = await self.degrees(node_ids)
        return {node: found.get(node, 0) for node in node_ids}

    @override
    async def edge_degrees_batch(self, edge_pairs: list[tuple[str, str]]) -> dict[tuple[str, str], int]:
        degrees = await self.node_degrees_batch(list({node for pair in edge_pairs for node in pair}))
        return {(source, target): degrees[source] + degrees[target] for source, target in edge_pairs}

    @override
    async def get_nodes_batch(self, node_ids: list[str]) -> dict[str, Properties]:
        return await self.nodes(node_ids)

    @override
    async def get_edges_batch(self, pairs: list[dict[str, str]]) -> dict[tuple[str, str], Properties]:
        wanted = {(pair["src"], pair["tgt"]) for pair in pairs}
        found = await self.edges({ordered(*pair) for pair in wanted})
        return {pair: dict(found[ordered(*pair)]) for pair in wanted if ordered(*pair) in found}


@final
@dataclass
class UnusedDocStatusStorage(_Committed, DocStatusStorage):
    """The storage that LightRAG has to have. Documents are in the ledger (ADR 8), so it holds nothing."""

    get_by_id = get_by_ids = filter_keys = is_empty = upsert = delete = drop = unused
    get_status_counts = get_all_status_counts = get_docs_by_statuses = get_docs_by_statuses_page = unused
    get_docs_by_ids = get_full_docs_by_ids = get_docs_by_track_id = get_docs_paginated = unused
    get_doc_by_file_path = get_doc_by_file_basename = get_doc_by_content_hash = resolve_doc_source_strict = unused


def ordered(source: str, target: str) -> tuple[str, str]:
    """The ends of an edge in alphabetical order."""
    return (source, target) if source <= target else (target, source)
