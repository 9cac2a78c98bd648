"""Plain similarity search: cosines as scores, threshold, filter, diversity."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.embedded.embedder import EMBEDDED_MODEL, WordLlamaEmbedder
from cragside.bootstrap import Container
from cragside.domain.document import Mark, SourceText
from cragside.domain.query import Condition, Filter, SimilaritySearch, least_similarity
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend

QUESTION = "What do sea otters eat?"
TEXTS = {
    "otter.md": "Sea otters eat sea urchins, crabs and mussels.",
    "diet.md": "The diet of the sea otter: urchins, crabs, mussels and other animals of the sea.",
    "pump.md": "A heat pump moves heat from a cold place to a warm one.",
    "kelp.md": "Kelp forests are protected by otters, which feed on urchins.",
}


async def searchable(container: Container, *sources: SourceText) -> None:
    """As the worker makes them, without the graph."""
    library = (await container.workspaces.open("default")).documents
    indexer = (await container.workspaces.open("default")).work
    for source in sources:
        for task in (await library.accept(source, enrich=False)).tasks:
            await indexer.embed(task)


@pytest.fixture
async def container(tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
    yield container
    await container.close()


async def found(container: Container, text: str = QUESTION, **search: Any) -> list[tuple[str, float]]:
    repository = (await container.workspaces.open("default")).passages
    documents = await repository.similar(SimilaritySearch(text, **{"threshold": 0.0, "limit": 10, **search}))
    assert all(document.relevance is None for document in documents), "nothing has graded them"
    return [(document.metadata["filename"], document.similarity or 0.0) for document in documents]


async def test_scores_are_the_cosines_nearest_first(container: Container) -> None:
    await searchable(container, *(SourceText(name, text) for name, text in TEXTS.items()))
    vectors = WordLlamaEmbedder().encode([QUESTION, *TEXTS.values()])
    cosines = dict(zip(TEXTS, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    results = await found(container)
    assert [name for name, _ in results] == sorted(TEXTS, key=lambda name: -cosines[name])
    assert dict(results) == pytest.approx(cosines, abs=1e-5)


async def test_scores_are_between_0_and_1_and_at_least_the_threshold(container: Container) -> None:
    await searchable(container, *(SourceText(name, text) for name, text in TEXTS.items()))
    whole = await found(container, TEXTS["otter.md"], threshold=-1.0)
    assert len(whole) == len(TEXTS)
    assert all(0.0 <= score <= 1.0 for _, score in whole)
    assert whole[0] == ("otter.md", pytest.approx(1.0, abs=1e-5))
    second = whole[1][1]
    assert [name for name, _ in await found(container, TEXTS["otter.md"], threshold=second + 0.01)] == ["otter.md"]
    assert await found(container, limit=2) == (await found(container))[:2]


async def test_without_a_threshold_that_of_the_stores_model_holds(container: Container) -> None:
    await searchable(container, *(SourceText(name, text) for name, text in TEXTS.items()))
    everything = dict(await found(container))
    near = {name for name, cosine in everything.items() if cosine >= least_similarity(EMBEDDED_MODEL)}
    assert set(dict(await found(container, threshold=None))) == near
    assert 0 < len(near) < len(everything)


async def test_chosen_passages_can_be_compared_with_a_question(container: Container) -> None:
    await searchable(container, *(SourceText(name, text) for name, text in TEXTS.items()))
    repository = (await container.workspaces.open("default")).passages
    documents = await repository.similar(SimilaritySearch(QUESTION, threshold=0.0))
    told = {document.id: document.similarity for document in documents}
    first, *_ = told
    assert await repository.similarities(QUESTION, list(told)) == pytest.approx(told, abs=1e-5)
    assert await repository.similarities(QUESTION, [first, "unknown"]) == pytest.approx({first: told[first]}, abs=1e-5)
    assert await repository.similarities(QUESTION, []) == {}
    empty = (await container.workspaces.open("empty")).passages
    assert await empty.similarities(QUESTION, [first]) == {}


async def test_a_passage_has_its_page_and_section(container: Container) -> None:
    text = "Sea otters eat sea urchins."
    await searchable(container, SourceText("otter.pdf", text, marks=(Mark(0, page=7, section="Diet"),)))
    repository = (await container.workspaces.open("default")).passages
    (document,) = await repository.similar(SimilaritySearch(QUESTION, threshold=0.0))
    assert (document.metadata["page"], document.metadata["section"]) == (7, "Diet")
    assert document.content == text


async def test_an_empty_store_has_nothing_similar(container: Container) -> None:
    assert await found(container) == []
    assert await found(container, strategy="mmr") == []


async def test_mmr_prefers_new_content_to_repeated_content(container: Container) -> None:
    twins = [SourceText(f"{n}.md", f"Sea otters eat sea urchins and crabs. {'x' * n}") for n in range(1, 4)]
    await searchable(container, *twins, SourceText("kelp.md", "Kelp is eaten by urchins of the sea."))
    nearest = [name for name, _ in await found(container, limit=2)]
    assert "kelp.md" not in nearest
    diverse = await found(container, limit=2, strategy="mmr")
    assert diverse[0][0] == nearest[0]
    assert diverse[1][0] == "kelp.md"
    assert dict(diverse).items() <= dict(await found(container)).items()


async def test_mmr_with_full_weight_on_relevance_is_similarity(container: Container) -> None:
    await searchable(container, *(SourceText(name, text) for name, text in TEXTS.items()))
    assert await found(container, strategy="mmr", balance=1.0, limit=3) == await found(container, limit=3)


async def test_mmr_chooses_among_the_nearest_passages(container: Container) -> None:
    await searchable(container, *(SourceText(name, text) for name, text in TEXTS.items()))
    chosen = await found(container, strategy="mmr", balance=0.0, fetch=2, limit=2)
    assert {name for name, _ in chosen} == {name for name, _ in await found(container, limit=2)}


# Passages, and how many of them are in one document.
MANY, TOGETHER = 700, 50


@pytest.fixture(scope="module")
def home_of_many(tmp_path_factory: pytest.TempPathFactory, shared_backend: Backend) -> Path:
    """More passages than are tried one by one; what the filters want is far from the question."""
    home = tmp_path_factory.mktemp("many")
    asyncio.run(fill(home, shared_backend))
    return home


@pytest.fixture
async def many(home_of_many: Path, shared_backend: Backend) -> AsyncIterator[Container]:
    container = Container(load_settings({"RAG_HOME": str(home_of_many)}), backend=shared_backend)
    yield container
    await container.close()


async def fill(home: Path, backend: Backend) -> None:
    # So many tokens that each paragraph becomes a passage.
    container = Container(
        load_settings({"RAG_HOME": str(home), "RAG_CHUNK_TOKENS": "50", "RAG_CHUNK_OVERLAP_TOKENS": "0"}),
        backend=backend,
    )
    paragraphs = [" ".join([f"Sea otters eat sea urchins, number {n}."] * 3) for n in range(MANY)]
    texts = [
        SourceText(f"near/{n}.md", "\n\n".join(paragraphs[n : n + TOGETHER]), metadata={"shelf": "near"})
        for n in range(0, MANY, TOGETHER)
    ]
    marks = (Mark(0, page=3, section="s"),)
    far = [
        SourceText(
            f"far/Ärger {n}.md",
            f"Heat pump {n} moves heat.",
            title='The "far" one',
            file_type="md",
            doc_type="article",
            metadata={
                "shelf": "Größe",
                "tags": ["warm", "über"],
                "year": 1990 + n,
                "deep": {"er": "yes"},
                "section": "forged",
            },
            tier1={"author": 'Zoë "Z" Brandt'},
            marks=(Mark(0, page=3 + n, section="s"), Mark(5, 3 + n, "m"), Mark(12, 3 + n, "t")) if n else marks,
        )
        for n in range(3)
    ]
    await searchable(container, *texts, *far)
    library = (await container.workspaces.open("default")).documents
    assert sum((await library.counts()).values()) == MANY + len(far)
    await container.close()


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (Condition("shelf", "Größe"), 3),
        (Condition("shelf", "GRÖSSE"), 0),
        (Condition("tags", "über"), 3),
        (Condition("tags", "UBER", how="contains"), 0),
        (Condition("deep.er", "yes"), 3),
        (Condition("deep.er", "YE", how="contains"), 3),
        (Condition("year", 1991), 1),
        (Condition("year", 1991.0), 1),
        (Condition("pageNumber", 4), 1),
        (Condition("section", "s"), 1),
        (Condition("section", "s – t"), 2),
        (Condition("section", "S", how="contains"), 3),
        (Condition("section", "forged"), 0),
        (Condition("sections", "s"), 3),
        (Condition("sections", "m"), 2),
        (Condition("sections", "s – t"), 0),
        (Condition("source", "far/", how="contains"), 3),
        (Condition("source", "FAR/ÄRGER 1", how="contains"), 1),
        (Condition("source", "far/Är", how="begins"), 3),
        (Condition("source", "FAR/", how="begins"), 0),
        (Condition("filename", "ger 2.md", how="begins"), 0),
        (Condition("filename", "Ärger 2.md"), 1),
        (Condition("filename", "far/Ärger 2.md"), 0),
        (Condition("title", 'The "far" one'), 3),
        (Condition("docType", "article"), 3),
        (Condition("tier1.author", 'Zoë "Z" Brandt'), 3),
        (Condition("text", "heat PUMP 2", how="contains"), 1),
        (Condition("enrichmentStatus", "enriched"), 0),
        (Condition("nowhere", "x"), 0),
    ],
    ids=lambda value: f"{value.key}={value.value}" if isinstance(value, Condition) else str(value),
)
async def test_a_selective_filter_finds_all_that_meets_it(many: Container, condition: Condition, count: int) -> None:
    results = await found(many, threshold=-1.0, filter=Filter((condition,)))
    assert len(results) == count
    assert all(name.startswith("far/") for name, _ in results)


async def test_all_conditions_have_to_hold(many: Container) -> None:
    both = Filter((Condition("shelf", "Größe"), Condition("year", 1992)))
    assert [name for name, _ in await found(many, threshold=-1.0, filter=both)] == ["far/Ärger 2.md"]


async def test_a_filter_that_most_passages_meet_gives_the_nearest(many: Container) -> None:
    near = Filter((Condition("shelf", "near"),))
    assert await found(many, filter=near, limit=5) == await found(many, limit=5)


async def test_the_threshold_holds_within_a_filter(many: Container) -> None:
    assert await found(many, threshold=0.9, filter=Filter((Condition("shelf", "Größe"),))) == []


async def test_mmr_chooses_among_the_filtered_passages(many: Container) -> None:
    far = Filter((Condition("shelf", "Größe"),))
    results = await found(many, strategy="mmr", threshold=-1.0, limit=2, filter=far)
    assert len(results) == 2
    assert all(name.startswith("far/") for name, _ in results)
