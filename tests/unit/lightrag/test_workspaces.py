"""The embedded store on disk: which model built it, how it is built anew, and who may use it at once."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from cragside.adapters.embedded.keywords import keywords_of
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.adapters.lightrag.workspaces import EmbeddedWorkspaces
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError
from cragside.ports.embedder import Vectors
from tests.fakes import WordGrader

OTTER = SourceText("otter.md", "Sea otters eat urchins in the kelp forest.", "Sea otter")


class LetterEmbedder:
    def __init__(self, name: str, dimensions: int) -> None:
        self.name = name
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.full((len(texts), self.dimensions), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text:
                row[ord(letter) % self.dimensions] += 1
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


Build = Callable[..., EmbeddedWorkspaces]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    models = {"small": LetterEmbedder("small", 16), "large": LetterEmbedder("large", 48)}

    def built(embedding_model: str | None = None, default: str = "small") -> EmbeddedWorkspaces:
        async def open_embedder(name: str | None) -> LetterEmbedder:
            return models[name or default]

        return EmbeddedWorkspaces(
            tmp_path,
            embedding_model=embedding_model,
            open_embedder=open_embedder,
            model=EmbeddedLanguageModel(),
            ranker=WordGrader(),
            keywords_of=keywords_of,
            search_text=str.lower,
            count_tokens=lambda text: len(text.split()),
            chunk_tokens=100,
            chunk_overlap=10,
            parallel=4,
            saved_queries=3,
        )

    return built


async def test_a_store_goes_on_with_the_model_that_built_it(build: Build) -> None:
    first = build()
    await (await first.repository("w")).save_documents([OTTER])
    await first.close()
    later = build(default="large")
    repository = await later.repository("w")
    assert (await repository.status()).embedding_model == "small"
    assert (await repository.retrieve("what do otters eat?", limit=1))[0].title == "Sea otter"
    await later.close()


async def test_naming_another_model_is_an_error_that_names_both_and_the_way_out(build: Build) -> None:
    first = build()
    await (await first.repository("w")).save_documents([OTTER])
    await first.close()
    with pytest.raises(ConfigurationError, match=r"small.*large.*cragside reindex --workspace w"):
        await build(embedding_model="large").repository("w")


async def test_reindexing_builds_the_store_anew_with_the_named_model(build: Build) -> None:
    first = build()
    await (await first.repository("w")).save_documents([OTTER, SourceText("kelp.md", "Kelp grows fast.", "Kelp")])
    await first.close()
    names: list[str] = []
    again = build(embedding_model="large")
    assert await again.reindex("w", names.append) == 2
    assert sorted(names) == ["kelp.md", "otter.md"]
    repository = await again.repository("w")
    status = await repository.status()
    assert (status.embedding_model, status.documents) == ("large", 2)
    assert (await repository.retrieve("what do otters eat?", limit=1))[0].title == "Sea otter"
    await again.close()


async def test_a_store_can_be_built_anew_when_its_model_is_out_of_reach(build: Build, tmp_path: Path) -> None:
    first = build()
    await (await first.repository("w")).save_documents([OTTER])
    await first.close()
    with sqlite3.connect(tmp_path / "w" / "store.sqlite3") as connection:
        connection.execute("UPDATE meta SET value = 'gone' WHERE key = 'embedding_model'")
    again = build(default="large")
    assert await again.reindex("w", lambda _: None) == 1
    assert (await (await again.repository("w")).status()).embedding_model == "large"
    await again.close()


async def test_an_empty_store_is_not_bound_to_a_model(build: Build) -> None:
    first = build()
    await first.repository("w")
    await first.close()
    second = build(embedding_model="large")
    assert (await (await second.repository("w")).status()).embedding_model == "large"
    await second.close()


async def test_workspaces_do_not_see_each_other(build: Build) -> None:
    store = build()
    await (await store.repository("a")).save_documents([OTTER])
    assert await (await store.repository("b")).retrieve("what do otters eat?", limit=5) == []
    await store.close()


async def test_a_request_that_gives_up_while_the_store_opens_does_not_stop_the_opening(build: Build) -> None:
    store = build()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await store.repository("w")
    first, second = await asyncio.gather(store.repository("w"), store.repository("w"))
    assert first is second
    assert (await first.save_documents([OTTER]))[0].status == "indexed"
    await store.close()


async def test_a_store_that_could_not_be_opened_is_tried_again(build: Build, tmp_path: Path) -> None:
    (tmp_path / "w").write_text("a file")
    store = build()
    with pytest.raises(ConfigurationError):
        await store.repository("w")
    (tmp_path / "w").unlink()
    assert (await (await store.repository("w")).status()).documents == 0
    await store.close()


async def test_a_store_of_another_format_is_a_clear_error(build: Build, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with sqlite3.connect(tmp_path / "w" / "store.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigurationError, match="format 99"):
        await build().repository("w")


async def test_a_file_that_is_no_store_is_a_clear_error(build: Build, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "store.sqlite3").write_bytes(b"this is not a database, it is a text file" * 100)
    with pytest.raises(ConfigurationError, match="store"):
        await build().repository("w")


async def test_a_home_that_cannot_be_a_folder_is_a_clear_error(build: Build, tmp_path: Path) -> None:
    (tmp_path / "w").write_text("a file")
    with pytest.raises(ConfigurationError, match="RAG_HOME"):
        await build().repository("w")


async def test_the_oldest_queries_are_forgotten(build: Build) -> None:
    from cragside.domain.query import Query

    store = build()
    repository = await store.repository("w")
    for number in range(5):
        await repository.save_query(Query(f"q{number}", "what?"))
    kept = [number for number in range(5) if await repository.get_query(f"q{number}")]
    assert kept == [2, 3, 4]
    await store.close()


async def test_what_another_process_writes_is_found_without_reopening(tmp_path: Path) -> None:
    from cragside.bootstrap import build_container
    from cragside.settings import load_settings

    home = {"RAG_HOME": str(tmp_path / "home")}
    container = build_container(load_settings(home))
    repository = await container.workspaces.repository("default")
    await repository.save_documents([OTTER])
    assert len(await repository.retrieve("what is a heat pump?", limit=5)) <= 1
    note = tmp_path / "pump.md"
    note.write_text("# Heat pump\n\nA heat pump moves heat from a cold place to a warm one.")
    ingest = [sys.executable, "-c", "from cragside.entrypoints.cli.main import main; main()", "ingest", str(note)]
    subprocess.run(ingest, check=True, env={**home, "PYTHONPATH": ":".join(sys.path)}, capture_output=True)
    assert (await repository.retrieve("what is a heat pump?", limit=5))[0].title == "Heat pump"
    await container.close()
