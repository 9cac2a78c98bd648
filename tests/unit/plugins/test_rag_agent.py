"""RagAgent inside ollama-smart-proxy: its context, other commands in front, failures."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

import cragside
from cragside.application.enricher import Enriched
from cragside.bootstrap import Container
from cragside.client import Client
from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.evidence import Document
from cragside.domain.outcome import RagContext
from cragside.domain.prompt import inject, question_in
from cragside.plugins.smart_proxy import RagAgent

BLOCK = "<evidence>\nwater power\n</evidence>"


class ScriptedEnricher:
    """Enriches with one fixed block, or raises what it was told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.questions: list[str | None] = []

    async def enrich(self, request: dict[str, Any], **_: Any) -> Enriched:
        question = question_in(request, "/rag")
        self.questions.append(question)
        if self.failure is not None:
            raise self.failure
        if question is None:
            return Enriched(dict(request), None)
        documents = (Document("1", "water power", "local", score=0.9),)
        return Enriched(inject(request, BLOCK, question), RagContext(question, documents, False, 1, "local", 0.6))


def proxy_context(text: str, *agents: str) -> dict[str, Any]:
    """Build the arguments that ollama-smart-proxy hands to a plugin for a chat."""
    return {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "stream": False,
        "agents": list(agents),
        "_original_content": text,
    }


def agent_of(enricher: ScriptedEnricher, **options: Any) -> RagAgent:
    return RagAgent(enricher=enricher, **options)  # type: ignore[arg-type]


async def test_the_proxys_context_is_kept_with_the_evidence_before_the_question() -> None:
    context = proxy_context("/rag What lit the house?", "rag")
    answer = await agent_of(ScriptedEnricher()).on_request(context)
    assert answer["messages"] == [
        {"role": "system", "content": BLOCK},
        {"role": "user", "content": "What lit the house?"},
    ]
    for name in ("model", "stream", "agents", "_original_content"):
        assert answer[name] == context[name]


async def test_the_block_survives_the_proxy_writing_over_the_last_message() -> None:
    answer = await agent_of(ScriptedEnricher()).on_request(proxy_context("/rag What lit the house?", "rag"))
    answer["messages"][-1]["content"] = "What lit the house?"  # what the proxy does behind its plugins
    assert BLOCK in [message["content"] for message in answer["messages"]]


async def test_the_answer_is_never_a_finished_response_for_the_proxy() -> None:
    answer = await agent_of(ScriptedEnricher()).on_request(proxy_context("/rag What lit the house?", "rag"))
    assert answer.keys().isdisjoint({"choices", "response", "message"})


@pytest.mark.parametrize("text", ["/opt /rag What lit it?", " /rag /opt What lit it?", "/opt/rag What lit it?"])
async def test_commands_of_other_plugins_are_no_part_of_the_question(text: str) -> None:
    enricher = ScriptedEnricher()
    await agent_of(enricher).on_request(proxy_context(text, "opt", "rag"))
    assert enricher.questions == ["What lit it?"]


async def test_text_added_by_another_plugin_is_not_part_of_the_question() -> None:
    enricher = ScriptedEnricher()
    context = proxy_context("/example /rag What lit it?", "example", "rag")
    context["messages"][-1]["content"] = "[Example] /example /rag What lit it?"
    await agent_of(enricher).on_request(context)
    assert enricher.questions == ["What lit it?"]


async def test_a_call_for_another_plugin_is_unchanged() -> None:
    enricher = ScriptedEnricher()
    context = proxy_context("/opt What lit it?", "opt")
    assert await agent_of(enricher).on_request(context) is context
    assert enricher.questions == []


