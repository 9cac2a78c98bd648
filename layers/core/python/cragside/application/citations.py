"""The use case: an answer and its evidence in, what each citation is worth out."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass

from cragside.domain.citations import Cited, citations_in
from cragside.domain.errors import DeadlineExceeded
from cragside.ports.support_judge import Support, SupportJudge

_UNKNOWN = Support(0.0, supported=False)


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
    """Checks citations in a thread, one answer at a time, within `timeout` seconds."""

    def __init__(self, judge: SupportJudge, *, timeout: float) -> None:
        self._judge = judge
        self._timeout = timeout
        self._turn = asyncio.Semaphore(1)

    async def check(self, answer: str, passages: Mapping[int, CitedPassage]) -> list[CheckedCitation]:
        """Each citation of an answer in its order. Raises `DeadlineExceeded`."""
        ends = time.monotonic() + self._timeout
        try:
            async with asyncio.timeout(self._timeout), self._turn:
                return await asyncio.to_thread(self._checked, answer, passages, ends)
        except TimeoutError as error:
            raise DeadlineExceeded("The citations could not be checked in time.") from error

    def _checked(self, answer: str, passages: Mapping[int, CitedPassage], ends: float) -> list[CheckedCitation]:
        known: dict[tuple[str, int], Support] = {}
        checked = []
        for cited in citations_in(answer):
            if time.monotonic() > ends:
                raise TimeoutError
            key = cited.claim, cited.number
            if key not in known:
                passage = passages.get(cited.number)
                known[key] = (
                    self._judge.judge(cited.claim, title=passage.title, text=passage.content) if passage else _UNKNOWN
                )
            checked.append(CheckedCitation(cited, known[key]))
        return checked
