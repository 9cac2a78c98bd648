"""Lets commands send, list and remove documents, at a service or in this process."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeVar, Unpack
from urllib.parse import quote

from cragside.domain.errors import NotFound, PayloadTooLarge, ProcessingError, ValidationError
from cragside.entrypoints.cli.offers import IndexingProgress, Offer, Options, documents_in

if TYPE_CHECKING:
    from cragside.application.attempts import Handled
    from cragside.bootstrap import Container
    from cragside.client import Client
    from cragside.domain.indexing import DocumentRecord
    from cragside.ports.clock import Clock

Value = TypeVar("Value")

_PAGE = 1000

# Says why work has stopped, "" while it goes on.
Trouble = Callable[[], str]

# A component that all tasks need is down when so many tries in a row, over so many seconds, have failed.
TRIES = 3
TRIED_SECONDS = 5.0


class PageParameters(TypedDict, total=False):
    """Parameters of a page of documents."""

    limit: Required[int]
    offset: int
    status: str | None
    unread: bool | None
    below: str | None


def no_trouble() -> str:
    """Return "": as far as this process knows, indexing goes on."""
    return ""


class Service:
    """Sends requests through a client of the HTTP routes, which is made for the first one."""

    def __init__(self, connect: Callable[[], "Client"]) -> None:
        self._connect = connect

    @cached_property
    def client(self) -> "Client":
        """The client of the HTTP routes."""
        return self._connect()

    @property
    def looks_every(self) -> float:
        """Return the seconds between two requests for the progress."""
        return 0.5

    def removal(self, document_id: str) -> str:
        """Return the request or the command that removes a document."""
        return f"DELETE {_path(document_id)}"

    async def prepare(self) -> None:
        """Load the embedding model for a search. Raises an error if that fails, even for an empty workspace."""

    async def search(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of POST /v1/query."""
        answer: dict[str, Any] = await self.client.post("/v1/query", asked)
        return answer

    async def page(self, **asked: Unpack[PageParameters]) -> dict[str, Any]:
        """Return the answer of GET /v1/documents with these parameters."""
        page: dict[str, Any] = await self.client.get("/v1/documents", **asked)
        return page

    async def take(self, offer: Offer, options: Options) -> IndexingProgress:
        """Send a document. Raises `ValidationError` if it cannot be indexed."""
        if offer.content is not None:
            return await self._send_file(offer, offer.content, options)
        body = {"url": offer.name, "metadata": dict(offer.metadata), **_fields(options)}
        return _accepted(await self.client.post("/v1/documents", body))

    async def _send_file(self, offer: Offer, content: bytes, options: Options) -> IndexingProgress:
        identity = {"source": offer.source} if offer.source else {}
        fields = {name: str(value).lower() for name, value in _fields(options).items()}
        fields["metadata"] = json.dumps(dict(offer.metadata))
        try:
            answer = await self.client.upload("/v1/documents", offer.name, content, fields | identity)
        except PayloadTooLarge as refusal:
            upload = {"upload": await self._uploaded(content, refusal), "name": offer.name}
            body = {**upload, "metadata": dict(offer.metadata), **identity, **_fields(options)}
            answer = await self.client.post("/v1/documents", body)
        return _accepted(answer)

    async def _uploaded(self, content: bytes, refusal: PayloadTooLarge) -> str:
        """Upload a large file through the service's bucket. Returns its id. Raises `refusal` if there is no bucket."""
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
        """Return the progress of a document, None if it is gone."""
        found = await self.client.find(_path(document_id))
        return None if found is None else IndexingProgress.of(found)

    async def documents(self, below: str | None = None) -> AsyncIterator[IndexingProgress]:
        """Return all documents, or those whose sources lie below a path."""
        offset, total = 0, 1
        while offset < total:
            page = await self.page(limit=_PAGE, offset=offset, below=below)
            for document in documents_in(page):
                yield IndexingProgress.of(document)
            total = page["total"]
            offset += _PAGE

    async def below(self, folder: str) -> list[IndexingProgress]:
        """Return the documents whose sources lie below a folder."""
        found = {document.id: document async for document in self.documents(below=folder or "/")}
        if not all(document.source.startswith(f"{folder}/") for document in found.values()):
            raise ProcessingError("The service cannot list the documents of a folder. Update it first.")
        return list(found.values())

    async def move(self, document_id: str, *, source: str, name: str) -> None:
        """Give a document another source and another name, without indexing it again."""
        await self.client.patch(_path(document_id), {"source": source, "name": name})

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
        """Return the answer of GET /enrichment/stats: counts of tasks and passages."""
        answer: dict[str, Any] = await self.client.get("/enrichment/stats")
        return answer

    def working(self, *, until_idle: bool = True) -> AbstractAsyncContextManager[Trouble]:
        """Process tasks during the block. Yields a function that says why indexing has stopped."""
        return nullcontext(no_trouble)  # the service does it


