"""Every kind of store reads questions in the words of its documents."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cragside.adapters.embedded.names import meant
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.repository import Vocabulary
from tests.contract.test_similarity import searchable
from tests.embedded_workspaces import store_of

DRYER = SourceText("dryer.txt", "The dehumidifier of the timber store has cost 289 euros.")
OTHERS = [SourceText(f"{number}.txt", f"Shelf {number} of the garage is for paint.") for number in range(5)]


@pytest.fixture
async def container(tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
    await searchable(container, DRYER, *OTHERS)
    yield container
    await container.close()


async def test_a_misspelt_question_finds_and_passes_what_the_right_one_does(container: Container) -> None:
    repository = (await container.workspaces.open("default")).passages
    reading, found = await repository.look_up("dehumidifer of the timber stroe cost", limit=3)
    assert reading.text == "dehumidifier of the timber store cost"
    assert found == (await repository.look_up(reading.text, limit=3))[1]
    context = (await container.enricher.enrich({"prompt": "/rag dehumidifer of the timber stroe cost"})).rag_context
    assert context is not None
    assert (context.query, context.verdict) == ("dehumidifer of the timber stroe cost", "local")
    assert context.documents[0].content == DRYER.text


async def test_reasons_say_which_words_were_read_otherwise(container: Container) -> None:
    explanation = await container.explainer.explain({"prompt": "dehumidifer of the timber store cost"})
    first, *others = explanation.as_dict()["candidates"]
    assert first["reasons"]["read"] == [{"asked": "dehumidifer", "read": "dehumidifier"}]
    assert "dehumidifier" in first["reasons"]["words"]
    assert all(candidate["reasons"]["read"] == [] for candidate in others)


async def test_a_store_knows_how_many_passages_have_a_term(container: Container) -> None:
    vocabulary = Vocabulary(await store_of(container.workspaces, "default"))
    assert await vocabulary.held(["garag", "paint", "dehumidifi", "garden"]) == {
        "garag": 5,
        "paint": 5,
        "dehumidifi": 1,
    }
    assert await vocabulary.held([]) == {}


async def test_a_store_knows_which_of_many_terms_it_has(container: Container) -> None:
    vocabulary = Vocabulary(await store_of(container.workspaces, "default"))
    terms = {*meant("piant"), *meant("tmiber"), "euro", "☃", "'", 'a"b', "x" * 300}
    assert await vocabulary.held(terms) == {"paint": 5, "timber": 1, "euro": 1}


async def test_a_term_counts_once_it_is_there(container: Container) -> None:
    vocabulary = Vocabulary(await store_of(container.workspaces, "default"))
    assert await vocabulary.held(["quinc"]) == {}
    await searchable(container, SourceText("quince.txt", "A quince tart."))
    assert await vocabulary.held(["quinc"]) == {"quinc": 1}


async def test_a_passage_with_words_is_found_as_it_is_written(container: Container) -> None:
    vocabulary = Vocabulary(await store_of(container.workspaces, "default"))
    assert await vocabulary.passage_with("dehumidifier") == DRYER.text
    assert await vocabulary.passage_with("quince") == ""


VESTS = (
    SourceText("rules.txt", "Everybody wears a personal flotation device (PFD) on the jetty."),
    SourceText("shop.txt", "A new PFD costs 89 euros at the chandler's."),
    SourceText("loan.txt", "The club lends a personal flotation device for 5 euros a day."),
)


@pytest.mark.parametrize(
    "question",
    ["what does a PFD cost at the chandler's", "what does a personal flotation device cost at the chandler's"],
)
async def test_an_explained_abbreviation_is_found_by_either_form(container: Container, question: str) -> None:
    await searchable(container, *VESTS)
    repository = (await container.workspaces.open("default")).passages
    reading, found = await repository.look_up(question, limit=3)
    assert [word.read for word in reading.equal] == ["personal flotation device" if "PFD" in question else "PFD"]
    assert {each.metadata["filename"] for each in found} == {"rules.txt", "shop.txt", "loan.txt"}
    assert found[0].metadata["filename"] == "shop.txt"
    told = (await container.explainer.explain({"prompt": question})).as_dict()["candidates"]
    other = "loan.txt" if "PFD" in question else "shop.txt"
    assert {each["filename"] for each in told if each["reasons"]["read"]} == {other}
