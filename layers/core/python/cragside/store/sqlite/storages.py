"""LightRAG's key-value and graph storages on SQLite.

Its queries look at no more of the graph than they return.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import orjson
from typing_extensions import override

from cragside.store.sqlite.database import Database, rows_apart
from cragside.store.sqlite.driver import write_values
from cragside.store.storages import GraphStorage, Properties, Strong, ValueStorage


@final
@dataclass
class SqliteKVStorage(ValueStorage):
    """Values are JSON."""

    @override
    async def initialize(self) -> None:
        self._db = Database.acquire(self.global_config["working_dir"])

    @override
    async def finalize(self) -> None:
        self._db.release()

    @override
    async def get_by_id(self, id: str) -> dict[str, Any] | None:
        row = self._db.one("SELECT value FROM kv WHERE namespace = ? AND id = ?", (self.namespace, id))
        return None if row is None else self._value(id, row[0])

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        rows = self._db.within("SELECT id, value FROM kv WHERE namespace = ? AND id IN ({})", ids, [self.namespace])
        found = {key: self._value(key, value) for key, value in rows}
        return [found.get(key) for key in ids]

    @override
    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        if not data:
            return
        with self._db.transaction():
            write_values(self._db, self.namespace, data)

    @staticmethod
    def _value(key: str, text: str) -> dict[str, Any]:
        value: dict[str, Any] = orjson.loads(text)
        value.setdefault("create_time", 0)
        value.setdefault("update_time", 0)
        value["_id"] = key
        return value


# The join looks each pair up in the index; for `(source, target) IN (...)` SQLite reads the whole table.
_EDGES = (
    "WITH wanted (s, t) AS (VALUES {}) SELECT source, target, value FROM wanted CROSS JOIN edge"
    " ON source = s AND target = t"
)
# The strongest edges of a node, from either side; both halves are read in the order of an index and no further.
_NEIGHBOURS = """
SELECT * FROM (
    SELECT target, json_extract(value, '$.weight') FROM edge
    WHERE source = ?1 ORDER BY json_extract(value, '$.weight') DESC, target LIMIT ?2)
UNION ALL
SELECT * FROM (
    SELECT source, json_extract(value, '$.weight') FROM edge
    WHERE target = ?1 ORDER BY json_extract(value, '$.weight') DESC, source LIMIT ?2)
"""
_STRONGEST = """
SELECT other, value, weight, forward FROM (
    SELECT * FROM (
        SELECT target AS other, value, json_extract(value, '$.weight') AS weight, 1 AS forward FROM edge
        WHERE source = ?1 ORDER BY json_extract(value, '$.weight') DESC, target LIMIT ?2)
    UNION ALL
    SELECT * FROM (
        SELECT source, value, json_extract(value, '$.weight'), 0 FROM edge
        WHERE target = ?1 AND source <> ?1 ORDER BY json_extract(value, '$.weight') DESC, source LIMIT ?2))
ORDER BY weight DESC, other LIMIT ?2
"""
_AMONG = """
SELECT source, target, value FROM edge
WHERE source IN (SELECT value FROM json_each(?1)) AND target IN (SELECT value FROM json_each(?1))
ORDER BY json_extract(value, '$.weight') DESC, source, target LIMIT ?2
"""
_KIND = "coalesce(json_extract(value, '$.entity_type'), '')"
_KINDS = f"SELECT {_KIND}, count(*) FROM node GROUP BY 1"  # noqa: S608 (our own text)
_BEST = "ORDER BY degree DESC, id LIMIT"


@final
@dataclass
class SqliteGraphStorage(GraphStorage):
    """Nodes and edges in tables. Each edge is stored once."""

    @override
    async def initialize(self) -> None:
        self._db = Database.acquire(self.global_config["working_dir"])

    @override
    async def finalize(self) -> None:
        self._db.release()

    @override
    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        return {node: self._edges_of(node) for node in node_ids}

    @override
    async def nodes(self, names: Iterable[str]) -> dict[str, Properties]:
        rows = self._db.within("SELECT id, value FROM node WHERE id IN ({})", names)
        return {node: orjson.loads(value) for node, value in rows}

    @override
    async def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Properties]:
        return {(source, target): orjson.loads(value) for source, target, value in self._db.within(_EDGES, pairs)}

    @override
    async def degrees(self, names: Iterable[str]) -> dict[str, int]:
        return dict(self._db.within("SELECT id, degree FROM node WHERE id IN ({})", names))

    @override
    async def named(self, name: str) -> tuple[str, Properties] | None:
        spellings = _spellings(name)
        marks = ",".join("?" * len(spellings))
        row = self._db.one("SELECT id, value FROM node WHERE id = ?", (name,)) or self._db.one(
            f"SELECT id, value FROM node WHERE lower(id) IN ({marks}) {_BEST} 1",  # noqa: S608 (our own text)
            spellings,
        )
        return None if row is None else (row[0], orjson.loads(row[1]))

    @override
    async def containing(self, text: str, limit: int, kind: str = "") -> list[str]:
        spellings = _spellings(text)
        contains = " OR ".join(["instr(lower(id), ?)"] * len(spellings))
        rows = await rows_apart(
            self._db,
            f"SELECT id FROM node WHERE ({contains}) AND (? = '' OR {_KIND} = ?) {_BEST} ?",  # noqa: S608 (our own text)
            (*spellings, kind, kind, limit),
        )
        return [row[0] for row in rows]

    @override
    async def kinds(self) -> dict[str, int]:
        return dict(await rows_apart(self._db, _KINDS))

    @override
    async def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, Properties]]:
        rows = await rows_apart(self._db, _AMONG, (orjson.dumps(names).decode(), limit))
        return [(source, target, orjson.loads(value)) for source, target, value in rows]

    @override
    async def strongest(self, name: str, limit: int) -> list[Strong]:
        rows = self._db.all(_STRONGEST, (name, limit))
        return [Strong(other, orjson.loads(value), bool(forward)) for other, value, _, forward in rows]

    @override
    async def neighbours(self, name: str, limit: int) -> list[tuple[str, float | None]]:
        return self._db.all(_NEIGHBOURS, (name, limit))

    def _edges_of(self, node: str) -> list[tuple[str, str]]:
        rows = self._db.all(
            "SELECT target FROM edge WHERE source = ?1"
            " UNION ALL SELECT source FROM edge WHERE target = ?1 AND source <> ?1 LIMIT ?2",
            (node, -1 if self.edges_per_node is None else self.edges_per_node),
        )
        return [(node, row[0]) for row in rows]


def _spellings(name: str) -> list[str]:
    """Return the usual spellings of a name as SQLite's `lower()` writes them: it changes ASCII letters alone."""
    written = {name, name.lower(), name.upper(), name.title(), name.capitalize()}
    return sorted({"".join(c.lower() if c.isascii() else c for c in spelling) for spelling in written})
