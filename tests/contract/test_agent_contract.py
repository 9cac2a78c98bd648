"""The agent contract, field by field: through RagAgent in process, RagAgent at an endpoint and `POST /v1/enrich`.

Where contracts.md overrides the seed's document, the override is tested.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
import pytest

from cragside.adapters.local.preferences import NoPreferences
from cragside.application.contract import error_envelope
from cragside.application.enricher import Enricher, EvidenceRequest
from cragside.application.preferences import WorkspacePreferences
from cragside.bootstrap import Container
from cragside.client import Client, error_of
from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    DeadlineExceeded,
    NotFound,
    PayloadTooLarge,
    ProcessingError,
    ServiceUnavailable,
    Unauthorized,
    ValidationError,
)
from cragside.domain.evidence import Document
from cragside.domain.outcome import Degradation, Findings
from cragside.domain.preferences import NOTHING_FOUND, Preferences
from cragside.entrypoints.http.app import create_app
from cragside.plugins.smart_proxy import PluginConfiguration, RagAgent
from cragside.ports.rag_repository import RagRepository
from cragside.ports.search_service import SearchService
from cragside.settings import Settings, load_settings
from cragside.store.workspaces import Workspace

Hook = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

LOCAL = Document("chunk-1", "Cragside was lit by water power.", "local", title="cragside.txt", score=0.93)
WEB = Document("web-1", "Armstrong lived there.", "web", title="A page", url="https://example.org/a", score=0.7)
FOUND = Findings(
    "<evidence>\nwater power\n</evidence>", (LOCAL, WEB), True, (Degradation("rewriter", "slow"),), {"retrieve": 1.234}
)
NOTHING = Findings("", (), False)
NEAR = Document(
    "chunk-2",
    "Cragside has a tower.",
    "local",
    title="cragside.txt",
    score=0.21,
    metadata={"filename": "cragside.txt", "page": 3, "section": "Tower", "date": "1884-08", "earlierThan": "chunk-1"},
)
NOTHING_PASSED = Findings("", (), False, closest=(NEAR,))

REQUEST: dict[str, Any] = {
    "id": "request-1",
    "prompt": "/rag What lit Cragside?",
    "model": "qwen2.5:7b",
    "stream": True,
    "user_id": "user-1",
    "timestamp": "2023-01-01T00:00:00Z",
    "metadata": {"temperature": 0.2, "max_tokens": 128, "other_params": {"seed": 7}},
}


class ScriptedFinder:
    """Finds what it was told to, or raises it; remembers what it was asked."""

    def __init__(self, outcome: Findings | Exception) -> None:
        self.outcome = outcome
        self.asked: list[dict[str, Any]] = []

    async def find(self, request: EvidenceRequest) -> Findings:
        self.asked.append({"question": request.question, "workspace": request.workspace, "model": request.model})
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class NoStore:
    """A knowledge base that cannot be opened; remembering a query is not worth failing for."""

    async def open(self, name: str) -> Workspace:
        raise ServiceUnavailable("knowledge_base", "There is none in this test.")

    def version_at_hand(self, workspace: str) -> str | None:
        return None


@dataclass
class Surface:
    """One way to reach the same enricher."""

    finder: ScriptedFinder
    retrieve: Hook


def enricher(finder: ScriptedFinder, **changes: Any) -> Enricher:
    options: dict[str, Any] = {
        "prefix": "/rag",
        "default_workspace": "default",
        "timeout": 30.0,
        "fail_mode": "open",
        "question_limit": 32_000,
        "evidence_tokens": 3000,
        **changes,
    }
    defaults = WorkspacePreferences(Preferences(1000, 200, 5, None, "similarity"), NoPreferences())
    return Enricher({"corrective": finder}, NoStore(), defaults, **options)


def app_for(finder: ScriptedFinder, **settings: Any) -> Any:
    configured = Settings(**settings)
    return create_app(Container(configured, enricher=enricher(finder), workspaces=NoStore()))


def client_for(app: Any) -> httpx.AsyncClient:
    # What the application could not foresee has to come back as an answer, as it does from a server.
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://cragside")


@pytest.fixture(params=["agent in process", "agent at an endpoint", "POST /v1/enrich"])
def surface(request: pytest.FixtureRequest) -> Surface:
    finder = ScriptedFinder(FOUND)
    if request.param == "agent in process":
        return Surface(finder, RagAgent(enricher=enricher(finder)).on_retrieve)
    app = app_for(finder)
    if request.param == "agent at an endpoint":
        endpoint = Client("http://cragside", transport=httpx.ASGITransport(app=app))
        return Surface(finder, RagAgent(endpoint=endpoint).on_retrieve)

    async def post(body: dict[str, Any]) -> dict[str, Any]:
        async with client_for(app) as client:
            response = await client.post("/v1/enrich", json=body)
            assert response.status_code == 200, response.text
            return dict(response.json())

    return Surface(finder, post)


class TestEnhancedRequest:
    async def test_every_field_of_the_request_is_kept(self, surface: Surface) -> None:
        enhanced = await surface.retrieve(deepcopy(REQUEST))
        for name in ("id", "model", "stream", "user_id", "timestamp"):
            assert enhanced[name] == REQUEST[name]
        for name in ("temperature", "max_tokens", "other_params"):
            assert enhanced["metadata"][name] == REQUEST["metadata"][name]
        assert enhanced.keys() == REQUEST.keys()
        assert enhanced["metadata"].keys() == {*REQUEST["metadata"], "rag_context"}

    async def test_the_prompt_is_the_context_block_and_then_the_question_without_its_command(
        self, surface: Surface
    ) -> None:
        enhanced = await surface.retrieve(deepcopy(REQUEST))
        assert enhanced["prompt"] == f"{FOUND.block}\n\nWhat lit Cragside?"

    async def test_rag_context_has_the_contracts_fields(self, surface: Surface) -> None:
        context = (await surface.retrieve(deepcopy(REQUEST)))["metadata"]["rag_context"]
        assert context["query"] == "What lit Cragside?"
        assert context["search_performed"] is True
        assert isinstance(context["processing_time_ms"], int)
        assert context["processing_time_ms"] >= 0
        local, web = context["documents"]
        assert (local["content"], local["source"]) == (LOCAL.content, "local")
        assert "url" not in local
        assert (web["content"], web["source"], web["url"]) == (WEB.content, "web", WEB.url)

    async def test_rag_context_has_the_fields_that_cragside_adds(self, surface: Surface) -> None:
        context = (await surface.retrieve(deepcopy(REQUEST)))["metadata"]["rag_context"]
        assert context["verdict"] == "mixed"
        assert context["threshold"] == 0.6
        assert context["degraded"] == [{"component": "rewriter", "reason": "slow"}]
        assert [(d["id"], d["title"], d["score"]) for d in context["documents"]] == [
            ("chunk-1", "cragside.txt", 0.93),
            ("web-1", "A page", 0.7),
        ]

    async def test_without_evidence_there_is_no_block_and_no_document(self, surface: Surface) -> None:
        surface.finder.outcome = NOTHING
        enhanced = await surface.retrieve(deepcopy(REQUEST))
        assert enhanced["prompt"] == "What lit Cragside?"
        assert enhanced["metadata"]["rag_context"]["documents"] == []
        assert enhanced["metadata"]["rag_context"]["verdict"] == "none"
        assert enhanced["metadata"]["rag_context"]["search_performed"] is False

    async def test_without_evidence_the_nearest_passages_are_named_and_not_in_the_prompt(
        self, surface: Surface
    ) -> None:
        surface.finder.outcome = NOTHING_PASSED
        enhanced = await surface.retrieve(deepcopy(REQUEST))
        assert enhanced["prompt"] == "What lit Cragside?"
        context = enhanced["metadata"]["rag_context"]
        assert (context["documents"], context["verdict"]) == ([], "none")
        (closest,) = context["closest"]
        assert closest == {
            "id": "chunk-2",
            "title": "cragside.txt",
            "content": "Cragside has a tower.",
            "source": "local",
            "score": 0.21,
            "metadata": {
                "filename": "cragside.txt",
                "page": 3,
                "section": "Tower",
                "date": "1884-08",
                "earlierThan": "chunk-1",
            },
        }

    async def test_with_evidence_there_is_no_field_for_the_nearest_passages(self, surface: Surface) -> None:
        assert "closest" not in (await surface.retrieve(deepcopy(REQUEST)))["metadata"]["rag_context"]

    async def test_the_model_is_told_that_nothing_is_there_only_if_the_request_asks_for_it(
        self, surface: Surface
    ) -> None:
        surface.finder.outcome = NOTHING_PASSED
        enhanced = await surface.retrieve({**deepcopy(REQUEST), "tell_none": True})
        assert enhanced["prompt"] == f"{NOTHING_FOUND}\n\nWhat lit Cragside?"
        messages = [{"role": "user", "content": "/rag What lit Cragside?"}]
        enhanced = await surface.retrieve({"messages": messages, "tell_none": True})
        assert enhanced["messages"] == [
            {"role": "system", "content": NOTHING_FOUND},
            {"role": "user", "content": "What lit Cragside?"},
        ]

    async def test_id_and_timestamp_are_made_up_when_the_request_has_none(self, surface: Surface) -> None:
        enhanced = await surface.retrieve({"prompt": "/rag What lit Cragside?"})
        assert isinstance(enhanced["id"], str)
        assert enhanced["id"]
        assert datetime.fromisoformat(enhanced["timestamp"]).tzinfo is not None

    async def test_unknown_fields_come_back_untouched(self, surface: Surface) -> None:
        extra = {"options": {"num_ctx": 8192}, "keep_alive": "5m", "x": [1, None, {"y": "ä"}], "think": False}
        enhanced = await surface.retrieve({**deepcopy(REQUEST), **extra})
        assert {name: enhanced[name] for name in extra} == extra

    async def test_chat_messages_get_the_block_as_a_system_message_before_the_last_user_message(
        self, surface: Surface
    ) -> None:
        messages = [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "/rag What lit Cragside?", "images": ["aGk="]},
        ]
        enhanced = await surface.retrieve({"model": "m", "messages": deepcopy(messages)})
        assert enhanced["messages"] == [
            *messages[:2],
            {"role": "system", "content": FOUND.block},
            {"role": "user", "content": "What lit Cragside?", "images": ["aGk="]},
        ]

    async def test_the_model_and_the_workspace_of_the_request_are_used(self, surface: Surface) -> None:
        await surface.retrieve({**deepcopy(REQUEST), "workspace": "team"})
        assert surface.finder.asked == [{"question": "What lit Cragside?", "workspace": "team", "model": "qwen2.5:7b"}]


class TestUncommanded:
    @pytest.mark.parametrize(
        "prompt", ["What lit Cragside?", "/ragtime is music", "please /rag this", "", "  \n", "rag what", "//rag a"]
    )
    async def test_a_prompt_without_the_command_comes_back_byte_for_byte(self, surface: Surface, prompt: str) -> None:
        request = {**deepcopy(REQUEST), "prompt": prompt}
        enhanced = await surface.retrieve(deepcopy(request))
        assert json.dumps(enhanced) == json.dumps(request)
        assert surface.finder.asked == []

    @pytest.mark.parametrize("prompt", ["/RAG What lit Cragside?", "  \n/Rag\tWhat lit Cragside?"])
    async def test_the_command_is_a_word_in_any_case_after_any_blanks(self, surface: Surface, prompt: str) -> None:
        enhanced = await surface.retrieve({**deepcopy(REQUEST), "prompt": prompt})
        assert enhanced["metadata"]["rag_context"]["query"] == "What lit Cragside?"


ERRORS: list[tuple[CragsideError, str, int, bool]] = [
    (ValidationError("wrong", field="prompt"), "validation_error", 400, False),
    (ConfigurationError("two models"), "service_unavailable", 503, True),
    (Unauthorized("no token"), "unauthorized", 401, False),
    (NotFound("nothing"), "not_found", 404, False),
    (PayloadTooLarge("too long", limit=3), "payload_too_large", 413, False),
    (ServiceUnavailable("search", "down"), "service_unavailable", 503, True),
    (DeadlineExceeded("late"), "timeout_error", 504, True),
    (ProcessingError("oops"), "processing_error", 500, False),
]
BAD_REQUESTS: list[Mapping[str, Any]] = [
    {},
    {"prompt": "/rag"},
    {"prompt": "/rag   "},
    {"prompt": 5},
    {"prompt": None},
    {"messages": "hello"},
    {"messages": ["hello"]},
    {"prompt": "/rag what", "metadata": "text"},
    {"prompt": "/rag what", "workspace": "../../etc"},
    {"prompt": "/rag " + "x" * 32_001},
]


def assert_contract(body: Any, code: str, *, retryable: bool) -> None:
    assert body.keys() == {"error", "id", "timestamp"}
    assert body["error"].keys() == {"type", "message", "details", "retryable"}
    assert body["error"]["type"] == code
    assert isinstance(body["error"]["message"], str)
    assert body["error"]["message"]
    assert isinstance(body["error"]["details"], dict)
    assert body["error"]["retryable"] is retryable
    assert isinstance(body["id"], str)
    assert body["id"]
    assert datetime.fromisoformat(body["timestamp"]).tzinfo is not None


class TestErrors:
    @pytest.mark.parametrize(("error", "code", "status", "retryable"), ERRORS)
    async def test_every_code_has_its_status_and_envelope(
        self, error: CragsideError, code: str, status: int, retryable: bool
    ) -> None:
        async with client_for(app_for(ScriptedFinder(error))) as client:
            response = await client.post("/v1/enrich", json=REQUEST)
        assert response.status_code == status
        assert_contract(response.json(), code, retryable=retryable)
        assert response.json()["id"] == REQUEST["id"]

    async def test_an_unexpected_exception_becomes_a_processing_error_without_its_text(self) -> None:
        failure = RuntimeError("postgresql://user:secret@host/db")
        async with client_for(app_for(ScriptedFinder(failure))) as client:
            response = await client.post("/v1/enrich", json=REQUEST)
        assert response.status_code == 500
        assert_contract(response.json(), "processing_error", retryable=False)
        assert "secret" not in response.text
        assert "Traceback" not in response.text

    @pytest.mark.parametrize("body", BAD_REQUESTS, ids=lambda body: json.dumps(body)[:40])
    async def test_a_bad_request_is_a_validation_error(self, body: Mapping[str, Any]) -> None:
        async with client_for(app_for(ScriptedFinder(FOUND))) as client:
            response = await client.post("/v1/enrich", json=dict(body))
        assert response.status_code == 400
        assert_contract(response.json(), "validation_error", retryable=False)

    @pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b'"text"', b"[" * 100_000])
    async def test_a_body_that_is_no_json_object_is_a_validation_error(self, raw: bytes) -> None:
        async with client_for(app_for(ScriptedFinder(FOUND))) as client:
            response = await client.post("/v1/enrich", content=raw, headers={"Content-Type": "application/json"})
        assert response.status_code == 400
        assert_contract(response.json(), "validation_error", retryable=False)

    async def test_a_body_over_the_limit_is_a_payload_too_large(self) -> None:
        app = app_for(ScriptedFinder(FOUND), max_body_bytes=1024)
        async with client_for(app) as client:
            response = await client.post("/v1/enrich", json={"prompt": "x" * 2000})
        assert response.status_code == 413
        assert_contract(response.json(), "payload_too_large", retryable=False)

    async def test_a_missing_token_is_unauthorized(self) -> None:
        app = app_for(ScriptedFinder(FOUND), api_token="right")
        async with client_for(app) as client:
            response = await client.post("/v1/enrich", json=REQUEST)
        assert response.status_code == 401
        assert_contract(response.json(), "unauthorized", retryable=False)

    async def test_an_unknown_route_is_not_found(self) -> None:
        async with client_for(app_for(ScriptedFinder(FOUND))) as client:
            response = await client.get("/v1/nothing")
        assert response.status_code == 404
        assert_contract(response.json(), "not_found", retryable=False)

    @pytest.mark.parametrize(("error", "code", "status", "retryable"), ERRORS)
    async def test_an_error_survives_the_way_to_a_plugin(
        self, error: CragsideError, code: str, status: int, retryable: bool
    ) -> None:
        contract = error_envelope(error, REQUEST["id"])
        assert_contract(contract, code, retryable=retryable)
        returned = error_of(json.loads(json.dumps(contract)))
        assert returned is not None
        assert error_envelope(returned, REQUEST["id"])["error"] == contract["error"]


class TestPluginInterface:
    def test_the_configuration_is_the_contracts(self) -> None:
        assert RagAgent(enricher=enricher(ScriptedFinder(FOUND))).configuration.as_dict() == {
            "name": "rag",
            "version": "1.0.0",
            "description": "RAG enhancement plugin for Ollama Smart Proxy",
            "command_prefix": "/rag",
            "priority": 10,
            "enabled": True,
        }

    def test_the_agent_is_called_rag(self) -> None:
        assert RagAgent(enricher=enricher(ScriptedFinder(FOUND))).name == "rag"
        assert isinstance(inspect.getattr_static(RagAgent, "name"), property)

    @pytest.mark.parametrize(
        ("method", "parameters"),
        [("on_retrieve", ["request"]), ("on_request", ["request"]), ("on_response", ["request", "response"])],
    )
    def test_the_hooks_are_coroutines_with_the_contracts_parameters(self, method: str, parameters: list[str]) -> None:
        hook = getattr(RagAgent, method)
        assert inspect.iscoroutinefunction(hook)
        assert list(inspect.signature(hook).parameters)[1:] == parameters

    async def test_the_response_is_untouched(self) -> None:
        response = {
            "id": "request-1",
            "model": "qwen2.5:7b",
            "response": "By water power [1].",
            "done": True,
            "context": [1, 2, 3],
            "total_duration": 5,
            "load_duration": 1,
            "prompt_eval_count": 2,
            "eval_count": 3,
            "eval_duration": 4,
            "timestamp": "2023-01-01T00:00:00Z",
        }
        before = deepcopy(response)
        agent = RagAgent(enricher=enricher(ScriptedFinder(FOUND)))
        assert await agent.on_response(response) is response
        assert await agent.on_response(REQUEST, response) is response
        assert response == before

    @pytest.mark.parametrize("enabled", [True, False])
    async def test_enabled_is_honoured(self, enabled: bool) -> None:
        finder = ScriptedFinder(FOUND)
        agent = RagAgent(enricher=enricher(finder), configuration=PluginConfiguration(enabled=enabled))
        request = deepcopy(REQUEST)
        assert (await agent.on_retrieve(request) is request) is not enabled
        assert (finder.asked != []) is enabled

    async def test_command_prefix_is_honoured(self) -> None:
        agent = RagAgent(
            enricher=enricher(ScriptedFinder(FOUND), prefix="/ask"),
            configuration=PluginConfiguration(command_prefix="/ask"),
        )
        untouched = deepcopy(REQUEST)
        assert await agent.on_retrieve(untouched) is untouched
        enhanced = await agent.on_retrieve({**deepcopy(REQUEST), "prompt": "/ask What lit Cragside?"})
        assert enhanced["metadata"]["rag_context"]["query"] == "What lit Cragside?"


class TestPorts:
    @pytest.mark.parametrize(
        ("port", "method", "parameters"),
        [
            (RagRepository, "save_query", {"query": inspect.Parameter.empty}),
            (RagRepository, "get_query", {"query_id": inspect.Parameter.empty}),
            (RagRepository, "save_documents", {"documents": inspect.Parameter.empty}),
            (RagRepository, "get_relevant_documents", {"query": inspect.Parameter.empty, "threshold": 0.6}),
            (SearchService, "search", {"query": inspect.Parameter.empty}),
            (SearchService, "transform_query", {"query": inspect.Parameter.empty}),
        ],
    )
    def test_a_port_has_the_contracts_methods(self, port: type, method: str, parameters: dict[str, Any]) -> None:
        declared = getattr(port, method)
        assert inspect.iscoroutinefunction(declared)
        assert declared.__isabstractmethod__
        given = {name: p for name, p in inspect.signature(declared).parameters.items() if name != "self"}
        positional = {n: p.default for n, p in given.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY}
        assert positional == parameters
        # Whatever is added has a default: a caller that knows the contract alone can call it.
        assert all(p.default is not inspect.Parameter.empty for n, p in given.items() if n not in parameters)


@dataclass(frozen=True)
class Variable:
    """An environment variable of the contract: the setting it fills, a value to try, and the default."""

    name: str
    setting: str
    given: str
    read: Any
    default: Any = field(default=None)


class TestEnvironment:
    # Defaults are the contract's but for the addresses: unset means embedded storages and models (contracts.md).
    @pytest.mark.parametrize(
        "variable",
        [
            Variable("SEARXNG_HOST", "searxng_host", "http://localhost:8080", "http://localhost:8080"),
            Variable("OLLAMA_BASE_URL", "ollama_base_url", "http://localhost:11434", "http://localhost:11434"),
            Variable("RAG_THRESHOLD", "threshold", "0.7", 0.7, 0.6),
            Variable("RAG_MAX_DOCUMENTS", "max_documents", "3", 3, 5),
            Variable("RAG_TIMEOUT_SECONDS", "timeout_seconds", "10", 10, 30),
        ],
        ids=lambda variable: variable.name,
    )
    def test_the_contracts_variables_are_read_and_have_its_defaults(self, variable: Variable) -> None:
        assert getattr(load_settings({}), variable.setting) == variable.default
        assert getattr(load_settings({variable.name: variable.given}), variable.setting) == variable.read

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("NEO4J_URI", "bolt://user:secret@localhost:7687"),
            ("POSTGRES_URI", "mysql://user:secret@localhost/rag"),
            ("POSTGRES_URI", "postgresql://user:secret@localhost"),
        ],
    )
    async def test_wrong_addresses_of_databases_are_named_without_their_passwords(self, name: str, value: str) -> None:
        with pytest.raises(ConfigurationError, match=name) as raised:
            Container(load_settings({name: value})).build()
        assert "secret" not in str(raised.value)
