"""An explanation as Markdown, for chat clients. Texts of documents are in code, so that their mark-up stays text."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cragside.domain.candidates import Candidate
from cragside.domain.explanation import DROPPED, Explanation, Reasons, what_to_try
from cragside.domain.neutral import as_name
from cragside.domain.steps import Step

_LONGEST_NAME = 300
_TICKS = re.compile("`+")


def step_line(step: Step) -> str:
    """A step as an item of a list."""
    facts = [f"{name} {in_line(str(value))}" for name, value in step.facts.items() if value is not None]
    return f"- {step.name}: {step.ms:.1f} ms{''.join(f', {each}' for each in facts)}\n"


def rest_of(explanation: Explanation) -> Iterator[str]:
    """An explanation without its steps, a piece for each candidate."""
    context = explanation.context
    searched = context.standalone_question
    yield f"\n**Verdict: {context.verdict}** for {in_line(context.query)}"
    yield f", searched as {in_line(searched)}" if searched else ""
    corrective = context.mode == "corrective"
    yield f". The threshold is {context.threshold:g}.\n" if corrective else f". Mode: {context.mode}.\n"
    for degradation in context.degraded:
        yield f"\nDegraded: {degradation.component}: {in_line(degradation.reason)}\n"
    for number, (candidate, reasons) in enumerate(zip(explanation.candidates, explanation.reasons, strict=True), 1):
        yield _candidate(number, candidate, reasons)
    if context.verdict == "none":
        yield f"\n{what_to_try(context.mode, searched=context.search_performed)}\n"
    yield f"\nThe model would get:\n\n{in_block(_prompt(explanation.request))}\n"


def in_line(text: str) -> str:
    """A text as code within a line."""
    line = as_name(text, _LONGEST_NAME) or " "
    fence = "`" * (_longest_run(line) + 1)
    return f"{fence} {line} {fence}"


def in_block(text: str) -> str:
    """A text as a block of code, which it cannot end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)


def _candidate(number: int, candidate: Candidate, reasons: Reasons) -> str:
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
