"""LightRAG's query modes on a real store."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.query import Mode
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.driver import Always, GraphChange

GRAPH_MODES: tuple[Mode, ...] = ("local", "global", "hybrid")
# What the scripted extractor reads out of a text has nothing to do with its words, so that a passage that is found by
# these names can have been found through the graph alone.
HIDDEN = "Lorem ipsum dolor sit amet, consectetur adipiscing elit."
PLAIN = "Sea otters eat sea urchins and so protect the kelp forest."
ROWS = (
    "entity<|#|>Harbour Museum<|#|>organization<|#|>The Harbour Museum keeps maps of the coast.",
    "entity<|#|>Alice Weber<|#|>person<|#|>Alice Weber is the director of the Harbour Museum.",
    "relation<|#|>Alice Weber<|#|>Harbour Museum<|#|>directorship<|#|>Alice Weber directs the Harbour Museum.",
)


class Extractor:
    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        return "\n".join([*(ROWS if HIDDEN in prompt else ()), "<|COMPLETE|>"])


@pytest.fixture
async def container(tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), language_model=Extractor(), backend=backend)
    yield container
    await container.close()


async def names(container: Container, query: str, mode: Mode) -> list[str]:
    repository = (await container.workspaces.open("default")).passages
    return [document.metadata["filename"] for document in await repository.retrieve(query, limit=1, mode=mode)]


async def everything(container: Container, query: str, mode: Mode) -> list[str]:
    repository = (await container.workspaces.open("default")).passages
    return [document.metadata["filename"] for document in await repository.retrieve(query, limit=8, mode=mode)]


async def indexed(container: Container) -> None:
    repository = (await container.workspaces.open("default")).passages
    sources = [SourceText("hidden.md", HIDDEN), SourceText("plain.md", PLAIN)]
    assert {outcome.status for outcome in await repository.save_documents(sources)} == {"indexed"}


@pytest.mark.parametrize("mode", GRAPH_MODES)
async def test_these_find_through_entities_and_relations(container: Container, mode: Mode) -> None:
    await indexed(container)
    assert await everything(container, "Who has the directorship of the Harbour Museum?", mode) == ["hidden.md"]


async def test_naive_uses_no_graph(container: Container, tmp_path: Path, backend: Backend) -> None:
    await indexed(container)
    repository = (await container.workspaces.open("default")).passages
    known = await (await container.workspaces.open("default")).graph.search("", limit=100)
    assert known
    gone = GraphChange(nodes=dict.fromkeys(entity.name for entity in known))
    ledger = await backend.open_ledger(tmp_path / "default", "default", search_text=str.lower)
    assert await ledger.apply(gone, Always(), await ledger.driver.embedding_model() or "")
    ledger.driver.release()
    assert (await repository.status()).entities == 0
    assert await names(container, "What do sea otters eat?", "naive") == ["plain.md"]


async def test_mix_finds_through_both(container: Container) -> None:
    await indexed(container)
    found = await everything(container, "Do sea otters visit the Harbour Museum of Alice Weber?", "mix")
    assert sorted(found) == ["hidden.md", "plain.md"]


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_every_mode_finds_text_before_its_graph_exists(container: Container, mode: Mode) -> None:
    library = (await container.workspaces.open("default")).documents
    indexer = (await container.workspaces.open("default")).work
    for task in (await library.accept(SourceText("plain.md", PLAIN))).tasks:
        if task.stage == "embed":
            await indexer.embed(task)
    assert (await (await container.workspaces.open("default")).passages.status()).entities == 0
    assert await names(container, "What do sea otters eat?", mode) == ["plain.md"]


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_an_empty_store_has_nothing_in_any_mode(container: Container, mode: Mode) -> None:
    assert await names(container, "What do sea otters eat?", mode) == []


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_every_mode_ranks_what_it_found(container: Container, mode: Mode) -> None:
    await indexed(container)
    repository = (await container.workspaces.open("default")).passages
    scores = [
        document.score for document in await repository.retrieve("Harbour Museum and kelp forest", limit=8, mode=mode)
    ]
    assert scores
    assert all(score is not None for score in scores)
    assert scores == sorted(scores, key=lambda score: -(score or 0.0))
