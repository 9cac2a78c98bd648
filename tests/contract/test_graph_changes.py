"""A change of the graph is applied whole, and only while its guard holds."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.store.backends.interface import Backend
from cragside.store.chunking import Entry, Piece, StoredPart
from cragside.store.driver import (
    Always,
    ChangeGuard,
    GraphChange,
    MentionChange,
    OnceGone,
    VectorChange,
    WhileCurrent,
)
from cragside.store.ledger import Ledger
from tests.contract.opened_storages import opened_ledger

TALLY = {"entities": 1, "relations": 0, "malformed": 0, "unusable": 0}
ROW = {"content": "Swan, who made a lamp", "entity_name": "Swan"}
CHANGE = GraphChange(
    nodes={"Swan": {"description": "made a lamp"}},
    vectors={"entities": VectorChange([], {}, {"ent-swan": ROW}, np.ones((1, 4), np.float32))},
    values={"full_entities": {"doc-a-1-0": {"entity_names": ["Swan"], "count": 1}}},
    mentions=[MentionChange("entity", [], [], [("Swan", "doc-a-1-0-chunk-000")])],
)


@pytest.fixture
async def ledger(tmp_path: Path, backend: Backend) -> AsyncIterator[Ledger]:
    async with opened_ledger(backend, tmp_path) as ledger:
        yield ledger


@pytest.fixture
async def part(ledger: Ledger) -> StoredPart:
    """The only part of the only document."""
    text = "Swan made a lamp."
    source = SourceText("a.md", text)
    await ledger.enter(
        Entry("doc-a", "digest", "1", source, [Piece(text, 4, None, "", ())], part_passages=20, enrich=True)
    )
    found = await ledger.part((await ledger.tasks())[0])
    assert found is not None
    return found


async def entities(ledger: Ledger) -> int:
    return (await ledger.status("m")).entities


async def test_a_part_is_marked_together_with_its_share_of_the_graph(ledger: Ledger, part: StoredPart) -> None:
    assert await ledger.apply(CHANGE, WhileCurrent([(part, TALLY)]), "m")
    assert await entities(ledger) == 1
    assert await ledger.driver.embedding_model() == "m"
    assert await ledger.passages_for_rebuild("entity", "Swan", ["doc-a-1-0-chunk-000"], 5) == ["doc-a-1-0-chunk-000"]
    (stored,) = (await ledger.page(1, 0, None, None))[0][0].parts
    assert (stored.enrichment, stored.tier3) == ("enriched", {"extraction": TALLY})


async def test_a_removed_version_does_not_return_to_the_graph(ledger: Ledger, part: StoredPart) -> None:
    assert await ledger.retire("doc-a")
    assert not await ledger.apply(CHANGE, WhileCurrent([(part, TALLY)]), "m")
    assert await entities(ledger) == 0
    assert await ledger.driver.embedding_model() is None


async def test_a_part_is_swept_only_when_its_version_is_gone(ledger: Ledger, part: StoredPart) -> None:
    assert not await ledger.apply(CHANGE, OnceGone(part), "m")
    assert await entities(ledger) == 0
    assert await ledger.retire("doc-a")
    assert [removed.key for removed in await ledger.removed_parts()] == [part.key]
    assert await ledger.apply(GraphChange(), OnceGone(part), "m")
    assert await ledger.removed_parts() == []
    assert await ledger.sweeps() != []
    await ledger.drop_swept()
    assert await ledger.sweeps() == []


async def test_no_change_is_applied_to_a_store_of_another_model(ledger: Ledger, part: StoredPart) -> None:
    assert await ledger.apply(CHANGE, WhileCurrent([(part, TALLY)]), "other")
    before = await ledger.driver.state()
    guards: list[ChangeGuard] = [Always(), WhileCurrent([(part, TALLY)]), OnceGone(part)]
    for guard in guards:
        with pytest.raises(ServiceUnavailable, match="another embedding model"):
            await ledger.apply(CHANGE, guard, "m")
    assert await ledger.driver.state() == before


async def test_a_change_that_fails_in_the_middle_leaves_nothing(ledger: Ledger, part: StoredPart) -> None:
    too_few = VectorChange([], {}, {"ent-swan": ROW, "ent-lamp": ROW}, np.ones((1, 4), np.float32))
    with pytest.raises(ValueError, match="shorter"):
        await ledger.apply(GraphChange(CHANGE.nodes, vectors={"entities": too_few}), WhileCurrent([(part, TALLY)]), "m")
    assert await entities(ledger) == 0
    assert await ledger.driver.stored_dimensions() is None
    assert [task.stage for task in await ledger.tasks()] == ["embed", "enrich"]
    assert await ledger.apply(CHANGE, Always(), "m")
    assert (await entities(ledger), await ledger.driver.stored_dimensions()) == (1, 4)