class OwnService(Service):
    """Answers in this process, and indexes in this process.

    Searches, lists, files and their progress do without the routes, which take a third of a second to load. The name of
    a local file may have characters that no client may send.
    """

    def __init__(self, container: "Container") -> None:
        super().__init__(partial(_client_of, container))
        self.container = container

    @property
    def looks_every(self) -> float:
        """Return the seconds between two requests for the progress."""
        return 0.1

    def removal(self, document_id: str) -> str:
        """Return the command that removes a document."""
        return f"cragside forget --workspace {self.container.settings.workspace} {document_id}"

    async def prepare(self) -> None:
        """Load the embedding model for a search. Raises an error if that fails, even for an empty workspace."""
        await self.container.workspaces.prepare(self.container.settings.workspace)

    async def search(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what POST /v1/query would answer."""
        from cragside.entrypoints.http.passage_search import PassageQuery, PassageSearch

        query = _checked(PassageQuery.model_validate, asked, "body")
        answer = await PassageSearch(self.container, self.container.settings.workspace).answer(query)
        return answer.model_dump(mode="json")

    async def page(self, **asked: Unpack[PageParameters]) -> dict[str, Any]:
        """Return what GET /v1/documents would answer with these parameters."""
        from pydantic import TypeAdapter

        from cragside.domain.indexing import DocumentStatus, Listing
        from cragside.entrypoints.http.document_answers import document_page

        status = _checked(TypeAdapter(DocumentStatus | None).validate_python, asked.get("status"), "query", "status")
        page = await document_page(
            self.container,
            self.container.settings.workspace,
            Listing(unread=bool(asked.get("unread")), sort="added"),
            limit=asked["limit"],
            offset=asked.get("offset", 0),
            status=status,
            below=asked.get("below"),
        )
        return page.model_dump(mode="json")

    async def progress(self, document_id: str) -> IndexingProgress | None:
        """Return the progress of a document, None if it is gone."""
        from cragside.entrypoints.http.document_answers import document_record

        record = await document_record(self.container, self.container.settings.workspace, document_id)
        return None if record is None else _progress_of(record)

    async def _send_file(self, offer: Offer, content: bytes, options: Options) -> IndexingProgress:
        acceptance = await self.container.intake.file(
            content,
            name=offer.name,
            source=offer.source,
            workspace=self.container.settings.workspace,
            doc_type=options.doc_type,
            metadata=offer.metadata,
            enrich=options.enrich,
        )
        return _progress_of(acceptance.record, outcome=acceptance.outcome, unread=acceptance.unread)

    async def move(self, document_id: str, *, source: str, name: str) -> None:
        """Give a document another source and another name, without indexing it again."""
        library = (await self.container.workspaces.open(self.container.settings.workspace)).documents
        await library.move(document_id, source=source, name=name)

    @asynccontextmanager
    async def working(self, *, until_idle: bool = True) -> AsyncIterator[Trouble]:
        """Process tasks inside the block. Yields a function that says why work has stopped."""
        if not self.container.keeps_worker():
            yield no_trouble  # with SQS, whoever empties the queue does the work
            return
        outage, worker = Outage(self.container.clock), self.container.worker()
        running = asyncio.create_task(worker.run(until_idle=until_idle, sweep=not until_idle, progress=outage))

        def trouble() -> str:
            if running.done():
                running.result()  # raises what ended it
                return outage.reason or "the queue has nothing left to do"
            return outage.reason

        try:
            yield trouble
        finally:
            worker.stop()
            await asyncio.gather(running, return_exceptions=True)


class Outage:
    """Watches the outcome of tasks. It tells if a component is down that all of them need."""

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self._began = 0.0
        self._tries = 0
        self._reason = ""

    def __call__(self, handled: "Handled") -> None:
        """Record the outcome of a task."""
        if not handled.unavailable:
            self._tries = 0
            return
        if not self._tries:
            self._began = self._clock.monotonic()
        self._tries += 1
        self._reason = handled.reason

    @property
    def reason(self) -> str:
        """Say what is down, "" if nothing is."""
        lasted = self._tries >= TRIES and self._clock.monotonic() - self._began >= TRIED_SECONDS
        return self._reason if lasted else ""


def _client_of(container: "Container") -> "Client":
    from cragside.entrypoints.cli.in_process import client_of

    return client_of(container)


def _checked(validate: Callable[[Any], Value], given: Any, *place: str) -> Value:
    """Return a valid value. Raises `ValidationError` in the words of the route, where the value has this place."""
    from pydantic import ValidationError as Invalid

    from cragside.entrypoints.http.models import refusal_of

    try:
        return validate(given)
    except Invalid as error:
        raise refusal_of([{**each, "loc": (*place, *each["loc"])} for each in error.errors()]) from error


def _progress_of(record: "DocumentRecord", **facts: str) -> IndexingProgress:
    from cragside.entrypoints.http.document_answers import DocumentDetail

    return IndexingProgress.of(DocumentDetail.model_validate(record).model_dump() | facts)


def _fields(options: Options) -> dict[str, Any]:
    return {"enrich": options.enrich, **({"doc_type": options.doc_type} if options.doc_type else {})}


def _accepted(answer: Any) -> IndexingProgress:
    (document,) = documents_in(answer)
    return IndexingProgress.of(document)


def _path(document_id: str) -> str:
    return f"/v1/documents/{quote(document_id, safe='')}"
