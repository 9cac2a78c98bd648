"""A text that was deleted is in no answer from that moment on, and soon nowhere in the store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.workspaces import Workspace
from tests.indexing import delete, take
from tests.services.backends import BACKENDS, made

LAMP = "Joseph Swan lit the Zanzibar Lamp in Gateshead."
BULB = "Joseph Swan showed the Filament Bulb in Gateshead."


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> object:
    with made(request) as backend:
        yield backend


@pytest.fixture
async def workspace(backend: Backend, tmp_path: Path) -> AsyncIterator[Workspace]:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
    yield await container.workspaces.open("w")
    await container.close()


async def bring(workspace: Workspace, name: str, text: str) -> str:
    """Index a text. Gives the document's id."""
    await take(workspace.documents, workspace.work, SourceText(name, text))
    (found,) = await workspace.documents.named(name)
    return found.id


async def never(*_: object) -> None:
    """Leave the graph as it is, as while another process writes to it."""


async def test_no_answer_tells_of_it_while_it_is_still_in_the_graph(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    lamp = await bring(workspace, "lamp.md", LAMP)
    await bring(workspace, "bulb.md", BULB)
    graph = workspace.graph
    before = await graph.entity("Joseph Swan")
    assert before is not None
    assert "Zanzibar" in before.entity.description
    assert await graph.entity("Zanzibar Lamp") is not None

    monkeypatch.setattr("cragside.store.library.sweep_if_free", never)
    assert await workspace.documents.delete(lamp)
    view = await graph.entity("Joseph Swan")
    assert view is not None
    answers = (
        view,
        await graph.entity("Gateshead"),
        await graph.entity("Zanzibar Lamp"),
        await graph.search("a"),
        await graph.expand(["Joseph Swan", "Gateshead", "Zanzibar Lamp"]),
        await workspace.passages.retrieve("Which lamp did Joseph Swan light?", limit=5),
    )
    assert "Zanzibar" not in repr(answers)
    assert "Filament" in repr(answers)


async def test_nothing_of_it_stays_in_the_store(workspace: Workspace, backend: Backend, tmp_path: Path) -> None:
    lamp = await bring(workspace, "lamp.md", LAMP)
    # So many that a model has to summarize what they say.
    for number in range(10):
        await bring(workspace, f"{number}.md", f"Joseph Swan built the {chr(65 + number)}rosby Mill in Gateshead.")
    assert b"Zanzibar" in await dumped(backend, tmp_path)
    assert await delete(workspace.documents, workspace.work, lamp)
    async with asyncio.timeout(30):  # files are tidied up a moment later
        while b"Zanzibar" in await dumped(backend, tmp_path):
            await asyncio.sleep(0.05)


async def dumped(backend: Backend, home: Path) -> bytes:
    """All that the store holds."""
    return repr([row async for batch in backend.dump(backend.folder_of(home, "w")) for row in batch]).encode()
