"""Grades passages: the embedded grader first, then a chat model where none passes, within the time of the request."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Protocol, TypeVar

from cachetools import TTLCache

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.faults import counted
from cragside.domain.outcome import Degradation
from cragside.domain.reading import Reading
from cragside.domain.verdict import Judgement, may_pass
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.models import RelevanceGrader


class Deadline:
    """Counts down from `seconds`. Each step may take a share of the remaining time."""

    def __init__(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._ends = self._started + seconds

    def elapsed_ms(self) -> float:
        """Milliseconds since the start."""
        return (self._clock.monotonic() - self._started) * 1000

    def remaining(self) -> float:
        """Remaining seconds, never below 0."""
        return max(0.0, self._ends - self._clock.monotonic())

    def share(self, fraction: float) -> float:
        """Return the seconds of a step that gets this fraction of the remaining time."""
        return self.remaining() * fraction


GAP = " … "
# The least bytes of a strip (17 English words, 33 Chinese characters): a grader cannot judge shorter texts.
_SHORTEST_STRIP = 100
_MOST_STRIPS = 48
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]{0,2}\s+(?=\S)|(?<=[。！？])|\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+[.)]))")
# A strip is kept if it has at least this share of the best score in its passage. The threshold was calibrated on longer
# texts, whose scores are higher, but scores of strips can be compared with each other.
_SHARE_OF_BEST = 0.3


def strips_of(text: str) -> list[str]:
    """Return the text as at most 48 runs of whole sentences, each of about 17 words or more."""
    return [text[start:end] for start, end in strip_places(text)]


def strip_places(text: str) -> list[tuple[int, int]]:
    """Give the offsets of each strip of the text, without the blanks around it."""
    least = max(_SHORTEST_STRIP, _size(text) // _MOST_STRIPS + 1)
    places: list[tuple[int, int]] = []
    start = begun = size = 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        size += _size(text[begun:end])
        begun = end
        if size >= least:
            places.append(_trimmed(text, start, end))
            start, size = end, 0
    rest = _trimmed(text, start, len(text))
    if rest[0] == rest[1]:
        return places
    if places and size < least // 2:
        places[-1] = (places[-1][0], rest[1])
    else:
        places.append(rest)
    return places


async def compressed(reading: Reading, documents: Sequence[Document], grader: RelevanceGrader) -> list[Document]:
    """Return the documents with only their relevant strips, joined by ` … ` at gaps. Scores stay.

    Each keeps at least its best strip. One call of `grader` rates all strips, so the grader should be a cheap one. It
    gets no titles: they describe the whole passage and would make the scores of its strips alike.
    """
    split = [strips_of(document.content) for document in documents]
    pieces = [
        replace(document, id=f"{document.id}#{number}", content=strip, title="")
        for document, strips in zip(documents, split, strict=True)
        for number, strip in enumerate(strips)
        if len(strips) > 1
    ]
    scores = iter(await grader.grade_read(reading, pieces) if pieces else ())
    return [
        replace(document, content=_kept(strips, [next(scores) for _ in strips])) if len(strips) > 1 else document
        for document, strips in zip(documents, split, strict=True)
    ]


async def best_strips(question: str, document: Document, grader: RelevanceGrader, *, characters: int) -> Document:
    """Return the document with its best strips in their order, as many as have room in so many characters.

    A strip that is longer is cut.
    """
    if len(document.content) <= characters:
        return document
    strips = strips_of(document.content)
    scores = await grader.grade(question, [Document(str(n), strip, document.source) for n, strip in enumerate(strips)])
    best = sorted(range(len(strips)), key=lambda number: -scores[number])
    sizes = accumulate(len(strips[number]) for number in best)
    kept = [number for number, size in zip(best, sizes, strict=True) if size <= characters] or best[:1]
    return replace(document, content=_joined(strips, sorted(kept))[:characters])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the part of the text without the blanks at its ends."""
    part = text[start:end]
    begin = start + len(part) - len(part.lstrip())
    return begin, max(begin, start + len(part.rstrip()))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _kept(strips: Sequence[str], scores: Sequence[float]) -> str:
    bound = max(scores) * _SHARE_OF_BEST
    return _joined(strips, [number for number, score in enumerate(scores) if score >= bound])


def _joined(strips: Sequence[str], kept: Sequence[int]) -> str:
    text = strips[kept[0]]
    for before, number in pairwise(kept):
        text += ("\n" if number == before + 1 else GAP) + strips[number]
    return text


class PassageJudge(Protocol):
    """Asks a chat model if a passage answers a question. The model sees no other passage, and reads all of this one."""

    async def ready(self, requested: str | None) -> str | None:
        """Return the chat model that judges, once it is loaded; None if there is none, or only one that is too small,
        or that lately gave no judgement.

        `requested` is the model of the request. Raises `ServiceUnavailable("grader", ...)`.
        """

    def seconds(self, model: str) -> float:
        """Return the seconds that the model needed for its last judgement; 0.0 if that is not known, or long ago."""

    async def probability(self, model: str, question: str, passage: Document) -> float:
        """Return the probability (0..1) that the passage answers the question.

        Raises `ServiceUnavailable("grader", ...)`.
        """

    def try_again(self, model: str, question: str, passage: Document) -> None:
        """Judge a passage beside the request, if that was not tried just now: a slow model may be faster again."""


T = TypeVar("T")