@pytest.mark.parametrize(
    "failure", [ServiceUnavailable("search", "down"), ValidationError("bad"), RuntimeError("boom")]
)
async def test_a_failure_returns_the_same_request_and_logs_the_error_contract(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    context = {**proxy_context("/rag What lit it?", "rag"), "id": "request-1"}
    with caplog.at_level(logging.ERROR, logger="cragside.plugins"):
        assert await agent_of(ScriptedEnricher(failure)).on_request(context) is context
    contract = json.loads(caplog.messages[0].partition(": ")[2])
    assert contract["error"]["type"] == getattr(failure, "code", "processing_error")
    assert contract["id"] == "request-1"
    assert "boom" not in caplog.text


async def test_closed_raises_so_that_the_proxy_does_not_ask_the_model() -> None:
    agent = agent_of(ScriptedEnricher(ServiceUnavailable("search", "down")), fail_mode="closed")
    with pytest.raises(ServiceUnavailable):
        await agent.on_request(proxy_context("/rag What lit it?", "rag"))


@pytest.mark.parametrize("messages", ["text", [1], [{"role": "user", "content": 5}], [], None])
async def test_a_malformed_context_is_returned_unchanged(messages: Any) -> None:
    context = {"model": "m", "messages": messages, "agents": ["rag"]}
    assert await agent_of(ScriptedEnricher()).on_request(context) is context


def endpoint(handler: Any) -> Client:
    return Client("http://127.0.0.1:1", token="secret", transport=httpx.MockTransport(handler))


async def test_an_endpoint_gets_the_token_and_the_whole_request() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        context = {"metadata": {"rag_context": {"documents": [], "verdict": "none"}}}
        return httpx.Response(200, json={**json.loads(request.content), "enhanced": True, **context})

    context = proxy_context("/rag What lit it?", "rag")
    assert (await RagAgent(endpoint=endpoint(answer)).on_request(context))["enhanced"] is True
    assert seen[0].url.path == "/v1/enrich"
    assert seen[0].headers["Authorization"] == "Bearer secret"
    assert json.loads(seen[0].content) == context


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def dawdle(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("slow", request=request)


@pytest.mark.parametrize(
    ("handler", "code"),
    [
        (refuse, "service_unavailable"),
        (dawdle, "timeout_error"),
        (lambda _: httpx.Response(200, text="<html>"), "processing_error"),
        (lambda _: httpx.Response(200, json={"messages": "gone"}), "processing_error"),
        (lambda _: httpx.Response(200, json=[]), "processing_error"),
        (lambda request: httpx.Response(200, content=request.content), "processing_error"),  # it has another command
        (lambda _: httpx.Response(502, text="bad gateway"), "service_unavailable"),
        (lambda _: httpx.Response(404, text="not here"), "processing_error"),
        (lambda _: httpx.Response(307, headers={"Location": "http://127.0.0.1:2/"}), "processing_error"),
        (lambda _: httpx.Response(401, json={"error": {"type": "unauthorized", "message": "no"}}), "unauthorized"),
        (lambda _: httpx.Response(500, json={"error": {"type": "odd", "message": "no"}}), "processing_error"),
        (
            lambda _: httpx.Response(
                400, json={"error": {"type": "validation_error", "message": "no", "details": {"message": "a", "x": 1}}}
            ),
            "validation_error",
        ),
    ],
)
async def test_a_failing_endpoint_leaves_the_request_unchanged(
    handler: Any, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    context = proxy_context("/rag What lit it?", "rag")
    assert await RagAgent(endpoint=endpoint(handler)).on_request(context) is context
    assert json.loads(caplog.messages[-1].partition(": ")[2])["error"]["type"] == code
    assert "secret" not in caplog.text


@pytest.mark.parametrize("address", ["", "127.0.0.1:8642", "file:///etc/passwd", "http://", "http://[::1"])
def test_an_endpoint_that_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(ConfigurationError, match="endpoint"):
        RagAgent(endpoint=address)


def test_an_enricher_and_an_endpoint_together_are_refused() -> None:
    with pytest.raises(ConfigurationError):
        agent_of(ScriptedEnricher(), endpoint="http://127.0.0.1:8642")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The RAG_HOME of an environment that sets nothing else."""
    for name in [name for name in os.environ if name.startswith(("RAG_", "OLLAMA_", "SEARXNG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAG_HOME", str(tmp_path))
    return tmp_path


def container_of(agent: RagAgent) -> Container | None:
    return agent._container


async def test_an_agent_of_its_own_builds_cragside_once_at_the_first_command(home: Path) -> None:
    agent = RagAgent()
    await agent.on_request(proxy_context("no command"))
    assert container_of(agent) is None
    await agent.on_request(proxy_context("/rag What lit it?", "rag"))
    built = container_of(agent)
    assert built is not None
    assert built.settings.home == home
    await agent.on_request(proxy_context("/rag What lit it?", "rag"))
    assert container_of(agent) is built
    await agent.close()
    assert container_of(agent) is None


async def test_a_configuration_error_of_the_agent_names_its_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_FAIL_MODE", "closed")
    (home / "default").mkdir()
    (home / "default/store.sqlite3").write_bytes(b"no store" * 1000)
    context = proxy_context("/rag What lit it?", "rag")
    closed, opened = RagAgent(), RagAgent(fail_mode="open")
    with pytest.raises(ServiceUnavailable):
        await closed.on_request(context)
    assert await opened.on_request(context) is context
    await closed.close()
    await opened.close()


async def test_an_environment_that_cannot_be_read_is_a_failure_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAG_TRESHOLD", "0.5")
    context = proxy_context("/rag What lit it?", "rag")
    assert await RagAgent().on_request(context) is context


@pytest.fixture
def proxys_base_agent() -> Iterator[type]:
    """The proxy's modules as far as a plugin file sees them."""
    from abc import ABC, abstractmethod

    class BaseAgent(ABC):
        @property
        @abstractmethod
        def name(self) -> str: ...

        @abstractmethod
        async def on_request(self, request: Any) -> Any: ...

        @abstractmethod
        async def on_response(self, request: Any, response: Any) -> Any: ...

    names = ("src", "src.shared", "src.shared.base_agent", "cragside.plugins.smart_proxy_agent")
    before = {name: sys.modules.pop(name, None) for name in names}
    for name in names[:3]:
        sys.modules[name] = ModuleType(name)
    sys.modules["src.shared.base_agent"].BaseAgent = BaseAgent  # type: ignore[attr-defined]
    yield BaseAgent
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def test_the_plugin_file_holds_one_agent_that_the_proxy_can_make(proxys_base_agent: type) -> None:
    from cragside.plugins import smart_proxy_agent

    agents = [
        thing
        for thing in vars(smart_proxy_agent).values()
        if isinstance(thing, type) and issubclass(thing, proxys_base_agent) and thing is not proxys_base_agent
    ]
    assert [agent().name for agent in agents] == ["rag"]


@pytest.mark.parametrize("given", [None, "/rag what?", ["/rag what?"], 7])
@pytest.mark.parametrize("fail_mode", ["open", "closed"])
async def test_an_unknown_request_is_returned_unchanged(given: Any, fail_mode: Any) -> None:
    agent = agent_of(ScriptedEnricher(), fail_mode=fail_mode)
    assert await agent.on_request(given) is given
    assert await agent.on_retrieve(given) is given


def test_the_plugin_needs_no_package_but_httpx() -> None:
    httpx_and_its_own = {"httpx", "httpcore", "anyio", "certifi", "h11", "idna", "sniffio", "typing_extensions"}
    script = f"""
import sys
from importlib.abc import MetaPathFinder

class Others(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {{"cragside", *{sorted(httpx_and_its_own)!r}, *sys.stdlib_module_names}}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Others())
from cragside.plugins.smart_proxy import RagAgent
RagAgent(endpoint="http://127.0.0.1:8642")
"""
    environment = {"PYTHONPATH": str(Path(cragside.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
