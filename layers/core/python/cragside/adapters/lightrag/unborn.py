"""A workspace that may have no store yet: asking it leaves no trace on disk, the first documents make the store."""

from collections.abc import Awaitable, Callable, Sequence

from cragside.domain.document import Document, SourceText
from cragside.domain.filter import EVERYTHING, Filter
from cragside.domain.query import Query
from cragside.domain.search import Mode, SimilaritySearch
from cragside.ports.rag_repository import Indexed, KnowledgeStatus, RagRepository


class UnbornRepository(RagRepository):
    """Knows nothing until there is a store, and from then on what the store knows.

    `find` gives the store's repository, or None while there is no store; `create` makes it.
    """

    def __init__(
        self,
        workspace: str,
        *,
        find: Callable[[], Awaitable[RagRepository | None]],
        create: Callable[[], Awaitable[RagRepository]],
    ) -> None:
        self._workspace = workspace
        self._find = find
        self._create = create

    async def save_query(self, query: Query) -> None:
        """Remember the query if there is a store to remember it in."""
        if store := await self._find():
            await store.save_query(query)

    async def get_query(self, query_id: str) -> Query | None:
        """A remembered query, or None."""
        store = await self._find()
        return await store.get_query(query_id) if store else None

    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        """Index whole texts, into a new store if there is none."""
        return await (await self._create()).save_documents(documents)

    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        """Candidate passages."""
        store = await self._find()
        return await store.retrieve(query, limit=limit, mode=mode, wanted=wanted) if store else []

    async def similar(self, search: SimilaritySearch) -> list[Document]:
        """Passages by their cosine to the question."""
        store = await self._find()
        return await store.similar(search) if store else []

    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        """Passages whose relevance is above `threshold`."""
        store = await self._find()
        return await store.get_relevant_documents(query, threshold) if store else []

    async def delete_document(self, source: str) -> bool:
        """Forget the document of a source. False when there is none."""
        store = await self._find()
        return await store.delete_document(source) if store else False

    async def status(self) -> KnowledgeStatus:
        """Sizes of the workspace."""
        store = await self._find()
        return await store.status() if store else KnowledgeStatus(self._workspace, "not chosen yet", 0, 0, 0, 0)

    async def version(self) -> str:
        """The store's; "" while there is none."""
        store = await self._find()
        return await store.version() if store else ""

    async def close(self) -> None:
        """Nothing: whoever opened the store closes it."""
