"""The state of the graph, and the tools of its nodes."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from cragside.application.enricher import EvidenceRequest
from cragside.application.grading import Grading
from cragside.crag.early_search import EarlySearch
from cragside.domain.context import CountTokens
from cragside.domain.evidence import Document
from cragside.domain.outcome import Asked, Candidate, Degradation
from cragside.domain.reading import Reading
from cragside.domain.verdict import DecisionPolicy, Judgement
from cragside.ports.models import FollowUpReader, MatchWords, RelevanceGrader
from cragside.ports.search_service import SearchService

if TYPE_CHECKING:
    from cragside.store.workspaces import Workspaces


class CragState(TypedDict, total=False):
    """The question, the evidence found so far, and how it was found.

    Once the conversation was read, `question` is the one that stands alone.
    """

    question: str
    asked: Asked
    reading: Reading  # the question as the documents put it
    local: list[Document]
    part_of: dict[str, Reading]  # passage -> the part that it is nearest to; those nearest to the question have none
    grader: str  # the name of the one that graded all of `local`
    judgements: Mapping[str, Judgement]  # of a chat model, by the id of the passage
    judge: str | None  # the name of the chat model that was asked
    judge_calls: int
    search_query: str
    web: list[Document] | None  # None: the web could not be asked
    search_performed: bool
    block: str
    evidence: tuple[Document, ...]
    candidates: tuple[Candidate, ...]  # only of a run that somebody watches
    closest: tuple[Document, ...]
    degraded: Annotated[list[Degradation], operator.add]
    timings_ms: Annotated[dict[str, float], operator.or_]


@dataclass(frozen=True, slots=True)
class CragTools:
    """The ports and settings of every run. `search` is None if no search engine is configured.

    `embedded_follow_ups` replaces `follow_ups` when its model fails. It needs no host. `read_parts` finds the things
    that a question asks for, `unnamed` those that no passage names. `near_words` takes a passage's title and the place
    that has most of the question's words. `search_early` has the web searched while a model judges passages.
    """

    workspaces: "Workspaces"
    grading: Grading
    embedded_grader: RelevanceGrader
    near_words: MatchWords
    search: SearchService | None
    follow_ups: FollowUpReader
    embedded_follow_ups: FollowUpReader
    embedded_rewrite: Callable[[str], str]
    read_parts: Callable[[str], Asked]
    unnamed: Callable[[Asked, Sequence[Document]], list[str]]
    decision: Literal["any", "mean"]
    count_tokens: CountTokens
    candidates: int
    search_early: bool = False


@dataclass(frozen=True, slots=True)
class CragContext:
    """Holds the tools and the request of one run, and the policy, which decides by the threshold of the request.

    `early` is None where the web is searched only once the grades are known.
    """

    tools: CragTools
    request: EvidenceRequest
    policy: DecisionPolicy
    early: EarlySearch | None = None
