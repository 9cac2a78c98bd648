"""Takes out of the graph what deleted versions have contributed."""

import asyncio
import logging

from cragside.domain.errors import CragsideError
from cragside.store.indexing.drafts import Draft
from cragside.store.ledger.changes import GraphChange, OnceGone
from cragside.store.ledger.entries import StoredPart
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.ledger import Ledger
from cragside.store.store import Store

# Somebody waits for the answer, and a model may be asked to describe what remains.
_AT_ONCE_SECONDS = 2.0

logger = logging.getLogger("cragside")


async def sweep(store: Store) -> None:
    """Take versions that are gone out of the graph, part by part, each in one transaction."""
    if await store.ledger.sweeps():
        async with store.writing() as ledger:
            await _swept(store, ledger)


async def sweep_if_free(store: Store) -> None:
    """Sweep at once, unless somebody is writing to the graph, it takes long, or it fails: a worker does it then."""
    if not await store.ledger.sweeps():
        return
    try:
        async with asyncio.timeout(_AT_ONCE_SECONDS), store.writing_if_free() as ledger:
            if ledger:
                await _swept(store, ledger)
    except Exception as error:
        logger.warning("Workspace %s is swept later: %s", store.workspace, _reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "that takes long"
    if isinstance(error, LedgerError):
        return error.reason
    return error.message if isinstance(error, CragsideError) else type(error).__name__


async def _swept(store: Store, ledger: Ledger) -> None:
    for part in await ledger.removed_parts():
        draft = await forget_graph(store, part)
        await ledger.apply(await draft.change() if draft else GraphChange(), OnceGone(part), store.embedding_model)
    async with store.accepting() as ledger:
        await ledger.drop_swept()
    store.tidy()


async def forget_graph(store: Store, part: StoredPart) -> Draft | None:
    """Draft the graph without what the part contributed; None when it never did. Only while `writing`."""
    draft = Draft(store.engine, store.ledger, without=await store.ledger.chunk_ids(part))
    return draft if await draft.forget(part.key) else None
