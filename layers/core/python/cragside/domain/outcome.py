"""The outcome of enriching a prompt: the `rag_context` of the agent contract."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cragside.domain.candidates import Candidate
from cragside.domain.document import Document
from cragside.domain.exchange import moment_of
from cragside.domain.preferences import EvidenceMode
from cragside.domain.reading import Reading
from cragside.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Degradation:
    """A component that failed, and why. The request continued without it."""

    component: str
    reason: str


# The passages that are shown where none is evidence, at most.
MOST_CLOSEST = 3
NO_ROOM = Degradation("context_window", "The evidence that was found has no room in the prompt.")
# Where one of these is degraded, there may be evidence that is not in the prompt.
_UNSEEN = frozenset({"knowledge_base", "embedder", NO_ROOM.component})


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of the corrective graph: the packed block ("" for none) and the documents in it.

    `standalone_question` is None if the question needed nothing from the conversation. `candidates` are all that were
    considered; () for a run that nobody watched. `closest` are the nearest passages, if none of them is evidence.
    `reading` is the question in words of the documents, None if it was searched for as it is. `grader` is `embedded`
    or `rerank`; `judge` is the chat model that was `asked` about so many passages.
    """

    block: str
    documents: tuple[Document, ...]
    search_performed: bool
    degraded: tuple[Degradation, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    standalone_question: str | None = None
    candidates: tuple[Candidate, ...] = ()
    closest: tuple[Document, ...] = ()
    reading: Reading | None = None
    grader: str | None = None
    judge: str | None = None
    asked: int = 0

    @property
    def hold_nothing(self) -> bool:
        """Tell if there is no evidence although all was searched, and all that was found had room."""
        return not self.documents and not any(lost.component in _UNSEEN for lost in self.degraded)


@dataclass(frozen=True, slots=True)
class RagContext:
    """The injected evidence, and how it was found. Times are in milliseconds.

    `memory` holds the exchanges that follow the evidence; None if the request did not ask for memory.
    `standalone_question` is what was searched for, if it differs from `query`. `mode` is how the workspace gets its
    evidence; `threshold` matters for `corrective` only. `closest` are the nearest passages where none is evidence. They
    are for people: the prompt has nothing of them. For `grader`, `judge` and `asked` see `Findings`.
    """

    query: str
    documents: tuple[Document, ...]
    search_performed: bool
    processing_time_ms: int
    verdict: Verdict
    threshold: float
    degraded: tuple[Degradation, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    memory: tuple[Document, ...] | None = None
    standalone_question: str | None = None
    mode: EvidenceMode = "corrective"
    closest: tuple[Document, ...] = ()
    grader: str | None = None
    judge: str | None = None
    asked: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The contract's JSON form."""
        graded = {"grader": self.grader, "judge": self.judge, "asked": self.asked}
        return {
            "query": self.query,
            **({} if self.standalone_question is None else {"standalone_question": self.standalone_question}),
            "documents": [_citation(document) for document in self.documents],
            **({"closest": [_citation(document) for document in self.closest]} if self.verdict == "none" else {}),
            "search_performed": self.search_performed,
            "processing_time_ms": self.processing_time_ms,
            "verdict": self.verdict,
            "threshold": self.threshold,
            **(graded if self.mode == "corrective" else {"mode": self.mode}),
            "degraded": [{"component": d.component, "reason": d.reason} for d in self.degraded],
            "timings_ms": {name: round(value, 2) for name, value in self.timings_ms.items()},
            **({} if self.memory is None else {"memory": [recalled(each) for each in self.memory]}),
        }


def recalled(passage: Document) -> dict[str, Any]:
    """The id and the time of the exchange that a passage belongs to."""
    metadata = passage.metadata
    at = moment_of(str(metadata.get("filename", "")), passage.content) or metadata.get("uploadTimestamp")
    return {"id": metadata.get("documentId", passage.id), "at": at}


def _citation(document: Document) -> dict[str, Any]:
    citation: dict[str, Any] = {
        "id": document.id,
        "title": document.title,
        "content": document.content,
        "source": document.source,
        "score": None if document.score is None else round(document.score, 4),
    }
    if document.score is None and document.similarity is not None:
        citation["similarity"] = round(document.similarity, 4)
    if document.url:
        citation["url"] = document.url
    if document.metadata:
        citation["metadata"] = dict(document.metadata)
    return citation
