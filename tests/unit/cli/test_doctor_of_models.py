"""Doctor reports on hosts with OpenAI's API and on rerank endpoints, with remedies."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from cli_fakes import Host

from cragside.adapters.rerank import Calibration, RerankEndpoint, RerankGrader
from cragside.databases.renewable import Fixed
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints import component_checks
from cragside.entrypoints.component_checks import FOR_OPERATORS, Finding
from cragside.settings import load_settings
from tests.fakes import ScriptedJudge
from tests.services.stub_reranker import StubReranker

HASTY = replace(FOR_OPERATORS, thorough=False)
SOON = replace(FOR_OPERATORS, seconds=0.05)
FAILED = ServiceUnavailable("model_host", "The model host answered 500: out of memory")


async def of_host(
    host: Host, options: Any = FOR_OPERATORS, judge: ScriptedJudge | None = None, **models: str
) -> list[Finding]:
    """The findings of the host, the chat model and the embedding model."""
    named = {f"RAG_{name.upper()}_MODEL": model for name, model in models.items()}
    settings = load_settings({"RAG_MODEL_HOST": "openai+http://127.0.0.1:9/v1", **named})
    return await component_checks.examine_host(SimpleNamespace(host=host, settings=settings, judge=judge), options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("listed", "chat", "state", "detail", "remedy"),
    [
        (("a",), None, "warning", "none is named; the embedded model is used", "Name one of the host's models in"),
        (("a",), "a", "ok", "a, answered a test call", ""),
        (("a:latest",), "a", "ok", "a, answered a test call", ""),
        ((), "a", "ok", "a, answered a test call", ""),  # some hosts list none
        (("b",), "a", "error", "a is not listed by the host", "Name a model in RAG_CHAT_MODEL that the host lists."),
        (("a",), "embedded", "ok", "embedded, as RAG_CHAT_MODEL says", ""),
    ],
)
async def test_models_of_openais_api(listed: Any, chat: str | None, state: str, detail: str, remedy: str) -> None:
    host = Host(*listed)
    found, of_chat, _ = await of_host(host, **({"chat": chat} if chat else {}))
    assert (found.component, found.state) == ("model_host", "ok")
    assert (of_chat.component, of_chat.state, of_chat.detail) == ("chat model", state, detail)
    assert of_chat.remedy.startswith(remedy)
    assert bool(of_chat.remedy) == (state != "ok")
    assert host.called == ([("chat", "a")] if "test call" in detail else [])


async def test_a_host_that_lists_nothing_and_answers_nothing_may_have_another_path() -> None:
    for named in ({}, {"chat": "a"}):
        found, _, _ = await of_host(Host(call=FAILED), **named)
        assert (found.component, found.state) == ("model_host", "warning")
        assert "RAG_MODEL_HOST" in found.remedy


async def test_an_embedding_model_is_called_too_and_a_hasty_examination_calls_none() -> None:
    host = Host("a", "b")
    assert [found.state for found in await of_host(host, HASTY, chat="a", embedding="b")] == ["ok"] * 3
    assert host.called == []
    assert [found.state for found in await of_host(host, chat="a", embedding="b")] == ["ok"] * 3
    assert host.called == [("chat", "a"), ("embedding", "b")]


async def test_a_model_that_fails_or_hangs_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    _, failed, _ = await of_host(Host("a", call=FAILED), chat="a")
    assert (failed.state, failed.remedy) == ("error", "See the log of the model host.")
    assert failed.detail == "a: The model host answered 500: out of memory"
    elsewhere = ServiceUnavailable("model_host", "The model host answered 404. Correct RAG_MODEL_HOST")
    _, elsewhere_found, _ = await of_host(Host("a", call=elsewhere), chat="a")
    assert (elsewhere_found.detail, elsewhere_found.remedy) == (f"a: {elsewhere.message}", "")
    monkeypatch.setattr(component_checks, "LOAD_SECONDS", 0.02)
    _, late, _ = await of_host(Host("a", call="hang"), chat="a")
    assert (late.state, late.detail) == ("error", "a gave no answer in 0.02 s")
    assert late.remedy == "It may still be loading: see its log, and run `cragside doctor` again."


async def of_judge(judge: ScriptedJudge | None, options: Any = FOR_OPERATORS) -> list[Finding]:
    found = await of_host(Host("a"), options, judge=judge, chat="a")
    return [each for each in found if each.component == "second opinion"]


async def test_a_second_opinion_is_tried_on_two_passages() -> None:
    assert await of_judge(None) == []
    judge = ScriptedJudge(dict(zip(component_checks._TEST_PASSAGES, (0.9, 0.2), strict=True)))
    assert await of_judge(judge, HASTY) == []
    [found] = await of_judge(judge)
    assert (found.state, found.remedy) == ("ok", "")
    assert found.detail == "judge says 0.90 to a passage with the answer, 0.20 to another, in 0.0 s each"
    judge.pace = 7.0
    [slow] = await of_judge(judge)
    assert (slow.state, slow.remedy[:33]) == ("warning", "It has 12 s for 2 passages, so it")
    judge.pace, judge.answers = 0.0, dict.fromkeys(component_checks._TEST_PASSAGES, 0.5)
    [blind] = await of_judge(judge)
    assert (blind.state, blind.remedy[:30]) == ("warning", "It does not tell them apart. N")
    [none] = await of_judge(ScriptedJudge({}, model=None))
    assert (none.state, none.detail[:4]) == ("ok", "none")


@pytest.fixture
async def stub() -> Any:
    async with StubReranker() as stub:
        yield stub


async def of_reranker(url: str, options: Any = FOR_OPERATORS) -> list[Finding]:
    settings = load_settings({"RAG_RERANK_URL": url} if url else {})
    endpoint = RerankEndpoint(url, Fixed("sk-hush"), model=None, parallel=1)
    container: Any = SimpleNamespace(settings=settings, grader=RerankGrader(endpoint, Calibration()))
    try:
        ask = component_checks.examine_reranker(container, options)
        return await component_checks._patiently("reranker", lambda: ask, options)
    finally:
        await endpoint.close()


async def test_a_reranker_is_asked_once_if_there_is_one(stub: StubReranker) -> None:
    assert await of_reranker("") == []
    [unasked] = await of_reranker(stub.url, HASTY)
    assert (unasked.state, unasked.detail, stub.bodies) == ("ok", "was not asked", [])
    [asked] = await of_reranker(stub.url)
    assert (asked.state, asked.remedy, len(stub.bodies)) == ("ok", "", 1)
    assert asked.detail == "answered a test call: 0.90 for a passage with the answer, 0.10 for another"


@pytest.mark.parametrize(("high", "low"), [(0.6, 0.1), (0.5, 0.1), (0.9, 0.6), (0.9, 0.9), (0.1, 0.9)])
async def test_a_reranker_that_does_not_separate_is_to_be_calibrated(
    stub: StubReranker, high: float, low: float
) -> None:
    stub.high, stub.low = high, low
    [found] = await of_reranker(stub.url)
    assert found.state == "warning"
    assert found.remedy.startswith("Calibrate it, or see whether its model is one that ranks")


START = "Start it and see its log, or correct RAG_RERANK_URL and RAG_RERANK_MODEL."


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        (307, "Set RAG_RERANK_URL to the address that it redirects to"),
        (400, START),
        (401, "Correct RAG_RERANK_API_KEY"),
        (403, "Correct RAG_RERANK_API_KEY"),
        (404, "Correct RAG_RERANK_URL, or RAG_RERANK_MODEL"),
        (429, "Have its limit raised, or lower RAG_OLLAMA_PARALLEL"),
        (500, START),
        (b"<html>", "Correct RAG_RERANK_URL"),
        (b'[{"index": 0, "score": 7.5}, {"index": 1, "score": -3}]', "Set RAG_RERANK_SCORES=logit"),
        ("late", START),
        ("down", START),
    ],
)
async def test_a_reranker_that_fails_says_what_to_do(stub: StubReranker, answer: Any, remedy: str) -> None:
    if isinstance(answer, int):
        stub.status = answer
    elif isinstance(answer, bytes):
        stub.body = answer
    elif answer == "late":
        stub.late.clear()
    url = "http://127.0.0.1:9/rerank" if answer == "down" else stub.url
    [found] = await of_reranker(url, SOON if answer == "late" else FOR_OPERATORS)
    assert (found.component, found.state) == ("reranker", "error")
    assert found.remedy.startswith(remedy)
    assert "rerank endpoint" in found.detail
    assert "hush" not in str(found)
