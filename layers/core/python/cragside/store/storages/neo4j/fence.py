"""Writes of the journal's changes to Neo4j, in order and once each."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

from typing_extensions import override

from cragside.databases.neo4j import Neo4jDatabase, Neo4jFailure, Run
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.postgres.journal import ChangesMissing, Outside

# One node for each store. Writing to it locks it until the transaction ends.
_FENCE = """MATCH (fence:CragsideFence {workspace: $key}) SET fence.locked = true
    RETURN fence.applied, fence.change"""
_APPLIED = "MATCH (fence:CragsideFence {workspace: $key}) RETURN fence.applied"
_PASSED = "MATCH (fence:CragsideFence {workspace: $key}) SET fence.applied = $seq, fence.change = $change"
_FIRST = "MERGE (fence:CragsideFence {workspace: $key}) ON CREATE SET fence.applied = 0, fence.change = ''"
_CLOSED = """MERGE (fence:CragsideFence {workspace: $key})
    SET fence.applied = $seq, fence.change = '', fence.closed = timestamp()"""
_BORN = (
    "CREATE CONSTRAINT cragside_fence IF NOT EXISTS FOR (fence:CragsideFence) REQUIRE fence.workspace IS UNIQUE",
    "CREATE CONSTRAINT `cragside_{label}` IF NOT EXISTS FOR (node:`{label}`) REQUIRE node.entity_id IS UNIQUE",
)
# LightRAG's server makes an index where there is no constraint. The constraint cannot be made beside it.
_INDEXES = """SHOW INDEXES YIELD name, type, labelsOrTypes, properties, owningConstraint
    WHERE type = 'RANGE' AND labelsOrTypes = [$label] AND properties = ['entity_id'] AND owningConstraint IS NULL
    RETURN name"""
_SERVER = """CALL dbms.components() YIELD versions, edition CALL db.info() YIELD name
    RETURN versions[0], edition, name"""
_SIZES = "RETURN COUNT {{ (:`{label}`) }}, COUNT {{ (:`{label}`)-[:DIRECTED]->() }}"
# Edges of a removed node go with it. `SET node = row` also removes the properties that the row lacks.
_REMOVE_EDGES = """UNWIND $rows AS row
    MATCH (:`{label}` {{entity_id: row[0]}})-[edge:DIRECTED]-(:`{label}` {{entity_id: row[1]}}) DELETE edge"""
_REMOVE_NODES = "UNWIND $rows AS row MATCH (node:`{label}` {{entity_id: row[0]}}) DETACH DELETE node"
_WRITE_NODES = """UNWIND $rows AS row MERGE (node:`{label}` {{entity_id: row[0]}})
    SET node = row[1], node.entity_id = row[0]"""
_WRITE_EDGES = """UNWIND $rows AS row
    MATCH (source:`{label}` {{entity_id: row[0]}}) MATCH (target:`{label}` {{entity_id: row[1]}})
    MERGE (source)-[edge:DIRECTED]-(target) SET edge = row[2]"""
# Most queries that go on when nobody waits for them.
_LINGERING = 2
# How many times a query's patience may pass before it has a connection.
_WAITS = 2
# Whatever a stopped writer still has to write comes before this.
_NEVER_AGAIN = 2**62
# No writer is stopped for longer than a week.
_FORGET = "MATCH (fence:CragsideFence) WHERE fence.closed < timestamp() - 604800000 DELETE fence"
_DROP = (
    "DROP CONSTRAINT `cragside_{label}` IF EXISTS",
    "DROP INDEX `entity_id_fulltext_idx_{label}` IF EXISTS",
    "MATCH (node:`{label}`) CALL (node) {{ DETACH DELETE node }} IN TRANSACTIONS OF 10000 ROWS",
)


class FencedGraph(Outside):
    """The graphs of all stores in a Neo4j database, each under its key as label."""

    def __init__(self, database: Neo4jDatabase) -> None:
        self._database = database
        # Queries that nobody waits for any more.
        self._lingering: set[asyncio.Task[list[Any]]] = set()
        # How many questions were answered.
        self._answers = 0

    @property
    def address(self) -> str:
        """Return the address of the database, without user and password."""
        return str(self._database.address)

    async def server(self) -> tuple[str, str, str]:
        """The server's version and edition, and the name of the database. Raises `LedgerError`."""
        ((version, edition, database),) = await self.rows(_SERVER)
        return version, edition, database

    async def rows_for(self, workspace: str, cypher: str, **values: Any) -> list[Any]:
        """As `rows`, for a workspace, which has a share of the connections alone. Raises `LedgerError`."""
        async with _translating(), self._database.share_of(workspace):
            return await self._database.rows(cypher, **values)

    async def rows(self, cypher: str, **values: Any) -> list[Any]:
        """The records of a query that only reads. Raises `LedgerError`."""
        async with _translating():
            return await self._database.rows(cypher, **values)

    async def rows_within(self, seconds: float, workspace: str, cypher: str, **values: Any) -> list[Any]:
        """As `rows_for`, but raises `TimeoutError` when Neo4j has had the query for so long. The query goes on.

        Neo4j may take seconds to plan it for a store, or anew after many changes. If whoever waits ended that, the next
        one would find no plan either. That many others ask is no slowness of Neo4j: see `_turn_comes`.
        """
        turn = asyncio.Event()
        asking = asyncio.create_task(self._rows_in_turn(turn, workspace, cypher, values))
        try:
            await self._turn_comes(turn, seconds)
            async with asyncio.timeout(seconds):
                return await asyncio.shield(asking)
        finally:
            self._leave(asking)

    async def _rows_in_turn(
        self, turn: asyncio.Event, workspace: str, cypher: str, values: dict[str, Any]
    ) -> list[Any]:
        try:
            async with _translating(), self._database.share_of(workspace):
                turn.set()
                rows = await self._database.rows(cypher, **values)
                self._answers += 1
                return rows
        finally:
            turn.set()  # it failed before

    async def _turn_comes(self, turn: asyncio.Event, seconds: float) -> None:
        """Return when a query has its connection. Raises `TimeoutError` when it should not wait any more.

        It waits for so long again if Neo4j has answered others meanwhile, but not for ever: a request has a deadline.
        """
        for _ in range(_WAITS):
            before = self._answers
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await turn.wait()
                    return
            if self._answers == before:
                break
        raise TimeoutError

    def _leave(self, asking: "asyncio.Task[list[Any]]") -> None:
        """Let a query end by itself, unless others do so already: each has a connection."""
        if asking.done():
            return
        if len(self._lingering) >= _LINGERING:
            asking.cancel()
            return
        self._lingering.add(asking)
        asking.add_done_callback(self._ended)

    def _ended(self, asking: "asyncio.Task[list[Any]]") -> None:
        self._lingering.discard(asking)
        if not asking.cancelled():
            asking.exception()  # nobody waits for it

    async def sizes(self, key: str) -> tuple[int, int]:
        """Count the nodes and the edges of a store's graph. Raises `LedgerError`."""
        ((nodes, edges),) = await self.rows(_SIZES.format(label=key))
        return nodes, edges

    @override
    async def write(self, key: str, seq: int, change_id: UUID, change: dict[str, Any]) -> bool:
        async def apply(run: Run) -> bool:
            found = await run(_FENCE, key=key)
            applied, last = found[0] if found else (-1, "")
            if applied >= seq:
                return bool(applied == seq and last == str(change_id))
            if applied != seq - 1:
                raise ChangesMissing("the graph lacks earlier changes", "has an older graph in Neo4j")
            for cypher, rows in _statements(change):
                if rows:
                    await run(cypher.format(label=key), rows=rows)
            await run(_PASSED, key=key, seq=seq, change=str(change_id))
            return True

        async with _translating():
            if seq == 1:
                await self._bear(key)
            return await self._database.write(apply)

    @override
    async def applied(self, key: str) -> int:
        found = await self.rows(_APPLIED, key=key)
        return found[0][0] if found else 0

    @override
    async def drop(self, key: str) -> None:
        async def close(run: Run) -> None:
            await run(_CLOSED, key=key, seq=_NEVER_AGAIN)

        async with _translating():
            await self._database.write(close)
            for cypher in (*_DROP, _FORGET):
                await self._database.execute(cypher.format(label=key))

    @override
    async def close(self) -> None:
        lingering = list(self._lingering)
        for asking in lingering:
            asking.cancel()
        await asyncio.gather(*lingering, return_exceptions=True)
        await self._database.close()

    async def _bear(self, key: str) -> None:
        """Make what a store's graph needs, with its first change."""
        if await self._database.rows(_APPLIED, key=key):
            return
        for (name,) in await self._database.rows(_INDEXES, label=key):
            await self._database.execute(f"DROP INDEX `{name}` IF EXISTS")
        for cypher in _BORN:
            await self._database.execute(cypher.format(label=key))

        async def first(run: Run) -> None:
            await run(_FIRST, key=key)

        await self._database.write(first)


def _statements(change: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Statements of a change, in this order. The last field of a row that is removed is None."""
    nodes, edges = change["nodes"], change["edges"]
    yield _REMOVE_EDGES, [row for row in edges if row[-1] is None]
    yield _REMOVE_NODES, [row for row in nodes if row[-1] is None]
    yield _WRITE_NODES, [row for row in nodes if row[-1] is not None]
    yield _WRITE_EDGES, [row for row in edges if row[-1] is not None]


@asynccontextmanager
async def _translating() -> AsyncIterator[None]:
    try:
        yield
    except Neo4jFailure as error:
        raise LedgerError(error.reason, error.unusable) from error
