"""The composition root: the only file that chooses adapters for the ports. Nothing is opened before it is used."""

import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

from threadpoolctl import threadpool_limits

from cragside.adapters.aws.s3 import S3ObjectStore, S3UploadStore
from cragside.adapters.aws.secrets import Secret
from cragside.adapters.aws.sqs import SqsQueue
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.embedded.annotator import EmbeddedAnnotator
from cragside.adapters.embedded.embedder import EMBEDDED_MODEL, WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader, packaged_weights
from cragside.adapters.embedded.keywords import keywords_of, terms
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.adapters.embedded.rewrite import search_query
from cragside.adapters.lightrag.manifest import is_baked
from cragside.adapters.lightrag.workspaces import EmbeddedWorkspaces, OpenEmbedder
from cragside.adapters.local.descriptors import most_stores
from cragside.adapters.local.preferences import NoPreferences, PreferenceFile
from cragside.adapters.local.queue import LocalQueue
from cragside.adapters.local.token_file import TokenFile
from cragside.adapters.ollama.annotator import OllamaAnnotator
from cragside.adapters.ollama.embedder import HostlessEmbedder, OllamaEmbedder
from cragside.adapters.ollama.grader import OllamaGrader
from cragside.adapters.ollama.host import OllamaHost
from cragside.adapters.ollama.language_model import OllamaLanguageModel
from cragside.adapters.ollama.rewriter import OllamaRewriter
from cragside.adapters.searxng.search import SearxngSearch
from cragside.adapters.web.fetcher import GuardedFetcher
from cragside.application.allowance import StorageLimits
from cragside.application.attempts import Attempts
from cragside.application.enricher import Enricher, EvidenceFinder
from cragside.application.indexer import Indexer
from cragside.application.intake import Intake
from cragside.application.memory import Memory
from cragside.application.preferences import WorkspacePreferences
from cragside.application.retriever import Retriever
from cragside.application.uploads import Uploads
from cragside.application.worker import Worker
from cragside.crag.corrective import CorrectiveRag
from cragside.crag.state import CragTools
from cragside.domain.context import CountTokens
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.memory_name import memory_of, owner_of
from cragside.domain.preferences import CHANGEABLE, Preferences
from cragside.domain.token_counts import count_tokens
from cragside.domain.tokens import IssuedToken
from cragside.domain.verdict import DecisionPolicy
from cragside.ports.annotator import Annotator
from cragside.ports.document_loader import DocumentLoader
from cragside.ports.embedder import Embedder
from cragside.ports.index_queue import IndexQueue
from cragside.ports.language_model import LanguageModel
from cragside.ports.model_host import ModelHost
from cragside.ports.object_store import ObjectStore
from cragside.ports.page_fetcher import PageFetcher
from cragside.ports.rag_repository import Workspaces
from cragside.ports.relevance_grader import RelevanceGrader
from cragside.ports.search_service import SearchService
from cragside.ports.upload_store import UploadStore
from cragside.settings import BucketAddress, Settings

EMBEDDED = "embedded"
DEFAULT_EMBEDDING_MODEL = "nomic-embed-text"

Step = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Container:
    """What the entrypoints work with. `host` and `search` are None when they are not configured.

    `upstream` is the Ollama behind the proxy: `host`, or the one at the default address.
    """

    settings: Settings
    enricher: Enricher
    workspaces: Workspaces
    host: ModelHost | None
    upstream: ModelHost
    search: SearchService | None
    count_tokens: CountTokens
    preferences: WorkspacePreferences
    loader: DocumentLoader
    queue: IndexQueue
    attempts: Attempts
    intake: Intake
    memory: Memory
    retriever: Retriever
    uploads: Uploads
    starters: list[Step] = field(default_factory=list)
    closers: list[Step] = field(default_factory=list)
    disconnectors: list[Step] = field(default_factory=list)
    secret: Secret | None = None
    tokens: TokenFile | None = None
    fetcher: PageFetcher = field(default_factory=GuardedFetcher)

    def api_token(self) -> str | None:
        """The token that requests have to bring, None for none. Raises `ServiceUnavailable` when it cannot be read."""
        if self.secret is not None:
            return self.secret.value()
        return self.settings.api_token.get_secret_value() if self.settings.api_token else None

    def issued_tokens(self) -> Sequence[IssuedToken]:
        """The tokens of RAG_TOKENS_FILE. Raises `ServiceUnavailable` when they cannot be read."""
        return () if self.tokens is None else self.tokens.tokens()

    def worker(self) -> Worker:
        """A new worker, which runs once."""
        return Worker(self.queue, self.attempts, self.workspaces, parallel=self.settings.index_parallel)

    def keeps_worker(self) -> bool:
        """Whether `cragside serve` has a worker: not beside a baked store, nor where others empty an SQS queue."""
        home = self.settings.home
        return self.settings.queue_url is None and isinstance(home, Path) and not is_baked(home)

    async def prepare(self) -> None:
        """Load and open what the first request would otherwise wait for. Raises `ConfigurationError`.

        A component that is down is left for the requests to report.
        """
        for start in self.starters:
            with suppress(ServiceUnavailable):
                await start()

    async def disconnect(self) -> None:
        """Close the connections to other hosts and forget what was read from them; the next use opens them anew."""
        for step in self.disconnectors:
            await step()
        if self.secret is not None:
            self.secret.forget()

    async def close(self) -> None:
        """Close everything that was opened, on the loop that opened it; one failure does not keep the rest open."""
        async with AsyncExitStack() as stack:
            while self.closers:
                stack.push_async_callback(self.closers.pop(0))


