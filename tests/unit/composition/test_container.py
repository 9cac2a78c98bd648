"""The container builds a member when it is first used, and closes what it built."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import Settings, load_settings
from tests.programs import output_of

HEAVY = {"lightrag", "langgraph", "numpy", "aiohttp", "httpx", "boto3", "sqlite3", "filelock"}


class Noted:
    """A member that notes what is done to it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def note(*_: Any, **__: Any) -> None:
            self.calls.append(name)

        return note


def settings(home: Path, **variables: str) -> Settings:
    return load_settings({"RAG_HOME": str(home), **variables})


def test_a_new_container_has_imported_no_adapter() -> None:
    script = f"""
import sys
from cragside.bootstrap import Container
from cragside.settings import load_settings
Container(load_settings({{"RAG_HOME": "home", "OLLAMA_BASE_URL": "http://127.0.0.1:9", "RAG_API_TOKEN": "t"}}))
print(sorted({{name.partition(".")[0] for name in sys.modules}} & {HEAVY!r}))
print([name for name in sys.modules if name.startswith("cragside.adapters.")])
"""
    assert output_of(script).splitlines() == ["[]", "[]"]


def test_a_worker_without_work_has_not_loaded_what_splits_texts(tmp_path: Path) -> None:
    script = f"""
import asyncio, sys
from cragside.bootstrap import Container
from cragside.settings import load_settings
async def main():
    container = Container(load_settings({{"RAG_HOME": {str(tmp_path)!r}}}))
    await container.worker().run(until_idle=True)
    workspace = await container.workspaces.open("coast")
    await workspace.passages.status()
    await container.close()
asyncio.run(main())
print(sorted({{"langchain_core", "langgraph", "tokenizers", "networkx"}} & set(sys.modules)))
"""
    assert output_of(script) == "[]\n"


@pytest.mark.parametrize("name", Container.names())
def test_every_member_can_be_replaced(name: str, tmp_path: Path) -> None:
    replacement = Noted()
    assert getattr(Container(settings(tmp_path), **{name: replacement}), name) is replacement


def test_a_member_is_built_once(tmp_path: Path) -> None:
    container = Container(settings(tmp_path))
    assert container.queue is container.queue


def test_an_unknown_member_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="Container has no member embeder, qeue"):
        Container(settings(tmp_path), qeue=None, embeder=None)


async def test_closing_closes_only_built_members(tmp_path: Path) -> None:
    container = Container(settings(tmp_path))
    members = set(container.names())
    assert vars(container).keys().isdisjoint(members)
    _ = container.preferences
    before = vars(container).keys() & members
    await container.close()
    assert vars(container).keys() & members == before == {"preferences", "preference_store", "database"}


async def test_members_are_closed_once_the_latest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cragside.store.queues.sql import TaskQueue
    from cragside.store.workspaces import Workspaces

    closed: list[str] = []
    for kind in (TaskQueue, Workspaces):

        async def close(_: Any, name: str = kind.__name__) -> None:
            closed.append(name)
            raise RuntimeError(name)

        monkeypatch.setattr(kind, "close", close)
    container = Container(settings(tmp_path))
    _ = container.workspaces, container.queue
    with pytest.raises(RuntimeError):
        await container.close()
    await container.close()
    assert closed == ["TaskQueue", "Workspaces"]


async def test_a_replacement_is_neither_disconnected_nor_closed(tmp_path: Path) -> None:
    replaced = {name: Noted() for name in ("workspaces", "queue", "fetcher", "loader", "search", "upload_store")}
    container = Container(settings(tmp_path), **replaced)
    _ = container.intake, container.uploads, container.finder
    await container.disconnect()
    await container.close()
    assert [member.calls for member in replaced.values()] == [[]] * len(replaced)


class Letters:
    """An embedding model of four dimensions: how often each of four letters occurs."""

    name = "letters"
    dimensions = 4
    in_process = False

    async def embed(self, texts: Any) -> Any:
        counts = np.array([[1 + text.count(letter) for letter in "aeio"] for text in texts], dtype=np.float32)
        return counts.reshape(len(texts), 4) / np.linalg.norm(counts.reshape(len(texts), 4), axis=1, keepdims=True)


async def test_a_store_is_built_and_opened_again_with_the_embedder_that_is_given(tmp_path: Path) -> None:
    for _ in range(2):
        container = Container(settings(tmp_path), embedder=Letters())
        repository = (await container.workspaces.open("default")).passages
        await repository.save_documents([SourceText("otter.md", "Otters hold hands while they sleep.")])
        assert (await repository.status()).embedding_model == "letters"
        await container.close()


async def test_preparing_builds_every_member(tmp_path: Path) -> None:
    container = Container(settings(tmp_path))
    await container.prepare()
    assert set(container.names()) <= vars(container).keys()
    await container.close()


async def test_what_is_being_written_to_other_databases_ends_before_the_container_has_closed(tmp_path: Path) -> None:
    from cragside.store.backends.postgres import PostgresBackend

    container = Container(settings(tmp_path, POSTGRES_URI="postgresql://user@127.0.0.1:1/knowledge"))
    backend = container.backend
    assert isinstance(backend, PostgresBackend)
    writing = asyncio.create_task(asyncio.sleep(0.01))
    backend._journal._drains[1, "graph"] = writing
    await container.close()
    assert writing.done()


@pytest.mark.parametrize("set_so", [True, False])
def test_the_web_is_searched_early_only_if_that_is_set(tmp_path: Path, set_so: bool) -> None:
    variables = {"RAG_SPECULATIVE_SEARCH": "true"} if set_so else {}
    assert Container(load_settings({"RAG_HOME": str(tmp_path), **variables})).finder.tools.search_early is set_so
