"""LightRAG's storages in memory, for tests and for what need not last."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from typing_extensions import override

from cragside.adapters.lightrag.ledger.entries import document_of_passage
from cragside.adapters.lightrag.ledger.memory.tables import PASSAGES, MemoryTables, VectorRow
from cragside.adapters.lightrag.storages.interface import GraphStorage, Properties, Strong, ValueStorage, VectorStorage
from cragside.adapters.lightrag.storages.ranking import fused, words_of
from cragside.domain.query import Filter
from cragside.domain.verdict import varied
from cragside.ports.embedder import Vectors


@final
@dataclass
class MemoryValueStorage(ValueStorage):
    """Values are copied when they are read."""

    @override
    async def initialize(self) -> None:
        self._memory = MemoryTables.opened[self.global_config["working_dir"]]

    @override
    async def get_by_id(self, id: str) -> dict[str, Any] | None:
        value = self._memory.values[self.namespace].get(id)
        return None if value is None else {"create_time": 0, "update_time": 0, **deepcopy(value)}

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        return [await self.get_by_id(key) for key in ids]

    @override
    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        self._memory.write_values(self.namespace, data)


@final
@dataclass
class MemoryVectorStorage(VectorStorage):
    """Searches as the storage on SQLite does."""

    @override
    async def initialize(self) -> None:
        self._validate_embedding_func()
        self._memory = MemoryTables.opened[self.global_config["working_dir"]]
        self._asked_text = self.global_config["vector_db_storage_cls_kwargs"].get("asked_text", str.lower)

    @override
    async def query(self, query: str, top_k: int, query_embedding: list[float] | None = None) -> list[dict[str, Any]]:
        if query_embedding is None:
            query_embedding = (await self.embedding_func([query], context="query"))[0]
        index = self._memory.indexes.get(self.namespace)
        if index is None:
            return []
        wide = 3 * top_k if self.namespace == PASSAGES else top_k
        vector = np.asarray(query_embedding, np.float32)
        cosine = dict(index.search(vector, wide, self.cosine_better_than_threshold))
        lexical = self._full_text(query, wide) if self.namespace == PASSAGES else {}
        ranked = fused(cosine, lexical) if lexical else list(cosine)
        ids = self._ids()
        if self.namespace == PASSAGES:
            ranked = varied(ranked, top_k, lambda number: document_of_passage(ids[number]))
        return [
            {**self._rows[ids[number]].row, "id": ids[number], "distance": cosine.get(number, 0.0)} for number in ranked
        ]

    @override
    async def nearest(
        self, question: Vectors, *, least: float, wanted: Filter, size: int
    ) -> AsyncIterator[list[tuple[str, float]]]:
        index, ids = self._memory.indexes.get(self.namespace), self._ids()
        if index is not None:
            numbers, cosines = index.nearest(question, least)
            found = [(ids[number], cosine) for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)]
            for start in range(0, len(found), size):
                yield found[start : start + size]

    @override
    async def worded(self, query: str, limit: int) -> list[str]:
        ids = self._ids()
        return [ids[number] for number in self._full_text(query, limit)]

    @override
    async def held(self, terms: Collection[str]) -> dict[str, int]:
        return self._memory.words.held(terms)

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        return [{**self._rows[key].row, "id": key} if key in self._rows else None for key in ids]

    @override
    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, Vectors]:
        return {key: self._rows[key].vector for key in ids if key in self._rows}

    @property
    def _rows(self) -> dict[str, VectorRow]:
        return self._memory.rows[self.namespace]

    def _ids(self) -> dict[int, str]:
        return {row.number: key for key, row in self._rows.items()}

    def _full_text(self, query: str, limit: int) -> dict[int, float]:
        return self._memory.words.search(words_of(self._asked_text(query)), limit)


@final
@dataclass
class MemoryGraphStorage(GraphStorage):
    """Nodes, edges, and the edges of each node."""

    edges_per_node: int | None = None

    @override
    async def initialize(self) -> None:
        self._memory = MemoryTables.opened[self.global_config["working_dir"]]

    @override
    def bounded(self, edges_per_node: int) -> Self:
        view = copy(self)
        view.edges_per_node = edges_per_node
        return view

    @override
    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        links = self._memory.links
        return {node: [(node, other) for other in sorted(links[node])[: self.edges_per_node]] for node in node_ids}

    @override
    async def nodes(self, names: Iterable[str]) -> dict[str, Properties]:
        return {name: dict(self._memory.nodes[name]) for name in names if name in self._memory.nodes}

    @override
    async def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Properties]:
        return {ends: dict(self._memory.edges[ends]) for ends in pairs if ends in self._memory.edges}

    @override
    async def degrees(self, names: Iterable[str]) -> dict[str, int]:
        return {name: self._degree(name) for name in names if name in self._memory.nodes}

    @override
    async def named(self, name: str) -> tuple[str, Properties] | None:
        alike = [known for known in self._memory.nodes if known.casefold() == name.casefold()]
        best = name if name in alike else next(iter(self._best(alike)), None)
        return None if best is None else (best, dict(self._memory.nodes[best]))

    @override
    async def containing(self, text: str, limit: int, kind: str = "") -> list[str]:
        alike = [name for name in self._memory.nodes if text.casefold() in name.casefold()]
        return self._best(name for name in alike if not kind or _kind(self._memory.nodes[name]) == kind)[:limit]

    @override
    async def kinds(self) -> dict[str, int]:
        return dict(Counter(map(_kind, self._memory.nodes.values())))

    @override
    async def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, Properties]]:
        found = [(*ends, dict(value)) for ends, value in self._memory.edges.items() if set(ends) <= set(names)]
        return sorted(found, key=lambda edge: (-_weight(edge[2]), edge[0], edge[1]))[:limit]

    @override
    async def strongest(self, name: str, limit: int) -> list[Strong]:
        links = self._memory.links[name].items()
        found = [Strong(other, dict(self._memory.edges[ends]), forward=ends[0] == name) for other, ends in links]
        return sorted(found, key=lambda edge: (-_weight(edge.value), edge.other))[:limit]

    @override
    async def neighbours(self, name: str, limit: int) -> list[tuple[str, float | None]]:
        return [(edge.other, edge.value.get("weight")) for edge in await self.strongest(name, limit)]

    def _degree(self, name: str) -> int:
        return len(self._memory.links[name])

    def _best(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: (-self._degree(name), name))


def _kind(value: Mapping[str, Any]) -> str:
    return str(value.get("entity_type") or "")


def _weight(value: Properties) -> float:
    return float(value.get("weight") or 0.0)
