"""LightRAG's work on the graph, collected in memory until it is written as one change."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cragside.store.driver import GraphChange, MentionChange, Row, VectorChange
from cragside.store.engine import Engine
from cragside.store.ledger import Ledger
from cragside.store.lightrag import PROMPTS, collect_kg_merge_candidates, merge_nodes_and_edges
from cragside.store.storages import GraphStorage, ValueStorage, VectorStorage, ordered

# What LightRAG rebuilds an entity from when one of its passages goes: so many of those that remain.
_REBUILT_FROM = 60

Nodes = dict[str, dict[str, Any] | None]
Edges = dict[tuple[str, str], dict[str, Any] | None]


class DraftRows:
    """Stands in for a key-value storage."""

    def __init__(self, stored: ValueStorage) -> None:
        self.namespace = stored.namespace
        self._stored = stored
        self._rows: dict[str, dict[str, Any] | None] = {}

    async def get_by_id(self, key: str) -> dict[str, Any] | None:
        """Return the value, or None."""
        return self._rows[key] if key in self._rows else await self._stored.get_by_id(key)

    async def get_by_ids(self, keys: list[str]) -> list[dict[str, Any] | None]:
        """Return the values in the order of the keys, None for the missing."""
        others = [key for key in keys if key not in self._rows]
        found = {**dict(zip(others, await self._stored.get_by_ids(others), strict=True)), **self._rows}
        return [found[key] for key in keys]

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Note values."""
        self._rows.update(data)

    async def delete(self, keys: Iterable[str]) -> None:
        """Note that values go."""
        self._rows.update(dict.fromkeys(keys))

    async def index_done_callback(self) -> None:
        """Write nothing."""

    def noted(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the values that were noted, with their keys."""
        return [(key, row) for key, row in self._rows.items() if row is not None]

    def written(self) -> dict[str, dict[str, Any] | None]:
        """Return all that was noted, None for what goes."""
        return self._rows


class DraftMentions:
    """Keeps LightRAG's lists of the passages that name an entity or a relation as mentions in the ledger.

    LightRAG rewrites the list of an entity at each mention of it, which costs more the longer the list is. Here a
    merge adds rows and reads none: LightRAG then takes the passages that the node itself remembers. When passages go,
    it is told of them and of so many others that it can describe the entity anew.
    """

    def __init__(self, ledger: Ledger, kind: str, without: Sequence[str]) -> None:
        self._ledger = ledger
        self._kind = kind
        self._without = dict.fromkeys(without)
        # The passages that are merged. Others that LightRAG names with them are mentions already.
        self.of: Collection[str] | None = None
        self._added: dict[tuple[str, str], None] = {}
        self._removed: dict[str, None] = {}

    async def get_by_id(self, name: str) -> dict[str, Any] | None:
        """Return some of the passages that mention it with all that go, when passages go; else None."""
        if not self._without:
            return None
        return {
            "chunk_ids": await self._ledger.passages_for_rebuild(self._kind, name, list(self._without), _REBUILT_FROM)
        }

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Note mentions."""
        for name, row in data.items():
            named = row["chunk_ids"] if self.of is None else [each for each in row["chunk_ids"] if each in self.of]
            self._added.update(dict.fromkeys((name, passage) for passage in named if passage not in self._without))

    async def delete(self, names: Iterable[str]) -> None:
        """Note that nothing mentions these any more."""
        self._removed.update(dict.fromkeys(names))

    async def index_done_callback(self) -> None:
        """Write nothing."""

    def change(self) -> MentionChange:
        """Return all that was noted."""
        return MentionChange(self._kind, list(self._without), list(self._removed), list(self._added))


class DraftVectors:
    """Stands in for a vector storage. A row whose text stays keeps its vector."""

    def __init__(self, stored: VectorStorage) -> None:
        self.namespace = stored.namespace
        self._stored = stored
        self._rows: dict[str, dict[str, Any] | None] = {}

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Note rows."""
        now = int(time.time())
        for key, fields in data.items():
            kept = {name: value for name, value in fields.items() if name in self._stored.meta_fields}
            self._rows[key] = {**kept, "created_at": now}

    async def delete(self, keys: Iterable[str]) -> None:
        """Note that rows go."""
        self._rows.update(dict.fromkeys(keys))

    async def index_done_callback(self) -> None:
        """Write nothing."""

    async def change(self) -> VectorChange:
        """Return all that was noted, with vectors of what is new."""
        removed = [key for key, row in self._rows.items() if row is None]
        noted = {key: row for key, row in self._rows.items() if row is not None}
        stored = dict(zip(noted, await self._stored.get_by_ids(list(noted)), strict=True))
        updated: dict[str, Row] = {}
        written: dict[str, Row] = {}
        for key, row in noted.items():
            known = stored[key]
            (updated if known and known.get("content") == row["content"] else written)[key] = row
        texts = [str(row["content"]) for row in written.values()]
        vectors = await self._stored.embedded(texts, once=True) if texts else np.empty((0, 0), np.float32)
        return VectorChange(removed, updated, written, vectors)


class DraftGraph:
    """Stands in for a graph storage."""

    def __init__(self, stored: GraphStorage) -> None:
        self._stored = stored
        self._nodes: dict[str, dict[str, Any] | None] = {}
        self._edges: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._written: set[str | tuple[str, str]] = set()

    async def load(self, nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> None:
        """Read what will be asked for at once."""
        if wanted := {name for name in nodes if name not in self._nodes}:
            self._nodes.update({**dict.fromkeys(wanted), **await self._stored.nodes(wanted)})
        if pairs := {pair for edge in edges if (pair := ordered(*edge)) not in self._edges}:
            self._edges.update({**dict.fromkeys(pairs), **await self._stored.edges(pairs)})

    async def has_node(self, name: str) -> bool:
        """Return True if the node is there."""
        return await self.get_node(name) is not None

    async def get_node(self, name: str) -> dict[str, Any] | None:
        """Return a node's properties, or None."""
        await self.load([name], ())
        found = self._nodes[name]
        return None if found is None else dict(found)

    async def get_nodes_batch(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """Return the properties of those nodes that are there."""
        await self.load(names, ())
        return {name: dict(found) for name in names if (found := self._nodes[name]) is not None}

    async def has_edge(self, source: str, target: str) -> bool:
        """Return True if the edge is there, in either direction."""
        return await self.get_edge(source, target) is not None

    async def get_edge(self, source: str, target: str) -> dict[str, Any] | None:
        """Return an edge's properties, or None."""
        await self.load((), [(source, target)])
        found = self._edges[ordered(source, target)]
        return None if found is None else dict(found)

    async def get_edges_batch(self, pairs: list[dict[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the properties of those edges that are there, under the pairs as they were given."""
        wanted = [(pair["src"], pair["tgt"]) for pair in pairs]
        await self.load((), wanted)
        return {pair: dict(found) for pair in wanted if (found := self._edges[ordered(*pair)]) is not None}

    async def get_node_edges(self, name: str) -> list[tuple[str, str]] | None:
        """Return pairs of the node and each neighbour; None for an unknown node."""
        if not await self.has_node(name):
            return None
        return (await self.get_nodes_edges_batch([name]))[name]

    async def get_nodes_edges_batch(self, names: list[str]) -> dict[str, list[tuple[str, str]]]:
        """Return pairs of node and neighbour for each node."""
        found: dict[str, list[tuple[str, str]]] = await self._stored.get_nodes_edges_batch(names)
        for name in names:
            drafted = [edge for edge in self._edges if name in edge]
            others = dict.fromkeys(target for _, target in found[name])
            others.update(dict.fromkeys(edge[1] if edge[0] == name else edge[0] for edge in drafted))
            found[name] = [(name, other) for other in others if self._edges.get(ordered(name, other), {}) is not None]
        return found

    async def upsert_node(self, name: str, node_data: dict[str, Any]) -> None:
        """Note a node; properties that are not given stay."""
        self._nodes[name] = {**(await self.get_node(name) or {}), **node_data}
        self._written.add(name)

    async def upsert_edge(self, source: str, target: str, edge_data: dict[str, Any]) -> None:
        """Note an edge; properties that are not given stay."""
        edge = ordered(source, target)
        self._edges[edge] = {**(await self.get_edge(source, target) or {}), **edge_data}
        self._written.add(edge)

    async def remove_nodes(self, names: list[str]) -> None:
        """Note that nodes go, with their edges."""
        for name, edges in (await self.get_nodes_edges_batch(names)).items():
            await self.remove_edges(edges)
            self._nodes[name] = None
            self._written.add(name)

    async def remove_edges(self, edges: list[tuple[str, str]]) -> None:
        """Note that edges go, given in either direction."""
        for source, target in edges:
            self._edges[ordered(source, target)] = None
            self._written.add(ordered(source, target))

    async def index_done_callback(self) -> None:
        """Write nothing."""

    def written(self) -> tuple[Nodes, Edges]:
        """Return the nodes and edges that were noted, None for those that go."""
        return (
            {name: value for name, value in self._nodes.items() if name in self._written},
            {edge: value for edge, value in self._edges.items() if edge in self._written},
        )


# What ends a model's answer, as LightRAG asks for it.
_ENDING = re.compile(re.escape(PROMPTS["DEFAULT_COMPLETION_DELIMITER"]), re.IGNORECASE)

Extracted = list[tuple[dict[str, list[dict[str, Any]]], dict[tuple[str, str], list[dict[str, Any]]]]]


class Draft:
    """Runs LightRAG on storages that keep what is written to themselves; `change` gives all of it.

    From `merge` or `forget` until the change is applied nobody else may write to the graph. `without` are the passages
    whose contributions are to go.
    """

    def __init__(self, engine: Engine, ledger: Ledger, *, without: Sequence[str] = ()) -> None:
        self._without = list(without)
        self._graph = DraftGraph(engine.chunk_entity_relation_graph)
        self._entities = DraftVectors(engine.entities_vdb)
        self._relations = DraftVectors(engine.relationships_vdb)
        self._texts = DraftRows(engine.text_chunks)
        self._anchors = DraftRows(engine.full_entities), DraftRows(engine.full_relations)
        self._mentions = (
            DraftMentions(ledger, "entity", self._without),
            DraftMentions(ledger, "relation", self._without),
        )
        self._engine = engine.on(
            chunk_entity_relation_graph=self._graph,
            entities_vdb=self._entities,
            relationships_vdb=self._relations,
            text_chunks=self._texts,
            full_entities=self._anchors[0],
            full_relations=self._anchors[1],
            entity_chunks=self._mentions[0],
            relation_chunks=self._mentions[1],
        )

    async def extract(self, chunks: dict[str, dict[str, Any]]) -> Extracted:
        """Extract entities and relations of passages. The model's answers are kept at once: no call is repeated.

        Which answer belongs to which passage is part of the draft: LightRAG rebuilds descriptions from that.
        """
        await self._texts.upsert(chunks)
        extracted: Extracted = await self._engine._process_extract_entities(chunks)
        # LightRAG sorts descriptions by the second in which the model gave them: a repetition would sort them anew.
        for found in (rows for kinds in extracted for kind in kinds for rows in kind.values()):
            for row in found:
                row["timestamp"] = 0
        return extracted

    async def join(self, *others: "Draft") -> None:
        """Take over the passages of other drafts, with the model's answers, to merge what was extracted there."""
        for other in others:
            await self._texts.upsert(dict(other._texts.noted()))
        for mentions in self._mentions:
            mentions.of = self._texts.written().keys()

    async def tally(self, extracted: Extracted) -> dict[str, int]:
        """Count what an extraction gave: `entities` and `relations` are the rows that LightRAG could use.

        `malformed` are the lines of the model's answers that it could not, and `unusable` the passages whose answer
        had nothing else or was blank. A passage of which the model says that it names nothing is neither.
        """
        entities, relations = Counter[str](), Counter[str]()
        for nodes, edges in extracted:
            entities.update(row["source_id"] for rows in nodes.values() for row in rows)
            relations.update(row["source_id"] for rows in edges.values() for row in rows)
        used, malformed, unusable = entities + relations, 0, 0
        for passage, answer in (await self._answers()).items():
            lines = [line for line in _ENDING.sub("\n", answer).splitlines() if line.strip()]
            malformed += max(len(lines) - used[passage], 0)
            unusable += not used[passage] and (bool(lines) or not answer.strip())
        return {
            "entities": entities.total(),
            "relations": relations.total(),
            "malformed": malformed,
            "unusable": unusable,
        }

    async def _answers(self) -> dict[str, str]:
        """Return the model's last answer for each passage of the draft, "" where none is worth keeping."""
        last = {key: row["llm_cache_list"][-1] for key, row in self._texts.noted() if row.get("llm_cache_list")}
        kept = await self._engine.llm_response_cache.get_by_ids(list(last.values()))
        answers = {key: str(row["return"]) for key, row in zip(last, kept, strict=True) if row}
        return {key: answers.get(key, "") for key, _ in self._texts.noted()}

    async def merge(self, parts: Mapping[str, Extracted]) -> None:
        """Add what was extracted from the passages of parts, which are given by their keys."""
        engine, together = self._engine, [passage for extracted in parts.values() for passage in extracted]
        await self._graph.load(
            {name for nodes, edges in together for name in (*nodes, *(end for edge in edges for end in edge))},
            {edge for _, edges in together for edge in edges},
        )
        for key, extracted in parts.items():
            await self._anchor(key, extracted)
        await merge_nodes_and_edges(
            together,
            self._graph,
            self._entities,
            self._relations,
            engine._build_global_config(),
            pipeline_status={"history_messages": []},
            pipeline_status_lock=asyncio.Lock(),
            llm_response_cache=engine.llm_response_cache,
            entity_chunks_storage=self._mentions[0],
            relation_chunks_storage=self._mentions[1],
        )

    async def _anchor(self, key: str, extracted: Extracted) -> None:
        """Note what a part may contribute to, as LightRAG does of a document: `forget` looks there."""
        names, pairs = collect_kg_merge_candidates(extracted)
        await self._anchors[0].upsert({key: {"entity_names": sorted(names), "count": len(names)}})
        relations = [list(pair) for pair in sorted(pairs)]
        await self._anchors[1].upsert({key: {"relation_pairs": relations, "count": len(relations)}})

    async def forget(self, key: str) -> bool:
        """Take the contributions of the part's passages out, which are `without`. False when there never were any."""
        if await self._anchors[0].get_by_id(key) is None and await self._anchors[1].get_by_id(key) is None:
            return False
        await self._engine._purge_derived_kg_contributions(
            key,
            self._without,
            candidate_entities=None,
            candidate_relations=None,
            rebuild_policy="best_effort",
            pipeline_status={"history_messages": []},
            pipeline_status_lock=asyncio.Lock(),
        )
        for anchors in self._anchors:
            await anchors.delete([key])
        return True

    async def change(self) -> GraphChange:
        """Return all that was written, with the vectors of what is new."""
        nodes, edges = self._graph.written()
        entities, relations = await asyncio.gather(self._entities.change(), self._relations.change())
        return GraphChange(
            nodes,
            edges,
            vectors={self._entities.namespace: entities, self._relations.namespace: relations},
            values={each.namespace: each.written() for each in (self._texts, *self._anchors)},
            mentions=[each.change() for each in self._mentions],
        )