def preload(settings: Settings) -> None:
    """Load what requests will need, for processes that are forked afterwards to share."""
    modules = ["cragside.adapters.lightrag.repository", "cragside.crag.graph"]
    for module in [*modules, "langchain_ollama"] if settings.ollama_base_url else modules:
        import_module(module)
    WordLlamaEmbedder.load()
    packaged_weights()


def build_container(
    settings: Settings,
    *,
    host: OllamaHost | None = None,
    grader: RelevanceGrader | None = None,
    language_model: LanguageModel | None = None,
    search: SearchService | None = None,
    workspaces: Workspaces | None = None,
    fetcher: PageFetcher | None = None,
    loader: DocumentLoader | None = None,
    queue: IndexQueue | None = None,
    annotator: Annotator | None = None,
    uploads: UploadStore | None = None,
) -> Container:
    """The application for these settings; each port can be replaced by a keyword."""
    # Requests already keep the processors busy: BLAS threads for small products would only fight over them.
    threadpool_limits(limits=1, user_api="blas")
    starters: list[Step] = []
    closers: list[Step] = []
    disconnectors: list[Step] = []
    preferences = _preferences(settings)
    embedder = WordLlamaEmbedder()
    embedded_grader = EmbeddedGrader(embedder)
    if host is None and settings.ollama_base_url:
        host = OllamaHost(settings.ollama_base_url, parallel=settings.ollama_parallel, chat_model=settings.chat_model)
        starters.append(host.prepare)
        disconnectors.append(host.close)
    upstream = host
    if upstream is None:
        upstream = OllamaHost(settings.upstream, parallel=settings.ollama_parallel)
        disconnectors.append(upstream.close)
    if search is None and settings.searxng_host:
        rewrite = OllamaRewriter(host, search_query).rewrite if host else _embedded_rewrite
        search = SearxngSearch(settings.searxng_host, rewrite)
        disconnectors.append(search.close)
    if grader is None:
        grader = OllamaGrader(host, embedded_grader) if host else embedded_grader
    if language_model is None:
        language_model = EmbeddedLanguageModel()
        language_model = OllamaLanguageModel(host, language_model) if host else language_model
    if workspaces is None:
        objects = _objects(settings)
        if objects is not None:
            disconnectors.append(objects.disconnect)
        open_embedder = _embedders(embedder, host)
        workspaces = store = _store(settings, objects, open_embedder, language_model, embedded_grader, preferences)
        closers.append(store.close)
    if fetcher is None:
        fetcher = GuardedFetcher(allow=(settings.fetch_allow or "").split(","))
        disconnectors.append(fetcher.close)
    if loader is None:
        loader = files = FileLoader(max_bytes=settings.max_file_bytes, patience=settings.timeout_seconds)
        closers.append(files.close)
    if queue is None:
        queue = SqsQueue(settings.queue_url) if settings.queue_url else LocalQueue(_folder(settings))
        disconnectors.append(queue.close)
    if uploads is None and settings.uploads is not None:
        uploads = S3UploadStore(settings.uploads.bucket, settings.uploads.prefix)
        disconnectors.append(uploads.disconnect)
    if annotator is None:
        annotator = OllamaAnnotator(host, EmbeddedAnnotator()) if host else EmbeddedAnnotator()
    tools = CragTools(
        workspaces=workspaces,
        grader=grader,
        embedded_grader=embedded_grader,
        search=search,
        embedded_rewrite=search_query,
        policy=DecisionPolicy(settings.threshold, settings.decision),
        count_tokens=count_tokens,
        candidates=settings.candidates,
        max_documents=settings.max_documents,
    )
    finder = CorrectiveRag(tools)
    limits = StorageLimits(workspaces)
    intake = Intake(workspaces, queue, loader=loader, fetcher=fetcher, limits=limits)
    memory = _memory(settings, intake, workspaces)
    enricher = _enricher(settings, finder, workspaces, memory)
    starters += [finder.prepare, partial(workspaces.prepare, settings.workspace)]
    if settings.memory_evidence:
        starters.append(partial(workspaces.prepare, memory_of(settings.workspace)))
    return Container(
        settings,
        enricher,
        workspaces,
        host,
        upstream,
        search,
        count_tokens,
        preferences,
        loader,
        queue,
        Attempts(queue, Indexer(workspaces, annotator), attempts=settings.index_attempts),
        intake,
        memory,
        Retriever(workspaces, embedded_grader, preferences),
        Uploads(workspaces, uploads, most_bytes=settings.max_file_bytes, limits=limits),
        starters,
        closers=[*disconnectors, *closers],
        disconnectors=disconnectors,
        secret=Secret(settings.api_token_secret) if settings.api_token_secret else None,
        tokens=TokenFile(settings.tokens_file) if settings.tokens_file else None,
        fetcher=fetcher,
    )


