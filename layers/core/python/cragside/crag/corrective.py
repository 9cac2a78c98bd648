"""Corrective RAG as the application knows it: a question in, findings out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cragside.crag.state import CragContext
from cragside.domain.context import CountTokens
from cragside.domain.deadline import Deadline
from cragside.domain.outcome import Findings
from cragside.domain.verdict import DecisionPolicy
from cragside.ports.rag_repository import Workspaces
from cragside.ports.relevance_grader import RelevanceGrader
from cragside.ports.search_service import SearchService


@dataclass(frozen=True)
class CorrectiveRag:
    """Runs the graph with the given ports; implements the application's `EvidenceFinder`."""

    workspaces: Workspaces
    grader: RelevanceGrader
    embedded_grader: RelevanceGrader
    search: SearchService | None
    embedded_rewrite: Callable[[str], str]
    policy: DecisionPolicy
    count_tokens: CountTokens
    candidates: int
    max_documents: int

    @cached_property
    def graph(self) -> Any:
        """The compiled graph, imported at its first use: LangGraph takes the better part of a second."""
        from cragside.crag.graph import build_graph

        return build_graph()

    async def prepare(self) -> None:
        """Compile the graph ahead of the first question."""
        _ = self.graph

    async def find(
        self, question: str, *, workspace: str, model: str | None, deadline: Deadline, evidence_tokens: int
    ) -> Findings:
        """Evidence for a question; components that fail are reported in `degraded`."""
        context = CragContext(
            workspaces=self.workspaces,
            grader=self.grader,
            embedded_grader=self.embedded_grader,
            search=self.search,
            embedded_rewrite=self.embedded_rewrite,
            policy=self.policy,
            count_tokens=self.count_tokens,
            candidates=self.candidates,
            max_documents=self.max_documents,
            deadline=deadline,
            evidence_tokens=evidence_tokens,
        )
        state = await self.graph.ainvoke(
            {"question": question, "workspace": workspace, "model": model}, context=context
        )
        return Findings(
            block=state["block"],
            documents=state["evidence"],
            search_performed=state.get("search_performed", False),
            degraded=tuple(state.get("degraded", ())),
            timings_ms=state["timings_ms"],
        )
