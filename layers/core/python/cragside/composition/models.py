"""The models and their hosts: embedded ones, and those of a host if one is configured."""

from collections.abc import Awaitable, Callable
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from cragside.application.grading import Grading
from cragside.composition.members import Members
from cragside.composition.model_hosts import (
    model_key,
    ollama_host,
    openai_host,
    rerank_endpoint,
    rerank_grader,
    signing,
)
from cragside.domain.context import CountTokens
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.model_windows import spelt_alike
from cragside.domain.token_counts import count_tokens
from cragside.ports.annotator import Annotator
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.follow_up import FollowUpReader
from cragside.ports.language_model import LanguageModel
from cragside.ports.model_host import EMBEDDED, ModelHost
from cragside.ports.relevance_grader import RelevanceGrader
from cragside.ports.search_service import SearchService
from cragside.ports.support_judge import SupportJudge

if TYPE_CHECKING:
    from cragside.adapters.aws.secrets import SecretsManager
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder
    from cragside.adapters.embedded.grader import EmbeddedGrader
    from cragside.adapters.lightrag.opening import OpenEmbedder
    from cragside.adapters.model_host.questions import Paces
    from cragside.adapters.model_host.text_host import TextHost
    from cragside.adapters.renewable import Renewable
    from cragside.ports.embedder import Embedder
    from cragside.ports.passage_judge import PassageJudge

DEFAULT_EMBEDDING_MODEL = "nomic-embed-text"

Rewrite = Callable[[str, str | None], Awaitable[str]]


class Models(Members):
    """The members that embed, grade, write and search the web."""

    @cached_property
    def clock(self) -> Clock:
        """The time."""
        return SYSTEM_CLOCK

    @cached_property
    def secrets(self) -> "SecretsManager":
        """What settings refer to in AWS Secrets Manager."""
        from cragside.adapters.aws.secrets import SecretsManager

        return SecretsManager(clock=self.clock)

    @cached_property
    def openai_key(self) -> "Renewable[str]":
        """The key of a host with OpenAI's API; "" if there is none."""
        return model_key(self.settings, "openai_api_key", lambda: self.secrets)

    @cached_property
    def ollama_key(self) -> "Renewable[str]":
        """The key of the configured Ollama; "" if there is none. The one at the usual address never gets it."""
        if self.settings.ollama_address is None:
            from cragside.adapters.renewable import Fixed

            return Fixed("")
        return model_key(self.settings, "ollama_api_key", lambda: self.secrets)

    @cached_property
    def host(self) -> "TextHost | None":
        """The configured host of models, None if there is none."""
        settings = self.settings
        if settings.openai_address is not None:
            host = openai_host(settings, settings.openai_address, self.openai_key, self.clock)
            return self._connected(host, host.close)
        address = settings.ollama_address
        return self._ollama(address, settings.chat_model) if address is not None else None

    @cached_property
    def upstream(self) -> "TextHost":
        """The host behind the proxy: `host`, or the Ollama at the default address."""
        return self.host or self._ollama(self.settings.upstream)

    @cached_property
    def upstream_key(self) -> Callable[[], Awaitable[str]] | None:
        """Tells the proxy the key that it sends with each request, None if there is none."""
        settings = self.settings
        if settings.openai_address is not None:
            field, key = "openai_api_key", self.openai_key
        else:
            field, key = "ollama_api_key", self.ollama_key
        keyed = getattr(settings, field) is not None or getattr(settings, f"{field}_secret") is not None
        return signing(key) if keyed and (settings.openai_address or settings.ollama_address) else None

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
        """A factory of embedding models by name; None asks for the model of a new store. Only that asks the host."""
        return partial(_open_embedder, self.embedder, self.host)

    @cached_property
    def word_matcher(self) -> "EmbeddedGrader":
        """Finds the words of a question in passages, and is the embedded grader: they share their analyses."""
        from cragside.adapters.embedded.grader import EmbeddedGrader

        return EmbeddedGrader(self.word_vectors)

    @cached_property
    def embedded_grader(self) -> RelevanceGrader:
        """The grader that needs no host."""
        return self.word_matcher

    @cached_property
    def support_judge(self) -> SupportJudge:
        """Judges citations."""
        from cragside.adapters.embedded.grader import EmbeddedSupportJudge

        return EmbeddedSupportJudge(self.word_vectors)

    @cached_property
    def grading(self) -> Grading:
        """Grades passages for `/rag`."""
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
    def grader(self) -> RelevanceGrader:
        """Grades all passages of a question."""
        if (url := self.settings.rerank_url) is not None:
            key = model_key(self.settings, "rerank_api_key", lambda: self.secrets)
            endpoint = rerank_endpoint(self.settings, url, key, self.clock)
            return self._connected(rerank_grader(self.settings, endpoint), endpoint.close)
        return self.embedded_grader

    @cached_property
    def language_model(self) -> LanguageModel:
        """Extracts entities and relations."""
        from cragside.adapters.embedded.language_model import EmbeddedLanguageModel

        if self.host is None:
            return EmbeddedLanguageModel()
        from cragside.adapters.model_host.language_model import HostedLanguageModel

        return HostedLanguageModel(self.host, EmbeddedLanguageModel())

    @cached_property
    def annotator(self) -> Annotator:
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
    def count_tokens(self) -> CountTokens:
        """Counts a text's tokens."""
        return count_tokens

    def _ollama(self, address: str, chat_model: str | None = None) -> "TextHost":
        host = ollama_host(self.settings, address, self.ollama_key, self.clock, chat_model)
        return self._connected(host, host.close)


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
