"""The states of a document while it is indexed.

A document is cut into parts, runs of passages that each fit a worker's time. A part is embedded first, which makes its
text searchable, and enriched afterwards: keywords, entities and language (tier 2), what a model makes of it (tier 3),
and its share of the graph.
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
    """One stage of one part. `content_hash` names the document's version; a task of another version is void."""

    workspace: str
    document_id: str
    content_hash: str
    part: int
    stage: Stage

    @property
    def key(self) -> str:
        """Equal for equal work."""
        return f"{self.workspace}/{self.document_id}/{self.content_hash[:16]}/{self.part}/{self.stage}"

    @property
    def group(self) -> str:
        """One worker at a time gets tasks of a group. A document's text and its enrichment are two groups."""
        return f"{self.workspace}/{self.document_id}" + ("/graph" if self.stage == "enrich" else "")


@dataclass(frozen=True, slots=True)
class Part:
    """The passages `first` to `last` (inclusive) of a document. `error` is the reason of the last failure.

    `tier3` is what a model makes of the document, with its first part, and of each part what the `extraction` of its
    entities and relations gave.
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
    """A document as the library knows it. Times are ISO 8601 in UTC.

    `source` identifies it in its workspace, `name` is what people are shown. `label` is the name with as much of the
    source as tells the document from others of that name. Without more said, both are the name.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source or self.name)
        object.__setattr__(self, "label", self.label or self.name)

    @property
    def passages(self) -> int:
        """How many passages it has."""
        return self.parts[-1].last + 1 if self.parts else 0

    @property
    def searchable(self) -> bool:
        """Whether all of its text can be found."""
        return all(part.embedded for part in self.parts)

    @property
    def tier3(self) -> Mapping[str, Any]:
        """Tier 3 of its parts in one, with the sums of their extractions."""
        known = [part.tier3 for part in self.parts if part.tier3]
        extraction = Counter[str]()
        for tier3 in known:
            extraction.update(tier3.get("extraction", {}))
        fields = {name: value for tier3 in reversed(known) for name, value in tier3.items()}
        return {**fields, "extraction": dict(extraction)} if extraction else fields

    @property
    def error(self) -> str:
        """Why it failed; "" when it did not."""
        return next((part.error for part in self.parts if part.error and self.status == "failed"), "")

    @property
    def enrichment(self) -> EnrichmentStatus | Literal["mixed"]:
        """What its parts have in common: any failed is failed, different ones are mixed."""
        states = {part.enrichment for part in self.parts}
        if "failed" in states:
            return "failed"
        return states.pop() if len(states) == 1 else "mixed" if states else "none"

    @property
    def status(self) -> DocumentStatus:
        """How far it has come. A document that failed may be searchable all the same."""
        if any(part.error and not part.embedded for part in self.parts) or self.enrichment == "failed":
            return "failed"
        if not self.searchable:
            return "pending"
        return "enriched" if self.enrichment == "enriched" else "searchable"


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """Identifies the document that a text replaces: by its source, and by its track if it has one."""

    source: str
    track: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """How many documents a workspace has, and how many bytes they count for: files or texts, and metadata.

    `sizes` has the bytes of those documents that the caller asked for and that are there.
    """

    documents: int = 0
    bytes: int = 0
    sizes: Mapping[DocumentKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the documents of a workspace have come.

    Nothing of the `waiting` ones can be found yet; of those `underway` something is still to be done; `done` ones need
    nothing more. Of all their parts' stages `tasks` are left to do, `processing` of them at the moment, and `given_up`
    failed.
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
    """A stored passage. `tier2` is {"entities": [{"text", "label"}], "keywords": [...], "language": ...} once known.

    `section` is how it is cited, `sections` are those that it goes through.
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
    """What became of a text that was brought: `new` and `changed` texts have `tasks`, others are there already."""

    record: DocumentRecord
    outcome: Literal["new", "changed", "unchanged"]
    tasks: Sequence[Task] = ()
