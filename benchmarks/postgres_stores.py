"""Workspaces of synthetic passages in PostgreSQL, written in bulk.

Indexing 100,000 passages takes most of an hour. These have what retrieval reads: documents, passages with their words
and vectors, and the graph that the extractor would make of the names in the texts. One change of the graph a batch.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from benchmarks import corpus
from cragside.bootstrap import Container
from cragside.store.driver import GraphChange, VectorChange
from cragside.store.postgres.driver import SEARCHED
from cragside.store.ranking import counted

if TYPE_CHECKING:
    from cragside.store.open_store import Store
    from cragside.store.postgres.driver import PostgresDriver

PASSAGES_A_DOCUMENT = 10
_BATCH = 500
_MOST_SOURCES = 50
_NAME = re.compile(r"[A-Z][a-z]+ (?:Institute|Harbour|Museum|Railway|Observatory|Foundry|Library|Society|Canal|Mill)")
_DOCUMENT = """INSERT INTO crag.document (store, id, content_hash, state, name, title, file_type, doc_type, size,
    characters, created_at, updated_at, track, enrich, tier1, metadata, marks, text)
    SELECT $1, id, id, 'current', id || '.txt', id || '.txt', 'txt', 'text', 0, 0, now()::text, now()::text, '', true,
    '{}', '{}', '[]', '' FROM unnest($2::text[]) AS id RETURNING version, id"""
_PART = """INSERT INTO crag.part SELECT version, 0, 'part', 0, $3, true, 'enriched', '', NULL, NULL
    FROM unnest($2::bigint[]) AS version WHERE $1::bigint IS NOT NULL"""
_PASSAGE = """INSERT INTO crag.passage SELECT $1, id, version, 0, number, NULL, '[]', NULL, 130, text
    FROM unnest($2::text[], $3::bigint[], $4::integer[], $5::text[]) AS row (id, version, number, text)"""


async def fill(container: Container, workspace: str, passages: Sequence[corpus.Passage]) -> None:
    """Write passages into a new workspace."""
    store = await container.workspaces._created(workspace)
    await store.embedder.prepare()
    # Indexes that are made at the end take a third of the time.
    store.ledger.driver._writes = -len(passages)  # type: ignore[attr-defined]
    graph = _Graph()
    for start in range(0, len(passages), _BATCH):
        await _write(store, [passage.text for passage in passages[start : start + _BATCH]], start, graph)
        print(f"\r{workspace}: {start + _BATCH:,}", end="", flush=True)
    await graph.write(store)
    print(f"\r{workspace}: {len(graph.sources):,} entities, {len(graph.pairs):,} relations", flush=True)


async def _write(store: "Store", texts: Sequence[str], start: int, graph: "_Graph") -> None:
    database: PostgresDriver = store.ledger.driver  # type: ignore[assignment]
    names = [f"doc-{(start + n) // PASSAGES_A_DOCUMENT:06d}" for n in range(len(texts))]
    ids = [f"{name}-0-{start + n}-x-y" for n, name in enumerate(names)]
    vectors = await store.embedder.embed_questions(texts)
    search_text = store.ledger._search_text
    words = [counted(search_text(text), database.number) for text in texts]
    async with database.transaction():
        await database.bind(store.embedding_model, vectors.shape[1])
        rows = await database.all(_DOCUMENT, list(dict.fromkeys(names)))
        versions = {name: version for version, name in rows}
        await database.execute(_PART, list(versions.values()), PASSAGES_A_DOCUMENT - 1)
        numbers = [(start + n) % PASSAGES_A_DOCUMENT for n in range(len(texts))]
        await database.execute(_PASSAGE, ids, [versions[name] for name in names], numbers, list(texts))
        written = [f"[{','.join(map(repr, vector.tolist()))}]" for vector in vectors]
        await database.execute(SEARCHED, ids, *map(list, zip(*words, strict=True)), written)
        full = {
            key: {
                "content": text,
                "tokens": 130,
                "chunk_order_index": number,
                "full_doc_id": name,
                "file_path": quote(f"{name}.txt"),
            }
            for key, text, number, name in zip(ids, texts, numbers, names, strict=True)
        }
        await database.write_texts(full)
    for key, text in zip(ids, texts, strict=True):
        graph.add(key, text)


class _Graph:
    """Names that occur, and pairs of them that a passage's first sentence has."""

    def __init__(self) -> None:
        self.sources: dict[str, list[str]] = {}
        self.pairs: dict[tuple[str, str], list[str]] = {}

    def add(self, key: str, text: str) -> None:
        """Note the names of a passage."""
        found = list(dict.fromkeys(_NAME.findall(text)))
        for name in found:
            self.sources.setdefault(name, []).append(key)
        for other in found[1:3]:
            self.pairs.setdefault((min(found[0], other), max(found[0], other)), []).append(key)

    async def write(self, store: "Store") -> None:
        """Write entities and relations with their vectors."""
        database: PostgresDriver = store.ledger.driver  # type: ignore[assignment]
        items: list[tuple[str, ...]] = [*((name,) for name in self.sources), *self.pairs]
        items.sort(key=len)
        for start in range(0, len(items), 2 * _BATCH):
            change = await self._change(store, items[start : start + 2 * _BATCH])
            async with database.transaction():
                await database.write_graph(change)

    async def _change(self, store: "Store", items: Sequence[tuple[str, ...]]) -> GraphChange:
        nodes, edges, rows = {}, {}, {"entities": {}, "relationships": {}}
        for item in items:
            if len(item) == 1:
                said = f"{item[0]} is an organization of the valley."
                row = self._row(self.sources[item[0]], said)
                nodes[item[0]] = {**row, "entity_type": "organization", "entity_id": item[0]}
                rows["entities"][f"ent-{item[0]}"] = {**row, "entity_name": item[0], "content": f"{item[0]}\n{said}"}
            else:
                said = f"{item[0]} and {item[1]} worked together."
                row = self._row(self.pairs[item], said)
                edges[item] = {**row, "weight": float(len(self.pairs[item])), "keywords": "work"}
                rows["relationships"][f"rel-{'|'.join(item)}"] = {
                    **row,
                    "src_id": item[0],
                    "tgt_id": item[1],
                    "content": said,
                }
        vectors = {}
        for namespace, told in rows.items():
            texts = [row["content"] for row in told.values()]
            embedded = await store.embedder.embed_questions(texts) if texts else np.empty((0, 0), np.float32)
            vectors[namespace] = VectorChange([], {}, told, embedded)
        return GraphChange(nodes=nodes, edges=edges, vectors=vectors)

    @staticmethod
    def _row(sources: Sequence[str], said: str) -> dict[str, Any]:
        return {"description": said, "source_id": "<SEP>".join(sources[:_MOST_SOURCES]), "file_path": "records"}
