"""Takes documents in, and finds those that are there by what people call them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cragside.application.allowance import StorageLimits, metadata_weight, taking_turns, weight
from cragside.domain.document import DocType, SourceText
from cragside.domain.errors import NotFound, PayloadTooLarge, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Acceptance, DeadLetter, DocumentKey, DocumentRecord, QueueStats
from cragside.domain.names import memory_of, names_below, spoken
from cragside.ports.files import DocumentLoader, FetchedPage, FetchFailed, PageFetcher

if TYPE_CHECKING:
    from cragside.store.library import Library
    from cragside.store.part_indexer import PartIndexer
    from cragside.store.queues.sql import TaskQueue
    from cragside.store.spare_room import SpareRoom
    from cragside.store.workspaces import Workspaces

# The most documents that an error lists.
_MOST_LISTED = 10
# So many characters are made searchable at a time while clients wait, which takes 45 ms: a page takes 4 ms of them. A
# note takes as long as a thousand characters. What is beyond that is left to the worker, so that nobody waits for it.
_AT_ONCE_CHARACTERS = 100_000
_LEAST_CHARACTERS = 1_000


async def documents_meant(library: "Library", called: str, *, path: str = "") -> list[DocumentRecord]:
    """Find the documents that `called` may mean: by id, source, label or name. `path` is `called` as a file's source.

    Several mean that the reference is ambiguous. An id, a URL or an absolute path means one document.
    """
    if (known := await library.document(called)) is not None:
        return [known]
    known = await library.sourced(called)
    if known is not None and known.name != called:
        return [known]
    of_path = await library.sourced(path) if path else None
    labelled = [
        record for name in names_below(called)[:-1] for record in await library.named(name) if record.label == called
    ]
    meant = [*await library.named(called), *labelled, *filter(None, (known, of_path))]
    return list({record.id: record for record in meant}.values())


def unclear(called: str, meant: Sequence[DocumentRecord]) -> ValidationError:
    """Return the error for an ambiguous reference."""
    listed = ", ".join(f"{record.label} ({record.id})" for record in meant[:_MOST_LISTED])
    more = f" and {len(meant) - _MOST_LISTED} more" if len(meant) > _MOST_LISTED else ""
    return ValidationError(
        f"{called} can mean {len(meant)} documents: {listed}{more}. Say which one, by its id or its whole source."
    )


_KEPT = (
    "The document itself is stored. It is indexed when it is sent again, or when a worker starts and queues missing "
    "tasks."
)


class Intake:
    """Accepts documents into workspaces. After a method has returned, a crash loses neither document nor tasks.

    A document beyond the client's storage limits raises `Forbidden` before it is read or fetched.
    """

    def __init__(
        self,
        workspaces: "Workspaces",
        queue: "TaskQueue",
        *,
        loader: DocumentLoader,
        fetcher: PageFetcher,
        limits: StorageLimits | None = None,
        spare_room: "SpareRoom | None" = None,
    ) -> None:
        self._workspaces = workspaces
        self._queue = queue
        self._loader = loader
        self._fetcher = fetcher
        self._limits = limits or StorageLimits(workspaces)
        self._spare_room = spare_room
        self._characters_at_once = 0

    async def text(
        self, source: SourceText, *, workspace: str, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        """Accept a text; see `Library.accept`. With the embedded model, a short one is searchable afterwards.

        If only the queue fails, `ServiceUnavailable` says that it is stored. The tasks are also queued when the client
        leaves meanwhile.
        """
        if self._spare_room is not None:
            self._spare_room.check()
        place = await self._workspaces.open(workspace)
        async with self._limits.room(workspace, weight(source), _key(source.source, track, rename)):
            acceptance = await place.documents.accept(source, enrich=enrich, track=track, rename=rename)
        try:
            try:
                acceptance = await self._searchable(acceptance, place.work)
            finally:
                await self._queue.send(acceptance.tasks)
        except ServiceUnavailable as error:
            raise ServiceUnavailable(error.component, f"{error.message} {_KEPT}").at(error.place) from error
        return replace(acceptance, unread=source.unread)

    async def _searchable(self, accepted: Acceptance, work: "PartIndexer") -> Acceptance:
        """Make a text searchable at once, unless it is long, or others are under way: then a worker does it."""
        characters = max(accepted.record.characters, _LEAST_CHARACTERS)
        if self._characters_at_once + characters > _AT_ONCE_CHARACTERS:
            return accepted
        self._characters_at_once += characters
        try:
            return await work.embed_at_once(accepted)
        finally:
            self._characters_at_once -= characters

    async def file(
        self,
        content: bytes,
        *,
        name: str,
        workspace: str,
        source: str = "",
        content_type: str | None = None,
        doc_type: DocType | None = None,
        metadata: Mapping[str, Any] | None = None,
        enrich: bool = True,
        track: str = "",
    ) -> Acceptance:
        """Accept a file. `doc_type` overrides the detected type; `source` defaults to the name.

        Raises `PayloadTooLarge`, and `ValidationError` for a file that cannot be read.
        """
        size = len(content) + metadata_weight(metadata or {})
        await self._limits.check(workspace, size, _key(source or name, track))
        text = await self._loader.load(content, name=name, content_type=content_type, workspace=taking_turns(workspace))
        text = _sent(text, source or name, doc_type, metadata)
        return await self.text(text, workspace=workspace, enrich=enrich, track=track)

    async def written(
        self,
        text: str,
        *,
        name: str,
        workspace: str,
        source: str = "",
        title: str = "",
        doc_type: DocType | None = None,
        metadata: Mapping[str, Any] | None = None,
        enrich: bool = True,
        track: str = "",
        rename: bool = False,
    ) -> Acceptance:
        """Accept a text with the tier 1 annotations of a text file of that name.

        If the name is not that of a text file, somebody extracted the text from the file: then there are none. `title`
        and `doc_type` override what is detected; for `rename` see `Library.accept`. `source` defaults to the name.
        """
        size = len(text) + metadata_weight(metadata or {})
        await self._limits.check(workspace, size, _key(source or name, track, rename))
        text_source = _sent(await self._text_source(text, name, workspace), source or name, doc_type, metadata)
        if title:
            text_source = replace(text_source, title=title)
        return await self.text(text_source, workspace=workspace, enrich=enrich, track=track, rename=rename)

    async def page(
        self,
        url: str,
        *,
        workspace: str,
        source: str = "",
        name: str | None = None,
        doc_type: DocType | None = None,
        metadata: Mapping[str, Any] | None = None,
        enrich: bool = True,
        track: str = "",
    ) -> Acceptance:
        """Fetch a page and accept it. `source` and `name` default to the URL. Raises `FetchFailed` with the reason."""
        await self._limits.check(workspace, key=_key(source or url, track))
        page = await self._fetcher.fetch(url, workspace=taking_turns(workspace))
        text = await self._read(page, name or url, workspace)
        fetched = {"fetchedUrl": page.url, "contentType": page.content_type}
        text = _sent(text, source or url, doc_type, {**fetched, **(metadata or {})})
        return await self.text(text, workspace=workspace, enrich=enrich, track=track)

    async def move(self, document_id: str, *, source: str, name: str, workspace: str) -> DocumentRecord:
        """Change the source and the name of a document; see `Library.move`."""
        library = (await self._workspaces.open(workspace)).documents
        await self._limits.check_change(workspace)
        return await library.move(document_id, source=source, name=name)

    async def document(self, document_id: str, *, workspace: str) -> DocumentRecord | None:
        """Return a document by its id, also one that was accepted and waits for a writer."""
        return await (await self._workspaces.open(workspace)).documents.document(document_id)

    async def delete(self, document_id: str, *, workspace: str, content_hash: str | None = None) -> bool:
        """Delete a document and its tasks. False if there is none.

        It disappears from search at once, on a full disk too. The worker may remove its contributions to the graph
        later. Raises `ValidationError` if it no longer has the text with this `content_hash`.
        """
        known = await self.document(document_id, workspace=workspace)
        if known is not None and content_hash not in (None, known.content_hash):
            raise ValidationError(
                f"{known.name} has changed since you saw it. Look at it, and delete it again if you still want to.",
                field="content_hash",
            )
        try:
            await self._delete(document_id, workspace)
        except ServiceUnavailable:
            if self._spare_room is None or not self._spare_room.give():
                raise
            await self._delete(document_id, workspace)
        # An attempt that fails for want of room may already have removed the text.
        return known is not None

    async def _delete(self, document_id: str, workspace: str) -> None:
        library = (await self._workspaces.open(workspace)).documents
        await self._queue.discard(workspace=workspace, document_id=document_id)
        await library.delete(document_id)
        await self._queue.send(await library.restart(document_id, failures=False))

    async def restart(self, document_id: str | None = None, *, workspace: str, force: bool = False) -> int:
        """Re-queue unfinished and failed work, or with `force` all work, and dead letters. Return the number of tasks.

        Without a document's id, this covers the whole workspace and its memory. Raises `NotFound` for an unknown
        document.
        """
        if document_id is None:
            return sum([await self._restarted(name, None, force) for name in (workspace, memory_of(workspace))])
        if await self.document(document_id, workspace=workspace) is None:
            raise NotFound(f"There is no document {document_id} in workspace {spoken(workspace)}.")
        return await self._restarted(workspace, document_id, force)

    async def revive(self, identifier: str | None, *, workspace: str) -> int:
        """As `restart`, for the id of a document or of an exchange."""
        if identifier is None:
            return await self.restart(workspace=workspace)
        store = await self._store_with(identifier, workspace)
        return await self.restart(identifier, workspace=store or workspace)

    async def delete_either(self, identifier: str, *, workspace: str) -> bool:
        """Delete the document or the exchange with an id. False if there is none."""
        store = await self._store_with(identifier, workspace)
        return store is not None and await self.delete(identifier, workspace=store)

    async def _store_with(self, identifier: str, workspace: str) -> str | None:
        """Return the store, of documents or of memory, that contains this id."""
        for name in (workspace, memory_of(workspace)):
            if await self.document(identifier, workspace=name) is not None:
                return name
        return None

    async def backlog(self, workspace: str) -> QueueStats:
        """Count the unfinished tasks of a workspace and its memory."""
        documents, memory = [await self._queue.stats_of(name) for name in (workspace, memory_of(workspace))]
        return QueueStats(
            documents.pending + memory.pending,
            documents.processing + memory.processing,
            documents.dead + memory.dead,
        )

    async def given_up(self, workspace: str, *, limit: int) -> list[DeadLetter]:
        """Return the dead letters of a workspace's documents and of its memory, latest first."""
        stores = workspace, memory_of(workspace)
        letters = [letter for name in stores for letter in await self._queue.dead(workspace=name, limit=limit)]
        return sorted(letters, key=lambda letter: letter.at, reverse=True)[:limit]

    async def _restarted(self, name: str, document_id: str | None, force: bool) -> int:
        library = (await self._workspaces.open(name)).documents
        await self._limits.check_change(name)
        revived = await self._queue.revive(workspace=name, document_id=document_id)
        tasks = await library.restart(document_id, force=force)
        await self._queue.send(tasks)
        return max(revived, len(tasks))

    async def _text_source(self, text: str, name: str, workspace: str) -> SourceText:
        try:
            return await self._loader.load(
                text.encode(), name=name, content_type="text/plain", workspace=taking_turns(workspace)
            )
        except ValidationError:
            return SourceText(name, text)

    async def _read(self, page: FetchedPage, name: str, workspace: str) -> SourceText:
        content_type = f"{page.content_type}; charset={page.charset}" if page.charset else page.content_type
        try:
            return await self._loader.load(
                page.content, name=name, content_type=content_type, workspace=taking_turns(workspace)
            )
        except PayloadTooLarge as error:
            raise FetchFailed(page.url, "too_large", error.message, status=page.status) from error
        except ValidationError as error:
            reason = f"unreadable: {error.details.get('reason', error.message)}"
            raise FetchFailed(page.url, reason, error.message, status=page.status) from error


def _sent(text: SourceText, source: str, doc_type: DocType | None, metadata: Mapping[str, Any] | None) -> SourceText:
    """Return the text with what its client says of it, which comes before what was detected."""
    detected = doc_type or text.doc_type
    return replace(text, source=source, doc_type=detected, metadata={**text.properties, **(metadata or {})})


def _key(source: str, track: str, rename: bool = False) -> DocumentKey | None:
    """Identifies the document that the text replaces, if it exists. With `rename`, a text replaces none."""
    return None if rename else DocumentKey(source, track)
