"""A document that is taken over from another store."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from cragside.domain.document import SourceText
from cragside.store.chunking import Entry, Piece
from cragside.store.driver import PartVectors
from cragside.store.ledger import Ledger
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import SqliteDriver


@pytest.fixture
async def ledgers(tmp_path: Path) -> AsyncIterator[list[Ledger]]:
    """One with a document, and an empty one."""
    made = [Ledger(SqliteDriver(Database.acquire(tmp_path / name)), "w", str.lower) for name in ("old", "new")]
    source = SourceText("a.md", "Swan made a lamp.")
    passage = Piece(source.text, 4, None, "", ())
    await made[0].enter(Entry("doc-a", "digest", "digest", source, [passage], part_passages=20, enrich=True))
    yield made
    for ledger in made:
        await ledger.driver.close()
        ledger.driver.release()


@pytest.mark.parametrize(
    ("stage", "status", "error"),
    [
        pytest.param("embed", "pending", "", id="the embedding comes again, and its failure is forgotten"),
        pytest.param("enrich", "failed", "no model", id="the failure of the annotation stays"),
    ],
)
async def test_a_copy_keeps_the_reason_of_what_is_not_done_again(
    ledgers: list[Ledger], stage: str, status: str, error: str
) -> None:
    old, new = ledgers
    task = next(each for each in await old.tasks() if each.stage == "embed")
    part = await old.part(task)
    assert part is not None
    if stage == "enrich":
        rows = {key: {"content": "Swan made a lamp."} for key in await old.chunk_ids(part)}
        await old.enter_vectors([PartVectors("doc-a", part, rows, np.ones((len(rows), 4), np.float32))], "m")
    await old.mark_failed(part, stage, "no model")
    await new.copy_document_from(old, "doc-a")
    record = await new.record("doc-a")
    assert record is not None
    assert (record.status, record.error) == (status, error)
