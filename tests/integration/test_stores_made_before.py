"""Stores of the previous version open and answer the same."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.knowledge import Knowledge
from tests.stores_made_before import ARCHIVE, answers_of, recorded


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.mark.parametrize("name", ["home", "baked"])
async def test_a_store_that_the_previous_version_made_answers_the_same(stores: Path, name: str) -> None:
    expected = recorded(json.loads((stores / "answers.json").read_text())[name])
    answers = await answers_of(stores / name)
    assert len(answers) > 20
    assert {key: value for key, value in answers.items() if value != expected.get(key)} == {}
    assert answers.keys() == expected.keys()


async def test_a_store_that_the_previous_version_made_is_written_like_its_own(stores: Path) -> None:
    knowledge = Knowledge(stores / "home")
    try:
        todo = {"name": "todo.md", "source": "/a/todo.md", "text": "Buy oil for the lamp of the lighthouse."}
        again = (await knowledge.http.post("/v1/documents", json=todo)).json()
        assert [document["outcome"] for document in again["documents"]] == ["unchanged"]
        todo["text"] = "Sell the lighthouse's barometer."
        changed = (await knowledge.http.post("/v1/documents", json=todo)).json()
        assert [document["outcome"] for document in changed["documents"]] == ["changed"]
        await knowledge.index()
        found = (await knowledge.http.post("/query", json={"query": "barometer", "topK": 1})).json()
        assert found["results"][0]["text"] == todo["text"]
    finally:
        await knowledge.close()
