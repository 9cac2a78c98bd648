"""The models and their hosts, as members of a container that builds them at first use."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from cragside.composition.databases import configured
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.token_counts import count_tokens, spelt_alike
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.models import EMBEDDED, FollowUpReader, LanguageModel, ModelHost, RelevanceGrader
from cragside.ports.search_service import SearchService
from cragside.settings import Settings, variable_of

if TYPE_CHECKING:
    from cragside.adapters.aws.secrets import Secret, Secrets
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder
    from cragside.adapters.embedded.grader import EmbeddedGrader, EmbeddedSupportJudge
    from cragside.adapters.model_host.questions import Paces
    from cragside.adapters.model_host.text_host import TextHost
    from cragside.adapters.rerank import RerankEndpoint
    from cragside.application.attempts import Annotator
    from cragside.application.grading import Grading, PassageJudge
    from cragside.databases.renewable import Renewable
    from cragside.domain.context import CountTokens
    from cragside.ports.embedder import Embedder
    from cragside.store.opening import OpenEmbedder


Step = Callable[[], Awaitable[object]]
Member = TypeVar("Member")


class Members:
    """Builds the parts of a container when they are first asked for. Each `cached_property` of a subclass is a member.

    A keyword replaces the member of that name. mypy does not check its type: a signature would list every member a
    second time. The container closes the members that it built, and the caller closes the replacements.
    """

    def __init__(self, settings: Settings, **replacements: Any) -> None:
        if unknown := sorted(replacements.keys() - set(self.names())):
            raise TypeError(f"{type(self).__name__} has no member {', '.join(unknown)}.")
        self.settings = settings
        self._closers: list[Step] = []
        self._disconnectors: list[Step] = []
        vars(self).update(replacements)

    @classmethod
    def names(cls) -> list[str]:
        """Return the members' names."""
        classes = reversed(cls.__mro__)
        return [name for each in classes for name, value in vars(each).items() if isinstance(value, cached_property)]

    def build(self) -> None:
        """Build every member."""
        for name in self.names():
            getattr(self, name)

    async def disconnect(self) -> None:
        """Close the connections to other hosts; the next use opens them again."""
        for step in self._disconnectors:
            await step()

    async def close(self) -> None:
        """Close every member that was built, the latest first, on the loop that used it.

        A member that fails to close does not keep the others open.
        """
        async with AsyncExitStack() as stack:
            while self._closers:
                stack.push_async_callback(self._closers.pop(0))

    def _closed(self, member: Member, close: Step) -> Member:
        """Call `close` when the container closes."""
        self._closers.append(close)
        return member

    def _connected(self, member: Member, close: Step) -> Member:
        """Call `close` when the container disconnects, and when it closes."""
        self._disconnectors.append(close)
        return self._closed(member, close)


DEFAULT_EMBEDDING_MODEL = "nomic-embed-text"

Rewrite = Callable[[str, str | None], Awaitable[str]]
T = TypeVar("T")


