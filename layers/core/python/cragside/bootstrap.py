"""The composition root: the only file that chooses adapters for the ports. Nothing is opened before it is used."""

import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

from threadpoolctl import threadpool_limits

from cragside.adapters.aws.s3 import S3ObjectStore
from cragside.adapters.aws.secrets import Secret
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.embedded.embedder import EMBEDDED_MODEL, WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader, packaged_weights
from cragside.adapters.embedded.keywords import keywords_of, terms
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.adapters.embedded.rewrite import search_query
from cragside.adapters.embedded.tokens import count_tokens
from cragside.adapters.lightrag.workspaces import EmbeddedWorkspaces, OpenEmbedder
from cragside.adapters.ollama.embedder import OllamaEmbedder
from cragside.adapters.ollama.grader import OllamaGrader
from cragside.adapters.ollama.host import OllamaHost
from cragside.adapters.ollama.language_model import OllamaLanguageModel
from cragside.adapters.ollama.rewriter import OllamaRewriter
from cragside.adapters.searxng.search import SearxngSearch
from cragside.adapters.web.fetcher import GuardedFetcher
from cragside.application.enricher import Enricher, EvidenceFinder
from cragside.crag.corrective import CorrectiveRag
from cragside.crag.state import CragTools
from cragside.domain.context import CountTokens
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.verdict import DecisionPolicy
from cragside.ports.document_loader import DocumentLoader
from cragside.ports.embedder import Embedder
from cragside.ports.language_model import LanguageModel
from cragside.ports.model_host import ModelHost
from cragside.ports.object_store import ObjectStore
from cragside.ports.page_fetcher import PageFetcher
from cragside.ports.rag_repository import Workspaces
from cragside.ports.relevance_grader import RelevanceGrader
from cragside.ports.search_service import SearchService
from cragside.settings import BucketAddress, Settings

EMBEDDED = "embedded"
DEFAULT_EMBEDDING_MODEL = "nomic-embed-text"

Step = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Container:
    """What the entrypoints work with. `host` and `search` are None when they are not configured."""

    settings: Settings
    enricher: Enricher
    workspaces: Workspaces
    host: ModelHost | None
    search: SearchService | None
    count_tokens: CountTokens
    loader: DocumentLoader
    starters: list[Step] = field(default_factory=list)
    closers: list[Step] = field(default_factory=list)
    disconnectors: list[Step] = field(default_factory=list)
    secret: Secret | None = None
    fetcher: PageFetcher = field(default_factory=GuardedFetcher)

    def api_token(self) -> str | None:
        """The token that requests have to bring, None for none. Raises `ServiceUnavailable` when it cannot be read."""
        if self.secret is not None:
            return self.secret.value()
        return self.settings.api_token.get_secret_value() if self.settings.api_token else None

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
) -> Container:
    """The application for these settings; each port can be replaced by a keyword."""
    # Requests already keep the processors busy: BLAS threads for small products would only fight over them.
    threadpool_limits(limits=1, user_api="blas")
    starters: list[Step] = []
    closers: list[Step] = []
    disconnectors: list[Step] = []
    embedder = WordLlamaEmbedder()
    embedded_grader = EmbeddedGrader(embedder)
    if host is None and settings.ollama_base_url:
        host = OllamaHost(settings.ollama_base_url, parallel=settings.ollama_parallel, chat_model=settings.chat_model)
        starters.append(host.prepare)
        disconnectors.append(host.close)
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
        workspaces = store = _store(settings, objects, _embedders(embedder, host), language_model, embedded_grader)
        closers.append(store.close)
    if fetcher is None:
        fetcher = GuardedFetcher(allow=(settings.fetch_allow or "").split(","))
        disconnectors.append(fetcher.close)
    if loader is None:
        loader = files = FileLoader(max_bytes=settings.max_file_bytes)
        closers.append(files.close)
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
    enricher = _enricher(settings, finder, workspaces)
    starters += [finder.prepare, partial(workspaces.repository, settings.workspace)]
    return Container(
        settings,
        enricher,
        workspaces,
        host,
        search,
        count_tokens,
        loader,
        starters,
        closers=[*disconnectors, *closers],
        disconnectors=disconnectors,
        secret=Secret(settings.api_token_secret) if settings.api_token_secret else None,
        fetcher=fetcher,
    )


def _objects(settings: Settings) -> ObjectStore | None:
    home = settings.home
    return S3ObjectStore(home.bucket, home.prefix) if isinstance(home, BucketAddress) else None


def _store(
    settings: Settings,
    objects: ObjectStore | None,
    open_embedder: OpenEmbedder,
    model: LanguageModel,
    ranker: RelevanceGrader,
) -> EmbeddedWorkspaces:
    fetched = Path(tempfile.gettempdir(), f"cragside-{settings.home_sha256}")
    return EmbeddedWorkspaces(
        settings.home if isinstance(settings.home, Path) else fetched,
        sha256=settings.home_sha256,
        objects=objects,
        embedding_model=settings.embedding_model,
        open_embedder=open_embedder,
        model=model,
        ranker=ranker,
        keywords_of=keywords_of,
        search_text=_search_text,
        count_tokens=count_tokens,
        chunk_tokens=settings.chunk_tokens,
        chunk_overlap=settings.chunk_overlap_tokens,
        parallel=settings.ollama_parallel,
        saved_queries=settings.saved_queries,
        part_passages=settings.part_passages,
    )


def _enricher(settings: Settings, finder: EvidenceFinder, workspaces: Workspaces) -> Enricher:
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
    )


def _embedders(embedded: Embedder, host: OllamaHost | None) -> OpenEmbedder:
    """Opens embedding models by name; for None the one that a new store takes."""

    async def open_embedder(name: str | None) -> Embedder:
        if name is None and host is not None and await _has(host, DEFAULT_EMBEDDING_MODEL):
            name = DEFAULT_EMBEDDING_MODEL
        if name in (None, EMBEDDED, EMBEDDED_MODEL):
            return embedded
        if host is None:
            raise ConfigurationError(
                f"The embedding model {name} needs an Ollama. Set OLLAMA_BASE_URL, or build the store anew with "
                "RAG_EMBEDDING_MODEL=embedded and cragside reindex.",
                model=name,
            )
        return await OllamaEmbedder.open(host, name)

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
