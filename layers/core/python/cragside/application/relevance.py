"""The use case: stored passages for a question, ranked by relevance as for `/rag`, without correction."""

from collections.abc import Sequence
from dataclasses import dataclass

from cragside.application.grading import Grading, by_relevance
from cragside.application.strips import compressed
from cragside.domain.document import Document
from cragside.domain.errors import ValidationError
from cragside.domain.filter import EVERYTHING, Filter
from cragside.domain.left_out import left_out
from cragside.domain.outcome import Degradation
from cragside.domain.query import refuse_overlong_query
from cragside.domain.reading import Reading
from cragside.domain.search import Mode, SimilaritySearch
from cragside.ports.models import RelevanceGrader
from cragside.ports.workspaces import RagRepository, Workspaces

# With a filter so many are retrieved: the graph cannot filter, so most are dropped afterwards.
_WIDE = 100


@dataclass(frozen=True, slots=True)
class RelevanceSearch:
    """A search for at most `limit` passages. Without a `mode`, it retrieves as `/rag` does.

    `both`: the grader of `/rag` grades, with the chat model `model` if there is a host, and passages get their
    similarity as well. Otherwise the embedded grader grades.
    """

    text: str
    limit: int
    mode: Mode | None = None
    filter: Filter = EVERYTHING
    both: bool = False
    model: str | None = None
    compress: bool = False


class RelevantPassages:
    """Ranks the passages of a workspace by their relevance to a question."""

    def __init__(
        self,
        workspaces: Workspaces,
        grading: Grading,
        embedded_grader: RelevanceGrader,
        *,
        candidates: int,
        threshold: float,
    ) -> None:
        self._workspaces = workspaces
        self._grading = grading
        self._embedded_grader = embedded_grader
        self._candidates = candidates
        self._threshold = threshold

    async def find(
        self, search: RelevanceSearch, *, workspace: str, seconds: float
    ) -> tuple[list[Document], list[Degradation]]:
        """All candidates with their relevance, best first, and what failed. There may be more than the `limit`.

        `seconds` bound the grading. Raises `ValidationError` for a blank or overlong text, and `ServiceUnavailable`.
        """
        if not search.text.strip():
            raise ValidationError("A search needs a text.", field="query")
        refuse_overlong_query(search.text)
        repository = (await self._workspaces.open(workspace)).passages
        with left_out() as missing:
            reading, candidates = await self._retrieved(search, repository)
        degraded: Sequence[Degradation] = ()
        if search.both:
            graded = await self._grading.graded(
                reading, candidates, seconds=seconds, threshold=self._threshold, model=search.model
            )
            found, degraded = await _compared(search.text, graded.documents, repository), graded.degraded
        else:
            scores = await self._embedded_grader.grade_read(reading, candidates)
            found = by_relevance(candidates, scores)
        if search.compress:
            found = await compressed(reading, found, self._embedded_grader)
        return found, [*missing, *degraded]

    async def _retrieved(self, search: RelevanceSearch, repository: RagRepository) -> tuple[Reading, list[Document]]:
        # As many as for `/rag`, so that both see the same best one. LightRAG's clients get what they ask for.
        enough = search.limit if search.mode and not search.both else max(search.limit, self._candidates)
        most = _WIDE if search.filter.must else enough
        reading, found = await repository.look_up(
            search.text, limit=most, mode=search.mode or "mix", wanted=search.filter
        )
        if search.mode is not None or len(found) >= enough:
            return reading, found
        near = SimilaritySearch(reading.text, limit=enough, threshold=0.0, filter=search.filter)
        known = {document.id for document in found} | {document.content for document in found}
        others = [each for each in await repository.similar(near) if known.isdisjoint((each.id, each.content))]
        return reading, [*found, *others[: enough - len(found)]]


async def _compared(question: str, documents: Sequence[Document], repository: RagRepository) -> list[Document]:
    missing = [document.id for document in documents if document.similarity is None]
    cosines = await repository.similarities(question, missing)
    return [document.compared(cosines[document.id]) if document.id in cosines else document for document in documents]
