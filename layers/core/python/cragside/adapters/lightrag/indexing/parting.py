"""Moving exchanges that an older version put beside the documents into a store of their own.

A store is parted once and remembers it: what clients bring afterwards stays where they brought it. Until then the move
can be broken off at any moment and repeated: an exchange leaves the documents only when it is safely in memory.
"""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np

from cragside.adapters.lightrag.indexing import accepting
from cragside.adapters.lightrag.indexing.part_indexer import enter_vectors, texts_of
from cragside.adapters.lightrag.indexing.sweeping import sweep_if_free
from cragside.adapters.lightrag.ledger.entries import Suspect
from cragside.adapters.lightrag.store import Store
from cragside.domain.exchange import is_exchange, is_written_by_us
from cragside.domain.indexing import Acceptance, Task

# What memory took in has this metadata and no track.
_CONVERSATION = {"kind": "conversation"}
# Exchanges that leave in one transaction.
_BATCH = 500

logger = logging.getLogger("cragside")


async def exchanges_in(documents: Store) -> list[str]:
    """The ids of the exchanges among the documents of a workspace that an older version made."""
    return [suspect.identifier for suspect in await documents.ledger.suspects() if _came_as_exchange(suspect)]


def _came_as_exchange(found: Suspect) -> bool:
    """Clients may give any metadata, so with these alone the name and the text both have to be as memory wrote them."""
    if found.track:
        return is_exchange(found.name, found.text)
    return found.metadata == _CONVERSATION and is_written_by_us(found.name, found.text)


async def move(documents: Store, memory: Store, found: Sequence[str]) -> None:
    """Move exchanges into memory, where they can be found at once by the vectors that they have already.

    Their share of the documents' graph is taken out now or by the worker; memory's graph gets it from the worker.
    """
    for identifier in found:
        await _copy(documents, memory, identifier)
    # A power cut may take the last commits of a store: memory's have to be on disk before the documents' follow.
    await memory.ledger.flush()
    await _leave(documents, found)
    await sweep_if_free(documents)
    logger.info("Moved %d exchanges from the documents of workspace %s into memory", len(found), documents.workspace)


async def settle(documents: Store) -> None:
    """Remember that a store has no exchanges beside its documents."""
    await _leave(documents, [])


async def _leave(documents: Store, found: Sequence[str]) -> None:
    """Take exchanges out of the documents; with the last of them the store remembers that it is parted."""
    for start in range(0, max(len(found), 1), _BATCH):
        async with documents.accepting() as ledger:
            if await ledger.is_parted():
                return  # another process was faster: whatever has these ids now was brought afterwards
            await ledger.part_with(found[start : start + _BATCH], last=start + _BATCH >= len(found))
        await asyncio.sleep(0)


async def _copy(documents: Store, memory: Store, identifier: str) -> None:
    source = await documents.ledger.source(identifier)
    facts = await documents.ledger.accepted(identifier)
    if source is None or facts is None or await documents.ledger.is_parted():
        return  # somebody else has moved it meanwhile
    taken = await accepting.accept(
        memory, source, enrich=facts.enrich, track=facts.track, rename=True, identifier=identifier
    )
    if taken.outcome == "new":
        await memory.ledger.backdate(taken.record.id, facts.created_at, facts.updated_at)
    await _take_vectors_along(documents, memory, identifier, taken)


async def _take_vectors_along(documents: Store, memory: Store, identifier: str, taken: Acceptance) -> None:
    """What has no vector yet, or one of another model, is embedded by the worker."""
    if documents.embedding_model != memory.embedding_model:
        return
    known = await documents.ledger.vectors_of(identifier)
    for part in taken.record.parts:
        task = Task(memory.workspace, taken.record.id, taken.record.content_hash, part.number, "embed")
        stored = await memory.ledger.part(task)
        if stored is None or stored.embedded:
            continue
        texts = await texts_of(memory, stored)
        contents = [str(row["content"]) for row in texts.values()]
        if all(content in known for content in contents):
            await enter_vectors(memory, task, stored, texts, np.stack([known[content] for content in contents]))
