"""The knowledge base of one workspace."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from cragside.domain.document import Document, SourceText
from cragside.domain.filter import EVERYTHING, Filter
from cragside.domain.query import Query
from cragside.domain.reading import Reading
from cragside.domain.search import Mode, SimilaritySearch


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of one source: `indexed`, `updated`, `unchanged` or `failed` with a reason."""

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
        """A remembered query, or None."""

    @abstractmethod
    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        """Index whole texts at once, without the queue.

        A text that is already there unchanged is not indexed twice. A changed one replaces it.
        """

    @abstractmethod
    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        """At most `limit` candidate passages that are `wanted`, ungraded, most promising first; equal texts once.

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
        """Passages with their cosine to the question as `similarity`, nearest first, or as `mmr` chooses them."""

    @abstractmethod
    async def similarities(self, query: str, passages: Sequence[str]) -> dict[str, float]:
        """The cosine (0..1) of a question to each of these passages, by their ids. Unknown ones are left out."""

    @abstractmethod
    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        """Passages whose relevance is above `threshold`, graded by the repository's own grader, best first."""

    @abstractmethod
    async def status(self) -> KnowledgeStatus:
        """Sizes of the workspace."""

    @abstractmethod
    async def version(self) -> str:
        """A token that changes whenever searchable content changes, in any process. Saved queries do not count."""
