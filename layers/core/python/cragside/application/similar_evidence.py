"""Evidence without correction: what a plain similarity search finds, or none at all."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from typing_extensions import override

from cragside.application.enricher import EvidenceFinder, EvidenceRequest
from cragside.application.grading import within
from cragside.application.passages import Retriever
from cragside.domain.context import CountTokens, pack
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.outcome import MOST_CLOSEST, NO_ROOM, Candidate, Degradation, Findings, Step, Watch
from cragside.domain.query import LONGEST_QUERY
from cragside.ports.models import FollowUpReader

# The rest of the time is for packing the passages, and for memory.
_SEARCH_SHARE = 0.8


class SimilarEvidence(EvidenceFinder):
    """Searches as the workspace's similarity settings say. Nothing is graded, and no chat model and no web is asked.

    `follow_ups` complete questions by rules. Passages have a similarity and no score.
    """

    def __init__(self, retriever: Retriever, follow_ups: FollowUpReader, *, count_tokens: CountTokens) -> None:
        self._retriever = retriever
        self._follow_ups = follow_ups
        self._count_tokens = count_tokens

    @override
    async def find(self, request: EvidenceRequest) -> Findings:
        """See the protocol. The workspace's similarity settings limit the passages."""
        question, turns = request.question, request.turns
        steps = _Steps(request.watch)
        searched = question
        if turns:
            searched = await self._follow_ups.standalone(question, turns, model=None)
            steps.ended("complete_question", "complete", question=searched)
        degraded: tuple[Degradation, ...] = ()
        found: list[Document] = []
        nearest: list[Document] = []
        try:
            searching = self._search(searched, request.workspace, request.compress)
            found, nearest = await within(request.deadline.share(_SEARCH_SHARE), "knowledge_base", searching)
        except ServiceUnavailable as error:
            degraded = (Degradation("knowledge_base", error.message),)
        steps.ended("retrieve", "retrieve", degraded, passages=len(found))
        budget, instruction = request.evidence_tokens, request.instruction
        packing = partial(pack, budget=budget, count_tokens=self._count_tokens, instruction=instruction)
        packed, closest = packing(found), packing(nearest)
        if found and not packed.documents:
            degraded = (NO_ROOM,)
        steps.ended("inject", "inject", passages=len(packed.documents))
        return Findings(
            block=packed.block,
            documents=packed.documents,
            search_performed=False,
            degraded=degraded,
            timings_ms=steps.timings_ms,
            standalone_question=None if searched == question else searched,
            candidates=() if request.watch is None else _considered(found, packed.documents),
            closest=closest.documents,
        )

    async def _search(self, question: str, workspace: str, compress: bool) -> tuple[list[Document], list[Document]]:
        """Return the passages that are similar enough; or else the nearest, whatever their similarity."""
        search = await self._retriever.search_for(question[:LONGEST_QUERY], workspace=workspace)
        looking = partial(self._retriever.search, workspace=workspace, compress=compress)
        if found := await looking(search):
            return found, []
        return [], await looking(replace(search, limit=MOST_CLOSEST, threshold=0.0))


class NoEvidence(EvidenceFinder):
    """Finds nothing: the question goes to the model as it is."""

    @override
    async def find(self, request: EvidenceRequest) -> Findings:
        """See the protocol."""
        return Findings("", (), search_performed=False)


class _Steps:
    """Measures steps, and reports each to the watcher when it ends."""

    def __init__(self, watch: Watch | None) -> None:
        self.timings_ms: dict[str, float] = {}
        self._watch = watch
        self._began = time.perf_counter()

    def ended(self, timing: str, name: str, degraded: Sequence[Degradation] = (), **facts: Any) -> None:
        now = time.perf_counter()
        spent, self._began = (now - self._began) * 1000, now
        self.timings_ms[timing] = spent
        if self._watch is not None:
            self._watch(Step(name, spent, facts, tuple(degradation.component for degradation in degraded)))


def _considered(found: Sequence[Document], packed: Sequence[Document]) -> tuple[Candidate, ...]:
    """Tell what became of each passage. Those that are not packed had no room."""
    numbers = {document.id: number for number, document in enumerate(packed, start=1)}
    return tuple(
        Candidate(each, None, None, numbers.get(each.id), None if each.id in numbers else "room") for each in found
    )
