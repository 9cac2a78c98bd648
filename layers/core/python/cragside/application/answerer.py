"""The use case: a question in, a model's answer from graded evidence out."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from cragside.application.enricher import Enricher
from cragside.domain.command import question_of
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.outcome import RagContext
from cragside.domain.token_counts import most_tokens
from cragside.ports.model_host import ModelHost

# Tokens reserved for the answer. A token of evidence by our estimate is at most so many of the model's.
_ANSWER_TOKENS = 1024
_MARGIN = 1.5

Message = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The evidence for a question, and the answer as a model writes it.

    Without a model there are no `pieces`, and `reason` says why and what to do.
    """

    context: RagContext
    model: str | None = None
    pieces: AsyncIterator[str] | None = None
    reason: str = ""


class Answerer:
    """Answers questions with a model of `host`, from evidence of at most `evidence_tokens` tokens."""

    def __init__(self, enricher: Enricher, host: ModelHost, *, prefix: str, evidence_tokens: int) -> None:
        self._enricher = enricher
        self._host = host
        self._prefix = prefix
        self._evidence_tokens = evidence_tokens

    async def answer(
        self, question: str, *, history: Sequence[Message] = (), model: str | None = None, workspace: str
    ) -> Answer:
        """The answer to a question after the messages of a conversation. The command before the question is optional.

        Evidence is found even where no model can write an answer. Raises what `Enricher.enrich` raises, and
        `ServiceUnavailable("ollama", ...)` when the model that was named cannot be used.
        """
        asked = question if question_of(question, self._prefix) is not None else f"{self._prefix} {question}"
        messages = [*history, {"role": "user", "content": asked}]
        writer, reason = None, ""
        try:
            writer = await self._host.writer(model)
        except ServiceUnavailable as error:
            if model is not None:
                raise
            reason = error.message_with_place
        request = {"messages": messages, **({"model": writer} if writer else {})}
        tokens = await self._room(writer, messages)
        enriched = await self._enricher.enrich(request, workspace=workspace, evidence_tokens=tokens)
        assert enriched.rag_context is not None  # noqa: S101 (the command is there)
        pieces = self._host.write(writer, enriched.request["messages"]) if writer else None
        return Answer(enriched.rag_context, writer, pieces, reason)

    async def _room(self, model: str | None, messages: Sequence[Message]) -> int:
        """Tokens of evidence that fit into the model's window besides the conversation and the answer."""
        longest = await self._host.context_length(model) if model else None
        if longest is None:
            return self._evidence_tokens
        taken = sum(most_tokens(message["content"]) for message in messages) + min(_ANSWER_TOKENS, longest // 4)
        return max(0, min(self._evidence_tokens, int((longest - taken) / _MARGIN)))
