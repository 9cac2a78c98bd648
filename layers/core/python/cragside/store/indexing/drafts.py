"""Collects LightRAG's work on the graph in memory, as one change."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cragside.store.engine.engine import Engine
from cragside.store.indexing.draft_storages import DraftGraph, DraftMentions, DraftRows, DraftVectors
from cragside.store.lean import PROMPTS, merge_nodes_and_edges
from cragside.store.ledger.changes import GraphChange
from cragside.store.ledger.ledger import Ledger

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

    async def merge(self, key: str, extracted: Extracted, file_path: str) -> None:
        """Add what was extracted from the passages of a part."""
        engine = self._engine
        await self._graph.load(
            {name for nodes, edges in extracted for name in (*nodes, *(end for edge in edges for end in edge))},
            {edge for _, edges in extracted for edge in edges},
        )
        await merge_nodes_and_edges(
            extracted,
            self._graph,
            self._entities,
            self._relations,
            engine._build_global_config(),
            full_entities_storage=self._anchors[0],
            full_relations_storage=self._anchors[1],
            doc_id=key,
            pipeline_status={"history_messages": []},
            pipeline_status_lock=asyncio.Lock(),
            llm_response_cache=engine.llm_response_cache,
            entity_chunks_storage=self._mentions[0],
            relation_chunks_storage=self._mentions[1],
            file_path=file_path,
        )

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
        return GraphChange(
            nodes,
            edges,
            vectors={each.namespace: await each.change() for each in (self._entities, self._relations)},
            values={each.namespace: each.written() for each in (self._texts, *self._anchors)},
            mentions=[each.change() for each in self._mentions],
        )
