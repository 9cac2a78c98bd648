"""Corrective RAG behind the application's port."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from typing_extensions import override

from cragside.application.enricher import EvidenceFinder, EvidenceRequest
from cragside.crag.early_search import EarlySearch
from cragside.crag.state import CragContext, CragTools
from cragside.domain.outcome import Findings
from cragside.domain.verdict import DecisionPolicy


@dataclass(frozen=True)
class CorrectiveRag(EvidenceFinder):
    """Runs the graph with the given tools. Components that fail are reported in `degraded`."""

    tools: CragTools

    @cached_property
    def graph(self) -> Any:
        """The graph for a single question, compiled at first use: to import LangGraph takes most of a second."""
        from cragside.crag.graph import build_graph

        return build_graph(conversation=False)

    @cached_property
    def conversation_graph(self) -> Any:
        """The compiled graph for a question with turns before it."""
        from cragside.crag.graph import build_graph

        return build_graph()

    async def prepare(self) -> None:
        """Compile the graph before the first question."""
        _ = self.graph

    @override
    async def find(self, request: EvidenceRequest) -> Findings:
        question, policy = request.question, DecisionPolicy(request.threshold, self.tools.decision)
        graph = self.conversation_graph if request.turns else self.graph
        search = self.tools.search
        early = EarlySearch(search) if self.tools.search_early and search is not None else None
        context = CragContext(self.tools, request, policy, early)
        try:
            # In LangGraph's first form, an answer also tells what each step changed.
            state = (await graph.ainvoke({"question": question}, context=context, version="v2")).value
        finally:
            if early is not None:
                await early.drop()
        return Findings(
            block=state["block"],
            documents=state["evidence"],
            search_performed=state.get("search_performed", False),
            degraded=tuple(state.get("degraded", ())),
            timings_ms=state["timings_ms"],
            standalone_question=None if state["question"] == question else state["question"],
            candidates=state.get("candidates", ()),
            closest=state["closest"],
            reading=state["reading"],
            grader=state.get("grader"),
            judge=state.get("judge"),
            asked=state.get("judge_calls", 0),
        )