class Models(Members):
    """The members that embed, grade, write and search the web."""

    @cached_property
    def clock(self) -> Clock:
        """Tells the time."""
        return SYSTEM_CLOCK

    @cached_property
    def secrets(self) -> "Secrets":
        """Reads the secrets that settings name by their ARNs."""
        from cragside.adapters.aws.secrets import Secrets

        return Secrets(clock=self.clock)

    @property
    def _host_key_field(self) -> str | None:
        """The setting that has the key of the configured host, None if no key is set for it."""
        settings = self.settings
        field = "openai_api_key" if settings.openai_address else "ollama_api_key" if settings.ollama_address else None
        if field is None or (getattr(settings, field) is None and getattr(settings, f"{field}_secret") is None):
            return None
        return field

    @cached_property
    def host_key(self) -> "Renewable[str]":
        """The key of the configured host; "" if it has none. An Ollama at the default address never gets one."""
        from cragside.databases.renewable import renewable

        field = self._host_key_field
        return renewable("") if field is None else self._key(field)

    @cached_property
    def host(self) -> "TextHost | None":
        """The configured host of models, None if there is none."""
        settings = self.settings
        if settings.openai_address is None:
            address = settings.ollama_address
            return self._ollama(address, settings.chat_model) if address is not None else None
        with configured("RAG_MODEL_HOST", extra="openai", use="speaks OpenAI's API"):
            from cragside.adapters.openai import OpenAIHost
        host = OpenAIHost(
            settings.openai_address,
            self.host_key,
            parallel=settings.ollama_parallel,
            chat_model=settings.chat_model,
            clock=self.clock,
        )
        return self._connected(host, host.close)

    @cached_property
    def upstream(self) -> "TextHost":
        """The host behind the proxy: `host`, or the Ollama at the default address."""
        return self.host or self._ollama(self.settings.upstream)

    @cached_property
    def upstream_key(self) -> Callable[[], Awaitable[str]] | None:
        """Tells the proxy the key that it sends with each request, None if there is none."""
        if self._host_key_field is None:
            return None
        from cragside.databases.renewable import Unreadable

        async def current() -> str:
            try:
                return await self.host_key.current()
            except Unreadable as error:
                raise ServiceUnavailable("model_host", str(error)) from error

        return current

    @cached_property
    def word_vectors(self) -> "WordLlamaEmbedder":
        """The embedded model."""
        from cragside.adapters.embedded.embedder import WordLlamaEmbedder

        _limit_blas()  # it reaches the libraries that are loaded, so it comes after the import
        return WordLlamaEmbedder()

    @cached_property
    def embedder(self) -> "Embedder":
        """The model that a new store takes when no other is configured or found."""
        return self.word_vectors

    @cached_property
    def open_embedder(self) -> "OpenEmbedder":
        """Makes embedding models by name; None stands for that of a new store, and only then the host is asked."""
        return partial(_open_embedder, self.embedder, self.host)

    @cached_property
    def word_matcher(self) -> "EmbeddedGrader":
        """Finds the words of a question in passages. It is the embedded grader, so that both share their analyses."""
        from cragside.adapters.embedded.grader import EmbeddedGrader

        return EmbeddedGrader(self.word_vectors)

    @cached_property
    def embedded_grader(self) -> RelevanceGrader:
        """The grader that needs no host."""
        return self.word_matcher

    @cached_property
    def support_judge(self) -> "EmbeddedSupportJudge":
        """Judges citations."""
        from cragside.adapters.embedded.grader import EmbeddedSupportJudge

        return EmbeddedSupportJudge(self.word_vectors)

    @cached_property
    def grading(self) -> "Grading":
        """Grades passages for `/rag`."""
        from cragside.application.grading import Grading

        return Grading(self.grader, self.embedded_grader, self.judge, clock=self.clock)

    @cached_property
    def judge(self) -> "PassageJudge | None":
        """Gives the second opinion of a chat model. A rerank endpoint needs none."""
        wanted = self.settings.second_opinion
        if self.host is None or self.settings.rerank_url is not None or wanted == "never":
            return None
        from cragside.adapters.model_host.judge import LEAST_PARAMETERS, HostedJudge

        least = LEAST_PARAMETERS if wanted == "auto" else 0
        return HostedJudge(self.host, self.paces, least_parameters=least, clock=self.clock)

    @cached_property
    def paces(self) -> "Paces":
        """Times the calls of chat models."""
        from cragside.adapters.model_host.questions import Paces

        return Paces(self.clock)

    @cached_property
    def rerank_endpoint(self) -> "RerankEndpoint | None":
        """The endpoint of RAG_RERANK_URL, None if there is none."""
        settings = self.settings
        if settings.rerank_url is None:
            return None
        from cragside.adapters.rerank import RerankEndpoint

        endpoint = RerankEndpoint(
            settings.rerank_url,
            self._key("rerank_api_key"),
            model=settings.rerank_model,
            parallel=settings.ollama_parallel,
            clock=self.clock,
        )
        return self._connected(endpoint, endpoint.close)

    @cached_property
    def grader(self) -> RelevanceGrader:
        """Grades all passages of a question."""
        if self.rerank_endpoint is None:
            return self.embedded_grader
        from cragside.adapters.rerank import Calibration, RerankGrader

        calibration = Calibration(self.settings.rerank_scores, *(self.settings.rerank_calibration or ()))
        return RerankGrader(self.rerank_endpoint, calibration)

    @cached_property
    def language_model(self) -> LanguageModel:
        """Extracts entities and relations."""
        from cragside.adapters.embedded.language_model import EmbeddedLanguageModel

        if self.host is None:
            return EmbeddedLanguageModel()
        from cragside.adapters.model_host.language_model import HostedLanguageModel

        return HostedLanguageModel(self.host, EmbeddedLanguageModel())

    @cached_property
    def annotator(self) -> "Annotator":
        """Describes documents."""
        from cragside.adapters.embedded.annotator import EmbeddedAnnotator

        if self.host is None:
            return EmbeddedAnnotator()
        from cragside.adapters.model_host.annotator import HostedAnnotator

        return HostedAnnotator(self.host, EmbeddedAnnotator())

    @cached_property
    def rewrite(self) -> Rewrite:
        """Turns a question into a web search, with the chat model that the request names."""
        from cragside.adapters.embedded.keywords import search_query

        if self.host is not None:
            from cragside.adapters.model_host.questions import HostedRewriter

            return HostedRewriter(self.host, search_query, self.paces).rewrite

        async def embedded(question: str, _model: str | None) -> str:
            return search_query(question)

        return embedded

    @cached_property
    def embedded_follow_ups(self) -> FollowUpReader:
        """Completes follow-up questions by rules."""
        from cragside.adapters.embedded.follow_up import EmbeddedFollowUps

        return EmbeddedFollowUps()

    @cached_property
    def follow_ups(self) -> FollowUpReader:
        """Completes follow-up questions from the conversation before them."""
        if self.host is None:
            return self.embedded_follow_ups
        from cragside.adapters.model_host.questions import HostedFollowUps

        return HostedFollowUps(self.host, self.embedded_follow_ups, self.paces)

    @cached_property
    def search(self) -> SearchService | None:
        """The web search, None when none is configured."""
        if self.settings.searxng_host is None:
            return None
        from cragside.adapters.searxng import SearxngSearch

        search = SearxngSearch(self.settings.searxng_host, self.rewrite)
        return self._connected(search, search.close)

    @cached_property
    def count_tokens(self) -> "CountTokens":
        """Counts a text's tokens."""
        return count_tokens

    def _ollama(self, address: str, chat_model: str | None = None) -> "TextHost":
        from cragside.adapters.ollama.host import OllamaHost

        parallel = self.settings.ollama_parallel
        host = OllamaHost(address, self.host_key, parallel=parallel, chat_model=chat_model, clock=self.clock)
        return self._connected(host, host.close)

    def _key(self, field: str) -> "Renewable[str]":
        """Return the key in a field or in its secret; "" if there is none."""
        from cragside.databases.renewable import renewable

        key = getattr(self.settings, field)
        return self._secret(field, str.strip) or renewable(key.get_secret_value() if key else "")

    def _secret(self, field: str, parse: Callable[[str], T]) -> "Secret[T] | None":
        """Return the secret that is set in place of a field, None if none is. Servers read it again as it gets old."""
        name = getattr(self.settings, f"{field}_secret")
        if name is None:
            return None
        from cragside.adapters.aws.secrets import TRUSTED_BY_SERVERS_SECONDS

        setting, trusted = variable_of(f"{field}_secret"), TRUSTED_BY_SERVERS_SECONDS
        return self.secrets.secret(name, setting=setting, parse=parse, trusted_seconds=trusted)


@cache
def _limit_blas() -> None:
    """Give BLAS one thread in this process: requests already keep the processors busy with small products."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1, user_api="blas")


async def _open_embedder(embedded: "Embedder", host: "TextHost | None", name: str | None) -> "Embedder":
    if name is None and host is not None and await _has(host, DEFAULT_EMBEDDING_MODEL):
        name = DEFAULT_EMBEDDING_MODEL
    if name in (None, EMBEDDED, embedded.name):
        return embedded
    from cragside.adapters.model_host.embedder import HostedEmbedder, HostlessEmbedder

    return HostedEmbedder(host, name) if host else HostlessEmbedder(name)


async def _has(host: ModelHost, model: str) -> bool:
    try:
        return spelt_alike(model) in map(spelt_alike, await host.models())
    except ServiceUnavailable:
        return False
