"""Why a prompt got its evidence: the steps of a run, the candidates, and what spoke for each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cragside.domain.candidates import Candidate
from cragside.domain.document import Document, number_of
from cragside.domain.outcome import RagContext
from cragside.domain.reading import ReadWord
from cragside.domain.steps import Step

# Why a candidate is not in the prompt, in words.
DROPPED: Mapping[str, str] = {
    "score": "dropped: its score is too low",
    "limit": "dropped: others took the places",
    "room": "dropped: no room for it",
}


def what_to_try(mode: str, *, searched: bool) -> str:
    """Name what a person can do after a run in this mode without evidence. `searched`: the web was asked."""
    if mode == "off":
        return "The settings of this workspace say that prompts get no evidence."
    web = " Or set SEARXNG_HOST, so that the web is searched." if mode == "corrective" and not searched else ""
    return f"Ask with the words of the documents, or ingest documents that hold the answer.{web}"


@dataclass(frozen=True, slots=True)
class Strip:
    """A run of whole sentences in a passage, by its offsets in characters. `score` is that of the `grader`."""

    text: str
    start: int
    end: int
    score: float
    grader: str


@dataclass(frozen=True, slots=True)
class Reasons:
    """The question's words that a passage has, and its best strip (None if the time was over).

    `read` says which of the words the question writes otherwise.
    """

    words: tuple[str, ...]
    strip: Strip | None
    read: tuple[ReadWord, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A run on a question. `request` is what the model would get; `reasons` are in the order of the `candidates`."""

    id: str
    request: Mapping[str, Any]
    context: RagContext
    steps: Sequence[Step]
    candidates: Sequence[Candidate]
    reasons: Sequence[Reasons]

    def as_dict(self) -> dict[str, Any]:
        """The JSON form of `POST /v1/explain`."""
        context = self.context.as_dict()
        shared = ("threshold", "verdict", "search_performed", "degraded", "processing_time_ms")
        messages = self.request.get("messages")
        return {
            "id": self.id,
            "question": self.context.query,
            "standalone_question": self.context.standalone_question,
            "steps": [step.as_dict() for step in self.steps],
            "candidates": [
                _candidate(each, reasons, self.context.documents)
                for each, reasons in zip(self.candidates, self.reasons, strict=True)
            ],
            "mode": self.context.mode,
            **{name: context[name] for name in shared},
            **{name: context[name] for name in ("closest", "memory") if name in context},
            "prompt": self.request["prompt"] if messages is None else None,
            "messages": messages,
        }


def _candidate(candidate: Candidate, reasons: Reasons, packed: Sequence[Document]) -> dict[str, Any]:
    document, strip = candidate.document, reasons.strip
    metadata = document.metadata
    return {
        "id": document.id,
        "title": document.title,
        "source": document.source,
        "content": document.content,
        "url": document.url,
        "filename": metadata.get("filename"),
        "document": metadata.get("documentId"),
        "page": metadata.get("page"),
        "section": metadata.get("section"),
        "date": metadata.get("date"),
        "earlier_than": number_of(metadata.get("earlierThan"), packed),
        "score": None if document.score is None else round(document.score, 4),
        "similarity": _cosine(document),
        "needed": candidate.needed,
        "kept": candidate.number is not None,
        "number": candidate.number,
        "dropped": candidate.dropped,
        "reasons": {
            "words": list(reasons.words),
            "read": [{"asked": word.asked, "read": word.read} for word in reasons.read],
            "strip": None
            if strip is None
            else {
                "text": strip.text,
                "start": strip.start,
                "end": strip.end,
                "score": round(strip.score, 4),
                "grader": strip.grader,
            },
            "grader": candidate.grader,
            "judgement": None
            if (judged := candidate.judgement) is None
            else {"model": judged.model, "answers": round(judged.probability, 4), "grade": round(judged.grade, 4)},
        },
    }


def _cosine(document: Document) -> float | None:
    """The similarity of a passage that nobody graded."""
    return None if document.score is not None or document.similarity is None else round(document.similarity, 4)
