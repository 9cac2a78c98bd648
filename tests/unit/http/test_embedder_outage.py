"""A service that is started while the Ollama that embedded its store is down, or without its address."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.errors import ConfigurationError
from tests.knowledge import Knowledge, answer_of
from tests.services.stub_ollama import StubOllama

OTTER = "Otters hold hands while they sleep. Sea otters belong to the Monterey Kelp Forest."
KELP = "Kelp grows half a metre a day and shelters the raft of otters."
MODEL = "nomic-embed-text"

Start = Callable[..., Knowledge]


@pytest.fixture
async def stub() -> AsyncIterator[StubOllama]:
    async with StubOllama(models=(f"{MODEL}:latest",)) as stub:
        yield stub


@pytest.fixture
async def start(tmp_path: Path, stub: StubOllama) -> AsyncIterator[Start]:
    """Start the service anew on the same store, with the stub's address unless another one is given."""
    started: list[Knowledge] = []

    def begin(**settings: Any) -> Knowledge:
        started.append(Knowledge(tmp_path, **{"ollama_base_url": stub.url, "chat_model": "embedded", **settings}))
        return started[-1]

    yield begin
    for knowledge in started:
        await knowledge.close()


async def add(knowledge: Knowledge, name: str, text: str) -> str:
    return str((await knowledge.add(name, text))["id"])


async def known(knowledge: Knowledge) -> dict[str, str]:
    found = answer_of(await knowledge.http.get("/v1/documents"))
    return {each["name"]: each["status"] for each in found["documents"]}


async def embedded(start: Start) -> None:
    """A store with one document whose vectors are the stub's."""
    before = start()
    await add(before, "otter.md", OTTER)
    await before.index()
    assert await known(before) == {"otter.md": "enriched"}
    await before.close()


@pytest.fixture(params=["down", "without its address"])
async def outage(start: Start, stub: StubOllama, request: pytest.FixtureRequest) -> Knowledge:
    """A service that has never reached the Ollama that embedded its store."""
    await embedded(start)
    await stub.stop()
    return start() if request.param == "down" else start(ollama_base_url=None)


async def test_routes_without_embedding_work_while_the_model_is_down(outage: Knowledge) -> None:
    http = outage.http
    assert await known(outage) == {"otter.md": "enriched"}
    text = await http.post("/documents/text", json={"text": KELP, "file_source": "kelp.md"})
    assert (text.status_code, text.json()["status"]) == (200, "success")
    memory = await http.post("/v1/memories", json={"user": "What do otters do at night?", "assistant": OTTER})
    assert (memory.status_code, memory.json()["indexed"]) == (200, True)
    assert sorted((await known(outage)).values()) == ["enriched", "pending"]
    stats = await http.get("/enrichment/stats")
    assert stats.status_code == 200, stats.text
    counts = await http.get("/documents/status_counts")
    assert counts.json()["status_counts"]["PROCESSED"] == 1
    entity = await http.get("/graph/entity/Monterey Kelp Forest")
    assert (entity.status_code, entity.json()["entity"]["name"]) == (200, "Monterey Kelp Forest")
    health = (await http.get("/health")).json()
    assert health["components"]["knowledge_base"] == {"ok": True, "reason": ""}


async def test_a_document_can_be_deleted(outage: Knowledge) -> None:
    identifier = (await outage.http.get("/v1/documents")).json()["documents"][0]["id"]
    assert (await outage.http.delete(f"/v1/documents/{identifier}")).status_code == 204
    assert await known(outage) == {}


async def test_a_question_is_refused_or_answered_by_words(outage: Knowledge) -> None:
    similar = await outage.http.post("/query", json={"query": "otters", "strategy": "similarity"})
    mixed = await outage.http.post("/query", json={"query": "otters", "mode": "mix"})
    enriched = await outage.http.post("/v1/enrich", json={"prompt": "/rag what do otters hold while they sleep?"})
    assert similar.status_code == 503
    assert similar.json()["error"].endswith(("does not answer", "its log says why."))
    if outage.container.host is None:
        assert mixed.status_code == 503
        assert (enriched.status_code, enriched.json()["error"]["details"]["component"]) == (503, "configuration")
    else:
        assert [each["text"] for each in mixed.json()["results"]] == [OTTER]
        context = enriched.json()["metadata"]["rag_context"]
        assert [each["content"] for each in context["documents"]] == [OTTER]
        degraded = {each["component"]: each["reason"] for each in context["degraded"]}
        assert degraded["embedder"] == "Ollama does not answer. Passages were found by their words alone."


async def test_tasks_wait_until_the_host_is_back(start: Start, stub: StubOllama) -> None:
    await embedded(start)
    await stub.stop()
    down = start()
    await add(down, "kelp.md", KELP)
    await down.container.prepare()
    (delivery,) = [each for each in await down.queue.receive(limit=9, wait=0) if each.task.stage == "embed"]
    for _ in range(down.container.settings.index_attempts + 1):
        handled = await down.container.attempts.handle(delivery, wait=False)
        assert (handled.outcome, handled.unavailable) == ("retried", True)
        assert handled.reason.startswith("embedder: ")
    assert await known(down) == {"otter.md": "enriched", "kelp.md": "pending"}
    assert (await down.queue.stats()).dead == 0
    await down.close()
    await stub.start()
    after = start()
    await after.worker().run(until_idle=True)
    assert await known(after) == {"otter.md": "enriched", "kelp.md": "enriched"}


async def test_without_an_address_the_worker_says_what_is_missing(start: Start, stub: StubOllama) -> None:
    await embedded(start)
    without = start(ollama_base_url=None)
    await add(without, "kelp.md", KELP)
    with pytest.raises(ConfigurationError, match=rf"{MODEL} needs a model host. Set OLLAMA_BASE_URL"):
        await without.index()
    with pytest.raises(ConfigurationError, match="OLLAMA_BASE_URL"):
        await without.container.prepare()
    await without.close()
    after = start()
    await after.index()
    assert await known(after) == {"otter.md": "enriched", "kelp.md": "enriched"}


async def test_a_new_store_takes_documents_in_for_a_model_that_cannot_be_asked(start: Start, stub: StubOllama) -> None:
    await stub.stop()
    down = start(embedding_model=MODEL)
    await add(down, "kelp.md", KELP)
    assert await known(down) == {"kelp.md": "pending"}
    await down.close()
    await stub.start()
    after = start(embedding_model=MODEL)
    await after.worker().run(until_idle=True)
    assert await known(after) == {"kelp.md": "enriched"}
    assert (await (await after.container.workspaces.open("default")).passages.status()).embedding_model == MODEL


async def test_starting_has_the_host_load_the_model(start: Start, stub: StubOllama) -> None:
    await embedded(start)
    stub.calls.clear()
    again = start()
    assert await known(again) == {"otter.md": "enriched"}
    assert stub.calls == []
    await again.container.prepare()
    assert len(stub.asked("/api/embed")) == 1


async def test_a_host_with_another_model_under_the_same_name_writes_no_vectors(start: Start, stub: StubOllama) -> None:
    await embedded(start)
    stub.dimensions = 9
    after = start()
    await add(after, "kelp.md", KELP)
    (delivery,) = [each for each in await after.queue.receive(limit=9, wait=0) if each.task.stage == "embed"]
    handled = await after.container.attempts.handle(delivery, wait=False)
    assert handled.outcome == "retried"
    assert "9 dimensions" in handled.reason
    assert "cragside reindex" in handled.reason
