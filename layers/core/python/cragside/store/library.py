"""The documents of one workspace in its store."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from typing_extensions import override

from cragside.domain.document import SourceText
from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.indexing import (
    LATEST,
    Acceptance,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Listing,
    Passage,
    Progress,
    Task,
)
from cragside.ports.workspaces import Library
from cragside.store.indexing.accepting import accept
from cragside.store.indexing.sweeping import sweep_if_free
from cragside.store.ledger.failures import failing_as_unavailable
from cragside.store.ledger.leases import StoreRemoved
from cragside.store.ledger.ledger import Ledger
from cragside.store.storable import storable
from cragside.store.store import Store, StoreAccess

Read = TypeVar("Read")


class LightRagLibrary(Library):
    """The documents of a workspace. While it has no store it has none, and accepting one makes it."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    @override
    async def accept(
        self, source: SourceText, *, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        self._access.check_writable()
        async with failing_as_unavailable():
            while True:
                try:
                    return await accept(await self._access.create(), source, enrich=enrich, track=track, rename=rename)
                except StoreRemoved:
                    continue  # the document belongs into the workspace that has the name now

    @override
    async def check_writable(self) -> None:
        self._access.check_writable()

    @override
    async def document(self, document_id: str) -> DocumentRecord | None:
        return await self._read(lambda ledger: ledger.record(document_id), None)

    @override
    async def sourced(self, source: str) -> DocumentRecord | None:
        return await self._read(lambda ledger: ledger.sourced(storable(source)), None)

    @override
    async def named(self, name: str) -> list[DocumentRecord]:
        return await self._read(lambda ledger: ledger.named(storable(name)), [])

    @override
    async def below(self, folder: str) -> list[DocumentRecord]:
        return await self._read(lambda ledger: ledger.below(storable(folder)), [])

    @override
    async def move(self, document_id: str, *, source: str, name: str) -> DocumentRecord:
        self._access.check_writable()
        async with failing_as_unavailable():
            store = await self._access.existing()
            if store is None:
                raise _unknown(document_id)
            return await move(store, document_id, storable(source), storable(name))

    @override
    async def documents(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        status: DocumentStatus | None = None,
        track: str | None = None,
        listing: Listing = LATEST,
    ) -> tuple[list[DocumentRecord], int]:
        asked = replace(listing, search=storable(listing.search))
        return await self._read(lambda ledger: ledger.page(limit, offset, status, track, asked), ([], 0))

    @override
    async def file_types(self) -> dict[str, int]:
        return await self._read(lambda ledger: ledger.file_types(), {})

    @override
    async def languages(self) -> dict[str | None, int]:
        return await self._read(lambda ledger: ledger.languages(), {})

    @override
    async def source(self, document_id: str) -> SourceText | None:
        return await self._read(lambda ledger: ledger.source(document_id), None)

    @override
    async def passages(self, document_id: str, part: int | None = None) -> list[Passage]:
        return await self._read(lambda ledger: ledger.passages(document_id, part), [])

    @override
    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        return await self._read(lambda ledger: ledger.passages_by_id(ids), {})

    @override
    async def delete(self, document_id: str) -> bool:
        self._access.check_writable()
        async with failing_as_unavailable():
            store = await self._access.existing()
            if store is None:
                return False
            known = await forget(store, document_id)
            await sweep_if_free(store)
            return known

    @override
    async def restart(
        self, document_id: str | None = None, *, force: bool = False, failures: bool = True
    ) -> list[Task]:
        self._access.check_writable()
        async with failing_as_unavailable():
            store = await self._access.existing()
            return await restart(store, document_id, force=force, failures=failures) if store else []

    @override
    async def progress(self) -> Progress:
        return await self._read(lambda ledger: ledger.progress(), Progress())

    @override
    async def counts(self) -> dict[EnrichmentStatus, int]:
        return await self._read(lambda ledger: ledger.counts(), {})

    async def _read(self, read: Callable[[Ledger], Awaitable[Read]], nothing: Read) -> Read:
        async with failing_as_unavailable():
            store = await self._access.existing()
            return await read(store.ledger) if store else nothing


async def forget(store: Store, document_id: str) -> bool:
    """Make a document's text vanish. False when there is none."""
    async with store.accepting() as ledger:
        return await ledger.retire(document_id)


async def move(store: Store, document_id: str, source: str, name: str) -> DocumentRecord:
    """See `Library.move`."""
    async with store.accepting() as ledger:
        other = await ledger.sourced(source)
        if other is not None and other.id != document_id:
            raise ValidationError(f"The document {other.id} has this source already. Forget it first.", field="source")
        if await ledger.record(document_id) is None:
            raise _unknown(document_id)
        await ledger.claim(document_id, source, name)
    moved = await store.ledger.record(document_id)
    if moved is None:
        raise _unknown(document_id)
    return moved


async def restart(store: Store, document_id: str | None, *, force: bool, failures: bool) -> list[Task]:
    """See `Library.restart`."""
    if not (failures or force):
        return await unfinished(store.ledger, document_id)
    async with store.accepting() as ledger:
        await ledger.requeue(document_id, force=force)
    return await store.ledger.tasks(document_id)


async def unfinished(ledger: Ledger, document_id: str | None = None) -> list[Task]:
    """Return the tasks that are left, without those given up. None means all documents.

    Parts in progress stay so: their worker marks them again when it begins.
    """
    given_up = await ledger.given_up()
    wanted = [task for task in await ledger.tasks(document_id) if (task.document_id, task.part) not in given_up]
    return wanted + await ledger.sweeps(document_id)


def _unknown(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id} in this workspace.")
