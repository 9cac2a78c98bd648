"""Corrective RAG behind the application's port."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from typing_extensions import override

from cragside.application.enricher import EvidenceFinder
from cragside.application.grading import Deadline
from cragside.crag.state import CragContext, CragTools
from cragside.domain.outcome import Findings, Watch
from cragside.domain.preferences import PLAIN
from cragside.domain.prompt import ChatTurn


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
    async def find(
        self,
        question: str,
        *,
        workspace: str,
        model: str | None,
        deadline: Deadline,
        evidence_tokens: int,
        threshold: float | None = None,
        max_documents: int | None = None,
        instruction: str = PLAIN,
        compress: bool = False,
        turns: Sequence[ChatTurn] = (),
        watch: Watch | None = None,
    ) -> Findings:
        policy = self.tools.policy if threshold is None else replace(self.tools.policy, threshold=threshold)
        most = self.tools.max_documents if max_documents is None else max_documents
        context = CragContext(self.tools, deadline, evidence_tokens, policy, most, instruction, compress, turns, watch)
        asked = {"question": question, "workspace": workspace, "model": model}
        graph = self.conversation_graph if turns else self.graph
        # In LangGraph's first form, an answer also tells what each step changed.
        state = (await graph.ainvoke(asked, context=context, version="v2")).value
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
