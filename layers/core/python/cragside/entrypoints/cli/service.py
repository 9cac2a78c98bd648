"""The documents of a service, or of this process, as commands use them."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cragside.domain.errors import NotFound, PayloadTooLarge, ProcessingError, ValidationError
from cragside.entrypoints.cli.own_worker import Trouble, working
from cragside.entrypoints.cli.progress import IndexingProgress, Offer, Options, Taken, documents_in

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.client import Client

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Service:
    """Sends documents through a client of the HTTP routes, and reports their progress.

    `container` is set if this process answers the client. It then indexes the documents, too.
    """

    client: "Client"
    container: "Container | None" = None

    @property
    def looks_every(self) -> float:
        """Seconds between two requests for the progress."""
        return 0.5 if self.container is None else 0.1

    def removal(self, document_id: str) -> str:
        """The command or the request that removes a document."""
        if self.container is None:
            return f"DELETE {_path(document_id)}"
        return f"cragside forget --workspace {self.container.settings.workspace} {document_id}"

    async def prepare(self) -> None:
        """Load the embedding model for a search. Raises an error if that fails, even for an empty workspace."""
        if self.container is not None:
            await self.container.workspaces.prepare(self.container.settings.workspace)

    async def take(self, offer: Offer, options: Options) -> Taken:
        """Send a document. Raises `ValidationError` if it cannot be indexed."""
        options_sent = {"enrich": options.enrich, **({"doc_type": options.doc_type} if options.doc_type else {})}
        if offer.content is None:
            body = {"url": offer.name, "metadata": dict(offer.metadata), **options_sent}
            answer = await self.client.post("/v1/documents", body)
        elif self.container is not None:
            return await _read_here(self.container, offer.content, offer, options)
        else:
            identity = {"source": offer.source} if offer.source else {}
            fields = {name: str(value).lower() for name, value in options_sent.items()}
            fields["metadata"] = json.dumps(dict(offer.metadata))
            try:
                answer = await self.client.upload("/v1/documents", offer.name, offer.content, fields | identity)
            except PayloadTooLarge as refusal:
                upload = await self._uploaded(offer.content, refusal)
                body = {
                    "upload": upload,
                    "name": offer.name,
                    "metadata": dict(offer.metadata),
                    **identity,
                    **options_sent,
                }
                answer = await self.client.post("/v1/documents", body)
        (document,) = documents_in(answer)
        return Taken.of(document)

    async def _uploaded(self, content: bytes, refusal: PayloadTooLarge) -> str:
        """Upload a large file through the service's bucket; its upload id. Raises `refusal` if there is no bucket."""
        try:
            place = await self.client.post("/v1/documents/uploads", {})
            if len(content) > place["max_bytes"]:
                limit = place["max_bytes"]
                raise PayloadTooLarge(f"The file has {len(content)} bytes; the service takes at most {limit}.")
            await self.client.send_elsewhere(place["url"], place["fields"], content)
            return str(place["id"])
        except PayloadTooLarge:
            raise
        except (ValidationError, NotFound):
            raise refusal from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ProcessingError("The service answered something else than a place for uploads.") from error

    async def progress(self, document_id: str) -> IndexingProgress | None:
        """The progress of a document, None if it is gone."""
        found = await self.client.find(_path(document_id))
        return None if found is None else IndexingProgress.of(found)

    async def documents(self, **options_sent: str) -> AsyncIterator[IndexingProgress]:
        """All documents, or those that match the parameters of the route."""
        offset, total = 0, 1
        while offset < total:
            page = await self.client.get("/v1/documents", limit=_PAGE, offset=offset, **options_sent)
            for document in documents_in(page):
                yield IndexingProgress.of(document)
            total = page["total"]
            offset += _PAGE

    async def below(self, folder: str) -> list[IndexingProgress]:
        """The documents whose sources lie below a folder."""
        found = await self._all(below=folder or "/")
        if not all(document.source.startswith(f"{folder}/") for document in found):
            raise ProcessingError("The service cannot list the documents of a folder. Update it first.")
        return found

    async def _all(self, **options_sent: str) -> list[IndexingProgress]:
        return list({document.id: document async for document in self.documents(**options_sent)}.values())

    async def move(self, document_id: str, *, source: str, name: str) -> None:
        """Give a document another source and another name, without indexing it again."""
        if self.container is None:
            await self.client.patch(_path(document_id), {"source": source, "name": name})
            return
        # Names of local files may hold characters that no client may send.
        library = (await self.container.workspaces.open(self.container.settings.workspace)).documents
        await library.move(document_id, source=source, name=name)

    async def delete(self, document_id: str) -> bool:
        """Remove a document. False if it was gone already."""
        return await self.client.delete(_path(document_id))

    async def enqueue(self, document_id: str | None, *, force: bool) -> int:
        """Re-queue unfinished and failed work, with `force` all work, of one document or of all. Returns the tasks."""
        if document_id is None:
            return int((await self.client.post("/enrichment/enqueue", {"force": force}))["enqueued"])
        path = f"{_path(document_id)}/reprocess"
        return int((await self.client.post(path, {}, force=str(force).lower()))["tasks"])

    async def stats(self) -> dict[str, Any]:
        """The answer of GET /enrichment/stats: counts of tasks and passages."""
        answer: dict[str, Any] = await self.client.get("/enrichment/stats")
        return answer

    def working(self) -> AbstractAsyncContextManager[Trouble]:
        """While the block is open, queued tasks are processed, by this process or by the service."""
        return working(self.container)


async def _read_here(container: "Container", content: bytes, offer: Offer, options: Options) -> Taken:
    """Store a local file without an HTTP form, which cannot hold every file name."""
    from cragside.entrypoints.http.v1.documents import DocumentDetail

    acceptance = await container.intake.file(
        content,
        name=offer.name,
        source=offer.source,
        workspace=container.settings.workspace,
        doc_type=options.doc_type,
        metadata=offer.metadata,
        enrich=options.enrich,
    )
    progress = IndexingProgress.of(DocumentDetail.model_validate(acceptance.record).model_dump())
    return Taken(progress, acceptance.outcome, acceptance.unread)


def _path(document_id: str) -> str:
    return f"/v1/documents/{quote(document_id, safe='')}"
