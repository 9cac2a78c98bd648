"""Judges whether a passage supports a sentence that cites it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakValueDictionary

from cragside.domain.citation_marks import marks_in
from cragside.domain.citations import Cited, citations_in
from cragside.domain.errors import DeadlineExceeded, ValidationError
from cragside.ports.clock import SYSTEM_CLOCK, Clock


@dataclass(frozen=True, slots=True)
class Support:
    """How much of a sentence a passage has (0..1), and whether that suffices."""

    score: float
    supported: bool


class SupportJudge(Protocol):
    """Compares a sentence with a passage. It takes milliseconds, and may run in any thread."""

    def judge(self, sentence: str, *, title: str, text: str) -> Support:
        """Whether the passage, title included, supports the sentence."""


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

    def __init__(self, judge: SupportJudge, *, timeout: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._judge = judge
        self._timeout = timeout
        self._clock = clock
        self._turn = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(
        self, answer: str, passages: Mapping[int, CitedPassage], *, holder: str = ""
    ) -> list[CheckedCitation]:
        """Each citation of an answer in its order. Raises `DeadlineExceeded`, and `ValidationError` over 1,000."""
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
                known[key] = (
                    self._judge.judge(cited.claim, title=passage.title, text=passage.content) if passage else _UNKNOWN
                )
            checked.append(CheckedCitation(cited, known[key]))
        return checked
