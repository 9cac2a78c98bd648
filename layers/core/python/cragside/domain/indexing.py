"""The states of a document while it is indexed.

A document is cut into parts: runs of passages, each small enough for one task. First a part is embedded, which makes
its text searchable. Then it is annotated with keywords, entities and language (tier 2) and with a model's description
(tier 3), and merged into the graph.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cragside.domain.document import DocType

Stage = Literal["embed", "enrich"]
EnrichmentStatus = Literal["none", "pending", "processing", "enriched", "failed"]
DocumentStatus = Literal["pending", "searchable", "enriched", "failed"]


@dataclass(frozen=True, slots=True)
class Task:
    """One stage of one part. `content_hash` identifies the document's version. A task of another version is void."""

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
        """One worker at a time gets tasks of a group. A document's text and its enrichment are two groups."""
        return f"{self.workspace}/{self.document_id}" + ("/graph" if self.stage == "enrich" else "")


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
        """Whether all of its text is searchable."""
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
        """Why it failed; "" if it did not."""
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
