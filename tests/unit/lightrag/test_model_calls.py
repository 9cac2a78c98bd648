"""A store calls models as often at once as is allowed, and leaves no task behind."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.ports.embedder import Embedder
from tests.embedded_workspaces import embedded_workspaces
from tests.fakes import WordGrader
from tests.indexing import LONG, take, text


class Watched:
    """A model that counts how many wait for it."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)  # until all that may call it have done so
        self.now -= 1
        return "<|COMPLETE|>"


async def embedded(_: str | None) -> Embedder:
    return WordLlamaEmbedder()


async def test_documents_that_are_indexed_together_share_the_calls_that_a_store_may_make(tmp_path: Path) -> None:
    model = Watched()
    workspaces = embedded_workspaces(
        tmp_path, open_embedder=embedded, ranker=WordGrader(), model=model, chunk_words=(30, 0)
    )
    store = await workspaces.open("w")
    documents = (text(f"{name}.md", LONG.replace("bridge", name)) for name in ("bridge", "pier", "dock"))
    await asyncio.gather(*(take(store.documents, store.work, document) for document in documents))
    await workspaces.close()
    assert model.most == 4


async def test_a_store_leaves_no_task_when_it_was_asked_and_when_it_is_closed(tmp_path: Path) -> None:
    filled = embedded_workspaces(tmp_path, open_embedder=embedded, ranker=WordGrader())
    store = await filled.open("w")
    await take(store.documents, store.work, text("bridge.md", LONG))
    await filled.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    again = embedded_workspaces(tmp_path, open_embedder=embedded, ranker=WordGrader())
    assert await (await again.open("w")).passages.retrieve("Who built bridge number 3?", limit=3)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await again.close()
