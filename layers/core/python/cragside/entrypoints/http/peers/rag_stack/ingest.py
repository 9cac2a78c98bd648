"""rag-stack's ingest route: many texts and URLs in one request."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, Self

from fastapi import Request
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from cragside.application.intake import Intake
from cragside.domain.document import DocType
from cragside.domain.errors import Forbidden, PayloadTooLarge
from cragside.domain.indexing import Acceptance
from cragside.entrypoints.http.peers.failures import RagStackFailure, peer_router
from cragside.entrypoints.http.peers.rag_stack.camel_model import CamelModel
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace, note_documents
from cragside.ports.clock import Clock
from cragside.ports.files import FetchFailed

_MOST_ITEMS = 1000
_MOST_URLS = 50
# Pages that are fetched, and texts that are added, at the same time.
_FETCHES = 5
_TEXTS = 8


class IngestItem(CamelModel):
    """A text, or a URL to fetch it from."""

    id: str | None = Field(None, description="The client's own id for it; `/enrichment/status` finds it by this id.")
    text: str | None = Field(None, description="The text; without it the URL is fetched.")
    url: str | None = Field(None, description="http or https, at a public address.")
    source: str | None = Field(
        None, description="Names the document. Default: the URL. Without a URL it identifies the text, too."
    )
    doc_type: DocType | None = Field(None, description="The kind of text; detected if missing.")
    metadata: dict[str, Any] | None = Field(None, description="Added to the payload of each passage.")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.text and not self.url:
            raise ValueError("each item must have either 'text' or 'url'")
        if not self.url and not self.source:
            raise ValueError("'source' is required when 'url' is not provided")
        return self

    @property
    def identity(self) -> str:
        """What identifies it besides its id: its URL, else its source."""
        return self.url or self.source or ""

    @property
    def to_fetch(self) -> bool:
        """Whether its text must be fetched."""
        return not self.text


class IngestRequest(CamelModel):
    """The items to add. An unusable item does not affect the others."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [{"source": "harbour.md", "text": "The keeper lights the lamp."}]}]}
    )

    collection: str | None = Field(
        None,
        validation_alias=AliasChoices("collection", "workspace"),
        description="The workspace; the default without it. Its field may also be called `workspace`.",
    )
    enrich: bool = Field(True, description="Whether to annotate the text (tiers 2 and 3 and the graph).")
    items: list[IngestItem] = Field(min_length=1, max_length=_MOST_ITEMS, description="The texts and pages.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        urls = sum(item.url is not None for item in self.items)
        if urls > _MOST_URLS:
            raise ValueError(f"maximum {_MOST_URLS} URL items per request (found {urls})")
        return self


class ItemFailure(BaseModel):
    """An item that was refused. `status` is the HTTP status of its page, if there was an answer."""

    url: str | None = Field(None, description="URL of the item.")
    source: str | None = Field(None, description="Source of the item, if it has no URL.")
    status: int | None = Field(description="HTTP status of the page; null without an answer.")
    reason: str = Field(
        description="`fetch_failed`, `timeout`, `ssrf_blocked`, `too_large`, `redirect_limit`, "
        "`unsupported_content_type: ...`, `unreadable: ...`, `missing_text: ...`, `missing_source: ...`, "
        "`duplicate_source: ...`, `limit_reached: ...` or `fetching_is_off`"
    )


class Enqueued(CamelModel):
    """Numbers of passages that will be annotated, in total and by document type."""

    enqueued: int = Field(description="Passages that will be annotated.")
    doc_types: dict[str, int] = Field(description="The same number by document type.")


class IngestAnswer(BaseModel):
    """What was added: `upserted` counts passages, `fetched` pages. A worker makes them searchable within seconds."""

    ok: Literal[True] = Field(description="Always true.")
    upserted: int = Field(description="Number of passages that were stored.")
    fetched: int | None = Field(None, description="Number of pages that were fetched.")
    enrichment: Enqueued | None = Field(None, description="What will be annotated.")
    errors: list[ItemFailure] | None = Field(None, description="The refused items.")


@dataclass(frozen=True, slots=True)
class _Outcome:
    item: IngestItem
    acceptance: Acceptance | None = None
    failure: ItemFailure | None = None


router = peer_router("rag-stack", RagStackFailure)


@router.post("/ingest", response_model_exclude_unset=True)
async def ingest(request: Request, body: IngestRequest, container: AppContainer) -> IngestAnswer:
    """Add texts and pages. Items in the answer are stored durably; refused items are in `errors`."""
    workspace = choose_workspace(request, body.collection)
    ends, clock = getattr(request.state, "ends", None), container.clock
    batch = _Batch(container.intake, workspace, enrich=body.enrich, ends=ends, clock=clock)
    outcomes = await asyncio.gather(*map(batch.take, body.items))
    note_documents(request, (each.acceptance.record.id for each in outcomes if each.acceptance))
    return _answer(outcomes, enrich=body.enrich)


class _Batch:
    """Adds the items of one request."""

    def __init__(self, intake: Intake, workspace: str, *, enrich: bool, ends: float | None, clock: Clock) -> None:
        self._intake = intake
        self._workspace = workspace
        self._enrich = enrich
        self._ends = ends
        self._clock = clock
        self._seen: dict[tuple[str, str | None], str | None] = {}
        self._fetches = asyncio.Semaphore(_FETCHES)
        self._texts = asyncio.Semaphore(_TEXTS)

    async def take(self, item: IngestItem) -> _Outcome:
        """Add an item, or say why not."""
        if self._seen.setdefault((item.identity, item.id), item.text) != item.text:
            # Both would be one document, and the later text would replace the earlier.
            return _refused(item, "duplicate_source: another item of this request has it; give each an id")
        try:
            if item.to_fetch:
                async with self._fetches:
                    return _Outcome(item, await self._page(item))
            refused = _unusable(item)
            if refused is not None:
                return refused
            async with self._texts:
                return _Outcome(item, await self._text(item))
        except FetchFailed as error:
            return _refused(item, error.reason, error.status)
        except PayloadTooLarge:
            return _refused(item, "too_large")
        except Forbidden as error:
            return _refused(item, f"limit_reached: {error.message}")
        except TimeoutError:
            return _refused(item, "timeout")

    async def _page(self, item: IngestItem) -> Acceptance:
        left = None if self._ends is None else self._ends - self._clock.monotonic()
        async with asyncio.timeout(left):
            return await self._intake.page(
                item.url or "",
                name=_given(item.source),
                workspace=self._workspace,
                doc_type=item.doc_type,
                metadata=item.metadata,
                enrich=self._enrich,
                track=item.id or "",
            )

    async def _text(self, item: IngestItem) -> Acceptance:
        return await self._intake.written(
            item.text or "",
            name=_name(item),
            source=item.identity,
            workspace=self._workspace,
            doc_type=item.doc_type,
            metadata=item.metadata,
            enrich=self._enrich,
            track=item.id or "",
        )


def _given(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _name(item: IngestItem) -> str:
    """The source, else the URL without query and fragment."""
    if source := _given(item.source):
        return source
    return (item.url or "").partition("#")[0].partition("?")[0]


def _unusable(item: IngestItem) -> _Outcome | None:
    if _given(item.text) is None:
        return _refused(item, "missing_text: item has no text content")
    if item.url is None and _given(item.source) is None:
        return _refused(item, "missing_source: item has no source identifier")
    return None


def _refused(item: IngestItem, reason: str, status: int | None = None) -> _Outcome:
    named = {"url": item.url} if item.url else {"source": item.source}
    return _Outcome(item, failure=ItemFailure(**named, status=status, reason=reason))


def _answer(outcomes: list[_Outcome], *, enrich: bool) -> IngestAnswer:
    taken = [(outcome.item, outcome.acceptance) for outcome in outcomes if outcome.acceptance is not None]
    to_annotate: Counter[str] = Counter()
    for _, acceptance in taken:
        if enrich and acceptance.tasks:
            to_annotate[acceptance.record.doc_type] += acceptance.record.passages
    optional = {
        "fetched": sum(item.to_fetch for item, _ in taken),
        "enrichment": Enqueued(enqueued=to_annotate.total(), doc_types=dict(to_annotate)) if to_annotate else None,
        "errors": [outcome.failure for outcome in outcomes if outcome.failure is not None],
    }
    upserted = sum(acceptance.record.passages for _, acceptance in taken)
    return IngestAnswer(ok=True, upserted=upserted, **{name: value for name, value in optional.items() if value})
