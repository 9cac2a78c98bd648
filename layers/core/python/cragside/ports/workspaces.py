"""The workspaces, and what each of them stores: documents, passages, a graph, and the work on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cragside.domain.document import Document, SourceText
from cragside.domain.indexing import (
    LATEST,
    Acceptance,
    DocumentKey,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Listing,
    Passage,
    Progress,
    Stored,
    Task,
)
from cragside.domain.query import EVERYTHING, Filter, Mode, Query, SimilaritySearch
from cragside.domain.reading import Reading


@dataclass(frozen=True, slots=True)
class Indexed:
    """The outcome of one source: `indexed`, `updated`, `unchanged` or `failed` with a reason."""

    name: str
    status: str
    reason: str = ""
    passages: int = 0


@dataclass(frozen=True, slots=True)
class KnowledgeStatus:
    """Sizes of a workspace and the embedding model that built it.

    `lightrag_workspace` is the name by which LightRAG's own server finds it, if that can read it. `size` is that of
    its store in bytes; None where several workspaces share one. `waiting_changes` counts what other databases do not
    have yet. Two statuses that differ in these alone are equal: a copy has another name.
    """

    workspace: str
    embedding_model: str
    documents: int
    passages: int
    entities: int
    relations: int
    by_status: dict[str, int] = field(default_factory=dict)
    lightrag_workspace: str = field(default="", compare=False)
    size: int | None = field(default=None, compare=False)
    waiting_changes: int = field(default=0, compare=False)


class RagRepository(ABC):
    """Port for RAG data persistence. Failures of the store raise `ServiceUnavailable("knowledge_base", ...)`."""

    @abstractmethod
    async def save_query(self, query: Query) -> None:
        """Remember a query under its id; the oldest are forgotten."""

    @abstractmethod
    async def get_query(self, query_id: str) -> Query | None:
        """Return a remembered query, or None."""

    @abstractmethod
    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        """Index whole texts at once, without the queue.

        A text that is already there unchanged is not indexed twice. A changed one replaces it.
        """

    @abstractmethod
    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        """Find at most `limit` candidates that are `wanted`, ungraded, most promising first; equal texts once.

        `mode` is LightRAG's: `local` and `global` go through entities and relations, `hybrid` through both, `naive`
        through vectors, `mix` through all.
        """

    async def look_up(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> tuple[Reading, list[Document]]:
        """Find as `retrieve` does, and tell how the query was read. Passages are graded for that reading."""
        return Reading(query), await self.retrieve(query, limit=limit, mode=mode, wanted=wanted)

    @abstractmethod
    async def similar(self, search: SimilaritySearch) -> list[Document]:
        """Find passages by their cosine to the question (`similarity`), nearest first, or as `mmr` chooses them."""

    @abstractmethod
    async def similarities(self, query: str, passages: Sequence[str]) -> dict[str, float]:
        """Return the cosine (0..1) of a question to each of these passages, by their ids. Unknown ones are left out."""

    @abstractmethod
    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        """Passages whose relevance is above `threshold`, graded by the repository's own grader, best first."""

    @abstractmethod
    async def status(self) -> KnowledgeStatus:
        """Sizes of the workspace."""

    @abstractmethod
    async def version(self) -> str:
        """Return a token that changes with searchable content, in any process. Saved queries do not count."""


