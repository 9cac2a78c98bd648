"""Documents that are indexed: their records, tasks and listings, and the payload of their passages.

A document is cut into parts: runs of passages, each small enough for one task. First a part is embedded, which makes
its text searchable. Then it is annotated with keywords, entities and language (tier 2) and with a model's description
(tier 3), and merged into the graph.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from cragside.domain.document import DocType, SourceText

Stage = Literal["embed", "enrich"]
EnrichmentStatus = Literal["none", "pending", "processing", "enriched", "failed"]
DocumentStatus = Literal["pending", "searchable", "enriched", "failed"]


@dataclass(frozen=True, slots=True)
class Task:
    """One stage of one part of a document. It is void if the document has another `content_hash` by now."""

    workspace: str
    document_id: str
    content_hash: str
    part: int
    stage: Stage

    @property
    def key(self) -> str:
        """Identifies the work: equal tasks have equal keys."""
        return f"{self.workspace}/{self.document_id}/{self.content_hash[:16]}/{self.part}/{self.stage}"

    @property
    def group(self) -> str:
        """The group. One worker at a time gets tasks of a group. A document's text and its enrichment have one each."""
        return f"{self.workspace}/{self.document_id}" + ("/graph" if self.stage == "enrich" else "")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A task that a worker has in hand. `attempt` counts from 1; `receipt` belongs to the queue."""

    task: Task
    attempt: int
    receipt: Any


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that was given up, and the reason. `at` is ISO 8601 in UTC."""

    id: str
    task: Task
    reason: str
    attempts: int
    at: str


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The numbers of waiting tasks, tasks in hand and dead letters."""

    pending: int
    processing: int
    dead: int


@dataclass(frozen=True, slots=True)
class Part:
    """The passages `first` to `last` (inclusive) of a document. `error` is the reason of the last failure.

    `tier3` of the first part has the model's description of the document. `tier3` of every part has, as `extraction`,
    the counts of its extracted entities and relations.
    """

    number: int
    first: int
    last: int
    embedded: bool = False
    enrichment: EnrichmentStatus = "none"
    error: str = ""
    tier3: Mapping[str, Any] | None = None
    enriched_at: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document in the library. Times are ISO 8601 in UTC.

    `source` identifies it in its workspace; `name` is shown to people. `label` is the name with as much of the source
    as distinguishes the document from others of that name. Both default to the name. `beginning` is the first
    characters of the text, where the document is read for one of its passages.
    """

    id: str
    name: str
    title: str
    file_type: str
    doc_type: DocType
    content_hash: str
    size: int
    characters: int
    created_at: str
    updated_at: str
    track: str = ""
    tier1: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    source: str = ""
    label: str = ""
    beginning: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source or self.name)
        object.__setattr__(self, "label", self.label or self.name)

    @property
    def passages(self) -> int:
        """The number of its passages."""
        return self.parts[-1].last + 1 if self.parts else 0

    @property
    def searchable(self) -> bool:
        """Tell if all of its text is searchable."""
        return all(part.embedded for part in self.parts)

    @property
    def tier3(self) -> Mapping[str, Any]:
        """Tier 3 of all its parts, with the sums of their extractions."""
        known = [part.tier3 for part in self.parts if part.tier3]
        extraction = Counter[str]()
        for tier3 in known:
            extraction.update(tier3.get("extraction", {}))
        fields = {name: value for tier3 in reversed(known) for name, value in tier3.items()}
        return {**fields, "extraction": dict(extraction)} if extraction else fields

    @property
    def unread(self) -> str:
        """Tell what of its file is missing from its text, and why; "" if nothing is."""
        return str(self.tier1.get("unread", ""))

    @property
    def error(self) -> str:
        """The reason of its failure; "" for none."""
        return next((part.error for part in self.parts if part.error and self.status == "failed"), "")

    @property
    def enrichment(self) -> EnrichmentStatus | Literal["mixed"]:
        """The state of its parts: `failed` if any failed, `mixed` if they differ."""
        states = {part.enrichment for part in self.parts}
        if "failed" in states:
            return "failed"
        return states.pop() if len(states) == 1 else "mixed" if states else "none"

    @property
    def status(self) -> DocumentStatus:
        """Its state. A failed document may still be searchable."""
        if any(part.error and not part.embedded for part in self.parts) or self.enrichment == "failed":
            return "failed"
        if not self.searchable:
            return "pending"
        return "enriched" if self.enrichment == "enriched" else "searchable"


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """Identifies the document that a text replaces, by its source and track."""

    source: str
    track: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """The number of a workspace's documents, and their bytes: files or texts, and metadata.

    `sizes` has the bytes of the requested documents that exist. `waiting` are those of `bytes` that are changes which
    another database does not have yet.
    """

    documents: int = 0
    bytes: int = 0
    sizes: Mapping[DocumentKey, int] = field(default_factory=dict)
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a workspace's documents.

    `waiting` documents are not searchable yet, `underway` ones have unfinished work, `done` ones have none. `tasks`
    counts the remaining stages of parts, `processing` those that run now, and `given_up` those that failed.
    """

    waiting: int = 0
    underway: int = 0
    done: int = 0
    failed: int = 0
    tasks: int = 0
    processing: int = 0
    given_up: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage. `tier2` is {"entities": [{"text", "label"}], "keywords": [...], "language": ...} or None.

    `section` is its citation; `sections` are all that it covers.
    """

    id: str
    document_id: str
    part: int
    index: int
    text: str
    page: int | None = None
    section: str = ""
    sections: tuple[str, ...] = ()
    enrichment: EnrichmentStatus = "none"
    tier2: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The outcome of accepting a text. `new` and `changed` texts have `tasks`.

    `unread` says what of the file is missing from the text, and why.
    """

    record: DocumentRecord
    outcome: Literal["new", "changed", "unchanged"]
    tasks: Sequence[Task] = ()
    unread: str = ""


DocumentSort = Literal["added", "changed", "name", "file_type", "passages", "status"]
# In the order in which a list sorts them: what needs somebody comes first.
STATUSES: tuple[DocumentStatus, ...] = ("failed", "pending", "searchable", "enriched")
_LATEST_FIRST: tuple[DocumentSort, ...] = ("added", "changed")


_KEYS: dict[DocumentSort, Callable[[DocumentRecord], str | int]] = {
    "added": lambda record: record.created_at,
    "changed": lambda record: record.updated_at,
    "name": lambda record: record.name.casefold(),
    "file_type": lambda record: record.file_type,
    "passages": lambda record: record.passages,
    "status": lambda record: STATUSES.index(record.status),
}


@dataclass(frozen=True, slots=True)
class Listing:
    """A choice of documents and their order.

    `search` is a part of the name, the title or the source, in any case; "" lists all. `file_type` is exact.
    `unread` lists only documents that were read in part.
    `descending` None means the usual direction: the latest first, all else in ascending order. Equal documents are in
    the order in which they were accepted, or in the opposite one in a descending list.
    """

    search: str = ""
    file_type: str | None = None
    unread: bool = False
    sort: DocumentSort = "changed"
    descending: bool | None = None

    @property
    def reverse(self) -> bool:
        """Tell if the list is in descending order."""
        return self.sort in _LATEST_FIRST if self.descending is None else self.descending

    def takes(self, record: DocumentRecord) -> bool:
        """Tell if a document is listed."""
        if self.file_type not in (None, record.file_type) or (self.unread and not record.unread):
            return False
        wanted = self.search.casefold()
        return not wanted or any(wanted in text.casefold() for text in (record.name, record.title, record.source))

    def ordered(self, records: Iterable[DocumentRecord]) -> list[DocumentRecord]:
        """Put documents, given in the order in which they were accepted, into the order of the list."""
        given = list(records)
        if self.reverse:
            given.reverse()
        return sorted(given, key=_KEYS[self.sort], reverse=self.reverse)


LATEST = Listing()


def payload_of(record: DocumentRecord, passage: Passage) -> dict[str, Any]:
    """Return the payload of a passage. It includes the client's metadata, which cannot replace our fields."""
    part = record.parts[passage.part] if passage.part < len(record.parts) else None
    ours = {
        "text": passage.text,
        "source": record.name,
        "title": record.title,
        "filename": PurePath(record.name).name,
        "fileType": record.file_type,
        "docType": record.doc_type,
        "bytes": record.size,
        "uploadTimestamp": record.created_at,
        "documentId": record.id,
        "chunkIndex": passage.index,
        "totalChunks": record.passages,
        "enrichmentStatus": passage.enrichment,
        "tier1": dict(record.tier1),
    }
    optional = {
        "pageNumber": passage.page,
        "section": passage.section or None,
        "sections": list(passage.sections) or None,
        "tier2": None if passage.tier2 is None else dict(passage.tier2),
        "tier3": None if part is None or part.tier3 is None else dict(part.tier3),
    }
    theirs = {name: value for name, value in record.metadata.items() if name not in ours and name not in optional}
    return {**theirs, **ours, **{name: value for name, value in optional.items() if value is not None}}


