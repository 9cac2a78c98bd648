"""Makes stores.tar.xz: a home with documents and a memory, a baked store, and what both answer.

`python tests/data/make_stores.py`, with the version of cragside whose stores later versions have to read. Replace the
archive only when the format of the store changes, and keep the earlier one beside it.
"""

import asyncio
import json
import tarfile
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.knowledge import Knowledge
from tests.stores_made_before import ARCHIVE, answers_of

CORPUS = Path("layers/core/python/cragside/entrypoints/samples/corpus")
EXCHANGE = {"user": "Which port has the lamp's controller?", "assistant": "The lamp's controller has port 6380."}


async def fill(home: Path) -> None:
    """Documents of all kinds: of one name, replaced, moved and deleted, and one exchange."""
    knowledge = Knowledge(home)
    try:
        for name in ("eurasian-otter.md", "giant-otter.md", "cragside-house.md", "heat-pump.md"):
            await _bring(knowledge, name, f"/notes/{name}", (CORPUS / name).read_text(encoding="utf-8"))
        await _bring(knowledge, "todo.md", "/a/todo.md", "Buy oil for the lamp of the lighthouse.")
        await _bring(knowledge, "todo.md", "/b/todo.md", "Paint the weir of the salmon river.")
        await _bring(knowledge, "heat-pump.md", "/notes/heat-pump.md", "A heat pump warms the glasshouse at Cragside.")
        documents = (await knowledge.http.get("/v1/documents")).json()["documents"]
        known = {document["source"]: document["id"] for document in documents}
        moved = {"source": "/archive/giant-otter.md", "name": "giant-otter.md"}
        (await knowledge.http.patch(f"/v1/documents/{known['/notes/giant-otter.md']}", json=moved)).raise_for_status()
        (await knowledge.http.delete(f"/v1/documents/{known['/b/todo.md']}")).raise_for_status()
        (await knowledge.http.post("/v1/memories", json=EXCHANGE)).raise_for_status()
        await knowledge.index()
    finally:
        await knowledge.close()


async def _bring(knowledge: Knowledge, name: str, source: str, text: str) -> None:
    answer = await knowledge.http.post("/v1/documents", json={"name": name, "source": source, "text": text})
    answer.raise_for_status()
    await knowledge.index()


def bake(out: Path) -> None:
    """Two documents, read-only."""
    paths = [str(CORPUS / name) for name in ("eurasian-otter.md", "cragside-house.md")]
    result = CliRunner().invoke(app, ["bake", *paths, "--out", str(out)], obj=Session(environment={}))
    assert result.exit_code == 0, result.output


def main() -> None:
    """Make the archive."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        asyncio.run(fill(made / "home"))
        bake(made / "baked")
        answers = {name: asyncio.run(answers_of(made / name)) for name in ("home", "baked")}
        (made / "answers.json").write_text(json.dumps(answers, indent=1, sort_keys=True))
        for lock in made.rglob("*.lock"):
            lock.unlink()
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            for name in ("home", "baked", "answers.json"):
                archive.add(made / name, name)


if __name__ == "__main__":
    main()
