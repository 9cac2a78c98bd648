"""Asks models and their hosts, completes questions, and grades passages, with models or by rules."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from cragside.domain.evidence import Document
from cragside.domain.reading import Reading
from cragside.domain.token_counts import ModelWindows

if TYPE_CHECKING:
    from cragside.domain.prompt import ChatTurn

# The name of the models that need no host.
EMBEDDED = "embedded"


class ModelHost(Protocol):
    """Asks an Ollama, or a host with OpenAI's API. Answers are cached for a short time, so calls are cheap.

    Failures are of the component "ollama" or "model_host". `windows` are those that its models keep.
    """

    windows: ModelWindows

    async def version(self) -> str:
        """Return the host's version, or what else it says of itself. Raises `ServiceUnavailable`."""

    async def models(self) -> frozenset[str]:
        """Return names of the models the host has. Raises `ServiceUnavailable`."""

    async def context_length(self, model: str) -> int | None:
        """Return the model's longest context in tokens; None if the host does not say."""

    async def window(self, model: str, *, load: bool = True) -> int | None:
        """Return the context in tokens of a request without `num_ctx`; None if the host does not say.

        The host may have to load the model. Without `load` it does not: then it is the window that the model keeps or
        is loaded with, 0 if neither. Raises `ServiceUnavailable`.
        """

    async def writer(self, wanted: str | None) -> str:
        """Return the model that writes answers: the wanted one, else the configured one, else one that the host has.

        Raises `ServiceUnavailable` with what to do when there is none.
        """

    def write(self, model: str, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> AsyncIterator[str]:
        """Yield a model's answer to a conversation, piece by piece as it is written, with the model's own settings.

        An answer that reaches `max_tokens` ends there. Raises `ServiceUnavailable`.
        """

    async def check_chat(self, model: str) -> None:
        """Have a model write a few words. Raises `ServiceUnavailable` if it fails."""

    async def check_embedding(self, model: str) -> None:
        """Have a model embed a word. Raises `ServiceUnavailable` if it fails."""


class LanguageModel(Protocol):
    """Answers LightRAG's indexing prompts: entity extraction and the merging of descriptions."""

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        """Return the answer's text. Raises `ServiceUnavailable("extractor", ...)`."""


class FollowUpReader(Protocol):
    """Completes a question from the conversation before it."""

    async def standalone(self, question: str, turns: "Sequence[ChatTurn]", *, model: str | None) -> str:
        """Return a question that means the same without the turns, which are given oldest first.

        A question that stands alone already is returned unchanged. `model` is the chat model that the request names.
        Raises `ServiceUnavailable("conversation", ...)`.
        """


# The name of the grader that needs no chat model.
EMBEDDED_GRADER = "embedded"
# The name of the grader that is a rerank endpoint.
RERANK_GRADER = "rerank"


class RelevanceGrader(Protocol):
    """Estimates how probably each document is relevant to a query. `name` is that of the grader."""

    name: str = EMBEDDED_GRADER

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        """Return one probability (0..1) for each document, in their order; [] for none.

        Raises `ServiceUnavailable("grader", ...)`.
        """
        ...

    async def grade_read(self, reading: Reading, documents: Sequence[Document]) -> list[float]:
        """Grade as `grade` does, with the question as each document puts it."""
        asked = [reading.asked_of(document.whole) for document in documents]
        scores = dict[int, float]()
        for question in dict.fromkeys(asked):
            places = [place for place, each in enumerate(asked) if each == question]
            grades = await self.grade(question, [documents[place] for place in places])
            scores |= zip(places, grades, strict=True)
        return [scores[place] for place in range(len(documents))]


# Returns the query's content words, in lower case, that each document or its title has, in the query's order. Raises
# `ServiceUnavailable("grader", ...)`.
MatchWords = Callable[[str, Sequence[Document]], Awaitable[list[tuple[str, ...]]]]
