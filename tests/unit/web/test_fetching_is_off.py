"""A service without a way to the Internet says so, instead of letting clients wait."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.knowledge import Knowledge, answer_of

URL = "https://page.example/notes"


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path / "kb", fetch_pages=False) as built:
        yield built


async def test_a_page_is_refused_with_what_to_do_instead(knowledge: Knowledge) -> None:
    error = answer_of(await knowledge.http.post("/v1/documents", json={"url": URL}), 400)["error"]
    assert (error["type"], error["details"]["reason"]) == ("validation_error", "fetching_is_off")
    assert "RAG_FETCH_PAGES=false" in error["message"]
    assert "Send the content itself" in error["message"]


async def test_a_repository_is_refused_too(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/repositories", json={"url": "https://git.example/project.git"})
    assert "RAG_FETCH_PAGES=false" in answer.text


async def test_rag_stacks_route_names_the_reason(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/ingest", json={"items": [{"url": URL}]})
    assert [each["reason"] for each in answer.json()["errors"]] == ["fetching_is_off"]


async def test_files_are_still_taken(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/documents", json={"text": "The lamp was lit in 1878.", "name": "lamp.txt"})
    assert answer.status_code == 202, answer.text
