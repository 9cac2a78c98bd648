"""Moving exchanges that an older version put beside the documents into a store of their own.

A store is parted once and remembers it: what clients bring afterwards stays where they brought it. Until then the move
can be broken off at any moment and repeated: an exchange leaves the documents only when it is safely in memory.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cragside.adapters.lightrag import library
from cragside.adapters.lightrag.ledger.sqlite.database import BATCH, Database
from cragside.adapters.lightrag.ledger.sqlite.schema import APART, PARTED
from cragside.adapters.lightrag.ledger.sqlite.versions import retire
from cragside.adapters.lightrag.part_indexer import BIND_MODEL, enter_vectors, texts_of
from cragside.adapters.lightrag.store import Store
from cragside.adapters.lightrag.sweeping import sweep_if_free
from cragside.domain.exchange import is_exchange, is_written_by_us
from cragside.domain.indexing import Acceptance, Task

# What memory took in has this metadata and no track. What came by LightRAG's routes has a track that only these give.
_CONVERSATION = {"kind": "conversation"}
_SUSPECTS = """
SELECT id, name, text, track, metadata FROM document WHERE state = 'current'
AND (track GLOB 'insert_*' OR track = '' AND json_extract(metadata, '$.kind') = 'conversation') ORDER BY version
"""
_KEPT = "UPDATE document SET created_at = ?, updated_at = ? WHERE state = 'current' AND id = ?"

logger = logging.getLogger("cragside")


def is_parted(documents: Store) -> bool:
    """Whether the exchanges of older versions have left the documents, or never were there."""
    return documents.database.meta(APART) is not None


def exchanges_in(documents: Store) -> list[str]:
    """The ids of the exchanges among the documents of a workspace that an older version made."""
    return [identifier for identifier, *facts in documents.database.all(_SUSPECTS) if _came_as_exchange(*facts)]


def _came_as_exchange(name: str, text: str, track: str, metadata: str) -> bool:
    """Clients may give any metadata, so with these alone the name and the text both have to be as memory wrote them."""
    return is_exchange(name, text) if track else json.loads(metadata) == _CONVERSATION and is_written_by_us(name, text)


def bind_model(folder: Path, model: str | None) -> None:
    """Have a new store of exchanges go on with the documents' model, so that their vectors can be taken along."""
    database = Database.acquire(folder)
    try:
        if model is not None:
            with database.transaction() as connection:
                connection.execute(BIND_MODEL, (model,))
    finally:
        database.release()


async def move(documents: Store, memory: Store, found: Sequence[str]) -> None:
    """Move exchanges into memory, where they can be found at once by the vectors that they have already.

    Their share of the documents' graph is taken out now or by the worker; memory's graph gets it from the worker.
    """
    for identifier in found:
        await _copy(documents, memory, identifier)
    # A power cut may take the last commits of a store: memory's have to be on disk before the documents' follow.
    memory.database.flush()
    await _leave(documents, found)
    await sweep_if_free(documents)
    logger.info("Moved %d exchanges from the documents of workspace %s into memory", len(found), documents.workspace)


async def settle(documents: Store) -> None:
    """Remember that a store has no exchanges beside its documents."""
    await _leave(documents, [])


async def _leave(documents: Store, found: Sequence[str]) -> None:
    """Take exchanges out of the documents; with the last of them the store remembers that it is parted."""
    for start in range(0, max(len(found), 1), BATCH):
        async with documents.accepting():
            if is_parted(documents):
                return  # another process was faster: whatever has these ids now was brought afterwards
            with documents.database.transaction() as connection:
                for identifier in found[start : start + BATCH]:
                    retire(documents, connection, "id = ?", identifier)
                    documents.catalogue.disown(connection, identifier)
                    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (PARTED + identifier,))
                if start + BATCH >= len(found):
                    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (APART,))
        await asyncio.sleep(0)


async def _copy(documents: Store, memory: Store, identifier: str) -> None:
    source = documents.catalogue.source(identifier)
    facts = documents.database.one(
        "SELECT track, enrich, created_at, updated_at FROM document WHERE state = 'current' AND id = ?", (identifier,)
    )
    if source is None or facts is None or is_parted(documents):
        return  # somebody else has moved it meanwhile
    track, enrich, *times = facts
    taken = await library.accept(memory, source, enrich=bool(enrich), track=track, rename=True, identifier=identifier)
    if taken.outcome == "new":
        with memory.database.transaction() as connection:
            connection.execute(_KEPT, (*times, taken.record.id))
    await _take_vectors_along(documents, memory, identifier, taken)


async def _take_vectors_along(documents: Store, memory: Store, identifier: str, taken: Acceptance) -> None:
    """What has no vector yet, or one of another model, is embedded by the worker."""
    if documents.embedding_model != memory.embedding_model:
        return
    known = _vectors(documents, identifier)
    for part in taken.record.parts:
        task = Task(memory.workspace, taken.record.id, taken.record.content_hash, part.number, "embed")
        stored = memory.catalogue.part(task)
        if stored is None or stored.embedded:
            continue
        texts = await texts_of(memory, stored)
        contents = [str(row["content"]) for row in texts.values()]
        if all(content in known for content in contents):
            await enter_vectors(memory, task, stored, texts, np.stack([known[content] for content in contents]))


def _vectors(documents: Store, identifier: str) -> dict[str, "np.ndarray[tuple[int], np.dtype[np.float32]]"]:
    """The vectors of a document's passages by their texts."""
    passages = {passage.id: passage.text for passage in documents.catalogue.passages(identifier, None)}
    rows = documents.database.within(
        "SELECT id, vector FROM vector WHERE namespace = 'chunks' AND id IN ({})", list(passages)
    )
    return {passages[key]: np.frombuffer(vector, np.float32) for key, vector in rows}
