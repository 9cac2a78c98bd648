"""The knowledge base of one workspace."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cragside.domain.document import Document, SourceText
from cragside.domain.filter import EVERYTHING, Filter
from cragside.domain.indexing import DocumentKey, Stored
from cragside.domain.query import Query
from cragside.domain.search import Mode, SimilaritySearch
from cragside.ports.knowledge_graph import KnowledgeGraph
from cragside.ports.library import Library
from cragside.ports.part_indexer import PartIndexer


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of one source: `indexed`, `updated`, `unchanged` or `failed` with a reason."""

    name: str
    status: str
    reason: str = ""
    passages: int = 0


@dataclass(frozen=True, slots=True)
class KnowledgeStatus:
    """Sizes of a workspace and the embedding model that built it."""

    workspace: str
    embedding_model: str
    documents: int
    passages: int
    entities: int
    relations: int
    by_status: dict[str, int] = field(default_factory=dict)


class RagRepository(ABC):
    """Port for RAG data persistence. Failures of the store raise `ServiceUnavailable("knowledge_base", ...)`."""

    @abstractmethod
    async def save_query(self, query: Query) -> None:
        """Remember a query under its id; the oldest are forgotten."""

    @abstractmethod
    async def get_query(self, query_id: str) -> Query | None:
        """A remembered query, or None."""

    @abstractmethod
    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        """Index whole texts. A text that is already there unchanged is not indexed twice; a changed one replaces it."""

    @abstractmethod
    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        """At most `limit` candidate passages that are `wanted`, ungraded, most promising first; equal texts once.

        `mode` is LightRAG's: `local` and `global` go through entities and relations, `hybrid` through both, `naive`
        through vectors, `mix` through all.
        """

    @abstractmethod
    async def similar(self, search: SimilaritySearch) -> list[Document]:
        """Passages by their cosine to the question, which is their score, nearest first; or as `mmr` chooses them."""

    @abstractmethod
    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        """Passages whose relevance is above `threshold`, graded by the repository's own grader, best first."""

    @abstractmethod
    async def delete_document(self, source: str) -> bool:
        """Forget the document of a source and what only it contributed to the graph. False when there is none."""

    @abstractmethod
    async def status(self) -> KnowledgeStatus:
        """Sizes of the workspace."""

    @abstractmethod
    async def version(self) -> str:
        """A token that changes whenever searchable content changes, in any process. Saved queries do not count."""

    @abstractmethod
    async def close(self) -> None:
        """Release files and connections; pending writes are flushed."""


class Workspaces(Protocol):
    """Opens the repository of a workspace, once."""

    async def repository(self, workspace: str) -> RagRepository:
        """The workspace's repository. Raises `ServiceUnavailable` or `ConfigurationError`."""
        ...

    async def library(self, workspace: str) -> Library:
        """The workspace's documents. Raises as `repository` does."""
        ...

    async def part_indexer(self, workspace: str) -> PartIndexer:
        """What a worker writes a workspace with. Raises as `repository` does."""
        ...

    async def graph(self, workspace: str) -> KnowledgeGraph:
        """The workspace's graph. Raises as `repository` does."""
        ...

    async def names(self) -> list[str]:
        """The workspaces that have a store, in order."""
        ...

    async def stored(self, workspace: str, keys: Collection[DocumentKey] = ()) -> Stored:
        """How much is stored in a workspace, without opening it. Raises `ServiceUnavailable` when it is unreadable.

        `Stored.sizes` has those of the `keys` whose text would replace a document.
        """
        ...

    async def check(self, workspace: str, *, whole: bool = False) -> None:
        """Raises `ServiceUnavailable` when a workspace's store is damaged, with how and what to do.

        It is cheap, and tells what is known so far. With `whole` it reads all that is stored.
        """
        ...

    async def prepare(self, workspace: str) -> None:
        """Open what is there of a workspace, and have its embedding model loaded.

        Raises as `repository` does, and when the model cannot be asked, without which the workspace can be opened.
        """
        ...

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        """Build a workspace anew with the configured embedding model; returns the number of its sources.

        `progress` is called with the name of each finished source. The old store stays until the new one is complete.
        """
        ...
