"""Notes with front matter and links, through the routes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.store.backends.interface import Backend
from tests.knowledge import Knowledge

FRONT = "---\ntitle: Quince tart\ntags: [baking, autumn]\ndate: 2024-10-03\n---\n"
NOTE = f"{FRONT}Bake it for 35 minutes. See [[Pastry|the base]]."
TEXT = "Bake it for 35 minutes. See the base."


@pytest.fixture
async def knowledge(tmp_path: Path, backend: Backend) -> AsyncIterator[Knowledge]:
    knowledge = Knowledge(tmp_path, members={"backend": backend})
    yield knowledge
    await knowledge.close()


async def bring(knowledge: Knowledge, text: str, **more: Any) -> dict[str, Any]:
    body = {"name": "014.md", "text": text, **more}
    (taken,) = (await knowledge.http.post("/v1/documents", json=body)).json()["documents"]
    await knowledge.index()
    return dict(taken)


async def matching(knowledge: Knowledge, key: str, value: Any) -> list[str]:
    must = [{"key": key, "match": {"value": value}}]
    answer = await knowledge.http.post("/query", json={"query": "baking a tart", "filter": {"must": must}})
    return [found["text"] for found in answer.json()["results"]]


@pytest.mark.parametrize(
    ("key", "value"), [("tags", "baking"), ("date", "2024-10-03"), ("links", "Pastry"), ("title", "Quince tart")]
)
async def test_passages_are_filtered_by_front_matter_and_links(knowledge: Knowledge, key: str, value: str) -> None:
    await bring(knowledge, NOTE)
    assert await matching(knowledge, key, value) == [TEXT]
    assert await matching(knowledge, key, f"{value}x") == []


async def test_what_a_client_says_counts_more_than_front_matter(knowledge: Knowledge) -> None:
    await bring(knowledge, NOTE, metadata={"date": "1999"})
    assert await matching(knowledge, "date", "1999") == [TEXT]
    assert await matching(knowledge, "tags", "autumn") == [TEXT]


async def test_changed_front_matter_is_a_change(knowledge: Knowledge) -> None:
    await bring(knowledge, NOTE)
    assert (await bring(knowledge, NOTE))["outcome"] == "unchanged"
    changed = NOTE.replace("autumn", "winter")
    assert (await bring(knowledge, changed))["outcome"] == "changed"
    assert await matching(knowledge, "tags", "winter") == [TEXT]
    assert await matching(knowledge, "tags", "autumn") == []