# The share of the remaining time that grading gets at most: a rewrite and a search may follow.
GRADE_SHARE = 0.4
# A model is asked about so many passages of a question at most. Later ones seldom answered where earlier ones did not.
MOST_ASKED = 3
# A model that has no time for two passages is not asked at all: one judgement seldom settles a question.
LEAST_ASKED = 2
JUDGED_CHARACTERS = 700
_WARNED_SECONDS = 600.0

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Graded:
    """The documents with their relevance, best first, and how they got it.

    `grader` gave all grades; `judgements` of the chat model `judge`, by the id of the passage, moved some of them.
    `asked` counts its calls.
    """

    documents: list[Document]
    grader: str
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    judge: str | None = None
    asked: int = 0
    degraded: Sequence[Degradation] = ()


class Grading:
    """Grades with `grader`, or with `embedded` if that fails. `judge` is asked where no passage passes."""

    def __init__(
        self,
        grader: RelevanceGrader,
        embedded: RelevanceGrader,
        judge: PassageJudge | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._grader = grader
        self._embedded = embedded
        self._judge = judge
        self._clock = clock
        self._warned: TTLCache[str, bool] = TTLCache(64, _WARNED_SECONDS, timer=clock.monotonic)

    async def graded(
        self,
        reading: Reading,
        documents: Sequence[Document],
        *,
        seconds: float,
        threshold: float,
        model: str | None = None,
        before_judging: Callable[[], None] | None = None,
    ) -> Graded:
        """Grade documents within `seconds`. Evidence has to exceed `threshold`. `model` is the request's chat model.

        `before_judging` is called before each judgement of a chat model, which takes longest, and only then.
        """
        deadline = Deadline(seconds, self._clock)
        degraded: list[Degradation] = []
        try:
            grader = self._grader
            scores = await within(seconds, "grader", grader.grade_read(reading, documents))
        except ServiceUnavailable as error:
            grader = self._embedded
            scores = await grader.grade_read(reading, documents)
            degraded = [Degradation("grader", f"{error.message.rstrip('.')}. The embedded grader stepped in.")]
        graded = Graded(by_relevance(documents, scores), grader.name, degraded=degraded)
        if self._judge is None or max(scores, default=1.0) > threshold:
            return graded
        return await self._judged(self._judge, reading, graded, deadline, threshold, model, before_judging)

    async def _judged(
        self,
        judge: PassageJudge,
        reading: Reading,
        graded: Graded,
        deadline: Deadline,
        threshold: float,
        requested: str | None,
        before_judging: Callable[[], None] | None,
    ) -> Graded:
        """Ask the model about one passage after the other, best first.

        One that passes does not end it: a passage that talked the model into yes would keep out the right one.
        """
        judgements: dict[str, Judgement] = {}
        degraded, asked, model = list(graded.degraded), 0, None
        try:
            model = await within(deadline.remaining(), "grader", judge.ready(requested))
            if model is None:
                return graded
            for document in graded.documents[:MOST_ASKED]:
                grade = document.score or 0.0
                if not may_pass(grade, threshold):
                    break
                question = reading.asked_of(document.whole)
                short = await best_strips(question, document, self._embedded, characters=JUDGED_CHARACTERS)
                needed = judge.seconds(model)
                if needed * (1 if asked else LEAST_ASKED) > deadline.remaining():
                    if not asked:
                        judge.try_again(model, question, short)
                        degraded.append(self._too_slow(model, needed))
                    break
                if before_judging is not None:
                    before_judging()
                asked += 1
                judging = judge.probability(model, question, short)
                probability = await within(deadline.remaining(), "grader", judging)
                judgements[document.id] = Judgement(model, probability, grade)
        except ServiceUnavailable as error:
            then = "The judgements before it count." if judgements else "The embedded grader decided alone."
            degraded.append(Degradation("grader", f"{error.message.rstrip('.')}. {then}"))
        if contradicting := [each for each in judgements.values() if each.contradicts]:
            degraded.append(_contradiction(contradicting))
        return replace(
            graded,
            documents=by_score([_with(document, judgements.get(document.id)) for document in graded.documents]),
            judgements=judgements,
            judge=model if asked else None,
            asked=asked,
            degraded=degraded,
        )

    def _too_slow(self, model: str, seconds: float) -> Degradation:
        reason = f"{model} takes {seconds:.1f} s or more to judge a passage, and there was no time for two."
        if model not in self._warned:
            self._warned[model] = True
            _logger.warning("%s It is not asked until it is faster.", reason)
        return Degradation("grader", f"{reason} The embedded grader decided alone.")


def _with(document: Document, judgement: Judgement | None) -> Document:
    return document if judgement is None else document.graded(judgement.blend)


def _contradiction(judgements: Sequence[Judgement]) -> Degradation:
    model, passages = judgements[0].model, counted(len(judgements), "passage")
    reason = f"{model} and the embedded grader contradict each other on {passages}. Both grades count."
    return Degradation("grader", reason)


def by_relevance(documents: Sequence[Document], scores: Sequence[float]) -> list[Document]:
    """Return the documents with these scores, best first; equal ones stay in their order."""
    return by_score([document.graded(score) for document, score in zip(documents, scores, strict=True)])


def by_score(documents: Sequence[Document]) -> list[Document]:
    """Return the graded documents, best first; equal ones stay in their order."""
    return sorted(documents, key=lambda document: -(document.score or 0.0))


async def within(seconds: float, component: str, step: Awaitable[T]) -> T:
    """Return the result of a step. If its time runs out, the component counts as unavailable."""
    try:
        async with asyncio.timeout(seconds):
            return await step
    except TimeoutError as error:
        raise ServiceUnavailable(component, f"No answer within {seconds:.1f} s.") from error
