"""Settings, the queue's dead letters, and memory, over HTTP."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.local.preferences import PreferenceFile
from cragside.application.preferences import Check
from tests.knowledge import Knowledge, answer_of


async def test_settings_show_current_values_and_which_can_be_changed(knowledge: Knowledge) -> None:
    shown = (await knowledge.http.get("/v1/settings")).json()
    assert (shown["chunk_tokens"], shown["similarity_results"], shown["similarity_threshold"]) == (1000, 5, 0.3)
    assert shown["ranges"]["chunk_tokens"] == {"least": 500, "most": 2000}
    assert shown["models"] == ["embedded"]
    assert (shown["store"]["status"], shown["host"]["status"]) == ("empty", "not configured")


@pytest.mark.parametrize(
    ("configured", "shown"),
    [
        ({}, 0.3),
        ({"embedding_model": "all-minilm:latest"}, 0.4),
        ({"embedding_model": "some-other-model"}, 0.3),
        ({"similarity_threshold": 0.15}, 0.15),
    ],
)
async def test_the_least_cosine_fits_the_model_unless_it_is_set(
    tmp_path: Path, configured: dict[str, Any], shown: float
) -> None:
    knowledge = Knowledge(tmp_path, **configured)
    answer = (await knowledge.http.get("/v1/settings")).json()
    await knowledge.close()
    assert answer["similarity_threshold"] == shown
    assert answer["ranges"]["similarity_threshold"] == {"least": 0, "most": 0.9}


async def test_a_change_holds_for_the_workspace_and_for_every_process(knowledge: Knowledge, tmp_path: Path) -> None:
    change = {"similarity_results": 9, "similarity_strategy": "mmr", "workspace": "sea"}
    changed = await knowledge.http.patch("/v1/settings", json=change)
    assert (changed.status_code, changed.json()["similarity_results"]) == (200, 9)
    async with Knowledge(tmp_path, pages={}) as other:
        sea = (await other.http.get("/v1/settings", params={"workspace": "sea"})).json()
        land = (await other.http.get("/v1/settings")).json()
        assert (sea["similarity_results"], sea["similarity_strategy"]) == (9, "mmr")
        assert (land["similarity_results"], land["similarity_strategy"]) == (5, "similarity")
        back = await other.http.patch("/v1/settings", json={"similarity_results": None, "workspace": "sea"})
        assert (back.json()["similarity_results"], back.json()["similarity_strategy"]) == (5, "mmr")
    assert (await knowledge.http.get("/v1/settings", params={"workspace": "sea"})).json()["similarity_results"] == 5


async def test_a_new_passage_size_is_for_new_documents(knowledge: Knowledge) -> None:
    text = " ".join(f"Otter number {number} sleeps in the kelp." for number in range(300))
    await knowledge.add("before.md", text)
    await knowledge.http.patch("/v1/settings", json={"chunk_tokens": 500, "chunk_overlap_tokens": 0})
    await knowledge.add("after.md", text + " Good night.")
    page = (await knowledge.http.get("/v1/documents")).json()
    passages = {each["name"]: each["passages"] for each in page["documents"]}
    assert passages["after.md"] > passages["before.md"] > 0


async def test_saving_settings_keeps_no_other_request_waiting(tmp_path: Path) -> None:
    threads = []

    class Noted(PreferenceFile):
        def _change(self, workspace: str, changes: Mapping[str, Any], check: Check) -> Mapping[str, Any]:
            threads.append(threading.current_thread())
            return super()._change(workspace, changes, check)

    knowledge = Knowledge(tmp_path, members={"preference_store": Noted(tmp_path)})
    changed = await knowledge.http.patch("/v1/settings", json={"similarity_results": 9})
    await knowledge.close()
    assert changed.json()["similarity_results"] == 9
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"similarity_results": 2}, "3"),
        ({"similarity_results": 11}, "10"),
        ({"similarity_results": True}, "similarity_results"),
        ({"similarity_threshold": 0.91}, "0.9"),
        ({"chunk_tokens": 499}, "500"),
        ({"chunk_tokens": 500, "chunk_overlap_tokens": 500}, "smaller"),
        ({"similarity_strategy": "best"}, "mmr"),
        ({"embedding_model": "nomic-embed-text"}, "reindex"),
        ({"decision": "mean"}, "RAG_DECISION"),
        ({"threshold": 0.96}, "threshold"),
        ({"max_documents": 0}, "max_documents"),
        ({"mode": "perfect"}, "mode"),
        ({"persona": "judge"}, "witness-de"),
        ({"api_token": "x"}, "RAG_API_TOKEN"),
        ({"colour": "red"}, "colour"),
        ({"workspace": "../x"}, "workspace"),
        ([], "object"),
    ],
)
async def test_an_unchangeable_setting_is_refused_with_the_reason(knowledge: Knowledge, change: Any, said: str) -> None:
    before = (await knowledge.http.get("/v1/settings")).json()
    answer = await knowledge.http.patch("/v1/settings", json=change)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")
    assert said in answer.json()["error"]["message"]
    assert (await knowledge.http.get("/v1/settings")).json() == before


async def test_dead_letters_are_listed_and_can_be_revived(knowledge: Knowledge) -> None:
    identifier = (await knowledge.add("a.md", "Otters hold hands at night."))["id"]
    deliveries = await knowledge.queue.receive(limit=10, wait=0)
    indexer = (await knowledge.container.workspaces.open("default")).work
    for delivery in deliveries:
        await knowledge.queue.bury(delivery, "the model is gone")
        await indexer.failed(delivery.task, "the model is gone")
    dead = (await knowledge.http.get("/v1/queue/dead")).json()
    assert dead["dead"] == len(deliveries) == len(dead["letters"]) > 0
    assert {(each["document_id"], each["reason"]) for each in dead["letters"]} == {(identifier, "the model is gone")}
    assert (await knowledge.http.get("/v1/queue/dead", params={"workspace": "other"})).json()["letters"] == []
    assert answer_of(await knowledge.http.post("/v1/queue/revive", json={"document_id": identifier}), 202)["tasks"] > 0
    await knowledge.index()
    assert (await knowledge.http.get(f"/v1/documents/{identifier}")).json()["status"] == "enriched"
    assert (await knowledge.http.get("/v1/queue/dead")).json()["dead"] == 0
    assert (await knowledge.http.post("/v1/queue/revive", json={"document_id": "doc-none"})).status_code == 404


EXCHANGE = {
    "user": "How did we configure health checks?",
    "assistant": "With a Docker Compose file on port 6380.",
    "skill": "devops",
    "date": "2026-02-07T14:30:00",
}


async def test_an_exchange_is_remembered_once_and_recalled(knowledge: Knowledge) -> None:
    taken = (await knowledge.http.post("/v1/memories", json=EXCHANGE)).json()
    assert (taken["indexed"], "reason" in taken) == (True, False)
    again = (await knowledge.http.post("/v1/memories", json=EXCHANGE)).json()
    assert (again["indexed"], again["reason"], again["id"]) == (False, "known", taken["id"])
    await knowledge.index()
    found = await knowledge.http.post("/v1/memories/search", json={"query": "health checks", "mode": "naive"})
    assert found.json()["text"].startswith("# Relevant Memory\n")
    assert ">\nDate: 2026-02-07 14:30\nSkill: devops\nUser: How did" in found.json()["text"]
    assert len(found.json()["documents"]) == 1


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        ({"assistant": " "}, "blank_answer"),
        ({"assistant": None}, "blank_answer"),
        ({"user": None, "assistant": "b"}, "too_short"),
        ({"user": "Thanks!!", "assistant": "x" * 100}, "greeting"),
        ({"user": "a", "assistant": "b"}, "too_short"),
    ],
)
async def test_a_trivial_exchange_is_not_indexed(knowledge: Knowledge, exchange: dict[str, Any], reason: str) -> None:
    answer = await knowledge.http.post("/v1/memories", json={**EXCHANGE, **exchange})
    assert (answer.status_code, answer.json()) == (200, {"indexed": False, "reason": reason, "retryable": False})


async def test_an_exchange_without_user_equals_one_with_a_blank_user(knowledge: Knowledge) -> None:
    asked = {**EXCHANGE, "assistant": EXCHANGE["assistant"] * 2}
    taken = (await knowledge.http.post("/v1/memories", json={**asked, "user": None})).json()
    again = (await knowledge.http.post("/v1/memories", json={**asked, "user": ""})).json()
    assert (taken["indexed"], again["reason"], again["id"]) == (True, "known", taken["id"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {}),
        ("", {"user": "Is anybody there? Please answer, whoever you are."}),
        ("", {**EXCHANGE, "date": "yesterday"}),
        ("", {**EXCHANGE, "user": 7}),
        ("/search", {"query": " "}),
        ("/search", {"query": "x", "mode": "bypass"}),
        ("/search", {"query": "x", "limit": 0}),
        ("/search", {"query": "x", "limit": 101}),
    ],
)
async def test_an_invalid_exchange_is_refused(knowledge: Knowledge, path: str, body: dict[str, Any]) -> None:
    answer = await knowledge.http.post(f"/v1/memories{path}", json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")
