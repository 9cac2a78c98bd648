import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cragside.application.contract import enhanced_request, error_envelope
from cragside.application.enricher import Enricher, EvidenceRequest
from cragside.application.similar_evidence import NoEvidence
from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.evidence import Document
from cragside.domain.outcome import NO_ROOM, Degradation, Findings
from cragside.domain.preferences import NOTHING_FOUND, PERSONAS, PLAIN, EvidenceMode, Preferences
from cragside.store.workspaces import Workspace
from tests.fakes import FakeRepository, FakeWorkspaces

FOUND = Findings("BLOCK", (Document("d", "text", "local", score=0.9),), False, (), {"retrieve": 1.234})
BLIND = Findings("", (), True, (Degradation("knowledge_base", "a"), Degradation("search", "b")))


class ScriptedFinder:
    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.calls: list[dict[str, Any]] = []

    async def find(self, request: EvidenceRequest) -> Findings:
        self.calls.append(
            {
                "question": request.question,
                "workspace": request.workspace,
                "model": request.model,
                "seconds": request.deadline.remaining(),
                "tokens": request.evidence_tokens,
                "limits": (request.threshold, request.max_documents),
                "instruction": request.instruction,
                "compress": request.compress,
                "turns": [(turn.role, turn.text) for turn in request.turns],
            }
        )
        return self.findings


class ScriptedPreferences:
    def __init__(self, outdated: str = "", **changes: Any) -> None:
        self.given = Preferences(1000, 200, 5, None, "similarity", **changes), outdated

    async def at_hand(self, workspace: str, *, seconds: float) -> tuple[Preferences, str]:
        return self.given


def enricher(
    finder: ScriptedFinder,
    repository: FakeRepository | None = None,
    preferences: ScriptedPreferences | None = None,
    **settings: Any,
) -> Enricher:
    defaults = {
        "prefix": "/rag",
        "default_workspace": "home",
        "timeout": 30,
        "fail_mode": "open",
        "question_limit": 100,
        "evidence_tokens": 3000,
    }
    finders: dict[EvidenceMode, Any] = {"corrective": finder, "similarity": finder, "off": NoEvidence()}
    workspaces = FakeWorkspaces(repository or FakeRepository())
    return Enricher(finders, workspaces, preferences or ScriptedPreferences(), **{**defaults, **settings})  # type: ignore[arg-type]


async def test_a_rag_request_gets_evidence_and_keeps_its_other_fields() -> None:
    finder = ScriptedFinder(FOUND)
    repository = FakeRepository()
    request = {"id": "r1", "prompt": "/rag what?", "model": "m", "custom": {"a": [1]}}
    enriched = await enricher(finder, repository).enrich(request)
    assert enriched.request == {**request, "prompt": "BLOCK\n\nwhat?"}
    assert enriched.rag_context is not None
    assert enriched.rag_context.verdict == "local"
    assert finder.calls[0]["workspace"] == "home"
    assert finder.calls[0]["model"] == "m"
    assert finder.calls[0]["tokens"] == 3000
    assert repository.queries["r1"].text == "what?"


