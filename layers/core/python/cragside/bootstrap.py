"""The composition root: it and `composition` alone choose adapters for the ports.

Importing it is cheap, and a new container has opened nothing: each member imports what it is made of when it is built.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from cragside import __version__
from cragside.composition.databases import check_addresses, configured
from cragside.composition.models import Step
from cragside.composition.process import load
from cragside.composition.stores import Stores
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.names import memory_of
from cragside.domain.tokens import IssuedToken
from cragside.ports.files import DocumentLoader, PageFetcher
from cragside.ports.telemetry import Tracer
from cragside.settings import Settings

if TYPE_CHECKING:
    from cragside.adapters.aws.secrets import Secret
    from cragside.adapters.local.audit_log import AuditFile
    from cragside.adapters.local.tokens import TokenFile
    from cragside.application.allowance import StorageLimits
    from cragside.application.answerer import Answerer, CitationChecker
    from cragside.application.attempts import Attempts
    from cragside.application.enricher import Enricher
    from cragside.application.explainer import Explainer
    from cragside.application.intake import Intake
    from cragside.application.memory import Memory
    from cragside.application.passages import PassageFinder, Retriever
    from cragside.application.uploads import Uploads
    from cragside.application.worker import Sweeper, Worker
    from cragside.crag.corrective import CorrectiveRag


class Container(Stores):
    """The application for these settings: its ports and its use cases.

    A member is built when it is first used. A keyword replaces it: `Container(settings, queue=queue)`.
    Raises `ConfigurationError` for a wrong RAG_FETCH_ALLOW, and for an address of a database that cannot be read.
    """

    def __init__(self, settings: Settings, **replacements: Any) -> None:
        super().__init__(settings, **replacements)
        check_addresses(settings)
        if settings.fetch_allow:
            _ = self.fetcher  # refuses a wrong RAG_FETCH_ALLOW now, not when the first page is asked for

    @cached_property
    def fetcher(self) -> PageFetcher:
        """Fetches pages, or refuses to."""
        if not self.settings.fetch_pages:
            from cragside.adapters.web.refusing import RefusingFetcher

            return RefusingFetcher()
        from cragside.adapters.web.fetcher import GuardedFetcher

        fetcher = GuardedFetcher(allow=(self.settings.fetch_allow or "").split(","))
        return self._connected(fetcher, fetcher.close)

    @cached_property
    def loader(self) -> DocumentLoader:
        """Reads files."""
        from cragside.adapters.documents.loader import FileLoader
        from cragside.composition.files import ocr_of

        settings = self.settings
        loader = FileLoader(max_bytes=settings.max_file_bytes, patience=settings.timeout_seconds, ocr=ocr_of(settings))
        return self._closed(loader, loader.close)

    @cached_property
    def finder(self) -> "CorrectiveRag":
        """Finds evidence for a question."""
        from cragside.adapters.embedded.keywords import search_query
        from cragside.adapters.embedded.question_parts import EmbeddedQuestionParts
        from cragside.crag.corrective import CorrectiveRag
        from cragside.crag.state import CragTools

        settings, parts = self.settings, EmbeddedQuestionParts()
        return CorrectiveRag(
            CragTools(
                workspaces=self.workspaces,
                grading=self.grading,
                embedded_grader=self.embedded_grader,
                near_words=partial(self.word_matcher.matches, near=True),
                search=self.search,
                follow_ups=self.follow_ups,
                embedded_follow_ups=self.embedded_follow_ups,
                embedded_rewrite=search_query,
                read_parts=parts.read,
                unnamed=parts.unnamed,
                decision=settings.decision,
                count_tokens=self.count_tokens,
                candidates=settings.candidates,
                search_early=settings.speculative_search,
            )
        )

    @cached_property
    def limits(self) -> "StorageLimits":
        """Keeps tokens from storing more than they may."""
        from cragside.application.allowance import StorageLimits

        return StorageLimits(self.workspaces, clock=self.clock)

    @cached_property
    def intake(self) -> "Intake":
        """Accepts documents."""
        from cragside.application.intake import Intake

        if self.inbox is not None:
            from cragside.application.inbox import DeferredIntake

            intake: Callable[..., Intake] = partial(DeferredIntake, inbox=self.inbox, clock=self.clock)
        else:
            intake = partial(Intake, spare_room=self.spare_room)
        return intake(self.workspaces, self.queue, loader=self.loader, fetcher=self.fetcher, limits=self.limits)

    @cached_property
    def uploads(self) -> "Uploads":
        """Accepts large files through a bucket."""
        from cragside.application.uploads import Uploads

        most_bytes = self.settings.max_file_bytes
        store, limits = self.upload_store, self.limits
        return Uploads(self.workspaces, store, most_bytes=most_bytes, limits=limits, clock=self.clock)

    @cached_property
    def memory(self) -> "Memory":
        """Stores and finds conversations."""
        from cragside.application.memory import Memory

        return Memory(
            self.intake,
            self.workspaces,
            least=self.settings.index_min_length,
            mode=self.settings.memory_mode,
            budget=self.settings.context_tokens,
            count_tokens=self.count_tokens,
        )

    @cached_property
    def enricher(self) -> "Enricher":
        """Puts evidence into prompts."""
        from cragside.application.enricher import Enricher
        from cragside.application.similar_evidence import NoEvidence, SimilarEvidence

        settings = self.settings
        similar = SimilarEvidence(self.retriever, self.embedded_follow_ups, count_tokens=self.count_tokens)
        return Enricher(
            {"corrective": self.finder, "similarity": similar, "off": NoEvidence()},
            self.workspaces,
            self.preferences,
            prefix=settings.command_prefix,
            default_workspace=settings.workspace,
            timeout=settings.timeout_seconds,
            fail_mode=settings.fail_mode,
            question_limit=settings.max_prompt_characters,
            evidence_tokens=settings.context_tokens,
            memory=lambda: self.memory,  # it brings all of intake along, which few questions need
            recalls=settings.memory_evidence,
            count_tokens=self.count_tokens,
            tracer=self.tracer,
            clock=self.clock,
        )

    @cached_property
    def tracer(self) -> Tracer | None:
        """Traces runs, None unless RAG_TRACES is set."""
        if not self.settings.traces:
            return None
        try:
            with configured("RAG_TRACES", extra="otel"):
                from cragside.adapters.otel import OtelTracer  # the SDK reads some of its variables when it is imported

                tracer = OtelTracer(__version__, clock=self.clock)
        except ValueError as error:
            unfit = "a variable that begins with OTEL_ has a value that OpenTelemetry does not take"
            wrong = f"RAG_TRACES is set, but {unfit}. Correct it, or unset it."
            raise ConfigurationError(wrong, variable="RAG_TRACES") from error
        return self._closed(tracer, tracer.close)

    @cached_property
    def answerer(self) -> "Answerer":
        """Answers questions from evidence."""
        from cragside.application.answerer import Answerer

        settings = self.settings
        return Answerer(
            self.enricher,
            self.upstream,
            prefix=settings.command_prefix,
            tell_none=settings.tell_none,
            evidence_tokens=settings.context_tokens,
        )

    @cached_property
    def explainer(self) -> "Explainer":
        """Explains how prompts get their evidence."""
        from cragside.application.explainer import Explainer

        settings = self.settings
        return Explainer(
            self.enricher,
            self.embedded_grader,
            self.word_matcher.matches,
            prefix=settings.command_prefix,
            tell_none=settings.tell_none,
            timeout=settings.timeout_seconds,
            clock=self.clock,
        )

    @cached_property
    def citations(self) -> "CitationChecker":
        """Checks the citations of answers."""
        from cragside.application.answerer import CitationChecker

        return CitationChecker(self.support_judge.judge, timeout=self.settings.timeout_seconds, clock=self.clock)

    @cached_property
    def retriever(self) -> "Retriever":
        """Finds similar passages."""
        from cragside.application.passages import Retriever

        return Retriever(self.workspaces, self.embedded_grader, self.preferences)

    @cached_property
    def passages(self) -> "PassageFinder":
        """Finds passages with their documents."""
        from cragside.application.passages import PassageFinder, RelevantPassages

        relevant = RelevantPassages(
            self.workspaces,
            self.grading,
            self.embedded_grader,
            candidates=self.settings.candidates,
            threshold=self.settings.threshold,
        )
        return PassageFinder(self.workspaces, self.retriever, relevant)

    @cached_property
    def attempts(self) -> "Attempts":
        """Runs tasks and records the outcome in the queue."""
        from cragside.application.attempts import Attempts, Indexer

        indexer = Indexer(self.workspaces, self.annotator)
        return Attempts(self.queue, indexer, attempts=self.settings.index_attempts, clock=self.clock)

    @cached_property
    def sweeper(self) -> "Sweeper":
        """Queues work that the queue lacks."""
        from cragside.application.worker import Sweeper

        return Sweeper(self.queue, self.workspaces)

    @cached_property
    def secret(self) -> "Secret[tuple[str, ...]] | None":
        """The secret that holds the API's tokens, None when none is configured."""
        if self.settings.api_token_secret is None:
            return None
        from cragside.adapters.aws.secrets import api_tokens

        return self.secrets.secret(self.settings.api_token_secret, setting="RAG_API_TOKEN_SECRET", parse=api_tokens)

    @cached_property
    def tokens(self) -> "TokenFile | None":
        """The issued tokens, None when no file is configured for them."""
        if self.settings.tokens_file is None:
            return None
        from cragside.adapters.local.tokens import TokenFile

        return TokenFile(self.settings.tokens_file, clock=self.clock)

    @cached_property
    def audit_log(self) -> "AuditFile | None":
        """The record of who did what, None when none is configured."""
        if not self.settings.audit_log:
            return None
        from cragside.adapters.local.audit_log import AuditFile

        return AuditFile(self.settings.audit_log)

    def api_tokens(self) -> tuple[str, ...]:
        """The tokens that open everything, of which requests carry one. Raises `ServiceUnavailable` if unreadable."""
        if self.secret is not None:
            return self.secret.value()
        return (self.settings.api_token.get_secret_value(),) if self.settings.api_token else ()

    @property
    def unreadable_secret(self) -> bool:
        """Tell if the last attempt to read a secret failed. Nothing is read for this."""
        return "secrets" in vars(self) and self.secrets.unreadable

    def issued_tokens(self) -> Sequence[IssuedToken]:
        """Return the tokens of RAG_TOKENS_FILE. Raises `ServiceUnavailable` when they cannot be read."""
        return () if self.tokens is None else self.tokens.tokens()

    @cached_property
    def worker(self) -> "Callable[[], Worker]":
        """Makes workers, each of which runs once."""
        from cragside.application.worker import Worker

        parallel = self.settings.index_parallel
        return partial(Worker, self.queue, self.attempts, self.sweeper, parallel=parallel, clock=self.clock)

    def keeps_worker(self) -> bool:
        """Tell if `cragside serve` has a worker: not with a baked store, nor where other workers empty an SQS queue."""
        return self.settings.queue_url is None and self._writable()

    async def prepare(self) -> None:
        """Build every member and open what the first request needs. Raises `ConfigurationError`.

        If a component is down, the requests will report it.
        """
        self.build()
        workspace = self.settings.workspace
        steps: list[Step] = [] if self.host is None else [self.host.prepare]
        steps += [self.finder.prepare, partial(self.workspaces.prepare, workspace)]
        if self.settings.memory_evidence:
            steps.append(partial(self.workspaces.prepare, memory_of(workspace)))
        for step in steps:
            with suppress(ServiceUnavailable):
                await step()

    async def disconnect(self) -> None:
        """Close the connections to other hosts and forget what secrets hold; the next use opens and reads it again."""
        await super().disconnect()
        if "secrets" in vars(self):
            self.secrets.forget()


def preload(settings: Settings) -> None:
    """Load modules and models before a fork, so that the processes share their memory."""
    container = Container(settings)
    container.build()  # opens nothing: it imports the adapters
    container.backend.storages()
    load(settings)
