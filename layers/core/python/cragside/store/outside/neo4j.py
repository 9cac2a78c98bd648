"""LightRAG's labels in Neo4j, and their fence."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from typing_extensions import override

from cragside.databases.neo4j import Neo4jDatabase, Run
from cragside.store.outside.graph import GraphTarget
from cragside.store.postgres.journal import CLOSED, FORGET_SECONDS, Fence, translating_failures

# One node for each store. Writing to it locks it until the transaction ends.
_FENCE = """MATCH (fence:CragsideFence {workspace: $key}) SET fence.locked = true
    RETURN fence.applied, fence.change"""
_APPLIED = "MATCH (fence:CragsideFence {workspace: $key}) RETURN fence.applied"
_PASSED = "MATCH (fence:CragsideFence {workspace: $key}) SET fence.applied = $seq, fence.change = $change"
_FIRST = "MERGE (fence:CragsideFence {workspace: $key}) ON CREATE SET fence.applied = 0, fence.change = ''"
_CLOSED = """MERGE (fence:CragsideFence {workspace: $key})
    SET fence.applied = $seq, fence.change = $change, fence.closed = timestamp()"""
_CONSTRAINTS = (
    "CREATE CONSTRAINT cragside_fence IF NOT EXISTS FOR (fence:CragsideFence) REQUIRE fence.workspace IS UNIQUE",
    "CREATE CONSTRAINT `cragside_{label}` IF NOT EXISTS FOR (node:`{label}`) REQUIRE node.entity_id IS UNIQUE",
)
# LightRAG's server makes an index where there is no constraint. The constraint cannot be made beside it.
_INDEXES = """SHOW INDEXES YIELD name, type, labelsOrTypes, properties, owningConstraint
    WHERE type = 'RANGE' AND labelsOrTypes = [$label] AND properties = ['entity_id'] AND owningConstraint IS NULL
    RETURN name"""
_SERVER = """CALL dbms.components() YIELD versions, edition CALL db.info() YIELD name
    RETURN versions[0], edition, name"""
# Edges of a removed node go with it. `SET node = row` also removes the properties that the row lacks.
_REMOVE_EDGES = """UNWIND $rows AS row
    MATCH (:`{label}` {entity_id: row[0]})-[edge:DIRECTED]-(:`{label}` {entity_id: row[1]}) DELETE edge"""
_REMOVE_NODES = "UNWIND $rows AS row MATCH (node:`{label}` {entity_id: row[0]}) DETACH DELETE node"
_WRITE_NODES = """UNWIND $rows AS row MERGE (node:`{label}` {entity_id: row[0]})
    SET node = row[1], node.entity_id = row[0]"""
_WRITE_EDGES = """UNWIND $rows AS row
    MATCH (source:`{label}` {entity_id: row[0]}) MATCH (target:`{label}` {entity_id: row[1]})
    MERGE (source)-[edge:DIRECTED]-(target) SET edge = row[2]"""
# Most queries that go on when nobody waits for them.
_LINGERING = 2
# How many times a query's patience may pass before it has a connection.
_WAITS = 2
_FORGET = f"MATCH (fence:CragsideFence) WHERE fence.closed < timestamp() - {FORGET_SECONDS * 1000} DELETE fence"
_DROP = (
    "DROP CONSTRAINT `cragside_{label}` IF EXISTS",
    "DROP INDEX `entity_id_fulltext_idx_{label}` IF EXISTS",
    "MATCH (node:`{label}`) CALL (node) { DETACH DELETE node } IN TRANSACTIONS OF 10000 ROWS",
)

_DEGREE = "COUNT { (node)-[:DIRECTED]-() }"
_NODES = "UNWIND $names AS name MATCH (node:`{label}` {entity_id: name})"
_PAIRS = """UNWIND $pairs AS pair MATCH (:`{label}` {entity_id: pair[0]})-[edge:DIRECTED]-
    (:`{label}` {entity_id: pair[1]}) WITH pair, head(collect(edge)) AS edge"""
# The edges of a node from either side; those whose other ends are alphabetically later come first.
_SIDE = "CASE WHEN end.entity_id >= node.entity_id THEN 1 ELSE 2 END AS side"
_NAMED = "MATCH (node:`{label}`) WHERE {condition} RETURN node.entity_id, properties(node)"
_BEST = f" ORDER BY {_DEGREE} DESC, node.entity_id LIMIT $limit"
_KIND = "coalesce(node.entity_type, '')"
_CONTAINING = f"toLower(node.entity_id) CONTAINS toLower($text) AND ($kind = '' OR {_KIND} = $kind)"
_HEAVIEST = "ORDER BY coalesce(edge.weight, 0) DESC"
_QUERIES = {
    "nodes": f"{_NODES} RETURN name, properties(node)",
    "degrees": f"{_NODES} RETURN name, {_DEGREE}",
    "edges": f"{_PAIRS} RETURN pair[0], pair[1], properties(edge)",
    "edges_of": f"""{_NODES} CALL (node) {{ MATCH (node)-[:DIRECTED]-(end)
        WITH DISTINCT end.entity_id AS other, {_SIDE}
        ORDER BY side, other LIMIT $most RETURN other, side }}
    RETURN name, other ORDER BY name, side, other""",
    "surroundings": f"""{_NODES.replace("$names", "$asked")}
    RETURN 'node' AS kind, name, '' AS other, 0 AS side, {_DEGREE} AS degree, properties(node) AS told
    UNION ALL {_NODES} CALL (node) {{ MATCH (node)-[edge:DIRECTED]-(end)
        WITH end, head(collect(edge)) AS edge, {_SIDE}
        ORDER BY side, end.entity_id LIMIT $most RETURN end, edge, side }}
    RETURN 'near' AS kind, name, end.entity_id AS other, side, COUNT {{ (end)-[:DIRECTED]-() }} AS degree,
        properties(edge) AS told
    UNION ALL {_PAIRS}
    RETURN 'edge' AS kind, pair[0] AS name, pair[1] AS other, 0 AS side, 0 AS degree, properties(edge) AS told""",
    "same_name": _NAMED.replace("{condition}", "toLower(node.entity_id) = toLower($text)") + _BEST,
    "containing": _NAMED.replace("{condition}", _CONTAINING) + _BEST,
    "kinds": f"MATCH (node:`{{label}}`) RETURN {_KIND}, count(*)",
    "among": f"""MATCH (source:`{{label}}`)-[edge:DIRECTED]-(target:`{{label}}`)
    WHERE source.entity_id IN $names AND target.entity_id IN $names AND source.entity_id <= target.entity_id
    WITH DISTINCT source.entity_id AS source, target.entity_id AS target, edge
    RETURN source, target, properties(edge) {_HEAVIEST}, source, target LIMIT $limit""",
    "strongest": f"""MATCH (:`{{label}}` {{entity_id: $name}})-[edge:DIRECTED]-(end)
    RETURN end.entity_id, properties(edge) {_HEAVIEST}, end.entity_id LIMIT $limit""",
    "sizes": "RETURN COUNT { (:`{label}`) }, COUNT { (:`{label}`)-[:DIRECTED]->() }",
    "page_of_nodes": """MATCH (node:`{label}`) WHERE node.entity_id > $after
    RETURN node.entity_id, properties(node) ORDER BY node.entity_id LIMIT $most""",
    "edges_from": f"""{_NODES} MATCH (node)-[edge:DIRECTED]-(end)
    WHERE end.entity_id >= name WITH name, end, head(collect(edge)) AS edge
    RETURN name, end.entity_id, properties(edge) ORDER BY name, end.entity_id""",
}


class Neo4jGraphs(GraphTarget[Neo4jDatabase]):
    """The graphs of all stores in a Neo4j database, each under its key as label."""

    queries = _QUERIES
    share = "the graph in Neo4j"
    late = "Neo4j does not answer in time"

    def __init__(self, database: Neo4jDatabase) -> None:
        super().__init__(database)
        # Queries that nobody waits for any more.
        self._lingering: set[asyncio.Task[list[Any]]] = set()
        # How many questions were answered.
        self._answers = 0

    async def server(self) -> tuple[str, str, str]:
        """Return the server's version and edition, and the name of the database. Raises `LedgerError`."""
        ((version, edition, database),) = await self.rows(_SERVER)
        return version, edition, database

    @override
    async def rows(self, query: str, **values: Any) -> list[Any]:
        async with translating_failures():
            return await self._database.rows(query, **values)

    @override
    async def rows_for(self, workspace: str, query: str, **values: Any) -> list[Any]:
        async with translating_failures(), self._database.share_of(workspace):
            return await self._database.rows(query, **values)

    @override
    async def rows_within(self, seconds: float, workspace: str, query: str, **values: Any) -> list[Any]:
        """See the base. The query goes on.

        Neo4j may take seconds to plan it for a store, or anew after many changes. If whoever waits ended that, the next
        one would find no plan either. That many others ask is no slowness of Neo4j: see `_turn_comes`.
        """
        turn = asyncio.Event()
        asking = asyncio.create_task(self._rows_in_turn(turn, workspace, query, values))
        try:
            await self._turn_comes(turn, seconds)
            async with asyncio.timeout(seconds):
                return await asyncio.shield(asking)
        finally:
            self._leave(asking)

    async def _rows_in_turn(self, turn: asyncio.Event, workspace: str, query: str, values: dict[str, Any]) -> list[Any]:
        try:
            async with translating_failures(), self._database.share_of(workspace):
                turn.set()
                rows = await self._database.rows(query, **values)
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

    @override
    async def _write(self, key: str, this: Fence, change: dict[str, Any]) -> bool:
        async def apply(run: Run) -> bool:
            found = await run(_FENCE, key=key)
            latest = Fence(*found[0]) if found else Fence(-1)
            if not latest.comes_before(this):
                return latest == this
            for cypher, rows in _statements(change):
                if rows:
                    await run(cypher.replace("{label}", key), rows=rows)
            await run(_PASSED, key=key, seq=this.seq, change=this.change)
            return True

        if this.seq == 1:
            await self._make_constraints(key)
        return await self._database.write(apply)

    @override
    async def _applied(self, key: str) -> int:
        found = await self._database.rows(_APPLIED, key=key)
        return found[0][0] if found else 0

    @override
    async def _drop(self, key: str) -> None:
        async def close(run: Run) -> None:
            await run(_CLOSED, key=key, seq=CLOSED.seq, change=CLOSED.change)

        await self._database.write(close)
        for cypher in (*_DROP, _FORGET):
            await self._database.execute(cypher.replace("{label}", key))

    @override
    async def close(self) -> None:
        lingering = list(self._lingering)
        for asking in lingering:
            asking.cancel()
        await asyncio.gather(*lingering, return_exceptions=True)
        await super().close()

    async def _make_constraints(self, key: str) -> None:
        """Make what a store's graph needs, with its first change."""
        if await self._database.rows(_APPLIED, key=key):
            return
        for (name,) in await self._database.rows(_INDEXES, label=key):
            await self._database.execute(f"DROP INDEX `{name}` IF EXISTS")
        for cypher in _CONSTRAINTS:
            await self._database.execute(cypher.replace("{label}", key))

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
