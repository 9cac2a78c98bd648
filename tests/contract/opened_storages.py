"""LightRAG's storages, opened as LightRAG does, but without the rest of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from lightrag.kg.shared_storage import finalize_share_data, initialize_share_data
from lightrag.utils import EmbeddingFunc

if TYPE_CHECKING:
    from cragside.store.backends.interface import Backend
    from cragside.store.ledger import Ledger

DIMENSIONS = 16


async def embed(texts: list[str], **_: Any) -> np.ndarray[Any, Any]:
    """A unit vector that depends on the letters of a text alone."""
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for letter in text.lower():
            row[ord(letter) % DIMENSIONS] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@asynccontextmanager
async def opened_ledger(backend: "Backend", folder: Path) -> "AsyncIterator[Ledger]":
    """The ledger of a new store, whose storages are open: a ledger in a database writes to them."""
    ledger = await backend.open_ledger(folder, "w", search_text=str.lower)
    ours = backend.storages()
    place = backend.place_of(folder, (await ledger.driver.opened_with())[1])
    async with opened(ours.values, ours.vectors, ours.graph, folder, place):
        yield ledger
        ledger.driver.release()


@asynccontextmanager
async def opened(
    values: Any, vectors: Any, graph: Any, folder: Path, place: str = ""
) -> AsyncIterator[SimpleNamespace]:
    """Storages of these classes for a store in `folder`, or at a `place` of its backend.

    Where there is a ledger, it is open already.
    """
    initialize_share_data()
    config = {
        "working_dir": str(folder),
        "embedding_batch_num": 4,
        "vector_db_storage_cls_kwargs": {"cosine_better_than_threshold": 0.2, "store": place or str(folder)},
        "max_graph_nodes": 1000,
    }
    function = EmbeddingFunc(embedding_dim=DIMENSIONS, func=embed, model_name="letters")

    def build(storage: Any, namespace: str, **more: Any) -> Any:
        return storage(namespace=namespace, workspace="w", global_config=config, embedding_func=function, **more)

    def vector(namespace: str, *fields: str) -> Any:
        return build(vectors, namespace, cosine_better_than_threshold=0.2, meta_fields={*fields, "content"})

    built = SimpleNamespace(
        kv=build(values, "text_chunks"),
        other_kv=build(values, "full_docs"),
        full_entities=build(values, "full_entities"),
        relations=vector("relationships", "src_id", "tgt_id"),
        entities=vector("entities", "entity_name"),
        passages=vector("chunks", "full_doc_id", "file_path"),
        graph=build(graph, "chunk_entity_relation"),
    )
    storages = list(vars(built).values())
    for storage in storages:
        await storage.initialize()
    yield built
    for storage in storages:
        await storage.finalize()
    finalize_share_data()