# What is left out between two passages is shorter. Without a limit, a carried header would be looked for in all text.
_FARTHEST = 10_000
# The lines of a header.
_MOST_CARRIED = 3


def place_of(passage: Passage, passages: Sequence[Passage], source: SourceText) -> tuple[int, int] | None:
    """Return the offsets of a passage in the text of its document, None if it is not there.

    `passages` are all of the document in their order. A text may have the same lines several times. So each passage is
    looked for after the beginning of the one before it, and on its own page.
    """
    pages: dict[int | None, int] = {}
    for mark in source.marks:
        pages.setdefault(mark.page, mark.start)
    at, reach = -1, 0
    for each in passages:
        begin = max(at + 1, 0 if each.page is None else pages.get(each.page, 0))
        reach += len(each.text) + _FARTHEST
        found, length = _found(source.text, each.text, begin, begin + reach)
        at, reach = (found, length) if found >= 0 else (at, reach)
        if each.id == passage.id:
            return None if found < 0 else (found, found + length)
    return None


def _found(text: str, passage: str, begin: int, near: int) -> tuple[int, int]:
    """Return the start of a passage in the text, and its length without the header of a table that it carries."""
    kept = passage
    for _ in range(_MOST_CARRIED + 1):
        if kept and (found := text.find(kept, begin, near)) >= 0:
            return found, len(kept)
        kept = kept.partition("\n")[2]
    return text.find(passage, begin), len(passage)
