"""Questions about several things, on the real LangGraph and the embedded grader."""

from typing import Any

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.domain.document import SourceText
from cragside.domain.evidence import Document
from tests.fakes import FakeRepository, FakeSearch
from tests.unit.crag.test_graph import find

OLD = "Saw KS-30, manual. The noise at the place of work is 91 dB(A). Weight 12 kg. Oil the guide every month."
NEW = "Saw KS-45, manual. The noise at the place of work is 79 dB(A). Weight 16 kg. Oil the guide every week."
OTHER = "The allotment garden has a shed. Its roof was tarred in 2019 by Bodo, who keeps the ladder."


class Counting(EmbeddedGrader):
    """Notes the questions and the passages that it grades."""

    def __init__(self) -> None:
        super().__init__(WordLlamaEmbedder())
        self.graded: list[tuple[str, list[str]]] = []

    async def grade(self, query: str, documents: Any) -> list[float]:
        self.graded.append((query, [document.id for document in documents]))
        return await super().grade(query, documents)


class Ranking(FakeRepository):
    """Ranks by the grader, as the real one does."""

    def __init__(self, *sources: SourceText, ranker: EmbeddedGrader) -> None:
        super().__init__(*sources)
        self.ranker = ranker
        self.asked: list[tuple[str, int]] = []

    async def retrieve(self, query: str, *, limit: int, **wanted: Any) -> list[Document]:
        self.asked.append((query, limit))
        found = await super().retrieve(query, limit=len(self.sources), **wanted)
        scores = self.ranker.scores(query, [(each.title, each.content) for each in found])
        ranked = [each.graded(score) for each, score in zip(found, scores, strict=True)]
        return sorted(ranked, key=lambda each: -(each.score or 0.0))[:limit]


@pytest.fixture
def grader() -> Counting:
    return Counting()


@pytest.fixture
def repository(grader: Counting) -> Ranking:
    texts = {"ks-30.md": OLD, "ks-45.md": NEW, "garden.md": OTHER}
    return Ranking(*(SourceText(name, text) for name, text in texts.items()), ranker=grader)


async def test_both_things_that_are_compared_have_their_passage(repository: Ranking, grader: Counting) -> None:
    question = "Which saw makes more noise, the KS-30 or the KS-45?"
    findings = await find(question=question, repository=repository, grader=grader)
    assert {each.content for each in findings.documents} == {OLD, NEW}
    assert all((each.score or 0.0) > 0.6 for each in findings.documents)
    assert [component for component in findings.degraded if component.component == "parts"] == []


async def test_each_part_has_a_place_before_any_has_a_second_one(repository: Ranking, grader: Counting) -> None:
    await repository.save_documents([SourceText("ks-30-b.md", OLD.replace("manual", "leaflet"))])
    question = "Which saw makes more noise, the KS-30 or the KS-45?"
    findings = await find(question=question, repository=repository, grader=grader, places=2)
    assert {"KS-30" in each.content for each in findings.documents} == {True, False}


async def test_a_thing_that_no_passage_names_is_told(repository: Ranking, grader: Counting) -> None:
    question = "Which saw makes more noise, the KS-30 or the KS-60?"
    findings = await find(question=question, repository=repository, grader=grader)
    assert findings.documents[0].content == OLD
    assert ['"KS-60"' in each.reason for each in findings.degraded if each.component == "parts"] == [True]


async def test_the_web_is_searched_for_a_thing_that_no_passage_names(repository: Ranking, grader: Counting) -> None:
    question = "Which saw makes more noise, the KS-30 or the KS-60?"
    told = "The saw KS-60 makes noise of 85 dB(A)."
    search = FakeSearch({"url": "https://saws.example/ks-60", "title": "Saw KS-60", "content": told})
    rated = {told: 0.5}
    findings = await find(question=question, repository=repository, grader=grader, search=search, embedded=rated)
    assert search.searched == [question]
    assert [each.content for each in findings.documents][:2] == [OLD, told]
    assert [each for each in findings.degraded if each.component == "parts"] == []


async def test_the_web_is_left_alone_where_each_thing_has_its_passage(repository: Ranking, grader: Counting) -> None:
    search = FakeSearch()
    question = "Which saw makes more noise, the KS-30 or the KS-45?"
    await find(question=question, repository=repository, grader=grader, search=search)
    assert search.searched == []


async def test_no_passage_is_graded_twice(repository: Ranking, grader: Counting) -> None:
    await find(question="Which saw makes more noise, the KS-30 or the KS-45?", repository=repository, grader=grader)
    graded = [key for _, keys in grader.graded for key in keys]
    assert len(grader.graded) == 2
    assert sorted(graded) == sorted(set(graded))


async def test_a_question_about_one_thing_is_searched_and_graded_once(repository: Ranking, grader: Counting) -> None:
    question = "How much noise does the KS-30 make?"
    await find(question=question, repository=repository, grader=grader)
    assert repository.asked == [(question, 8)]
    assert [asked for asked, _ in grader.graded] == [question]


async def test_a_list_takes_more_places_than_other_questions(grader: Counting) -> None:
    boats = [
        SourceText(f"{n}.md", f"Boat number {n} is stored in hall 2 for the winter; fee {n} euros.") for n in range(9)
    ]
    repository = Ranking(*boats, ranker=grader)
    found = await find(question="Which boats are stored in hall 2?", repository=repository, grader=grader, places=2)
    assert len(found.documents) == 6
    assert repository.asked == [("Which boats are stored in hall 2?", 16)]
