"""A workspace is built anew over HTTP, with its progress."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.errors import ServiceUnavailable
from tests.knowledge import Knowledge

EXCHANGE = {"user": "How did we configure health checks?", "assistant": "With a Docker Compose file on port 6380."}


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path, pages={}) as built:
        for name in ("a.md", "b.md"):
            await built.add(name, f"Otters of {name} hold hands at night.")
        await built.http.post("/v1/memories", json=EXCHANGE)
        await built.index()
        yield built


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((lines["event"], json.loads(lines["data"])))
    return found


async def test_progress_is_told_after_each_document_and_exchange(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/reindex", json={})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *progress, last = [each for each in events(answer.text) if each[1].get("done") != 0]
    assert [name for name, _ in progress] == ["progress"] * 3
    assert [(told["done"], told["total"]) for _, told in progress] == [(1, 3), (2, 3), (3, 3)]
    assert [told["name"] for _, told in progress][:2] == ["a.md", "b.md"]
    assert last == ("done", {"documents": 3})
    found = (await knowledge.http.post("/v1/query", json={"query": "Who holds hands at night?"})).json()
    assert len(found["results"]) == 2


async def test_a_workspace_without_a_store_has_nothing_to_build(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/reindex", json={"workspace": "nobody"})
    assert events(answer.text) == [("done", {"documents": 0})]


async def test_a_second_one_at_the_same_time_is_refused(knowledge: Knowledge) -> None:
    workspaces = knowledge.container.workspaces
    both = (workspaces.reindex("default", lambda _: None) for _ in range(2))
    done, refused = sorted(await asyncio.gather(*both, return_exceptions=True), key=lambda each: each != 3)
    assert done == 3
    assert isinstance(refused, ServiceUnavailable)
    assert "built anew already" in refused.message
    assert refused.retryable


async def test_a_refusal_has_a_status_of_its_own(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(workspace: str, progress: Callable[[str], None]) -> int:
        raise ServiceUnavailable("reindex", "Workspace default is being built anew already.")

    monkeypatch.setattr(knowledge.container.workspaces, "reindex", refuse)
    answer = await knowledge.http.post("/v1/reindex", json={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "service_unavailable")
    assert "already" in answer.json()["error"]["message"]


async def test_a_failure_in_the_middle_is_the_last_event(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(workspace: str, progress: Callable[[str], None]) -> int:
        progress("a.md")
        await asyncio.sleep(0)
        raise ServiceUnavailable("knowledge_base", "b.md: The old store is as it was.")

    monkeypatch.setattr(knowledge.container.workspaces, "reindex", fail)
    answer = await knowledge.http.post("/v1/reindex", json={})
    first, last = events(answer.text)
    assert first == ("progress", {"done": 1, "total": 3, "name": "a.md"})
    assert (last[0], last[1]["error"]["type"]) == ("failed", "service_unavailable")


async def test_settings_tell_the_size_of_the_store(knowledge: Knowledge) -> None:
    store = (await knowledge.http.get("/v1/settings")).json()["store"]
    assert store["bytes"] > 4096
    empty = (await knowledge.http.get("/v1/settings", params={"workspace": "nobody"})).json()["store"]
    assert empty["bytes"] is None
