"""Find at once all rows that a query of LightRAG reads, and answer it from these by views of its storages.

LightRAG asks its storages a dozen times, one after another. Where each of these is a round trip to a server, most of a
query's time is waiting. LightRAG itself stays as it is: it reads from the views.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cragside.ports.embedder import Vectors
from cragside.store.storages.interface import Expansion, Properties, Rows, ordered


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
