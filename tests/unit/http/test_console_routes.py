"""What a console asks first: the workspaces of its token, the samples, and how the components do."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cragside.domain.memory_name import memory_of
from cragside.entrypoints.samples.documents import QUESTIONS, corpus
from tests.knowledge import Knowledge


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    built = Knowledge(tmp_path, pages={})
    yield built
    await built.close()


async def workspaces(knowledge: Knowledge, token: str = "", **headers: str) -> Any:
    given = {"X-API-Key": token} if token else {}
    answer = await knowledge.http.get("/v1/workspaces", headers={**given, **headers})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_without_tokens_all_workspaces_are_listed_and_the_default_before_it_has_a_store(
    knowledge: Knowledge, tmp_path: Path
) -> None:
    assert await workspaces(knowledge) == {
        "default": "default",
        "workspaces": [{"name": "default", "documents": 0}],
        "read_only": False,
        "scopes": ["read", "write", "chat", "models"],
        "token_needed": False,
    }
    assert not (tmp_path / "default").exists()
    for number in range(2):
        body = {"text": f"Otter {number}.", "name": f"{number}.md", "workspace": "sea"}
        assert (await knowledge.http.post("/v1/documents", json=body)).status_code == 202
    said = {"user": "What do otters do at night, and where?", "assistant": "They hold hands.", "workspace": "sea"}
    assert (await knowledge.http.post("/v1/memories", json=said)).json()["indexed"]
    listed = (await workspaces(knowledge, **{"X-RAG-Workspace": "sea"}))["workspaces"]
    assert listed == [{"name": "default", "documents": 0}, {"name": "sea", "documents": 2}]
    assert memory_of("sea") not in json.dumps(listed)


async def test_a_token_sees_the_workspaces_that_it_opens_and_no_others(tmp_path: Path) -> None:
    tokens = {"one": ["sea"], "two": ["sea", "land"], "with": ["default", "sea"]}
    knowledge = Knowledge(
        tmp_path, pages={}, api_token=SecretStr("all"), workspace_tokens=SecretStr(json.dumps(tokens))
    )
    body = {"text": "Otters.", "name": "otter.md", "workspace": "secret"}
    await knowledge.http.post("/v1/documents", json=body, headers={"X-API-Key": "all"})
    try:
        assert (await knowledge.http.get("/v1/workspaces")).status_code == 401
        seen = {
            token: (
                (found := await workspaces(knowledge, token))["default"],
                [each["name"] for each in found["workspaces"]],
            )
            for token in ("one", "two", "with", "all")
        }
        assert seen == {
            "one": ("sea", ["sea"]),
            "two": (None, ["land", "sea"]),
            "with": ("default", ["default", "sea"]),
            "all": ("default", ["default", "secret"]),
        }
        one = await workspaces(knowledge, "one")
        assert (one["scopes"], one["token_needed"]) == (["read", "write", "chat"], True)
    finally:
        await knowledge.close()


async def test_a_store_that_cannot_be_read_does_not_hide_the_others(knowledge: Knowledge, tmp_path: Path) -> None:
    await knowledge.http.post("/v1/documents", json={"text": "Otters.", "name": "otter.md"})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "store.sqlite3").write_bytes(b"\xa5" * 9000)
    listed = (await workspaces(knowledge))["workspaces"]
    assert listed == [{"name": "broken", "documents": None}, {"name": "default", "documents": 1}]


async def test_the_samples_are_added_once_and_answer_their_questions(knowledge: Knowledge) -> None:
    told = (await knowledge.http.get("/v1/samples")).json()
    assert told == {"documents": len(corpus()), "questions": list(QUESTIONS)}
    assert len(told["questions"]) == 3
    added = await knowledge.http.post("/v1/samples", json={"workspace": "trial"})
    assert (added.status_code, added.json()["errors"]) == (202, [])
    assert [each["outcome"] for each in added.json()["documents"]] == ["new"] * told["documents"]
    again = (await knowledge.http.post("/v1/samples", json={"workspace": "trial"})).json()
    assert {each["outcome"] for each in again["documents"]} == {"unchanged"}
    await knowledge.index()
    for question in told["questions"]:
        asked = {"prompt": f"/rag {question}", "workspace": "trial"}
        found = (await knowledge.http.post("/v1/enrich", json=asked)).json()["metadata"]["rag_context"]
        assert found["verdict"] == "local"
        assert max(document["score"] for document in found["documents"]) > found["threshold"]
    assert (await knowledge.http.get("/v1/documents")).json()["total"] == 0


async def test_samples_beyond_the_limits_of_a_token_are_refused_one_by_one(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={}, api_token=SecretStr("all"), limit_documents=5)
    try:
        answer = await knowledge.http.post("/v1/samples", json={}, headers={"X-API-Key": "all"})
        body = answer.json()
        assert (answer.status_code, len(body["documents"]), len(body["errors"])) == (202, 5, len(corpus()) - 5)
        assert {each["type"] for each in body["errors"]} == {"forbidden"}
        again = await knowledge.http.post("/v1/samples", json={}, headers={"X-API-Key": "all"})
        assert len(again.json()["documents"]) == 5
    finally:
        await knowledge.close()


async def test_an_unknown_field_of_the_samples_is_refused(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/samples", json={"workspaces": ["a"]})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")
