"""A workspace of a baked store: it answers as any other, and nothing is written to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cragside.domain.document import Document, SourceText
from cragside.domain.errors import ReadOnlyStore
from cragside.domain.filter import EVERYTHING, Filter
from cragside.domain.query import Query
from cragside.domain.search import Mode, SimilaritySearch
from cragside.ports.rag_repository import Indexed, KnowledgeStatus, RagRepository

if TYPE_CHECKING:
    from cragside.adapters.lightrag.store import Store


class BakedRepository(RagRepository):
    """Reads through `repository`, which is on `store` if there is one.

    Writing raises `ReadOnlyStore` with `refusal`; queries are not remembered.
    """

    # Nobody changes the content of a baked store while it is open.
    replaced = False

    def __init__(self, repository: RagRepository, refusal: str, store: "Store | None" = None) -> None:
        self.store = store
        self._repository = repository
        self._refusal = refusal

    async def save_query(self, query: Query) -> None:
        """Nothing: there is nowhere to remember it."""

    async def get_query(self, query_id: str) -> Query | None:
        """None."""
        return None

    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        """Raises `ReadOnlyStore`."""
        raise ReadOnlyStore(self._refusal)

    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        """Candidate passages."""
        return await self._repository.retrieve(query, limit=limit, mode=mode, wanted=wanted)

    async def similar(self, search: SimilaritySearch) -> list[Document]:
        """Passages by their cosine to the question."""
        return await self._repository.similar(search)

    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        """Passages whose relevance is above `threshold`."""
        return await self._repository.get_relevant_documents(query, threshold)

    async def delete_document(self, source: str) -> bool:
        """Raises `ReadOnlyStore`."""
        raise ReadOnlyStore(self._refusal)

    async def status(self) -> KnowledgeStatus:
        """Sizes of the workspace."""
        return await self._repository.status()

    async def version(self) -> str:
        """Always the same while the store is open."""
        return await self._repository.version()

    async def close(self) -> None:
        """Close the store."""
        await self._repository.close()
