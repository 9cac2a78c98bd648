"""A question in another language than the documents gets a word on that, with the embedded embedding model."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from tests.knowledge import Knowledge

SHED = "The rent of the boat shed is due in March. The rowing club pays it to the harbour office every year."
SCHUPPEN = "Die Miete für den Bootsschuppen ist im März fällig. Der Ruderverein zahlt sie jedes Jahr an das Hafenamt."
FOREIGN = "Wie lange darf man am Steg liegen?"


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path, pages={}) as built:
        await add(built, "shed.md", SHED)
        yield built


async def add(knowledge: Knowledge, name: str, text: str) -> None:
    await knowledge.add(name, text)
    await knowledge.index()


async def told(knowledge: Knowledge, question: str) -> str:
    """The reason of `language` in `degraded`, "" without one."""
    answer = (await knowledge.http.post("/v1/enrich", json={"prompt": f"/rag {question}"})).json()
    context: dict[str, Any] = answer["metadata"]["rag_context"]
    return {each["component"]: each["reason"] for each in context["degraded"]}.get("language", "")


async def test_a_question_in_another_language_is_told_with_the_way_out(knowledge: Knowledge) -> None:
    reason = await told(knowledge, FOREIGN)
    assert reason.startswith("The question is in German, the documents are in English.")
    assert "RAG_EMBEDDING_MODEL=bge-m3" in reason
    found = (await knowledge.http.post("/v1/query", json={"query": FOREIGN})).json()
    assert "language" in {each["component"] for each in found["degraded"]}


@pytest.mark.parametrize("question", ["How long may one stay at the jetty?", "Steg Liegezeit", "Ada Grant Saltmere"])
async def test_a_question_in_the_language_of_a_document_or_in_none_is_not(knowledge: Knowledge, question: str) -> None:
    assert await told(knowledge, question) == ""


async def test_in_a_store_of_two_languages_the_other_one_is_told_of_a_question_without_an_answer(
    knowledge: Knowledge,
) -> None:
    assert await told(knowledge, FOREIGN)
    await add(knowledge, "schuppen.md", SCHUPPEN)
    assert (await told(knowledge, FOREIGN)).startswith("The question is in German, some documents are in English.")
    assert await told(knowledge, "Wer zahlt die Miete für den Bootsschuppen?") == ""
    documents = (await knowledge.http.get("/v1/documents")).json()["documents"]
    (german,) = [each["id"] for each in documents if each["name"] == "schuppen.md"]
    await knowledge.http.delete(f"/v1/documents/{german}")
    assert (await told(knowledge, FOREIGN)).startswith("The question is in German, the documents are in English.")


class ManyLanguages(WordLlamaEmbedder):
    """Stands for a model that knows several languages."""

    @property
    def name(self) -> str:
        return "bge-m3"


async def test_with_a_model_that_may_cross_languages_nothing_is_told(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={}, members={"embedder": ManyLanguages()})
    await add(knowledge, "shed.md", SHED)
    passages = (await knowledge.container.workspaces.open("default")).passages
    assert (await passages.status()).embedding_model == "bge-m3"
    assert await told(knowledge, FOREIGN) == ""
    await knowledge.close()
