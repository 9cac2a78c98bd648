from functools import partial
from typing import Any

import pytest

from cragside.adapters.local.preferences import NoPreferences
from cragside.application.passages import Retriever
from cragside.application.preferences import WorkspacePreferences
from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.evidence import Document
from cragside.domain.preferences import Preferences
from cragside.domain.query import Condition, Filter, SimilaritySearch
from tests.fakes import FakeRepository, FakeWorkspaces, WordGrader

OTTER = SourceText("otter.md", "Otters eat urchins.")


class Counting(FakeRepository):
    """Counts the searches that reach it."""

    def __init__(self, *sources: SourceText) -> None:
        super().__init__(*sources)
        self.searches: list[SimilaritySearch] = []

    async def similar(self, search: SimilaritySearch) -> list[Document]:
        self.searches.append(search)
        return await super().similar(search)


def retriever(repository: FakeRepository) -> Retriever:
    preferences = WorkspacePreferences(Preferences(1000, 200, 4, 0.6, "mmr"), NoPreferences())
    return Retriever(FakeWorkspaces(repository), WordGrader(), preferences)


async def found(retriever: Retriever, text: str = "otters eat", workspace: str = "sea", **options: Any) -> list[str]:
    search = await retriever.search_for(text, workspace=workspace, **options)
    return [document.id for document in await retriever.search(search, workspace=workspace)]


async def test_a_search_uses_the_workspaces_preferences_for_omitted_options() -> None:
    search_for = partial(retriever(FakeRepository()).search_for, workspace="sea")
    assert await search_for("otters") == SimilaritySearch("otters", 4, 0.6, "mmr")
    only = Filter((Condition("docType", "code"),))
    given = await search_for("x", limit=9, threshold=0.0, strategy="similarity", wanted=only)
    assert given == SimilaritySearch("x", 9, 0.0, "similarity", filter=only)
    with pytest.raises(ValidationError):
        await search_for(" \n")


async def test_the_same_search_is_answered_from_memory() -> None:
    repository = Counting(OTTER)
    searching = retriever(repository)
    assert await found(searching) == await found(searching) == ["otter.md"]
    assert len(repository.searches) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"text": "otters  eat"},
        {"workspace": "land"},
        {"limit": 3},
        {"threshold": 0.5},
        {"strategy": "similarity"},
        {"wanted": Filter((Condition("a", [{"b": 1}]),))},
    ],
)
async def test_another_search_is_another_search(other: dict[str, Any]) -> None:
    repository = Counting(OTTER)
    searching = retriever(repository)
    await found(searching)
    await found(searching, **other)
    await found(searching, **other)
    assert len(repository.searches) == 2


async def test_a_store_that_changed_is_never_answered_for_from_memory() -> None:
    repository = Counting(OTTER)
    searching = retriever(repository)
    await found(searching)
    await repository.save_documents([SourceText("urchin.md", "Otters eat them.")])
    assert await found(searching) == ["otter.md", "urchin.md"]
    del repository.sources["otter.md"]
    repository.changes += 1
    assert await found(searching) == ["urchin.md"]


async def test_a_change_during_a_search_is_seen_by_the_next_search() -> None:
    class Busy(Counting):
        async def similar(self, search: SimilaritySearch) -> list[Document]:
            before = await super().similar(search)
            await self.save_documents([SourceText("urchin.md", "Otters eat them.")])
            return before

    searching = retriever(Busy(OTTER))
    assert await found(searching) == ["otter.md"]
    assert await found(searching) == ["otter.md", "urchin.md"]


async def test_the_hundred_searches_used_last_are_remembered() -> None:
    repository = Counting(OTTER)
    searching = retriever(repository)
    for number in range(100):
        await found(searching, f"otters {number}")
    await found(searching, "otters 0")
    await found(searching, "one more")
    await found(searching, "otters 0")
    assert len(repository.searches) == 101
    await found(searching, "otters 1")
    assert len(repository.searches) == 102


async def test_a_cached_answer_cannot_be_changed_by_its_receiver() -> None:
    searching = retriever(Counting(OTTER))
    search = await searching.search_for("otters eat", workspace="sea")
    (await searching.search(search, workspace="sea")).clear()
    assert len(await searching.search(search, workspace="sea")) == 1


async def test_compression_leaves_the_relevant_strips_and_is_remembered_apart() -> None:
    rain = "On the second day of the conference it rained for hours and nobody went out to look at the sea at all."
    eat = "Otters eat the urchins that graze on kelp, so that kelp forests grow back wherever there is none to be seen."
    searching = retriever(Counting(SourceText("otter.md", f"{rain} {eat}")))
    search = await searching.search_for("otters eat", workspace="sea")
    [whole] = await searching.search(search, workspace="sea")
    [cut] = await searching.search(search, workspace="sea", compress=True)
    assert whole.content == f"{rain} {eat}"
    assert (cut.content, cut.score, cut.id) == (eat, whole.score, whole.id)


async def test_a_failed_store_is_reported_and_not_cached() -> None:
    repository = Counting(OTTER)
    repository.failure = ServiceUnavailable("knowledge_base", "down")
    searching = retriever(repository)
    with pytest.raises(ServiceUnavailable):
        await found(searching)
    repository.failure = None
    assert await found(searching) == ["otter.md"]
