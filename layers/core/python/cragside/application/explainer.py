"""The use case: a question in, the run of the graph on it out, with what spoke for each candidate."""

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cragside.application.enricher import Enriched, Enricher
from cragside.application.grading import Deadline, strip_places
from cragside.domain.evidence import Document
from cragside.domain.explanation import Explanation, Reasons, Strip
from cragside.domain.outcome import Candidate, Step, Watch
from cragside.domain.prompt import explained_question_in
from cragside.domain.reading import Reading
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.models import EMBEDDED_GRADER, MatchWords, RelevanceGrader


class Explainer:
    """Runs the graph as for a prompt with the command, and explains the run.

    `grader` is the embedded one: it rates the strips of passages. `tell_none` is that of `Enricher.enrich`. `timeout`
    bounds the run and its explanation.
    """

    def __init__(
        self,
        enricher: Enricher,
        grader: RelevanceGrader,
        matches: MatchWords,
        *,
        prefix: str,
        tell_none: bool,
        timeout: float,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._enricher = enricher
        self._grader = grader
        self._matches = matches
        self._prefix = prefix
        self._tell_none = tell_none
        self._timeout = timeout
        self._clock = clock

    async def explain(
        self,
        request: Mapping[str, Any],
        *,
        watch: Watch | None = None,
        workspace: str | None = None,
        memory: bool | None = None,
        end_user: str = "",
        timeout: float | None = None,  # noqa: ASYNC109 (a budget that steps share, not a cancellation)
    ) -> Explanation:
        """Tell what a request would get and why. The command in it is optional. Raises what `Enricher.enrich` raises.

        `watch` is called with each step when it ends.
        """
        deadline = self.deadline(timeout)
        run = WatchedRun(watch)
        enriched = await self._enricher.enrich(
            request,
            question=explained_question_in(request, self._prefix),
            workspace=workspace,
            memory=memory,
            end_user=end_user,
            tell_none=self._tell_none,
            timeout=deadline.remaining(),
            watch=run.note,
        )
        return await self.explained(enriched, run, deadline)

    def deadline(self, timeout: float | None = None) -> Deadline:
        """Return the time of a run and its explanation: that of the settings, `timeout` at most."""
        return Deadline(self._timeout if timeout is None else min(self._timeout, timeout), self._clock)

    async def explained(self, enriched: Enriched, run: "WatchedRun", deadline: Deadline) -> Explanation:
        """Return a run that was watched, with its explanation. Once the deadline is over, strips are left out."""
        context = enriched.rag_context
        assert context is not None  # noqa: S101 (the run had a question)
        reading = enriched.reading or Reading(context.standalone_question or context.query)
        identifier = enriched.request.get("id")
        return Explanation(
            id=identifier if isinstance(identifier, str) and identifier else str(uuid.uuid4()),
            request=enriched.request,
            context=context,
            steps=tuple(run.steps),
            candidates=enriched.candidates,
            reasons=[await self._reasons(reading, candidate, deadline) for candidate in enriched.candidates],
        )

    async def _reasons(self, reading: Reading, candidate: Candidate, deadline: Deadline) -> Reasons:
        await asyncio.sleep(0)  # others have their turn, and a run that was cancelled ends here
        document = candidate.document
        [words] = await self._matches(question := reading.asked_of(document.whole), [document])
        strip = await self._strip(question, document) if deadline.remaining() else None
        read = (word for word in reading.words if not set(words).isdisjoint(word.read.lower().split()))
        return Reasons(words, strip, (*read, *reading.read_in(document.whole)))

    async def _strip(self, question: str, document: Document) -> Strip:
        """Return the best strip of a passage. Without its title, which describes all of them."""
        text = document.content
        places = strip_places(text)
        pieces = [
            replace(document, id=f"{document.id}#{number}", content=text[start:end], title="")
            for number, (start, end) in enumerate(places)
        ]
        scores = await self._grader.grade(question, pieces)
        best = max(range(len(scores)), key=scores.__getitem__)
        start, end = places[best]
        return Strip(text[start:end], start, end, scores[best], EMBEDDED_GRADER)


class WatchedRun:
    """Keeps the steps of a run, and passes each on to `watch`."""

    def __init__(self, watch: Watch | None = None) -> None:
        self.steps: list[Step] = []
        self._watch = watch

    def note(self, step: Step) -> None:
        """Take a step that has ended."""
        self.steps.append(step)
        if self._watch is not None:
            self._watch(step)
