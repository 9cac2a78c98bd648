"""Where documents are taken in and indexed: in this process, or by a service at an address."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote

from cragside.domain.errors import NotFound, PayloadTooLarge, ProcessingError, ValidationError

if TYPE_CHECKING:
    from cragside.application.attempts import Handled
    from cragside.bootstrap import Container
    from cragside.domain.document import DocType
    from cragside.domain.indexing import DocumentRecord
    from cragside.entrypoints.cli.api import Api
    from cragside.entrypoints.cli.session import Session
    from cragside.ports.rag_repository import KnowledgeStatus
    from cragside.settings import Settings

Result = TypeVar("Result")
# Says why nothing goes on, "" while something does.
Trouble = Callable[[], str]

# What is needed is down when so many tries in a row, over so many seconds, have failed.
TRIES = 3
TRIED_SECONDS = 5.0
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Offer:
    """Something to take in: a file's content, or without it the page that `name` is the address of.

    `source` identifies it in its workspace; without one its name does.
    """

    name: str
    content: bytes | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """How offers are to be taken in."""

    enrich: bool = True
    doc_type: "DocType | None" = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a document has come. A step is the embedding or the enrichment of a part."""

    id: str
    name: str
    status: str
    passages: int
    error: str
    steps: int
    done: int
    searchable: bool
    settled: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    label: str = ""
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of an offer: `new`, `changed` or `unchanged`."""

    progress: Progress
    outcome: str


class Place(Protocol):
    """Takes documents in and tells how far they have come."""

    looks_every: float

    def removal(self, document_id: str) -> str:
        """What somebody has to run or to send to remove a document."""
        ...

    async def take(self, offer: Offer, options: Options) -> Taken:
        """Take an offer in. Raises `ValidationError` for what cannot be used."""
        ...

    async def progress(self, document_id: str) -> Progress | None:
        """How far a document has come, None for one that is gone."""
        ...

    def documents(self) -> AsyncIterator[Progress]:
        """All documents."""
        ...

    async def below(self, folder: str) -> list[Progress]:
        """The documents whose source lies below a folder."""
        ...

    async def unclaimed(self) -> list[Progress]:
        """The documents that have no source, only a name, as stores of earlier versions do."""
        ...

    async def move(self, document_id: str, *, source: str, name: str) -> None:
        """Give a document another source and another name, without indexing it again."""
        ...

    async def delete(self, document_id: str) -> None:
        """Forget a document."""
        ...

    async def enqueue(self, document_id: str | None, *, force: bool) -> int:
        """Have done what is not done yet of one document or of all, or everything; how many tasks that is."""
        ...

    async def stats(self) -> dict[str, Any]:
        """Tasks and passages, as GET /enrichment/stats answers."""
        ...

    async def status(self) -> "KnowledgeStatus | None":
        """What the workspace holds, where that is known."""
        ...

    def working(self) -> AbstractAsyncContextManager[Trouble]:
        """For as long as the block lasts what waits is done, by whoever is to do it."""
        ...


class Here:
    """This process, on the store of the settings. It does the work unless another process is doing it already."""

    looks_every = 0.1

    def __init__(self, container: "Container", settings: "Settings") -> None:
        self._container = container
        self._workspace = settings.workspace

    def removal(self, document_id: str) -> str:
        """See `Place`."""
        return f"cragside forget --workspace {self._workspace} {document_id}"

    async def take(self, offer: Offer, options: Options) -> Taken:
        """See `Place`."""
        intake, workspace = self._container.intake, self._workspace
        if offer.content is None:
            acceptance = await intake.page(
                offer.name,
                workspace=workspace,
                doc_type=options.doc_type,
                metadata=offer.metadata,
                enrich=options.enrich,
            )
        else:
            acceptance = await intake.file(
                offer.content,
                name=offer.name,
                source=offer.source,
                workspace=workspace,
                doc_type=options.doc_type,
                metadata=offer.metadata,
                enrich=options.enrich,
            )
        return Taken(_progress_of(acceptance.record), acceptance.outcome)

    async def progress(self, document_id: str) -> Progress | None:
        """See `Place`."""
        record = await (await self._container.workspaces.library(self._workspace)).document(document_id)
        return None if record is None else _progress_of(record)

    async def documents(self) -> AsyncIterator[Progress]:
        """See `Place`."""
        library = await self._container.workspaces.library(self._workspace)
        offset, total = 0, 1
        while offset < total:
            records, total = await library.documents(limit=_PAGE, offset=offset)
            for record in records:
                yield _progress_of(record)
            offset += _PAGE

    async def below(self, folder: str) -> list[Progress]:
        """See `Place`."""
        library = await self._container.workspaces.library(self._workspace)
        return [_progress_of(record) for record in await library.below(folder)]

    async def unclaimed(self) -> list[Progress]:
        """See `Place`."""
        library = await self._container.workspaces.library(self._workspace)
        return [_progress_of(record) for record in await library.unclaimed()]

    async def move(self, document_id: str, *, source: str, name: str) -> None:
        """See `Place`."""
        library = await self._container.workspaces.library(self._workspace)
        await library.move(document_id, source=source, name=name)

    async def delete(self, document_id: str) -> None:
        """See `Place`."""
        await self._container.intake.delete(document_id, workspace=self._workspace)

    async def enqueue(self, document_id: str | None, *, force: bool) -> int:
        """See `Place`."""
        return await self._container.intake.restart(document_id, workspace=self._workspace, force=force)

    async def stats(self) -> dict[str, Any]:
        """See `Place`."""
        tasks = await self._container.intake.backlog(self._workspace)
        library = await self._container.workspaces.library(self._workspace)
        states = ("enriched", "failed", "pending", "processing", "none")
        return {
            "queue": {"pending": tasks.pending, "processing": tasks.processing, "deadLetter": tasks.dead},
            "totals": dict.fromkeys(states, 0) | dict(await library.counts()),
        }

    async def status(self) -> "KnowledgeStatus | None":
        """See `Place`."""
        return await (await self._container.workspaces.repository(self._workspace)).status()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Trouble]:
        """See `Place`."""
        if not self._container.keeps_worker():
            yield lambda: ""  # whoever empties the queue in SQS does it
            return
        outage, worker = Outage(), self._container.worker()
        running = asyncio.create_task(worker.run(until_idle=True, sweep=False, progress=outage))

        def trouble() -> str:
            if running.done():
                running.result()  # raises what ended it
                return outage.said or "the queue has nothing left to do"
            return outage.said

        try:
            yield trouble
        finally:
            worker.stop()
            await asyncio.gather(running, return_exceptions=True)


class Outage:
    """Told what becomes of tasks, it says when something that all of them need is down."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self._tries = 0
        self._reason = ""

    def __call__(self, handled: "Handled") -> None:
        """Take note of a task that was tried."""
        if not handled.unavailable:
            self._tries = 0
            return
        if not self._tries:
            self._began = self._clock()
        self._tries += 1
        self._reason = handled.reason

    @property
    def said(self) -> str:
        """What is down, "" while nothing is known to be."""
        lasted = self._tries >= TRIES and self._clock() - self._began >= TRIED_SECONDS
        return self._reason if lasted else ""


