"""The use case: plain similarity search, without grading or correction."""

from collections.abc import Sequence

from cachetools import LRUCache

from cragside.application.preferences import WorkspacePreferences
from cragside.application.strips import compressed
from cragside.domain.document import Document
from cragside.domain.errors import ValidationError
from cragside.domain.filter import Filter
from cragside.domain.query import refuse_overlong_query
from cragside.domain.reading import Reading
from cragside.domain.search import DEFAULT_BALANCE, DEFAULT_FETCH, SimilaritySearch, Strategy
from cragside.ports.models import RelevanceGrader
from cragside.ports.workspaces import Workspaces

_REMEMBERED = 100


class Retriever:
    """Searches a workspace's passages by similarity.

    It caches the answers to the last 100 searches until their store changes.
    """

    def __init__(self, workspaces: Workspaces, grader: RelevanceGrader, preferences: WorkspacePreferences) -> None:
        self._workspaces = workspaces
        self._grader = grader
        self._preferences = preferences
        self._answers: LRUCache[tuple[str, str, bool], tuple[str, tuple[Document, ...]]] = LRUCache(_REMEMBERED)

    async def search_for(
        self,
        text: str,
        *,
        workspace: str,
        limit: int | None = None,
        threshold: float | None = None,
        strategy: Strategy | None = None,
        fetch: int | None = None,
        balance: float | None = None,
        wanted: Filter | None = None,
    ) -> SimilaritySearch:
        """A search, with the workspace's preferences as defaults.

        Raises `ValidationError` for a blank or overlong text.
        """
        if not text.strip():
            raise ValidationError("A search needs a text.", field="query")
        refuse_overlong_query(text)
        preferred = await self._preferences.of(workspace)
        return SimilaritySearch(
            text,
            limit=preferred.similarity_results if limit is None else limit,
            threshold=preferred.similarity_threshold if threshold is None else threshold,
            strategy=strategy or preferred.similarity_strategy,
            fetch=DEFAULT_FETCH if fetch is None else fetch,
            balance=DEFAULT_BALANCE if balance is None else balance,
            filter=wanted or Filter(),
        )

    async def search(self, search: SimilaritySearch, *, workspace: str, compress: bool = False) -> list[Document]:
        """Passages with their similarity, nearest first, or in the order of `mmr`. Raises `ServiceUnavailable`.

        `compress` reduces each passage to its relevant strips.
        """
        repository = (await self._workspaces.open(workspace)).passages
        # The version is read before the search, so a write during the search makes the answer stale.
        version = await repository.version()
        key = (workspace, repr(search), compress)
        known = self._answers.get(key)
        if known is not None and known[0] == version:
            return list(known[1])
        found: Sequence[Document] = await repository.similar(search)
        if compress:
            found = await compressed(Reading(search.text), found, self._grader)
        self._answers[key] = version, tuple(found)
        return list(found)
