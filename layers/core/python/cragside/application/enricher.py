"""The use case: add evidence to a request that begins with `/rag`."""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cragside.application.grading import Deadline
from cragside.application.memory import Memory, Recollection
from cragside.application.preferences import WorkspacePreferences
from cragside.application.single_flight import SingleFlight
from cragside.domain.context import CountTokens
from cragside.domain.errors import CragsideError, ServiceUnavailable, ValidationError
from cragside.domain.names import end_user_name, workspace_name
from cragside.domain.outcome import Candidate, Degradation, Findings, RagContext, Step, Watch
from cragside.domain.preferences import PLAIN, EvidenceMode, Preferences, instruction_of, nothing_found
from cragside.domain.prompt import ChatTurn, earlier_turns, inject, question_in
from cragside.domain.query import Query, ask
from cragside.domain.reading import Reading
from cragside.domain.token_counts import stated_window
from cragside.domain.verdict import DEFAULT_THRESHOLD, verdict_of
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.telemetry import Tracer

if TYPE_CHECKING:
    from cragside.store.workspaces import Workspaces

# Memory gets this share of the time that is left after the evidence.
_MEMORY_SHARE = 0.8
# The preferences of a workspace are at hand, or one read away.
_PREFERENCES_SHARE = 0.1
# The version of the documents is one read away, and is asked for only where the same question is under way.
_VERSION_SHARE = 0.1
# Recording a query takes milliseconds, and nobody waits longer for it.
_REMEMBER_SECONDS = 2.0
_KINDS = {str: "a string", dict: "an object", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class EvidenceRequest:
    """A question that wants evidence, and how it wants it.

    Passages above `threshold` suffice, and `max_documents` are taken at most, where the mode has such limits.
    `evidence_tokens` limits the evidence with its `instruction`. `compress` reduces it to its relevant strips. `turns`
    are the conversation before the question, oldest first. `watch` is called with each step when it ends, and the
    findings have the candidates then. Requests are equal if they ask for the same evidence, whenever they have to have
    it and whoever watches.
    """

    question: str
    workspace: str
    deadline: Deadline = field(compare=False)
    evidence_tokens: int
    model: str | None = None
    threshold: float = DEFAULT_THRESHOLD
    max_documents: int = 5
    instruction: str = PLAIN
    compress: bool = False
    turns: tuple[ChatTurn, ...] = ()
    watch: Watch | None = field(default=None, compare=False)


class EvidenceFinder(Protocol):
    """Finds evidence in one of the modes; the `crag` package implements the corrective one."""

    async def find(self, request: EvidenceRequest) -> Findings:
        """Find evidence, and pack it behind its instruction. Raises only configuration errors."""


@dataclass(frozen=True, slots=True)
class Enriched:
    """A request for the model. `rag_context` is None if the request did not ask for evidence.

    `candidates` are all that were considered; () for a run that nobody watched. For `reading` see `Findings`.
    """

    request: dict[str, Any]
    rag_context: RagContext | None
    candidates: tuple[Candidate, ...] = ()
    reading: Reading | None = None


class Enricher:
    """Adds evidence to requests that begin with the command. Other requests stay unchanged."""

    def __init__(
        self,
        finders: Mapping[EvidenceMode, EvidenceFinder],
        workspaces: "Workspaces",
        preferences: WorkspacePreferences,
        *,
        prefix: str,
        default_workspace: str,
        timeout: float,
        fail_mode: Literal["open", "closed"],
        question_limit: int,
        evidence_tokens: int,
        memory: Callable[[], Memory] | None = None,
        recalls: bool = False,
        count_tokens: CountTokens = len,
        tracer: Tracer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._finders = finders
        self._workspaces = workspaces
        self._preferences = preferences
        self._prefix = prefix
        self._default_workspace = default_workspace
        self._timeout = timeout
        self._fail_mode = fail_mode
        self._question_limit = question_limit
        self._evidence_tokens = evidence_tokens
        self._memory = memory
        self._recalls = recalls
        self._count_tokens = count_tokens
        self._tracer = tracer
        self._clock = clock
        self._finding: SingleFlight[Findings] = SingleFlight()

    async def enrich(
        self,
        request: Mapping[str, Any],
        *,
        question: str | None = None,
        workspace: str | None = None,
        persona: str | None = None,
        memory: bool | None = None,
        tell_none: bool = False,
        end_user: str = "",
        evidence_tokens: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (a budget that nodes share, not a cancellation)
        watch: Watch | None = None,
    ) -> Enriched:
        """Return the request with evidence for its question, within `timeout` seconds and the configured time budget.

        `question` is that of the request, if the caller has read it already. `persona`, `memory` and `tell_none` (tell
        the model where there is no evidence) are defaults for the fields of the request. `end_user`, else the field
        `user_id`, is the user whose exchanges may come. `watch` is called with each step when it ends. Raises
        `ValidationError` for fields of a wrong type, an unknown persona, and a missing or overlong question. Raises
        `ConfigurationError`, and in fail mode `closed` `ServiceUnavailable` if neither the knowledge base nor the web
        answers.
        """
        if request.get("prompt") is None and request.get("messages") is None:
            raise ValidationError("The request needs a prompt (string) or messages (list).", field="prompt")
        question = question_in(request, self._prefix) if question is None else question
        if question is None:
            return Enriched(dict(request), None)
        deadline = Deadline(self._timeout if timeout is None else min(self._timeout, timeout), self._clock)
        query = self._query(request, question, workspace)
        wants_memory = _wish(request, "memory", memory, self._recalls)
        tokens = self._evidence_tokens if evidence_tokens is None else evidence_tokens
        with nullcontext() if self._tracer is None else self._tracer.run() as trace:
            enriched = await self._enriched(
                request,
                query,
                deadline,
                persona=persona,
                wants_memory=wants_memory,
                tell_none=_wish(request, "tell_none", tell_none),
                end_user=end_user or end_user_name(request.get("user_id")),
                tokens=tokens,
                watch=watch if trace is None else _both(trace.step, watch),
            )
            if trace is not None and enriched.rag_context is not None:
                trace.found(enriched.rag_context)
            return enriched

    async def _enriched(
        self,
        request: Mapping[str, Any],
        query: Query,
        deadline: Deadline,
        *,
        persona: str | None,
        wants_memory: bool,
        tell_none: bool,
        end_user: str,
        tokens: int,
        watch: Watch | None,
    ) -> Enriched:
        preferred, outdated = await self._preferences.at_hand(
            query.workspace, seconds=deadline.share(_PREFERENCES_SHARE)
        )
        persona = _optional(request, "persona", str) or persona or preferred.persona
        wanted = EvidenceRequest(
            query.text,
            query.workspace,
            deadline,
            tokens,
            model=_optional(request, "model", str),
            threshold=preferred.threshold,
            max_documents=preferred.max_documents,
            instruction=instruction_of(persona),
            compress=bool(_optional(request, "compress", bool)),
            turns=earlier_turns(request, self._prefix),
            watch=watch,
        )
        findings = await self._found(wanted, preferred)
        self._refuse_blindness(findings, preferred.mode)
        block = findings.block
        if tell_none and findings.hold_nothing and preferred.mode != "off":
            sentence = nothing_found(persona)
            block = sentence if self._count_tokens(sentence) <= tokens else ""
        recollection = None
        if wants_memory and preferred.mode != "off":
            left = tokens - (self._count_tokens(block) if block else 0)
            recollection = await self._recollected(query, findings, deadline, left, end_user, watch)
        lost = (*findings.degraded, *(recollection.degraded if recollection else ()))
        context = RagContext(
            query=query.text,
            documents=findings.documents,
            search_performed=findings.search_performed,
            processing_time_ms=round(deadline.elapsed_ms()),
            verdict=verdict_of(findings.documents),
            threshold=preferred.threshold,
            degraded=(*lost, Degradation("settings", outdated)) if outdated else lost,
            timings_ms=findings.timings_ms,
            memory=recollection.documents if recollection else None,
            standalone_question=findings.standalone_question,
            mode=preferred.mode,
            closest=findings.closest,
            grader=findings.grader,
            judge=findings.judge,
            asked=findings.asked,
        )
        blocks = (block, recollection.text if recollection else "")
        enhanced = inject(request, "\n\n".join(filter(None, blocks)), query.text)
        await self._remember(query, deadline)
        return Enriched(enhanced, context, findings.candidates, findings.reading)

    async def _found(self, wanted: EvidenceRequest, preferred: Preferences) -> Findings:
        """Find evidence, together with all that want the same at this moment and could not know later documents."""
        # A window that a request states for its model is that of the model's judgements too.
        key = wanted, preferred, wanted.watch is None, stated_window(str(wanted.model))
        version = self._workspaces.version_at_hand(wanted.workspace)
        if version is None and key in self._finding:
            with suppress(CragsideError, TimeoutError):
                async with asyncio.timeout(wanted.deadline.share(_VERSION_SHARE)):
                    version = await (await self._workspaces.open(wanted.workspace)).passages.version()

        async def find(watch: Watch) -> Findings:
            asked = wanted if wanted.watch is None else replace(wanted, watch=watch)
            return await self._finders[preferred.mode].find(asked)

        return await self._finding.run(key, find, deadline=wanted.deadline, version=version, watch=wanted.watch)

    async def _recollected(
        self, query: Query, findings: Findings, deadline: Deadline, tokens: int, end_user: str, watch: Watch | None
    ) -> Recollection:
        """Memories within the tokens and the time that are left after the evidence."""
        if self._memory is None:
            return Recollection("")
        started = time.perf_counter()
        recollection = await self._memory().evidence(
            findings.standalone_question or query.text,
            workspace=query.workspace,
            tokens=tokens,
            seconds=deadline.share(_MEMORY_SHARE),
            end_user=end_user,
        )
        if watch is not None:
            spent = (time.perf_counter() - started) * 1000
            lost = tuple(degradation.component for degradation in recollection.degraded)
            watch(Step("recall", spent, {"exchanges": len(recollection.documents)}, lost))
        return recollection

    def _query(self, request: Mapping[str, Any], question: str, workspace: str | None) -> Query:
        name = workspace_name(workspace or _optional(request, "workspace", str) or self._default_workspace)
        for name_of_field, kind in (("metadata", dict), ("timestamp", str), ("stream", bool), ("user_id", str)):
            _optional(request, name_of_field, kind)
        identifier = _optional(request, "id", str) or str(uuid.uuid4())
        return ask(identifier, question, workspace=name, limit=self._question_limit)

    def _refuse_blindness(self, findings: Findings, mode: EvidenceMode) -> None:
        lost = {degradation.component: degradation.reason for degradation in findings.degraded}
        if self._fail_mode != "closed" or findings.documents or "knowledge_base" not in lost:
            return
        if mode == "similarity":
            raise ServiceUnavailable("knowledge_base", "The knowledge base could not be asked.", **lost)
        if "search" in lost:
            raise ServiceUnavailable("knowledge_base", "Neither the knowledge base nor the web could be asked.", **lost)

    async def _remember(self, query: Query, deadline: Deadline) -> None:
        """Record a query that is answered. If that fails, it stays unrecorded."""
        # Evidence is not withheld because a record cannot be written in time. Retrieval reports failures of the store.
        with suppress(CragsideError, OSError, TimeoutError):
            async with asyncio.timeout(min(deadline.remaining(), _REMEMBER_SECONDS)):
                await (await self._workspaces.open(query.workspace)).passages.save_query(query)


def _both(first: Watch, second: Watch | None) -> Watch:
    def watch(step: Step) -> None:
        first(step)
        if second is not None:
            second(step)

    return watch


def _wish(request: Mapping[str, Any], field: str, *defaults: bool | None) -> bool:
    """Read the wish of the field, else of the first default that has one."""
    return next((wish for wish in (_optional(request, field, bool), *defaults) if wish is not None), False)


def _optional(request: Mapping[str, Any], field: str, kind: type) -> Any:
    value = request.get(field)
    if value is not None and not isinstance(value, kind):
        raise ValidationError(f"{field} has to be {_KINDS[kind]}.", field=field)
    return value
