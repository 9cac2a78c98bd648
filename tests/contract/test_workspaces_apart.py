"""Workspaces with similar names share nothing, whatever a database makes of the names."""

from pathlib import Path

from cragside.bootstrap import Container
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from tests.indexing import take, text

# LightRAG's name of a graph in AGE has `_` for each character but letters and digits, and lacks the name `default`. AGE
# refuses names of one letter, and `9x` needs quotes. `A_B` is not another workspace than `a_b`.
TOWNS = {"a-b": "Alnwick", "a.b": "Bamburgh", "a_b": "Craster", "9x": "Dunstan", "b": "Elsdon", "default": "Felton"}


async def seen(container: Container, name: str) -> tuple[list[str], list[str], set[str]]:
    """The documents, the passages and the entities of a workspace."""
    workspace = await container.workspaces.open(name)
    documents, _ = await workspace.documents.documents()
    passages = await workspace.passages.retrieve("Which castle did Henry Percy visit?", limit=8)
    entities = await workspace.graph.search("", limit=50)
    return [each.name for each in documents], [each.content for each in passages], {each.name for each in entities}


async def test_workspaces_with_similar_names_share_nothing(backend: Backend, tmp_path: Path) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
    for name, town in TOWNS.items():
        workspace = await container.workspaces.open(name)
        source = text(f"{town}.md", f"Henry Percy visited {town} Castle. Henry Percy met Mary Grey at {town} Castle.")
        await take(workspace.documents, workspace.work, source)
    for name, town in TOWNS.items():
        documents, passages, entities = await seen(container, name)
        assert documents == [f"{town}.md"]
        assert [each for each in TOWNS.values() if each in " ".join((*passages, *entities))] == [town]
    assert await container.workspaces.remove("a_b")
    assert await seen(container, "a_b") == ([], [], set())
    for name in TOWNS.keys() - {"a_b"}:
        assert (await seen(container, name))[0] == [f"{TOWNS[name]}.md"]
        assert (await seen(container, name))[2]
    await container.close()
