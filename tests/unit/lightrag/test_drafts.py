"""Drafts of the graph write no more than a merge adds."""

import asyncio
from pathlib import Path

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.ports.embedder import Embedder
from cragside.store.drafts import DraftAnswers
from tests.embedded_workspaces import embedded_workspaces, store_of
from tests.fakes import WordGrader
from tests.indexing import LONG, take, text


async def embedded(_: str | None) -> Embedder:
    return WordLlamaEmbedder()


class Written:
    """A storage of answers that notes what each call writes, and waits until it may."""

    namespace = "llm_response_cache"

    def __init__(self) -> None:
        self.global_config: dict[str, object] = {}
        self.calls: list[list[str]] = []
        self.free = asyncio.Event()

    async def upsert(self, data: dict[str, object]) -> None:
        self.calls.append(sorted(data))
        await self.free.wait()
        if "bad" in data:
            raise OSError("The disk is full.")


async def test_answers_that_come_together_are_written_together_and_later_ones_after_them() -> None:
    written = Written()
    answers = DraftAnswers(written)  # type: ignore[arg-type]
    first = [asyncio.create_task(answers.upsert({key: {}})) for key in "ab"]
    while not written.calls:
        await asyncio.sleep(0)
    later = asyncio.create_task(answers.upsert({"c": {}}))
    while len(written.calls) < 2:
        await asyncio.sleep(0)
    assert not any(task.done() for task in [*first, later])
    written.free.set()
    await asyncio.gather(*first, later)
    assert written.calls == [["a", "b"], ["c"]]


async def test_each_answer_of_a_writing_that_fails_is_told() -> None:
    written = Written()
    written.free.set()
    answers = DraftAnswers(written)  # type: ignore[arg-type]
    failures = await asyncio.gather(*(answers.upsert({key: {}}) for key in ("good", "bad")), return_exceptions=True)
    assert [type(failure) for failure in failures] == [OSError, OSError]


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
