"""A workspace says how its prompts get evidence: corrected, by similarity alone, or not at all."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.preferences import NOTHING_FOUND, PERSONAS
from tests.knowledge import Knowledge

LAMP = "The keeper of the harbour lights the lamp at dusk."
OTTER = "Otters hold hands while they sleep in the kelp."
QUESTION = "Who lights the lamp of the harbour?"


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path, pages={}, similarity_threshold=0.1) as built:
        for name, text in (("lamp.md", LAMP), ("otter.md", OTTER)):
            await built.add(name, text)
        await built.index()
        yield built


async def enriched(knowledge: Knowledge, **fields: Any) -> tuple[str, dict[str, Any]]:
    answer = (await knowledge.http.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}", **fields})).json()
    return answer["prompt"], answer["metadata"]["rag_context"]


async def test_settings_show_how_prompts_get_evidence(knowledge: Knowledge) -> None:
    shown = (await knowledge.http.get("/v1/settings")).json()
    assert (shown["mode"], shown["threshold"], shown["max_documents"], shown["persona"]) == ("corrective", 0.6, 5, None)
    assert shown["modes"] == ["corrective", "similarity", "off"]
    assert shown["personas"] == list(PERSONAS)
    assert {"mode", "threshold", "max_documents", "persona"} <= set(shown["changeable"])
    assert shown["ranges"]["threshold"] == {"least": 0, "most": 0.95}
    assert shown["ranges"]["max_documents"] == {"least": 1, "most": 20}


async def test_the_environment_has_the_defaults_and_null_restores_them(tmp_path: Path) -> None:
    async with Knowledge(tmp_path, mode="off", threshold=0.7, persona="strict-en") as built:
        shown = (await built.http.patch("/v1/settings", json={"mode": "similarity", "persona": "witness-de"})).json()
        assert (shown["mode"], shown["threshold"], shown["persona"]) == ("similarity", 0.7, "witness-de")
        shown = (await built.http.patch("/v1/settings", json={"persona": "plain"})).json()
        assert shown["persona"] == "plain"
        shown = (await built.http.patch("/v1/settings", json={"mode": None, "persona": None})).json()
        assert (shown["mode"], shown["persona"]) == ("off", "strict-en")


async def test_a_threshold_and_a_persona_hold_for_prompts_of_the_workspace(knowledge: Knowledge) -> None:
    before, context = await enriched(knowledge)
    assert [each["content"] for each in context["documents"]] == [LAMP]
    await knowledge.http.patch("/v1/settings", json={"threshold": 0.0, "max_documents": 1, "persona": "strict-de"})
    after, context = await enriched(knowledge)
    assert (context["threshold"], len(context["documents"])) == (0.0, 1)
    assert "Beantworte die folgende Frage auf Deutsch" in after
    assert "Deutsch" not in before
    _, other = await enriched(knowledge, workspace="other")
    assert other["threshold"] == 0.6


async def test_similarity_injects_what_the_search_finds_and_grades_nothing(knowledge: Knowledge) -> None:
    await knowledge.http.patch("/v1/settings", json={"mode": "similarity", "similarity_threshold": 0.0})
    prompt, context = await enriched(knowledge)
    search = {"query": QUESTION, "by": "similarity"}
    found = (await knowledge.http.post("/v1/query", json=search)).json()["results"]
    assert [each["content"] for each in context["documents"]] == [each["text"] for each in found] == [LAMP, OTTER]
    assert [each["similarity"] for each in context["documents"]] == [round(each["similarity"], 4) for each in found]
    assert {each["score"] for each in context["documents"]} == {None}
    assert (context["mode"], context["verdict"], context["search_performed"]) == ("similarity", "local", False)
    assert context["degraded"] == []
    assert "similarity 0." in prompt
    assert "relevance" not in prompt
    await knowledge.http.patch("/v1/settings", json={"similarity_threshold": 0.9})
    prompt, context = await enriched(knowledge)
    assert (prompt, context["documents"], context["verdict"]) == (QUESTION, [], "none")
    assert [each["content"] for each in context["closest"]] == [LAMP, OTTER]
    assert all(0 <= each["similarity"] < 0.9 for each in context["closest"])


async def test_an_explanation_shows_cosines_where_nothing_is_graded(knowledge: Knowledge) -> None:
    corrected = (await knowledge.http.post("/v1/explain", json={"prompt": QUESTION})).json()
    assert (corrected["mode"], corrected["candidates"][0]["similarity"]) == ("corrective", None)
    await knowledge.http.patch("/v1/settings", json={"mode": "similarity"})
    told = (await knowledge.http.post("/v1/explain", json={"prompt": QUESTION})).json()
    assert [step["name"] for step in told["steps"]] == ["retrieve", "inject"]
    first = told["candidates"][0]
    assert (told["mode"], first["content"], first["kept"], first["number"]) == ("similarity", LAMP, True, 1)
    assert (first["score"], first["needed"], first["reasons"]["grader"]) == (None, None, None)
    assert 0.1 <= first["similarity"] <= 1
    assert "lamp" in first["reasons"]["words"]


async def test_a_follow_up_question_is_completed_for_a_similarity_search(knowledge: Knowledge) -> None:
    await knowledge.http.patch("/v1/settings", json={"mode": "similarity"})
    turns = [
        {"role": "user", "content": "Tell me about the harbour."},
        {"role": "assistant", "content": "It has a keeper."},
        {"role": "user", "content": "/rag and what about its lamp?"},
    ]
    answer = (await knowledge.http.post("/v1/enrich", json={"messages": turns})).json()
    context = answer["metadata"]["rag_context"]
    assert "harbour" in context["standalone_question"]
    assert "complete_question" in context["timings_ms"]


async def test_off_removes_the_command_and_adds_nothing(knowledge: Knowledge) -> None:
    await knowledge.http.patch("/v1/settings", json={"mode": "off"})
    prompt, context = await enriched(knowledge, memory=True)
    assert prompt == QUESTION
    assert (context["mode"], context["documents"], context["verdict"]) == ("off", [], "none")
    assert context["closest"] == []
    told = (await knowledge.http.post("/v1/explain", json={"prompt": QUESTION})).json()
    assert (told["mode"], told["steps"], told["candidates"], told["prompt"]) == ("off", [], [], QUESTION)


async def test_the_nearest_passages_are_those_of_the_workspace_and_stay_out_of_the_prompt(knowledge: Knowledge) -> None:
    secret = {"name": "secret.md", "text": "The safe of the town hall opens with 4711.", "workspace": "other"}
    await knowledge.http.post("/v1/documents", json=secret)
    await knowledge.index()
    for question in ("What opens the safe of the town hall?", "Who invented the telegraph?"):
        prompt, context = await enriched(knowledge, prompt=f"/rag {question}")
        assert (prompt, context["documents"], context["verdict"]) == (question, [], "none")
        assert {each["content"] for each in context["closest"]} == {LAMP, OTTER}
        assert all(0 <= each["score"] < 0.3 for each in context["closest"])


async def test_an_explanation_shows_the_nearest_passages_and_what_the_proxy_tells_the_model(
    knowledge: Knowledge,
) -> None:
    asked = {"prompt": "Who invented the telegraph?"}
    told = (await knowledge.http.post("/v1/explain", json=asked)).json()
    assert {each["content"] for each in told["closest"]} == {LAMP, OTTER}
    assert told["prompt"] == f"{NOTHING_FOUND}\n\nWho invented the telegraph?"
    untold = (await knowledge.http.post("/v1/explain", json={**asked, "tell_none": False})).json()
    assert untold["prompt"] == "Who invented the telegraph?"
    assert "closest" not in (await knowledge.http.post("/v1/explain", json={"prompt": QUESTION})).json()
