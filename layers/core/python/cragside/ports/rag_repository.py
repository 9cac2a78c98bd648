"""Finds passages of one workspace, and remembers the queries that were asked of it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from cragside.domain.document import SourceText
from cragside.domain.evidence import Document
from cragside.domain.knowledge import Indexed, KnowledgeStatus
from cragside.domain.query import EVERYTHING, Filter, Mode, Query, SimilaritySearch
from cragside.domain.reading import Reading


class RagRepository(ABC):
    """Finds passages and indexes texts. Failures of the store raise `ServiceUnavailable("knowledge_base", ...)`."""

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
        """Return passages whose relevance is above `threshold`, graded by the repository's grader, best first."""

    @abstractmethod
    async def status(self) -> KnowledgeStatus:
        """Measure the workspace."""

    @abstractmethod
    async def version(self) -> str:
        """Return a token that changes with searchable content, in any process. Saved queries do not count."""
