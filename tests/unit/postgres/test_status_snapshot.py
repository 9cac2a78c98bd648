"""The status of a store is of one moment, and holds no snapshot while another database is asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cragside.store.ledger import Ledger
from cragside.store.postgres.driver import PostgresDriver


class Tables(PostgresDriver):
    """Notes whether the graph is asked for within the snapshot."""

    def __init__(self, graph: str) -> None:
        self.key = "w0"
        self._graph = graph
        self._in_snapshot = False
        self.asked: list[bool] = []

    def is_outside(self, role: str) -> bool:
        return role == "graph" and self._graph == "Neo4JStorage"

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        self._in_snapshot = True
        yield
        self._in_snapshot = False

    async def sizes_of_graph(self) -> tuple[int, int]:
        self.asked.append(self._in_snapshot)
        return 0, 0

    async def value(self, sql: str, *values: Any) -> int:
        return 1

    async def all(self, sql: str, *values: Any) -> list[Any]:
        return []


@pytest.mark.parametrize(("graph", "within"), [("Neo4JStorage", False), ("PGTableGraphStorage", True)])
async def test_a_graph_is_counted_in_the_snapshot_only_where_the_documents_are(graph: str, *, within: bool) -> None:
    tables = Tables(graph)
    status = await Ledger(tables, "w", str.lower).status("m")
    assert (status.documents, status.entities, status.relations) == (1, 0, 0)
    assert tables.asked == [within]
