"""A change of the graph reaches Neo4j whole, in order and once, whatever process stops in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from cragside.databases.neo4j import Neo4jDatabase, Neo4jFailure
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.databases.server_addresses import Neo4jAddress
from cragside.store.backends.postgres import DEFAULTS, NEO4J_STORAGE, PostgresBackend
from cragside.store.driver import Always, GraphChange
from cragside.store.errors import LedgerError
from cragside.store.ledger import Ledger
from cragside.store.outside.neo4j import Neo4jGraphs
from cragside.store.postgres import journal, store
from cragside.store.postgres.driver import PostgresDriver
from cragside.store.postgres.journal import ShareLost
from tests.contract.opened_storages import opened
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres


class Failing(Neo4jGraphs):
    """Stops before the write to Neo4j, or after it."""

    before = after = False

    async def write(self, key: str, seq: int, change_id: UUID, change: dict[str, Any]) -> bool:
        """Write, unless it stops before that."""
        if self.before:
            raise LedgerError("stopped", "stopped")
        written = await super().write(key, seq, change_id, change)
        if self.after:
            raise LedgerError("stopped", "stopped")
        return written


class Place:
    """A workspace, the way to its graph, and its ledger."""

    def __init__(self, database: PostgresDatabase, graphs: "Neo4j") -> None:
        self.database = database
        self.graphs = Neo4jDatabase(Neo4jAddress.parse(graphs.uri), most=2)
        self.target = Failing(self.graphs)
        self.backend = PostgresBackend(database, {**DEFAULTS, "graph": NEO4J_STORAGE}, {"graph": self.target})
        self.journal = self.backend._journal
        self.key, self.number = "", 0

    async def names(self) -> list[str]:
        """The entities in Neo4j."""
        rows = await self.target.rows(f"MATCH (n:`{self.key}`) RETURN n.entity_id ORDER BY n.entity_id")
        return [row[0] for row in rows]

    async def waiting(self) -> int:
        """Count the changes in the journal."""
        return int(await self.database.value("SELECT count(*) FROM crag.journal"))


@pytest.fixture
async def place(postgres: "Postgres", neo4j: "Neo4j") -> AsyncIterator[Place]:
    with migrated(postgres) as uri:
        place = Place(PostgresDatabase(PostgresAddress.parse(uri), most=3), neo4j)
        yield place
        place.target.before = place.target.after = False
        if place.key:
            await place.target.drop(place.key)
        await place.backend.close()


@pytest.fixture
async def ledger(place: Place, tmp_path: Path) -> AsyncIterator[Ledger]:
    ledger = await place.backend.open_ledger(tmp_path, "w", search_text=str.lower)
    assert isinstance(ledger.driver, PostgresDriver)
    place.key, place.number = ledger.driver.key, ledger.driver.number
    ours = place.backend.storages()
    store = place.backend.place_of(tmp_path, (await ledger.driver.opened_with())[1])
    async with opened(ours.values, ours.vectors, ours.graph, tmp_path, store):
        yield ledger
        ledger.driver.release()


async def add(ledger: Ledger, name: str) -> None:
    """Merge an entity."""
    await ledger.apply(GraphChange(nodes={name: {"description": f"about {name}"}}), Always(), "m")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_next_holder_of_the_lease_finishes_an_interrupted_change(
    place: Place, ledger: Ledger, when: str
) -> None:
    await add(ledger, "Swan")
    setattr(place.target, when, True)
    await add(ledger, "Lamp")
    assert await place.waiting() == 1
    assert await place.names() == (["Swan"] if when == "before" else ["Lamp", "Swan"])

    setattr(place.target, when, False)
    await ledger.driver.catch_up()
    assert await place.waiting() == 0
    assert await place.names() == ["Lamp", "Swan"]


async def test_nobody_goes_on_while_the_graph_cannot_be_written(place: Place, ledger: Ledger) -> None:
    place.target.before = True
    await add(ledger, "Swan")
    with pytest.raises(LedgerError, match="stopped"):
        await ledger.driver.catch_up()

    place.target.before = False
    await ledger.driver.catch_up()
    assert await place.names() == ["Swan"]


async def test_a_writer_that_was_stopped_changes_nothing_once_others_have_gone_on(place: Place, ledger: Ledger) -> None:
    await add(ledger, "Swan")
    await add(ledger, "Lamp")
    late = {"nodes": [["Swan", None], ["Late", {"description": "too late"}]], "edges": []}
    assert not await place.target.write(place.key, 1, uuid4(), late)
    assert await place.names() == ["Lamp", "Swan"]


async def test_a_change_is_refused_by_a_graph_that_lacks_earlier_ones(place: Place, ledger: Ledger) -> None:
    await add(ledger, "Swan")
    late = {"nodes": [["Late", {"description": "x"}]], "edges": []}
    assert not await place.target.write(place.key, 3, uuid4(), late)
    assert await place.names() == ["Swan"]


async def wiped(place: Place) -> None:
    """Empty Neo4j, as somebody does who makes its data folder anew."""
    await place.graphs.execute(f"MATCH (node:`{place.key}`) DETACH DELETE node")
    await place.graphs.execute("MATCH (fence:CragsideFence {workspace: $key}) DELETE fence", key=place.key)


async def restored(place: Place) -> None:
    """Have Neo4j as it was before the last change."""
    await place.graphs.execute(f"MATCH (node:`{place.key}` {{entity_id: 'Lamp'}}) DETACH DELETE node")
    await place.graphs.execute(
        "MATCH (fence:CragsideFence {workspace: $key}) SET fence.applied = fence.applied - 1", key=place.key
    )


async def rewound(place: Place) -> None:
    """Have PostgreSQL as it was before the last change."""
    await place.database.value("UPDATE crag.outside SET seq = seq - 1")


@pytest.mark.parametrize("happens", [wiped, restored, rewound])
async def test_a_graph_of_another_time_is_noticed_by_the_next_change_and_by_a_check(
    place: Place, ledger: Ledger, happens: Callable[[Place], Awaitable[None]]
) -> None:
    await add(ledger, "Swan")
    await add(ledger, "Lamp")
    await place.journal.check(place.number, place.key)
    await happens(place)
    names = await place.names()
    await add(ledger, "Owl")
    with pytest.raises(ShareLost, match="cragside repair"):
        await ledger.driver.catch_up()
    with pytest.raises(ShareLost, match="cragside repair"):
        await place.journal.check(place.number, place.key)
    assert await place.names() == names  # what is wrong is not written on


@pytest.mark.parametrize("happens", [wiped, restored, rewound])
async def test_a_check_notices_a_graph_of_another_time_before_any_change(
    place: Place, ledger: Ledger, happens: Callable[[Place], Awaitable[None]]
) -> None:
    await add(ledger, "Swan")
    await add(ledger, "Lamp")
    await happens(place)
    with pytest.raises(ShareLost):
        await place.journal.check(place.number, place.key)


async def test_neo4j_refuses_a_second_node_of_an_entity(place: Place, ledger: Ledger, neo4j: "Neo4j") -> None:
    await add(ledger, "Swan")
    database = Neo4jDatabase(Neo4jAddress.parse(neo4j.uri), most=1)
    try:
        with pytest.raises(Exception, match="ConstraintValidationFailed"):
            await database.execute(f"CREATE (:`{place.key}` {{entity_id: 'Swan'}})")
    finally:
        await database.close()


async def test_an_index_that_lightrags_server_made_before_the_first_change_gives_way_to_the_constraint(
    place: Place, ledger: Ledger
) -> None:
    await place.graphs.execute(f"CREATE INDEX IF NOT EXISTS FOR (n:`{place.key}`) ON (n.entity_id)")
    await add(ledger, "Swan")
    assert await place.names() == ["Swan"]
    assert await place.waiting() == 0
    with pytest.raises(Neo4jFailure, match="ConstraintValidationFailed"):
        await place.graphs.execute(f"CREATE (:`{place.key}` {{entity_id: 'Swan'}})")


async def test_the_graph_of_a_removed_workspace_goes_even_if_its_removal_was_interrupted(
    place: Place, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(ledger, "Swan")

    async def stopped(_: str) -> None:
        raise LedgerError("stopped", "stopped")

    with monkeypatch.context() as patch:
        patch.setattr(place.target, "drop", stopped)
        await place.backend.remove(tmp_path)
    assert await place.names() == ["Swan"]

    await place.backend.sweep(tmp_path)
    assert await place.names() == []
    assert not await place.target.write(place.key, 2, uuid4(), {"nodes": [["Late", {"description": "x"}]], "edges": []})
    assert await place.names() == []


async def test_whoever_publishes_waits_for_a_slow_write_no_longer_than_a_bound_and_it_is_written_all_the_same(
    place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PUBLISH_SECONDS", 0.1)
    monkeypatch.setattr(store, "GRAPH_SECONDS", 0.1)
    goes_on, write = asyncio.Event(), place.target.write

    async def slow(*change: Any) -> bool:
        await goes_on.wait()
        return await write(*change)

    monkeypatch.setattr(place.target, "write", slow)
    async with asyncio.timeout(5):
        await add(ledger, "Swan")
        with pytest.raises(LedgerError, match="still being written"):
            await ledger.driver.catch_up_graph()
    assert await place.waiting() == 1
    goes_on.set()
    await ledger.driver.catch_up()
    assert await place.names() == ["Swan"]
    assert await place.waiting() == 0


async def test_a_long_journal_is_read_bit_by_bit(place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    place.target.before = True
    names = [f"Swan {number}" for number in range(6)]
    for name in names:
        await ledger.apply(GraphChange(nodes={name: {"description": name * 1000}}), Always(), "m")
    assert await place.waiting() == 6
    place.target.before = False
    monkeypatch.setattr(journal, "BYTES_AT_ONCE", 15_000)  # two changes
    fetched, every = [], place.database.all

    async def counted(sql: str, *values: Any) -> list[Any]:
        rows = await every(sql, *values)
        if sql == journal._WAITING:
            fetched.append(len(rows))
        return rows

    monkeypatch.setattr(place.database, "all", counted)
    await asyncio.gather(ledger.driver.catch_up(), ledger.driver.catch_up_graph())
    assert await place.names() == names
    assert sum(fetched) == 6  # nobody reads what another one has in hand
    assert max(fetched) == 2
