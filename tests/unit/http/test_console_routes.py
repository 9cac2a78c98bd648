"""The console asks first for the workspaces of its token, the samples and the state of the components."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from cragside.domain.document import SourceText
from cragside.domain.names import memory_of
from cragside.entrypoints.http.health import FOR_CLIENTS, component_report
from cragside.entrypoints.samples.documents import QUESTIONS, corpus
from cragside.store.baking import Baking
from tests.clocks import MovedClock
from tests.knowledge import Knowledge, answer_of


async def workspaces(knowledge: Knowledge, token: str = "", **headers: str) -> Any:
    given = {"X-API-Key": token} if token else {}
    return answer_of(await knowledge.http.get("/v1/workspaces", headers={**given, **headers}))


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
        await knowledge.add(f"{number}.md", f"Otter {number}.", workspace="sea")
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
    await knowledge.add("otter.md", "Otters.")
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
    async with Knowledge(tmp_path, pages={}, api_token=SecretStr("all"), limit_documents=5) as knowledge:
        answer = await knowledge.http.post("/v1/samples", json={}, headers={"X-API-Key": "all"})
        body = answer.json()
        assert (answer.status_code, len(body["documents"]), len(body["errors"])) == (202, 5, len(corpus()) - 5)
        assert {each["type"] for each in body["errors"]} == {"forbidden"}
        again = await knowledge.http.post("/v1/samples", json={}, headers={"X-API-Key": "all"})
        assert len(again.json()["documents"]) == 5


async def test_an_unknown_field_of_the_samples_is_refused(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/samples", json={"workspaces": ["a"]})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")


class Silent:
    """A search engine that never answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def check(self) -> None:
        self.asked += 1
        await asyncio.Event().wait()


async def components(knowledge: Knowledge) -> dict[str, dict[str, str]]:
    found = answer_of(await knowledge.http.get("/v1/components"))
    return {each["name"]: each for each in found["components"]}


async def test_the_components_are_those_of_doctor_without_paths(knowledge: Knowledge, tmp_path: Path) -> None:
    await knowledge.add("otter.md", "Otters.")
    found = await components(knowledge)
    assert {found[name]["state"] for name in ("python", "cragside", "settings", "folder", "store")} == {"ok"}
    assert found["store"]["detail"] == "workspace default: 1 document, embedded by wordllama-256"
    assert found["ollama"]["state"] == found["searxng"]["state"] == "not configured"
    assert "OLLAMA_BASE_URL" in found["ollama"]["remedy"]
    assert str(tmp_path) not in json.dumps(found)


async def test_components_that_fail_are_told_with_a_remedy_and_without_addresses(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, ollama_base_url="http://u:hush@127.0.0.1:9/o", pages={})
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "store.sqlite3").write_bytes(b"\xa5" * 9000)
    found = await components(knowledge)
    await knowledge.close()
    assert (found["ollama"]["state"], found["store"]["state"]) == ("error", "error")
    assert "OLLAMA_BASE_URL" in found["ollama"]["remedy"]
    assert "move its folder away" in found["store"]["remedy"]
    assert not [said for said in ("hush", "127.0.0.1", str(tmp_path)) if said in json.dumps(found)]


async def test_a_silent_component_is_given_up_and_those_who_ask_share_the_examination(tmp_path: Path) -> None:
    search, clock = Silent(), MovedClock()
    knowledge = Knowledge(
        tmp_path, pages={}, members={"search": search, "clock": clock}, searxng_host="http://127.0.0.1:9"
    )
    options = replace(FOR_CLIENTS, seconds=0.05)
    knowledge.app.state.shared[component_report] = component_report(knowledge.container, options)
    both = await asyncio.gather(components(knowledge), components(knowledge))
    assert "did not answer within" in both[0]["searxng"]["detail"]
    assert both[0] == both[1] == await components(knowledge)
    assert search.asked == 1
    clock.move(5)
    await components(knowledge)
    assert search.asked == 2
    await knowledge.close()


async def test_the_components_are_for_tokens_of_all_workspaces(tmp_path: Path) -> None:
    bound = SecretStr(json.dumps({"one": ["sea"]}))
    knowledge = Knowledge(tmp_path, pages={}, api_token=SecretStr("all"), workspace_tokens=bound)
    statuses = {}
    for token in ("", "one", "all"):
        answer = await knowledge.http.get("/v1/components", headers={"X-API-Key": token})
        statuses[token] = answer.status_code
    await knowledge.close()
    assert statuses == {"": 401, "one": 403, "all": 200}


async def test_a_baked_store_answers_reads_and_refuses_samples_and_repositories(tmp_path: Path) -> None:
    with Baking.into(tmp_path / "baked") as baking:
        repository = (await (made := Knowledge(baking.home)).container.workspaces.open("default")).passages
        await repository.save_documents([SourceText("otter.md", "Otters hold hands.", file_type="md")])
        known = await repository.status()
        await made.close()
        baking.publish(known)
    async with Knowledge(tmp_path / "baked", pages={}) as baked:
        found = await workspaces(baked)
        assert (found["read_only"], found["workspaces"]) == (True, [{"name": "default", "documents": 1}])
        page = (await baked.http.get("/v1/documents", params={"search": "OTTER", "sort": "name"})).json()
        assert (page["total"], page["file_types"]) == (1, {"md": 1})
        assert (await baked.http.get("/v1/samples")).status_code == 200
        assert (await components(baked))["store"]["state"] == "ok"
        for path, body in (("samples", {}), ("repositories", {"url": "https://git.example/x.git"})):
            refused = await baked.http.post(f"/v1/{path}", json=body)
            assert (refused.status_code, refused.json()["error"]["type"]) == (400, "validation_error")
            assert "read-only" in refused.json()["error"]["message"]
            assert str(tmp_path) not in refused.text
