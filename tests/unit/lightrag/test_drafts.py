"""Drafts of the graph write no more than a merge adds."""

from pathlib import Path

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.ports.embedder import Embedder
from tests.embedded_workspaces import embedded_workspaces, store_of
from tests.fakes import WordGrader
from tests.indexing import LONG, take, text


async def embedded(_: str | None) -> Embedder:
    return WordLlamaEmbedder()


async def test_a_merge_adds_the_mentions_of_its_own_passages_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = embedded_workspaces(tmp_path, open_embedder=embedded, ranker=WordGrader())
    workspace = await workspaces.open("w")
    await take(workspace.documents, workspace.work, text("a.md", LONG))
    store = await store_of(workspaces, "w")
    known = {row[0] for row in await store.ledger.driver.all("SELECT passage FROM crag.mention WHERE store = $1")}
    added: list[tuple[str, ...]] = []
    many = store.ledger.driver.many

    async def noted(sql: str, rows: list[tuple[str, ...]]) -> None:
        if "mention" in sql:
            added.extend(rows)
        await many(sql, rows)

    monkeypatch.setattr(store.ledger.driver, "many", noted)
    await take(workspace.documents, workspace.work, text("b.md", LONG))
    assert added
    assert not {row[-1] for row in added} & known
    await workspaces.close()