def _preferences(settings: Settings) -> WorkspacePreferences:
    defaults = Preferences(**{name: getattr(settings, name) for name in CHANGEABLE})
    home = settings.home
    if isinstance(home, Path) and not is_baked(home):
        return WorkspacePreferences(defaults, PreferenceFile(home))
    return WorkspacePreferences(defaults, NoPreferences())


def _memory(settings: Settings, intake: Intake, workspaces: Workspaces) -> Memory:
    return Memory(
        intake,
        workspaces,
        least=settings.index_min_length,
        mode=settings.memory_mode,
        budget=settings.context_tokens,
        count_tokens=count_tokens,
    )


def _folder(settings: Settings) -> Path:
    """Where the workspaces are, or where they are fetched to."""
    if isinstance(settings.home, Path):
        return settings.home
    return Path(tempfile.gettempdir(), f"cragside-{settings.home_sha256}")


def _objects(settings: Settings) -> ObjectStore | None:
    home = settings.home
    return S3ObjectStore(home.bucket, home.prefix) if isinstance(home, BucketAddress) else None


def _store(
    settings: Settings,
    objects: ObjectStore | None,
    open_embedder: OpenEmbedder,
    model: LanguageModel,
    ranker: RelevanceGrader,
    preferences: WorkspacePreferences,
) -> EmbeddedWorkspaces:
    def chunking(workspace: str) -> tuple[int, int]:
        preferred = preferences.of(owner_of(workspace))
        return preferred.chunk_tokens, preferred.chunk_overlap_tokens

    return EmbeddedWorkspaces(
        _folder(settings),
        sha256=settings.home_sha256,
        objects=objects,
        embedding_model=settings.embedding_model,
        open_embedder=open_embedder,
        model=model,
        ranker=ranker,
        keywords_of=keywords_of,
        search_text=_search_text,
        count_tokens=count_tokens,
        chunking=chunking,
        parallel=settings.ollama_parallel,
        saved_queries=settings.saved_queries,
        part_passages=settings.part_passages,
        most_open=most_stores(settings.max_open_workspaces),
        patience=settings.timeout_seconds,
    )


def _enricher(settings: Settings, finder: EvidenceFinder, workspaces: Workspaces, memory: Memory) -> Enricher:
    return Enricher(
        finder,
        workspaces,
        prefix=settings.command_prefix,
        default_workspace=settings.workspace,
        threshold=settings.threshold,
        timeout=settings.timeout_seconds,
        fail_mode=settings.fail_mode,
        question_limit=settings.max_prompt_characters,
        evidence_tokens=settings.context_tokens,
        persona=settings.persona,
        memory=memory,
        recalls=settings.memory_evidence,
        count_tokens=count_tokens,
    )


def _embedders(embedded: Embedder, host: OllamaHost | None) -> OpenEmbedder:
    """Gives embedding models by name; for None the one that a new store takes. Only that asks the host."""

    async def open_embedder(name: str | None) -> Embedder:
        if name is None and host is not None and await _has(host, DEFAULT_EMBEDDING_MODEL):
            name = DEFAULT_EMBEDDING_MODEL
        if name in (None, EMBEDDED, EMBEDDED_MODEL):
            return embedded
        return OllamaEmbedder(host, name) if host else HostlessEmbedder(name)

    return open_embedder


async def _has(host: ModelHost, model: str) -> bool:
    try:
        return not {model, f"{model}:latest"}.isdisjoint(await host.models())
    except ServiceUnavailable:
        return False


async def _embedded_rewrite(question: str, _model: str | None) -> str:
    return search_query(question)


def _search_text(question: str) -> str:
    return " ".join(terms(question))
