"""Answers questions with a model from graded evidence, and checks the citations of answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from cragside.application.enricher import Enricher
from cragside.domain.citations import Cited, citations_in, marks_in
from cragside.domain.errors import DeadlineExceeded, ServiceUnavailable, ValidationError
from cragside.domain.faults import Fault
from cragside.domain.outcome import RagContext
from cragside.domain.query import question_of
from cragside.domain.token_counts import most_tokens
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.models import ModelHost


@dataclass(frozen=True, slots=True)
class Support:
    """The share of a sentence that a passage has (0..1), and the decision if that suffices."""

    score: float
    supported: bool


# Tells if a passage supports a sentence, given the sentence, the title and the text. It may run in any thread.
Judge = Callable[[str, str, str], Support]
_UNKNOWN = Support(0.0, supported=False)
_MOST_CITATIONS = 1000
# Seconds for one answer: others wait for their turn meanwhile.
_LONGEST_CHECK = 3.0


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage that an answer may cite."""

    content: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """A citation, and whether its passage supports its claim. A number without a passage supports nothing."""

    cited: Cited
    support: Support


class CitationChecker:
    """Checks citations in a thread, one answer at a time, for 3 seconds each.

    An answer waits `timeout` seconds at most for its turn and its check: first for others of the same `holder`, then
    for one of each other holder.
    """

    def __init__(self, judge: Judge, *, timeout: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._judge = judge
        self._timeout = timeout
        self._clock = clock
        self._turn = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(
        self, answer: str, passages: Mapping[int, CitedPassage], *, holder: str = ""
    ) -> list[CheckedCitation]:
        """Check the citations of an answer, in order. Raises `DeadlineExceeded`, and `ValidationError` over 1,000."""
        try:
            own = self._turns.setdefault(holder, asyncio.Lock())
            async with asyncio.timeout(self._timeout), own, self._turn:
                ends = self._clock.monotonic() + min(_LONGEST_CHECK, self._timeout)
                return await asyncio.to_thread(self._checked, answer, passages, ends)
        except TimeoutError as error:
            raise DeadlineExceeded("The citations could not be checked in time.") from error

    def _checked(self, answer: str, passages: Mapping[int, CitedPassage], ends: float) -> list[CheckedCitation]:
        known: dict[tuple[str, int], Support] = {}
        checked = []
        if (count := sum(1 for _ in marks_in(answer))) > _MOST_CITATIONS:
            raise ValidationError(f"The answer has {count:,} citations; {_MOST_CITATIONS:,} can be checked.")
        for cited in citations_in(answer):
            if self._clock.monotonic() > ends:
                raise TimeoutError
            key = cited.claim, cited.number
            if key not in known:
                passage = passages.get(cited.number)
                known[key] = self._judge(cited.claim, passage.title, passage.content) if passage else _UNKNOWN
            checked.append(CheckedCitation(cited, known[key]))
        return checked


# An answer has so many tokens at most: some models repeat themselves without end, and hosts charge for it.
_LONGEST_ANSWER = 4096
# Enough for most answers, where the model's window is small.
_ANSWER_TOKENS = 1024
# A token of evidence by our estimate is at most so many of the model's.
_MARGIN = 1.5

Message = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The evidence for a question, and the answer as a model writes it.

    Without a model, or if its host fails before the first piece, there are no `pieces`. `reason` then says why and what
    to do.
    """

    context: RagContext
    model: str | None = None
    pieces: AsyncIterator[str] | None = None
    reason: str = ""


class Answerer:
    """Answers questions with a model of `host`, from evidence of at most `evidence_tokens` tokens.

    `tell_none` is that of `Enricher.enrich`.
    """

    def __init__(
        self, enricher: Enricher, host: ModelHost, *, prefix: str, tell_none: bool, evidence_tokens: int
    ) -> None:
        self._enricher = enricher
        self._host = host
        self._prefix = prefix
        self._tell_none = tell_none
        self._evidence_tokens = evidence_tokens

    async def answer(
        self, question: str, *, history: Sequence[Message] = (), model: str | None = None, workspace: str
    ) -> Answer:
        """Answer a question after the messages of a conversation. The command before the question is optional.

        Evidence is found even where no model can write an answer. Raises what `Enricher.enrich` raises, and
        `ServiceUnavailable("ollama", ...)` when the model that was named cannot be used.
        """
        asked = question if question_of(question, self._prefix) is not None else f"{self._prefix} {question}"
        messages = [*history, {"role": "user", "content": asked}]
        writer, reason = None, ""
        try:
            writer = await self._host.writer(model)
        except ServiceUnavailable as error:
            if model is not None:
                raise
            reason = _reason(error)
        request = {"messages": messages, **({"model": writer} if writer else {})}
        longest = await self._host.context_length(writer) if writer else None
        answer_tokens = _answer_tokens(longest)
        tokens = self._room(longest, answer_tokens, messages)
        enriched = await self._enricher.enrich(
            request, workspace=workspace, tell_none=self._tell_none, evidence_tokens=tokens
        )
        assert enriched.rag_context is not None  # noqa: S101 (the command is there)
        if writer is not None:
            pieces = self._host.write(writer, enriched.request["messages"], max_tokens=answer_tokens)
            try:
                return Answer(enriched.rag_context, writer, _from(await anext(pieces, ""), pieces))
            except ServiceUnavailable as error:
                reason = _reason(error)
        return Answer(enriched.rag_context, reason=reason)

    def _room(self, longest: int | None, answer_tokens: int, messages: Sequence[Message]) -> int:
        """Return tokens of evidence that fit into the model's window besides the conversation and the answer."""
        if longest is None:
            return self._evidence_tokens
        taken = sum(most_tokens(message["content"]) for message in messages) + answer_tokens
        return max(0, min(self._evidence_tokens, int((longest - taken) / _MARGIN)))


def _answer_tokens(longest: int | None) -> int:
    """Tokens for the answer in a window of `longest` tokens. Hosts refuse more than fits beside the prompt."""
    if longest is None:
        return _LONGEST_ANSWER
    return min(_LONGEST_ANSWER, max(longest // 8, min(_ANSWER_TOKENS, longest // 4)))


async def _from(first: str, others: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for piece in others:
        yield piece


def _reason(error: ServiceUnavailable) -> str:
    return str(Fault.of(error.component, error, error.message_with_place))
