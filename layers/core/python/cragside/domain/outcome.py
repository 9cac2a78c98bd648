"""The outcome of enriching a prompt: the evidence, how it was found, and the `rag_context` of the agent contract."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cragside.domain.evidence import Document
from cragside.domain.exchange import moment_of
from cragside.domain.neutral import as_name
from cragside.domain.preferences import EvidenceMode
from cragside.domain.reading import Reading
from cragside.domain.verdict import Judgement, Verdict


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the graph that has ended: its measured milliseconds, its `facts`, and the components that failed."""

    name: str
    ms: float
    facts: Mapping[str, Any] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Its JSON form."""
        return {"name": self.name, "ms": round(self.ms, 3), **self.facts}


# Called with each step when it ends.
Watch = Callable[[Step], None]


# Why a candidate is not in the prompt: its score, better ones or others of its document took the places, or the token
# budget was used up.
Dropped = Literal["score", "limit", "room"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage or web result that was considered, with the `grader` that scored it.

    A `judgement` may have changed the score. The candidate was kept only with a score above `needed`; both are None
    where nothing is graded. `number` is that of its citation in the prompt, None if it was `dropped`.
    """

    document: Document
    grader: str | None
    needed: float | None
    number: int | None = None
    dropped: Dropped | None = None
    judgement: Judgement | None = None


def considered(
    local: Sequence[Document],
    web: Sequence[Document],
    *,
    graders: tuple[str | None, str],
    judgements: Mapping[str, Judgement],
    needed: tuple[float, float],
    best: Sequence[Document],
    packed: Sequence[Document],
) -> tuple[Candidate, ...]:
    """Tell what became of each local passage and web result.

    `graders` and `needed` are given for local passages and for web results. `best` are those whose score sufficed and
    that got a place, `packed` those in the prompt.
    """
    numbers = {document.id: number for number, document in reversed(list(enumerate(packed, start=1)))}
    placed = {document.id for document in best}
    # What is in the prompt may be marked as earlier than another passage.
    shown = {document.id: document.metadata for document in packed}

    def candidate(document: Document, grader: str | None, least: float) -> Candidate:
        number = numbers.get(document.id)
        dropped: Dropped | None = None
        if number is None:
            enough = (document.score or 0.0) > least
            dropped = "score" if not enough else "room" if document.id in placed else "limit"
        marked = replace(document, metadata=shown.get(document.id, document.metadata))
        return Candidate(marked, grader, least, number, dropped, judgements.get(document.id))

    return (
        *(candidate(document, graders[0], needed[0]) for document in local),
        *(candidate(document, graders[1], needed[1]) for document in web),
    )


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
        """Tell if all was searched, all that was found had room, and there is still no evidence."""
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
        """Return the contract's JSON form."""
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
    """Return the id and the time of the exchange that a passage belongs to."""
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


_noted: ContextVar[list[Degradation] | None] = ContextVar("left_out", default=None)


def leave_out(component: str, reason: str) -> None:
    """Note that the running search goes on without a component. Outside of `left_out`, nothing is noted."""
    noted = _noted.get()
    if noted is not None and component not in {each.component for each in noted}:
        noted.append(Degradation(component, reason))


@contextmanager
def left_out() -> Iterator[list[Degradation]]:
    """Yield a list of the components that searches in this block, and its tasks, go on without. It fills meanwhile."""
    noted: list[Degradation] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


# The most parts that a question is split into. The question itself is searched too.
MOST_PARTS = 4
# How many more candidates and places a question that asks for a list gets than another one.
CANDIDATES_OF_A_LIST, PLACES_OF_A_LIST = 2, 3
_LONGEST_THING = 60


@dataclass(frozen=True, slots=True)
class Part:
    """A question about one of several things. `named` is the thing if evidence has to name it, else "".

    Its passages are `graded_alone`, by this question, or else by the whole one.
    """

    question: str
    named: str = ""
    graded_alone: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a question, if it has two or more, and if it asks for a list."""

    parts: tuple[Part, ...] = ()
    a_list: bool = False

    @property
    def several(self) -> bool:
        """Tell if one passage may not be enough."""
        return self.a_list or bool(self.parts)


ONE_THING = Asked()


def nearest_question(found: Mapping[str, Sequence[Document]]) -> dict[str, list[Document]]:
    """Return the passages by the question that each has the highest score for. `found` has those of each question."""
    best: dict[str, tuple[str, Document]] = {}
    for question, documents in found.items():
        for document in documents:
            known = best.get(document.id)
            if known is None or (document.score or 0.0) > (known[1].score or 0.0):
                best[document.id] = question, document
    divided: dict[str, list[Document]] = {question: [] for question in found}
    for question, document in best.values():
        divided[question].append(document)
    return divided


def one_for_each(ranked: Sequence[Document], question_of: Mapping[str, str]) -> list[Document]:
    """Return the passages, best first, but the best one of each question before any second one.

    `question_of` has the question that each passage belongs to, by the passage's id. All others count as one more
    question.
    """
    leading: dict[str, Document] = {}
    for document in ranked:
        leading.setdefault(question_of.get(document.id, ""), document)
    first = {document.id for document in leading.values()}
    return sorted(ranked, key=lambda document: document.id not in first)


def nothing_on(things: Sequence[str]) -> Degradation:
    """Tell which things of a question no evidence names."""
    names = ", ".join(f'"{as_name(thing, _LONGEST_THING)}"' for thing in things)
    return Degradation("parts", f"The question asks about {names} too. No passage of the evidence names that.")