@pytest.mark.parametrize(
    "request_", [{"prompt": "what is /rag?"}, {"messages": [{"role": "user", "content": "hi"}], "id": 7}]
)
async def test_a_plain_request_is_returned_unchanged_without_retrieval(request_: dict[str, Any]) -> None:
    finder = ScriptedFinder(FOUND)
    enriched = await enricher(finder).enrich(request_)
    assert enriched.request == request_
    assert enhanced_request(enriched) == request_
    assert enriched.rag_context is None
    assert finder.calls == []


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "prompt"),
        ({"prompt": None, "messages": None}, "prompt"),
        ({"prompt": "/rag"}, "question"),
        ({"prompt": "/rag \n"}, "question"),
        ({"prompt": "/rag " + "x" * 101}, "101 characters"),
        ({"prompt": "/rag x", "model": 1}, "model"),
        ({"prompt": "/rag x", "id": 1}, "id"),
        ({"prompt": "/rag x", "metadata": []}, "metadata"),
        ({"prompt": "/rag x", "timestamp": 1700000000}, "timestamp has to be a string"),
        ({"prompt": "/rag x", "stream": "yes"}, "stream has to be true or false"),
        ({"prompt": "/rag x", "stream": 1}, "stream has to be true or false"),
        ({"prompt": "/rag x", "user_id": 7}, "user_id has to be a string"),
        ({"prompt": "/rag x", "workspace": {}}, "workspace"),
        ({"prompt": "/rag x", "workspace": "../up"}, "workspace"),
        ({"prompt": "/rag x", "workspace": "a/b"}, "workspace"),
        ({"prompt": "/rag x", "workspace": "w" * 64}, "workspace"),
    ],
)
async def test_bad_requests_are_refused_with_what_to_do(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        await enricher(ScriptedFinder(FOUND)).enrich(request_)


async def test_the_shorter_time_budget_holds() -> None:
    finder = ScriptedFinder(FOUND)
    await enricher(finder).enrich({"prompt": "/rag x"}, timeout=2)
    await enricher(finder, timeout=1).enrich({"prompt": "/rag x"}, timeout=2)
    assert finder.calls[0]["seconds"] <= 2
    assert finder.calls[1]["seconds"] <= 1


@pytest.mark.parametrize("left", [0, -3])
async def test_a_request_past_its_deadline_gets_no_time(left: float) -> None:
    finder = ScriptedFinder(FOUND)
    await enricher(finder).enrich({"prompt": "/rag x"}, timeout=left)
    assert finder.calls[0]["seconds"] == 0


async def test_a_knowledge_base_that_does_not_open_in_time_is_not_waited_for_to_remember_the_query() -> None:
    class Opening(FakeWorkspaces):
        async def open(self, name: str) -> Workspace:
            await asyncio.Event().wait()
            raise AssertionError

    waiting = enricher(ScriptedFinder(FOUND), timeout=0.05)
    waiting._workspaces = Opening(FakeRepository())
    async with asyncio.timeout(10):
        assert (await waiting.enrich({"prompt": "/rag x"})).rag_context is not None


EMPTY = Findings("", (), False, closest=(Document("d", "secret text", "local", score=0.1),))


@pytest.mark.parametrize(
    ("asked", "by_default", "prompt"),
    [
        ({}, False, "x"),
        ({}, True, f"{NOTHING_FOUND}\n\nx"),
        ({"tell_none": True}, False, f"{NOTHING_FOUND}\n\nx"),
        ({"tell_none": False}, True, "x"),
    ],
)
async def test_the_model_is_told_where_there_is_no_evidence_if_the_caller_or_the_request_wants_that(
    asked: dict[str, Any], by_default: bool, prompt: str
) -> None:
    enriched = await enricher(ScriptedFinder(EMPTY)).enrich({"prompt": "/rag x", **asked}, tell_none=by_default)
    assert enriched.request["prompt"] == prompt
    assert enriched.rag_context is not None
    assert [each["content"] for each in enriched.rag_context.as_dict()["closest"]] == ["secret text"]


@pytest.mark.parametrize(
    ("findings", "settings"),
    [
        (FOUND, {}),
        (BLIND, {}),
        (Findings("", (), False, (NO_ROOM,)), {}),
        (Findings("", (), False, (Degradation("embedder", "down"),)), {}),
        (EMPTY, {"evidence_tokens": 20}),
        (EMPTY, {"preferences": ScriptedPreferences(mode="off")}),
    ],
)
async def test_the_model_is_told_only_what_is_known_and_has_room(findings: Findings, settings: dict[str, Any]) -> None:
    built = enricher(ScriptedFinder(findings), **settings)
    assert NOTHING_FOUND not in (await built.enrich({"prompt": "/rag x"}, tell_none=True)).request["prompt"]


async def test_a_strict_persona_has_a_sentence_of_its_own() -> None:
    request = {"prompt": "/rag x", "persona": "strict-de"}
    told = (await enricher(ScriptedFinder(EMPTY)).enrich(request, tell_none=True)).request["prompt"]
    assert "Das steht nicht in den Dokumenten." in told
    assert told.endswith("\n\nx")


async def test_blindness_passes_the_question_on_in_open_mode_only() -> None:
    enriched = await enricher(ScriptedFinder(BLIND)).enrich({"prompt": "/rag x"})
    assert enriched.request == {"prompt": "x"}
    assert enriched.rag_context is not None
    assert enriched.rag_context.verdict == "none"
    with pytest.raises(ServiceUnavailable):
        await enricher(ScriptedFinder(BLIND), fail_mode="closed").enrich({"prompt": "/rag x"})


class AskingElsewhere(ScriptedFinder):
    """A finder that waits for others, and then answers or fails."""

    def __init__(self, findings: Findings, failure: Exception | None = None) -> None:
        super().__init__(findings)
        self.failure = failure
        self.asked = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def find(self, request: EvidenceRequest) -> Findings:
        self.asked.set()
        await self.goes_on.wait()
        for _ in range(3):  # turns, in which what runs beside would get on
            await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return await super().find(request)


@pytest.mark.parametrize(
    ("findings", "failure", "fields", "error"),
    [
        (BLIND, None, {}, ServiceUnavailable),
        (FOUND, ConfigurationError("Set OPENAI_API_KEY."), {}, ConfigurationError),
        (FOUND, None, {"persona": "judge"}, ValidationError),
        (FOUND, None, {"memory": "yes"}, ValidationError),
    ],
)
async def test_a_question_that_is_refused_is_not_recorded(
    findings: Findings, failure: Exception | None, fields: dict[str, Any], error: type[Exception]
) -> None:
    finder, repository = AskingElsewhere(findings, failure), FakeRepository()
    finder.goes_on.set()
    for _ in range(2):
        with pytest.raises(error):
            await enricher(finder, repository, fail_mode="closed").enrich({"prompt": "/rag x", **fields})
        await asyncio.sleep(0)
    assert repository.queries == {}


async def test_a_question_whose_client_leaves_is_not_recorded() -> None:
    finder, repository = AskingElsewhere(FOUND), FakeRepository()
    asked = asyncio.create_task(enricher(finder, repository).enrich({"prompt": "/rag x"}))
    await finder.asked.wait()
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    assert repository.queries == {}


async def test_a_query_that_cannot_be_recorded_is_no_reason_to_withhold_evidence() -> None:
    class Forgetful(FakeRepository):
        async def save_query(self, query: object) -> None:
            raise ServiceUnavailable("knowledge_base", "read only")

    enriched = await enricher(ScriptedFinder(FOUND), Forgetful()).enrich({"prompt": "/rag x"})
    assert enriched.rag_context is not None


async def test_the_enhanced_request_keeps_its_metadata_and_adds_id_timestamp_and_context() -> None:
    enriched = await enricher(ScriptedFinder(FOUND)).enrich({"prompt": "/rag x", "metadata": {"temperature": 0.1}})
    body = enhanced_request(enriched)
    assert body["id"]
    assert body["timestamp"]
    assert body["metadata"]["temperature"] == 0.1
    context = body["metadata"]["rag_context"]
    assert context["query"] == "x"
    assert context["documents"] == [{"id": "d", "title": "", "content": "text", "source": "local", "score": 0.9}]
    assert context["timings_ms"] == {"retrieve": 1.23}


@pytest.mark.parametrize("nothing", ["", None])
async def test_an_empty_id_or_timestamp_counts_as_missing(nothing: str | None) -> None:
    enriched = await enricher(ScriptedFinder(FOUND)).enrich({"prompt": "/rag x", "id": nothing, "timestamp": nothing})
    body = enhanced_request(enriched)
    assert body["id"]
    assert body["timestamp"].endswith("Z")
    assert error_envelope(ValidationError("bad"), nothing)["id"]


@pytest.mark.parametrize(
    ("field", "argument", "setting", "expected"),
    [
        (None, None, None, PLAIN),
        (None, None, "strict-en", PERSONAS["strict-en"]),
        (None, "witness-en", "strict-en", PERSONAS["witness-en"]),
        ("witness-de", "witness-en", "strict-en", PERSONAS["witness-de"]),
    ],
)
async def test_the_persona_of_the_request_precedes_the_callers_and_the_settings(
    field: str | None, argument: str | None, setting: str | None, expected: str
) -> None:
    finder = ScriptedFinder(FOUND)
    request = {"prompt": "/rag what?", **({"persona": field} if field else {})}
    preferences = ScriptedPreferences(persona=setting)
    await enricher(finder, preferences=preferences).enrich(request, persona=argument)
    assert finder.calls[0]["instruction"] == expected


@pytest.mark.parametrize("fields", [{"persona": "judge"}, {"persona": 7}, {"compress": "yes"}])
async def test_an_unknown_persona_and_wrong_types_are_refused_before_retrieval(
    fields: dict[str, Any],
) -> None:
    finder = ScriptedFinder(FOUND)
    with pytest.raises(ValidationError):
        await enricher(finder).enrich({"prompt": "/rag what?", **fields})
    assert finder.calls == []


async def test_compression_is_asked_for_by_the_request() -> None:
    finder = ScriptedFinder(FOUND)
    await enricher(finder).enrich({"prompt": "/rag what?"})
    await enricher(finder).enrich({"prompt": "/rag what?", "compress": True})
    assert [call["compress"] for call in finder.calls] == [False, True]


async def test_a_request_without_the_command_may_have_any_persona() -> None:
    request = {"prompt": "what?", "persona": 7, "compress": "yes"}
    assert (await enricher(ScriptedFinder(FOUND)).enrich(request)).request == request


async def test_the_conversation_is_read_and_the_model_gets_the_users_own_words() -> None:
    finder = ScriptedFinder(replace(FOUND, standalone_question="how wide is the V90's rotor?"))
    messages = [
        {"role": "user", "content": "/rag What is the V90?"},
        {"role": "user", "content": "/rag and its rotor?"},
    ]
    enriched = await enricher(finder).enrich({"messages": messages})
    assert finder.calls[0]["turns"] == [("user", "What is the V90?")]
    assert enriched.request["messages"][-1]["content"] == "and its rotor?"
    assert enriched.rag_context is not None
    told = enriched.rag_context.as_dict()
    assert (told["query"], told["standalone_question"]) == ("and its rotor?", "how wide is the V90's rotor?")


async def test_a_question_that_stands_alone_has_no_standalone_question() -> None:
    enriched = await enricher(ScriptedFinder(FOUND)).enrich({"prompt": "/rag kelp?"})
    assert enriched.rag_context is not None
    assert "standalone_question" not in enriched.rag_context.as_dict()


async def test_the_limits_are_those_of_the_workspace() -> None:
    finder = ScriptedFinder(FOUND)
    preferences = ScriptedPreferences(threshold=0.8, max_documents=2)
    enriched = await enricher(finder, preferences=preferences).enrich({"prompt": "/rag what?"})
    assert finder.calls[0]["limits"] == (0.8, 2)
    assert enriched.rag_context is not None
    assert enriched.rag_context.threshold == 0.8


async def test_with_evidence_off_the_question_goes_through_without_its_command() -> None:
    finder = ScriptedFinder(FOUND)
    request = {"prompt": "/rag what?", "memory": True}
    enriched = await enricher(finder, preferences=ScriptedPreferences(mode="off"), fail_mode="closed").enrich(request)
    assert (enriched.request["prompt"], finder.calls) == ("what?", [])
    assert enriched.rag_context is not None
    told = enriched.rag_context.as_dict()
    assert (told["documents"], told["verdict"], told["mode"]) == ([], "none", "off")
    assert "memory" not in told


async def test_preferences_that_could_not_be_read_are_told_and_stop_nothing() -> None:
    preferences = ScriptedPreferences("The store of settings does not answer.")
    enriched = await enricher(ScriptedFinder(FOUND), preferences=preferences).enrich({"prompt": "/rag what?"})
    assert enriched.rag_context is not None
    (lost,) = enriched.rag_context.degraded
    assert (lost.component, lost.reason) == ("settings", "The store of settings does not answer.")


async def test_a_similarity_search_that_fails_is_refused_in_mode_closed() -> None:
    lost = Findings("", (), False, (Degradation("knowledge_base", "down"),))
    preferences = ScriptedPreferences(mode="similarity")
    with pytest.raises(ServiceUnavailable):
        await enricher(ScriptedFinder(lost), preferences=preferences, fail_mode="closed").enrich({"prompt": "/rag x"})
