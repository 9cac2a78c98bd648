"""An answer is written from graded evidence that fits the model's window."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from cragside.application.answerer import Answerer
from cragside.application.enricher import Enriched
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.outcome import RagContext

CONTEXT = RagContext("why?", (), search_performed=False, processing_time_ms=1, verdict="none", threshold=0.6)


class Evidence:
    """Puts "EVIDENCE" in front of the last message, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], dict[str, Any]]] = []

    async def enrich(self, request: Mapping[str, Any], **options: Any) -> Enriched:
        self.asked.append((dict(request), options))
        *before, last = request["messages"]
        return Enriched({**request, "messages": [*before, {"role": "system", "content": "EVIDENCE"}, last]}, CONTEXT)


class Host:
    """Writes "a b", with a window of `longest` tokens."""

    def __init__(self, *, longest: int | None = None, fails: bool = False, fails_to_write: bool = False) -> None:
        self.longest = longest
        self.fails_to_write = fails_to_write
        self.most = 0
        self.fails = fails
        self.written: list[tuple[str, list[Mapping[str, str]]]] = []

    async def writer(self, wanted: str | None) -> str:
        if self.fails:
            raise ServiceUnavailable("ollama", "Ollama does not answer")
        return wanted or "first:latest"

    async def context_length(self, model: str) -> int | None:
        return self.longest

    async def write(self, model: str, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> AsyncIterator[str]:
        self.written.append((model, list(messages)))
        self.most = max_tokens
        if self.fails_to_write:
            raise ServiceUnavailable("model_host", "The model host answered 500")
        yield "a "
        yield "b"


def answerer(evidence: Evidence, host: Host) -> Answerer:
    return Answerer(evidence, host, prefix="/rag", tell_none=True, evidence_tokens=3000)  # type: ignore[arg-type]


@pytest.mark.parametrize("question", ["Why?", "/rag Why?"])
async def test_the_model_gets_the_conversation_the_evidence_and_the_question(question: str) -> None:
    evidence, host = Evidence(), Host()
    history = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Swan [1]."}]
    answer = await answerer(evidence, host).answer(question, history=history, workspace="w")
    assert answer.pieces is not None
    assert [piece async for piece in answer.pieces] == ["a ", "b"]
    ((model, messages),) = host.written
    assert model == answer.model == "first:latest"
    assert [message["content"] for message in messages] == ["Who?", "Swan [1].", "EVIDENCE", "/rag Why?"]
    ((request, options),) = evidence.asked
    assert (request["model"], options) == (
        "first:latest",
        {"workspace": "w", "tell_none": True, "evidence_tokens": 3000},
    )


@pytest.mark.parametrize(("longest", "tokens"), [(None, 3000), (131_072, 3000), (4096, 2043), (512, 252), (8, 0)])
async def test_evidence_leaves_room_for_the_answer(longest: int | None, tokens: int) -> None:
    evidence = Evidence()
    await answerer(evidence, Host(longest=longest)).answer("Why?", workspace="w")
    assert abs(evidence.asked[0][1]["evidence_tokens"] - tokens) <= 5


async def test_without_a_model_there_is_evidence_and_a_reason() -> None:
    answer = await answerer(Evidence(), Host(fails=True)).answer("Why?", workspace="w")
    assert (answer.context, answer.model, answer.pieces) == (CONTEXT, None, None)
    assert answer.reason.startswith("Ollama does not answer. Start it with `ollama serve`")


@pytest.mark.parametrize(
    ("longest", "tokens"), [(None, 4096), (131_072, 4096), (16_384, 2048), (8192, 1024), (4096, 1024), (2048, 512)]
)
async def test_an_answer_has_a_limit_that_fits_into_the_window(longest: int | None, tokens: int) -> None:
    host = Host(longest=longest)
    await answerer(Evidence(), host).answer("Why?", workspace="w")
    assert host.most == tokens


async def test_a_host_that_fails_at_once_leaves_the_evidence_and_a_reason() -> None:
    answer = await answerer(Evidence(), Host(fails_to_write=True)).answer("Why?", model="mine", workspace="w")
    assert (answer.context, answer.model, answer.pieces) == (CONTEXT, None, None)
    assert answer.reason == "The model host answered 500. Start it, or correct RAG_MODEL_HOST."


async def test_a_named_model_that_cannot_be_used_is_an_error() -> None:
    evidence = Evidence()
    with pytest.raises(ServiceUnavailable):
        await answerer(evidence, Host(fails=True)).answer("Why?", model="mine", workspace="w")
    assert evidence.asked == []
