"""Builds a store anew with another embedding model, document by document."""

from collections.abc import Callable

from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.domain.indexing import DocumentRecord, Task
from cragside.store.indexing.part_indexer import embed, extend_graph
from cragside.store.store import Store

_AS_IT_WAS = "The old store is as it was."


async def rebuild(old: Store, fresh: Store, progress: Callable[[str], None]) -> int:
    """Fill an empty store with another one's documents, and all that is known of them. Return their number.

    Documents keep their passages. What was enriched is in the graph again; what was waiting for that, or was given up,
    is as it was. Raises `ServiceUnavailable` that names the document that cannot be indexed. Only while nobody writes
    to the old store.
    """
    documents = await old.ledger.names()
    await fresh.ledger.copy_facts_from(old.ledger)
    for identifier in documents:
        await fresh.ledger.copy_document_from(old.ledger, identifier)
    for identifier, name in documents.items():
        try:
            await _index(old, fresh, identifier)
        except CragsideError as error:
            raise ServiceUnavailable("knowledge_base", f"{name}: {error}. {_AS_IT_WAS}") from error
        progress(name)
    await _check(documents, fresh)
    return len(documents)


async def _index(old: Store, fresh: Store, identifier: str) -> None:
    record, known = await fresh.ledger.record(identifier), await old.ledger.record(identifier)
    if record is None or known is None:
        return  # the check at the end tells
    enriched = {part.number for part in known.parts if part.enrichment == "enriched"}
    for part in record.parts:
        task = _task(fresh, record, part.number)
        if stored := await fresh.ledger.part(task):
            if part.number in enriched:
                await extend_graph(fresh, task, stored)
            await embed(fresh, task, stored)


def _task(store: Store, record: DocumentRecord, number: int) -> Task:
    return Task(store.workspace, record.id, record.content_hash, number, "embed")


async def _check(documents: dict[str, str], fresh: Store) -> None:
    """Raise `ServiceUnavailable` if the new store lacks a document or passage of the old one."""
    passages = sum((await fresh.ledger.counts()).values())
    found = (await fresh.ledger.status(fresh.embedding_model)).passages
    if await fresh.ledger.names() != documents or passages != found:
        raise ServiceUnavailable(
            "knowledge_base", f"Of {len(documents)} documents some would have been lost. {_AS_IT_WAS}"
        )