class Library(Protocol):
    """Stores documents, their progress and their passages. Changes are durable when a call returns.

    Failures of the store raise `ServiceUnavailable("knowledge_base", ...)`.
    """

    async def accept(
        self, source: SourceText, *, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        """Take a text in and cut it into passages and parts; nothing is embedded yet.

        The same source with another text replaces the document once the new text is searchable. With the same text it
        is `unchanged`, and takes name, title, metadata and track from this call. It has tasks only if it is unfinished
        or its title has changed, because titles are searched. The same text from another source is a separate
        document, whatever its name. So is a text with another track: the track is appended to its name and source.

        With `rename`, a source that already has another text gets a number, and so does the name. Nothing is replaced.
        """

    async def check_writable(self) -> None:
        """Raises `ReadOnlyStore`, as `accept` would, where nothing can be taken in."""

    async def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document by its id."""

    async def sourced(self, source: str) -> DocumentRecord | None:
        """Return the document of a source."""

    async def named(self, name: str) -> list[DocumentRecord]:
        """Return all documents of a name, latest first."""

    async def below(self, folder: str) -> list[DocumentRecord]:
        """Find the documents whose source lies below a folder, given by its absolute path, ordered by source."""

    async def move(self, document_id: str, *, source: str, name: str) -> DocumentRecord:
        """Give a document another source and another name. Its id, text, passages and vectors stay as they are.

        Raises `NotFound` for an unknown document, and `ValidationError` when another document has the source.
        """

    async def documents(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        status: DocumentStatus | None = None,
        track: str | None = None,
        listing: Listing = LATEST,
    ) -> tuple[list[DocumentRecord], int]:
        """Return a page of documents, by default the latest first, and how many there are in all."""

    async def file_types(self) -> dict[str, int]:
        """Count the documents of each type of file, in the order of the types."""

    async def languages(self) -> dict[str | None, int]:
        """Count the passages of each language; see `domain.languages`."""

    async def source(self, document_id: str) -> SourceText | None:
        """Return the whole text as it was accepted."""

    async def passages(self, document_id: str, part: int | None = None) -> list[Passage]:
        """Return a document's passages in their order, or those of one part."""

    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Return passages with their documents; missing ones are left out."""

    async def delete(self, document_id: str) -> bool:
        """Forget a document. False when there is none.

        Its text and its passages are gone at once. What only it contributed to the graph is removed at once, or by a
        task of `restart` while somebody else writes to the graph.
        """

    async def restart(
        self, document_id: str | None = None, *, force: bool = False, failures: bool = True
    ) -> list[Task]:
        """Return the tasks of unfinished and failed work; with `force` of all work. None means all documents.

        Their parts become pending. Without `failures`, parts that were given up stay so, and the tasks include removing
        from the graph what deleted documents left there.
        """

    async def progress(self) -> Progress:
        """Tell how far the indexing of all documents is."""

    async def counts(self) -> dict[EnrichmentStatus, int]:
        """Count the passages in each state of enrichment."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A node. Times are ISO 8601 in UTC, None when unknown; `mentions` counts the passages that name it."""

    name: str
    type: str
    description: str
    mentions: int = 0
    first_seen: str | None = None
    last_seen: str | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """An edge as seen from one entity."""

    entity: str
    relationship: str
    direction: Literal["incoming", "outgoing"]
    description: str = ""


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity with its connections, strongest first, and the ids and labels of documents that mention it."""

    entity: Entity
    connections: tuple[Connection, ...]
    documents: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Relationship:
    """An edge between two entities."""

    source: str
    target: str
    type: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities and the relationships among them. `capped`: there were more than the limit."""

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    capped: bool = False


class KnowledgeGraph(Protocol):
    """Reads entities and what connects them. Failures raise `ServiceUnavailable("knowledge_base", ...)`."""

    async def entity(self, name: str, *, connections: int = 100, documents: int = 100) -> EntityView | None:
        """Return an entity by its name, in any case, or None."""

    async def of_passages(self, passage_ids: Sequence[str], *, limit: int = 20) -> list[str]:
        """Return names of the entities that passages mention, most mentioned first."""

    async def of_each_passage(self, passage_ids: Sequence[str], *, limit: int = 20) -> dict[str, list[str]]:
        """For each passage the names of at most `limit` entities that it mentions, best connected first."""

    async def expand(self, names: Sequence[str], *, depth: int = 2, limit: int = 50, kind: str = "") -> Neighbourhood:
        """Find what entities reach in at most `depth` steps (2 at most), `limit` entities in all.

        With a `kind`, by entities of that type alone; those that it starts from may have another.
        """

    async def search(self, text: str, *, limit: int = 20, kind: str = "") -> list[Entity]:
        """Find entities whose name has the text, best connected first; "" for all. `kind` is their type, "" for any."""

    async def overview(self, *, limit: int = 300, kind: str = "") -> Neighbourhood:
        """Return the `limit` best connected entities, of a type if one is given, and the relationships among them."""

    async def kinds(self) -> dict[str, int]:
        """Count the entities of each type, the most frequent first; "" for those without one."""

    async def naming(self, *names: str, limit: int = 20) -> tuple[list[str], int] | None:
        """Return ids of the passages that name an entity, or that say how two are related, and how many there are.

        The earliest documents come first. None if an entity is not there. Names are in any case.
        """


class PartIndexer(Protocol):
    """The worker's writes to a workspace. A task of a deleted version does nothing.

    Raises `ServiceUnavailable` naming the component that is down, `ProcessingError` if the text cannot be indexed.
    """

    async def embed(self, task: Task) -> None:
        """Make the part's text searchable. With a changed document's last part, the version before it is removed."""

    async def begin_enrichment(self, task: Task) -> bool:
        """Mark the part as being enriched. False when there is nothing left to do for this task.

        If its version was deleted, removes its rest from the graph. Waits while another worker enriches the part.
        """

    async def give_back(self, task: Task | None = None) -> None:
        """Return the task's unfinished part to the queue; without a task, all unfinished parts.

        Parts that another living worker enriches stay as they are.
        """

    async def annotate(self, task: Task, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None) -> None:
        """Store tier 2 of each passage of the part, in their order, and tier 3 of the part."""

    async def extend_graph(self, task: Task) -> None:
        """Extract entities and relations of the part's passages and merge them into the graph; the part is enriched.

        What the extraction gave is kept with tier 3 of the part as `extraction`: how many `entities` and `relations`,
        how many lines of the model's answers were `malformed`, and of how many passages the answer was `unusable`.
        Model calls run in parallel and without the graph's lease. Only the merge takes it.
        """

    async def failed(self, task: Task, reason: str) -> None:
        """Record that the task is given up, and why."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The documents, passages and graph of a workspace. An unknown one is empty; its first document makes its store.

    `work` is what a worker writes with. Where `read_only`, all that writes raises `ReadOnlyStore`.
    """

    name: str
    documents: Library
    passages: RagRepository
    graph: KnowledgeGraph
    work: PartIndexer
    read_only: bool


class Workspaces(Protocol):
    """Opens workspaces, each of them once."""

    async def open(self, name: str) -> Workspace:
        """Return a workspace. Its store is opened at the first use, and reading an unknown one leaves no trace.

        Each use may raise `ServiceUnavailable` or `ConfigurationError` when the store cannot be opened. A request
        that times out does not cancel the opening.
        """
        ...

    async def names(self) -> list[str]:
        """Return the workspaces that have a store, in order."""
        ...

    async def stored(self, workspace: str, keys: Collection[DocumentKey] = ()) -> Stored:
        """Measure a workspace without opening it. Raises `ServiceUnavailable` when it is unreadable.

        `Stored.sizes` maps each of the `keys` that has a document to the document's size in bytes.
        """
        ...

    async def check(self, workspace: str, *, whole: bool = False) -> None:
        """Raises `ServiceUnavailable` when a workspace's store is damaged, with how and what to do.

        Cheap: it reports the last known state. With `whole` it reads everything that is stored.
        """
        ...

    async def prepare(self, workspace: str) -> None:
        """Open a workspace, and have its embedding model loaded.

        Raises like any use, and if the embedding model does not answer.
        """
        ...

    async def remove(self, workspace: str) -> bool:
        """Remove a workspace's documents and its memory, whoever has it open. False when it has no store.

        Its name can be used again at once. Raises `ReadOnlyStore` for a baked store, and `ServiceUnavailable`.
        """
        ...

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        """Build a workspace anew with the configured embedding model. Returns the number of its sources.

        `progress` is called with the name of each finished source. The old store stays until the new one is complete.
        Raises `ServiceUnavailable("reindex", ...)` while somebody else does the same, and `ReadOnlyStore`.
        """
        ...

    async def disagreement(self, workspace: str) -> str:
        """Describe how another database's part of a workspace differs from the documents or the memory; "" for none.

        It may when one of the databases was restored from a backup or emptied. `reindex` mends it.
        Raises `ServiceUnavailable`.
        """
        ...