class There:
    """A service, which does the work by itself."""

    looks_every = 0.5

    def __init__(self, api: "Api") -> None:
        self._api = api

    def removal(self, document_id: str) -> str:
        """See `Place`."""
        return f"DELETE /v1/documents/{document_id}"

    async def take(self, offer: Offer, options: Options) -> Taken:
        """See `Place`."""
        told = {"enrich": options.enrich, **({"doc_type": options.doc_type} if options.doc_type else {})}
        if offer.content is None:
            body = {"url": offer.name, "metadata": dict(offer.metadata), **told}
            answer = await self._api.post("/v1/documents", body)
        else:
            fields = {name: str(value).lower() for name, value in told.items()}
            fields["metadata"] = json.dumps(dict(offer.metadata))
            identity = {"source": offer.source} if offer.source else {}
            try:
                answer = await self._api.upload("/v1/documents", offer.name, offer.content, fields | identity)
            except PayloadTooLarge as refusal:
                upload = await self._uploaded(offer.content, refusal)
                body = {"upload": upload, "name": offer.name, "metadata": dict(offer.metadata), **identity, **told}
                answer = await self._api.post("/v1/documents", body)
        (document,) = _of(answer, "documents")
        return Taken(_progress_in(document), document["outcome"])

    async def _uploaded(self, content: bytes, refusal: PayloadTooLarge) -> str:
        """The id of what was too large for a request and went to the service's bucket. Raises `refusal` without one."""
        try:
            place = await self._api.post("/v1/documents/uploads", {})
            if len(content) > place["max_bytes"]:
                limit = place["max_bytes"]
                raise PayloadTooLarge(f"The file has {len(content)} bytes; the service takes at most {limit}.")
            await self._api.send(place["url"], place["fields"], content)
            return str(place["id"])
        except PayloadTooLarge:
            raise
        except (ValidationError, NotFound):
            raise refusal from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ProcessingError("The service answered something else than a place for uploads.") from error

    async def progress(self, document_id: str) -> Progress | None:
        """See `Place`."""
        found = await self._api.find(f"/v1/documents/{quote(document_id, safe='')}")
        return None if found is None else _progress_in(found)

    async def documents(self) -> AsyncIterator[Progress]:
        """See `Place`."""
        offset, total = 0, 1
        while offset < total:
            page = await self._api.get("/v1/documents", limit=_PAGE, offset=offset)
            for document in _of(page, "documents"):
                yield _progress_in(document)
            total = page["total"]
            offset += _PAGE

    async def below(self, folder: str) -> list[Progress]:
        """See `Place`."""
        found = await self._listed(below=folder or "/")
        if not all(document.source.startswith(f"{folder}/") for document in found):
            raise ProcessingError("The service cannot list the documents of a folder. Update it first.")
        return found

    async def unclaimed(self) -> list[Progress]:
        """See `Place`."""
        found = await self._listed(unclaimed="true")
        # A service that does not know the parameter lists all documents.
        return found if all(document.source == document.name for document in found) else []

    async def _listed(self, **chosen: str) -> list[Progress]:
        found: dict[str, Progress] = {}
        offset, total = 0, 1
        while offset < total:
            page = await self._api.get("/v1/documents", limit=_PAGE, offset=offset, **chosen)
            found.update((each.id, each) for each in map(_progress_in, _of(page, "documents")))
            total = page["total"]
            offset += _PAGE
        return list(found.values())

    async def move(self, document_id: str, *, source: str, name: str) -> None:
        """See `Place`."""
        await self._api.patch(f"/v1/documents/{quote(document_id, safe='')}", {"source": source, "name": name})

    async def delete(self, document_id: str) -> None:
        """See `Place`."""
        await self._api.delete(f"/v1/documents/{quote(document_id, safe='')}")

    async def enqueue(self, document_id: str | None, *, force: bool) -> int:
        """See `Place`."""
        if document_id is None:
            return int((await self._api.post("/enrichment/enqueue", {"force": force}))["enqueued"])
        path = f"/v1/documents/{quote(document_id, safe='')}/reprocess?force={str(force).lower()}"
        return int((await self._api.post(path, {}))["tasks"])

    async def stats(self) -> dict[str, Any]:
        """See `Place`."""
        answer: dict[str, Any] = await self._api.get("/enrichment/stats")
        return answer

    async def status(self) -> "KnowledgeStatus | None":
        """Only the service knows."""
        return None

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Trouble]:
        """See `Place`."""
        yield lambda: ""


