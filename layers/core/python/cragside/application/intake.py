"""The use case: texts, files and pages in, at once; what is left to do goes to the queue."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cragside.domain.document import DocType, SourceText
from cragside.domain.errors import NotFound, PayloadTooLarge, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Acceptance
from cragside.ports.document_loader import DocumentLoader
from cragside.ports.index_queue import IndexQueue, QueueStats
from cragside.ports.page_fetcher import FetchedPage, FetchFailed, PageFetcher
from cragside.ports.rag_repository import Workspaces

_KEPT = (
    "The document itself is kept: it is indexed when it is brought again, or by the next worker that looks for what "
    "has no task."
)


class Intake:
    """Accepts documents into workspaces. Once a method returned, a crash loses neither the document nor its tasks."""

    def __init__(
        self, workspaces: Workspaces, queue: IndexQueue, *, loader: DocumentLoader, fetcher: PageFetcher
    ) -> None:
        self._workspaces = workspaces
        self._queue = queue
        self._loader = loader
        self._fetcher = fetcher

    async def text(
        self, source: SourceText, *, workspace: str, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        """Accept a text; see `Library.accept`. When only the queue fails, `ServiceUnavailable` says that it is kept."""
        library = await self._workspaces.library(workspace)
        acceptance = await library.accept(source, enrich=enrich, track=track, rename=rename)
        try:
            await self._queue.send(acceptance.tasks)
        except ServiceUnavailable as error:
            raise ServiceUnavailable(error.component, f"{error.message} {_KEPT}") from error
        return acceptance

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
        """Accept a file; `doc_type` overrules what it looks like. Without a `source`, its name identifies it.

        Raises `PayloadTooLarge` and `ValidationError` for what cannot be read.
        """
        text = await self._loader.load(content, name=name, content_type=content_type)
        text = replace(text, source=source or name, doc_type=doc_type or text.doc_type, metadata=dict(metadata or {}))
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
        """Accept a text that was read already, with what can be told of a text file of that name.

        A name that is no text file's says nothing: somebody took the text out of that file. `title` and `doc_type`
        overrule what it looks like; for `rename` see `Library.accept`. Without a `source`, its name identifies it.
        """
        told = await self._told(text, name)
        told = replace(
            told,
            source=source or name,
            title=title or told.title,
            doc_type=doc_type or told.doc_type,
            metadata=dict(metadata or {}),
        )
        return await self.text(told, workspace=workspace, enrich=enrich, track=track, rename=rename)

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
        """Fetch a page and accept it. Its URL identifies it, and names it, unless `source` or `name` say otherwise.

        Raises `FetchFailed` with the reason.
        """
        page = await self._fetcher.fetch(url)
        text = await self._read(page, name or url)
        fetched = {"fetchedUrl": page.url, "contentType": page.content_type}
        text = replace(
            text,
            source=source or url,
            doc_type=doc_type or text.doc_type,
            metadata={**fetched, **(metadata or {})},
        )
        return await self.text(text, workspace=workspace, enrich=enrich, track=track)

    async def delete(self, document_id: str, *, workspace: str) -> bool:
        """Forget a document and its tasks. False when there is none.

        It is gone from search at once; what only it contributed to the graph may be left to the worker.
        """
        library = await self._workspaces.library(workspace)
        await self._queue.discard(workspace=workspace, document_id=document_id)
        deleted = await library.delete(document_id)
        await self._queue.send(await library.restart(document_id, failures=False))
        return deleted

    async def restart(self, document_id: str | None = None, *, workspace: str, force: bool = False) -> int:
        """Queue what is not done yet, or with `force` everything, of one document or of all; the number of tasks.

        Dead letters come back with it. Raises `NotFound` for an unknown document.
        """
        library = await self._workspaces.library(workspace)
        if document_id is not None and await library.document(document_id) is None:
            raise NotFound(f"There is no document {document_id} in workspace {workspace}.")
        revived = await self._queue.revive(workspace=workspace, document_id=document_id)
        tasks = await library.restart(document_id, force=force)
        await self._queue.send(tasks)
        return max(revived, len(tasks))

    async def backlog(self, workspace: str) -> QueueStats:
        """What a workspace's documents still wait for: as the queue has it, else as the library has it."""
        stats = await self._queue.stats_of(workspace)
        if stats is not None:
            return stats
        progress = await (await self._workspaces.library(workspace)).progress()
        return QueueStats(progress.tasks - progress.processing, progress.processing, progress.given_up)

    async def _told(self, text: str, name: str) -> SourceText:
        try:
            return await self._loader.load(text.encode(), name=name, content_type="text/plain")
        except ValidationError:
            return SourceText(name, text)

    async def _read(self, page: FetchedPage, name: str) -> SourceText:
        content_type = f"{page.content_type}; charset={page.charset}" if page.charset else page.content_type
        try:
            return await self._loader.load(page.content, name=name, content_type=content_type)
        except PayloadTooLarge as error:
            raise FetchFailed(page.url, "too_large", error.message, status=page.status) from error
        except ValidationError as error:
            reason = f"unreadable: {error.details.get('reason', error.message)}"
            raise FetchFailed(page.url, reason, error.message, status=page.status) from error
