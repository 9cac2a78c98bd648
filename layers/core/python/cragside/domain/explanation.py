"""Explains why a prompt got its evidence, as JSON and as Markdown."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cragside.domain.evidence import Document, number_of
from cragside.domain.neutral import as_name
from cragside.domain.outcome import Candidate, RagContext, Step
from cragside.domain.reading import ReadWord

# Why a candidate is not in the prompt, in words.
DROPPED: Mapping[str, str] = {
    "score": "dropped: its score is too low",
    "limit": "dropped: others took the places",
    "room": "dropped: no room for it",
}


def what_to_try(mode: str, *, searched: bool) -> str:
    """Say what a person can try after a run in this mode found no evidence. `searched`: the web was asked."""
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
    """The question's words that a passage has, and its best strip (None if there was no time to look for it).

    `read` has those of the words for which the documents use other words.
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
        """Return the JSON form of `POST /v1/explain`."""
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
    """Return the similarity of a passage that nobody graded."""
    return None if document.score is not None or document.similarity is None else round(document.similarity, 4)


_LONGEST_NAME = 300
_TICKS = re.compile("`+")


def step_line(step: Step) -> str:
    """Return a step as an item of a list."""
    facts = [f"{name} {in_line(str(value))}" for name, value in step.facts.items() if value is not None]
    return f"- {step.name}: {step.ms:.1f} ms{''.join(f', {each}' for each in facts)}\n"


def rest_of(explanation: Explanation) -> Iterator[str]:
    """Yield an explanation without its steps, a piece for each candidate."""
    context = explanation.context
    searched = context.standalone_question
    yield f"\n**Verdict: {context.verdict}** for {in_line(context.query)}"
    yield f", searched as {in_line(searched)}" if searched else ""
    corrective = context.mode == "corrective"
    yield f". The threshold is {context.threshold:g}.\n" if corrective else f". Mode: {context.mode}.\n"
    for degradation in context.degraded:
        yield f"\nDegraded: {degradation.component}: {in_line(degradation.reason)}\n"
    for number, (candidate, reasons) in enumerate(zip(explanation.candidates, explanation.reasons, strict=True), 1):
        yield _candidate_line(number, candidate, reasons)
    if context.verdict == "none":
        yield f"\n{what_to_try(context.mode, searched=context.search_performed)}\n"
    yield f"\nThe model would get:\n\n{in_block(_prompt(explanation.request))}\n"


def in_line(text: str) -> str:
    """Return a text as code within a line."""
    line = as_name(text, _LONGEST_NAME) or " "
    fence = "`" * (_longest_run(line) + 1)
    return f"{fence} {line} {fence}"


def in_block(text: str) -> str:
    """Return a text as a block of code, which it cannot end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)


def _candidate_line(number: int, candidate: Candidate, reasons: Reasons) -> str:
    document = candidate.document
    fate = DROPPED[candidate.dropped] if candidate.dropped else f"kept as [{candidate.number}]"
    title = in_line(document.title or document.id)
    lines = [f"\n**{number}.** {title} ({document.source}), {_rated(candidate)}: {fate}\n"]
    place = [document.url, document.metadata.get("filename")]
    place += [
        f"{name} {document.metadata[name]}" for name in ("page", "section", "date") if document.metadata.get(name)
    ]
    lines += [f"- from {in_line(', '.join(str(each) for each in place if each))}\n"] if any(place) else []
    lines += [f"- words {in_line(', '.join(reasons.words))}\n"] if reasons.words else []
    if reasons.strip is not None:
        lines.append(f"- best strip, {reasons.strip.score:.2f} by the embedded grader:\n\n")
        lines.append(f"{in_block(reasons.strip.text)}\n")
    return "".join(lines)


def _rated(candidate: Candidate) -> str:
    document = candidate.document
    if candidate.needed is None:
        return "no score" if document.similarity is None else f"cosine {document.similarity:.2f}"
    score = "no score" if document.score is None else f"{document.score:.2f}"
    judged = f" and {in_line(candidate.judgement.model)}" if candidate.judgement is not None else ""
    return f"{score} of {candidate.needed:g} by {in_line(candidate.grader or 'nobody')}{judged}"


def _prompt(request: Mapping[str, Any]) -> str:
    messages = request.get("messages")
    if messages is None:
        return str(request["prompt"])
    return "\n\n".join(f"{message.get('role')}: {message.get('content')}" for message in messages)
