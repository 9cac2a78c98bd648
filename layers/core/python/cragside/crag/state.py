"""What flows through the graph, and what its nodes may use."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypedDict

from cragside.domain.context import CountTokens
from cragside.domain.deadline import Deadline
from cragside.domain.document import Document
from cragside.domain.outcome import Degradation
from cragside.domain.personas import PLAIN
from cragside.domain.verdict import DecisionPolicy
from cragside.ports.relevance_grader import RelevanceGrader
from cragside.ports.search_service import SearchService
from cragside.ports.workspaces import Workspaces


class CragState(TypedDict, total=False):
    """The question, the evidence as it is found, and the truth about the way."""

    question: str
    workspace: str
    model: str | None
    local: list[Document]
    search_query: str
    web: list[Document] | None  # None: the web could not be asked
    search_performed: bool
    block: str
    evidence: tuple[Document, ...]
    degraded: Annotated[list[Degradation], operator.add]
    timings_ms: Annotated[dict[str, float], operator.or_]


@dataclass(frozen=True, slots=True)
class CragTools:
    """The ports and settings of every run. `search` is None when no search engine is configured."""

    workspaces: Workspaces
    grader: RelevanceGrader
    embedded_grader: RelevanceGrader
    search: SearchService | None
    embedded_rewrite: Callable[[str], str]
    policy: DecisionPolicy
    count_tokens: CountTokens
    candidates: int
    max_documents: int


@dataclass(frozen=True, slots=True)
class CragContext:
    """What one run may use, how much time (a deadline) and room (tokens) it has, and how its evidence is presented."""

    tools: CragTools
    deadline: Deadline
    evidence_tokens: int
    instruction: str = PLAIN
    compress: bool = False