def at_place(
    session: "Session",
    settings: "Settings",
    work: Callable[[Place], Awaitable[Result]],
    *,
    address: str | None = None,
    token: str | None = None,
) -> Result:
    """What `work` returns at the service of the address, or in this process."""
    if address is not None:
        from cragside.entrypoints.cli.api import ask_service

        return ask_service(settings, lambda api: work(There(api)), address, token)
    return session.run(settings, lambda container: work(Here(container, settings)))


def _progress_of(record: "DocumentRecord") -> Progress:
    parts = [(part.embedded, part.enrichment) for part in record.parts]
    told = (record.id, record.name, record.status, record.passages, record.error)
    progress = _progress(told, record.enrichment, parts, record.searchable, record.metadata)
    return replace(progress, source=record.source, label=record.label, content_hash=record.content_hash)


def _progress_in(body: Mapping[str, Any]) -> Progress:
    try:
        # Lists and acceptances tell no parts: as much as one is there.
        parts = body.get("parts") or [{"embedded": body["searchable"], "enrichment": body["enrichment"]}]
        told = (body["id"], body["name"], body["status"], body["passages"], body["error"])
        states = [(part["embedded"], part["enrichment"]) for part in parts]
        progress = _progress(told, body["enrichment"], states, body["searchable"], body["metadata"])
        # An older service knows documents by their names alone.
        source, label = body.get("source", progress.name), body.get("label", progress.name)
        return replace(progress, source=source, label=label, content_hash=body.get("content_hash", ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise ProcessingError("The service answered something else than documents. Is --api cragside's?") from error


def _progress(
    told: tuple[str, str, str, int, str],
    enrichment: str,
    parts: Sequence[tuple[bool, str]],
    searchable: bool,
    metadata: Mapping[str, Any],
) -> Progress:
    identifier, name, status, passages, error = told
    unfinished = status == "pending" or enrichment in ("pending", "processing", "mixed")
    return Progress(
        identifier,
        name,
        status,
        passages,
        error,
        steps=sum(1 + (state != "none") for _, state in parts),
        done=sum(embedded + (state in ("enriched", "failed")) for embedded, state in parts),
        searchable=searchable,
        settled=status == "failed" or not unfinished,
        metadata=metadata,
    )


def _of(answer: Any, name: str) -> list[dict[str, Any]]:
    listed = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise ProcessingError("The service answered something else than documents. Is --api cragside's?")
    return listed
