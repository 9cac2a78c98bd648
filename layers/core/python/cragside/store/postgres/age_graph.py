"""LightRAG's graph in Apache AGE."""

# ruff: noqa: S608 - statements are put together from our own text and the graph's name, values are bound

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from typing_extensions import override

from cragside.store.driver import Row
from cragside.store.errors import LedgerError
from cragside.store.postgres.graph import WITH_PROPERTIES, LedgerGraph
from cragside.store.postgres.schema import ENTITY, graph_of, translating
from cragside.store.storages import Expansion, ordered

# All names are qualified, because a search path would have to be set anew on each connection.
EQUAL = "OPERATOR(ag_catalog.=)"
_DIFFERS = "OPERATOR(ag_catalog.<>)"
VERTICES, EDGES = '{0}."base"', '{0}."DIRECTED"'


def name_of(vertex: str) -> str:
    """The name of a vertex."""
    return f'({ENTITY.format(vertex)})::text COLLATE "C"'


def has_name(vertex: str, text: str) -> str:
    """Return the condition that a vertex has this name; an index finds it."""
    return f"{ENTITY.format(vertex)} {EQUAL} to_json({text}::text)::text::ag_catalog.agtype"


def properties_of(of: str) -> str:
    """Return the properties of a vertex or an edge, as JSON."""
    return f"ag_catalog.agtype_out({of}.properties)::text"


def _joined(edge: str, source: str, target: str) -> str:
    """Return the condition that an edge joins two vertices. LightRAG's server writes edges in any direction."""
    ends = f"{edge}.start_id {EQUAL} {{}}.id AND {edge}.end_id {EQUAL} {{}}.id"
    return f"({ends.format(source, target)} OR {ends.format(target, source)})"


_WEIGHT = """(ag_catalog.agtype_access_operator({}.properties, '"weight"'::ag_catalog.agtype))::text::float8"""
_HEAVIEST = f"ORDER BY {_WEIGHT} DESC NULLS LAST"
# The other ends of a vertex's edges.
_NEAR = f"""SELECT end_id AS other, properties FROM {EDGES} WHERE start_id {EQUAL} node.id
    UNION ALL SELECT start_id, properties FROM {EDGES} WHERE end_id {EQUAL} node.id AND start_id {_DIFFERS} node.id"""
_DEGREE = f"""(SELECT count(*) FROM {EDGES} WHERE start_id {EQUAL} node.id)
    + (SELECT count(*) FROM {EDGES} WHERE end_id {EQUAL} node.id)"""
_NODES = f"""SELECT asked, {properties_of("node")} FROM unnest($1::text[]) AS asked
    JOIN {VERTICES} AS node ON {has_name("node", "asked")}"""
_EDGES_BETWEEN = f"""SELECT source, target, {properties_of("edge")}
    FROM unnest($1::text[], $2::text[]) AS pair (source, target)
    JOIN {VERTICES} AS a ON {has_name("a", "source")} JOIN {VERTICES} AS b ON {has_name("b", "target")}
    JOIN {EDGES} AS edge ON {_joined("edge", "a", "b")}"""
_DEGREES = f"""SELECT asked, {_DEGREE} FROM unnest($1::text[]) AS asked
    JOIN {VERTICES} AS node ON {has_name("node", "asked")}"""
# Always the same ones: first those whose other ends are alphabetically later.
_SOME = f"""SELECT asked AS name, near.name AS other FROM unnest($1::text[]) AS asked
    JOIN {VERTICES} AS node ON {has_name("node", "asked")} CROSS JOIN LATERAL (
        SELECT {name_of("other")} AS name FROM ({_NEAR}) AS edge JOIN {VERTICES} AS other ON other.id {EQUAL} edge.other
        ORDER BY {name_of("other")} < asked, {name_of("other")} LIMIT $2) AS near"""
_ORDER = 'ORDER BY name, other < name COLLATE "C", other'
_EDGES_OF = f"SELECT name, other FROM ({_SOME}) AS near {_ORDER}"
# `$3` and `$4` are the ends of relations.
_EXPANSION = f"""WITH near AS MATERIALIZED ({_SOME}),
    named AS (SELECT unnest($1::text[]) AS name UNION SELECT unnest($3::text[]) UNION SELECT unnest($4::text[])),
    pair AS (SELECT name AS source, other AS target FROM near UNION SELECT * FROM unnest($3::text[], $4::text[])),
    joined AS (SELECT DISTINCT ON (edge.id) source, target, edge.properties FROM pair
        JOIN {VERTICES} AS a ON {has_name("a", "source")} JOIN {VERTICES} AS b ON {has_name("b", "target")}
        JOIN {EDGES} AS edge ON {_joined("edge", "a", "b")}),
    counted AS (SELECT unnest($1::text[]) AS name UNION SELECT name FROM near UNION SELECT other FROM near)
    SELECT
    (SELECT json_agg(json_build_array(name, other) {_ORDER}) FROM near),
    (SELECT json_agg(json_build_array(name, {properties_of("node")}::json)) FROM named
        JOIN {VERTICES} AS node ON {has_name("node", "name")}),
    (SELECT json_agg(json_build_array(source, target, {properties_of("joined")}::json)) FROM joined),
    (SELECT json_agg(json_build_array(name, {_DEGREE})) FROM counted
        JOIN {VERTICES} AS node ON {has_name("node", "name")})"""
_STRONGEST = f"""SELECT {name_of("other")}, {properties_of("near")} FROM {VERTICES} AS node
    CROSS JOIN LATERAL ({_NEAR}) AS near JOIN {VERTICES} AS other ON other.id {EQUAL} near.other
    WHERE {has_name("node", "$1")} {_HEAVIEST.format("near")}, {name_of("other")} LIMIT $2"""
_AMONG = f"""WITH node AS (SELECT id, name FROM unnest($1::text[]) AS name
    JOIN {VERTICES} AS node ON {has_name("node", "name")})
    SELECT least(a.name, b.name COLLATE "C"), greatest(a.name, b.name COLLATE "C"), {properties_of("edge")}
    FROM {EDGES} AS edge JOIN node AS a ON a.id {EQUAL} start_id JOIN node AS b ON b.id {EQUAL} end_id
    {_HEAVIEST.format("edge")}, 1, 2 LIMIT $2"""
# Lower case of all alphabets, whatever the database's own locale knows.
_LOWER = 'lower({} COLLATE "und-x-icu")'
_NAMED = f"""SELECT {name_of("node")}, {properties_of("node")} FROM {VERTICES} AS node WHERE {{condition}}
    ORDER BY {_DEGREE} DESC, {name_of("node")} LIMIT $2"""
_LOWER_NAME, _LOWER_TEXT = _LOWER.format(f"({ENTITY.format('node')})::text"), _LOWER.format("$1::text")
_SAME_NAME = _NAMED.replace("{condition}", f"{_LOWER_NAME} = {_LOWER_TEXT}")
_KIND = """coalesce(ag_catalog.agtype_out(node.properties)::text::jsonb->>'entity_type', '')"""
_CONTAINING = _NAMED.replace(
    "{condition}", f"strpos({_LOWER_NAME}, {_LOWER_TEXT}) > 0 AND ($3::text = '' OR {_KIND} = $3)"
)
_QUERIES = {
    "nodes": _NODES,
    "edges": _EDGES_BETWEEN,
    "degrees": _DEGREES,
    "edges_of": _EDGES_OF,
    "same_name": _SAME_NAME,
    "containing": _CONTAINING,
    "kinds": f"SELECT {_KIND}, count(*) FROM {VERTICES} AS node GROUP BY 1",
    "among": _AMONG,
    "strongest": _STRONGEST,
    "sizes": f"SELECT (SELECT count(*) FROM {VERTICES}), (SELECT count(*) FROM {EDGES})",
}

_CUT = f"""DELETE FROM {EDGES} AS edge USING unnest($1::text[], $2::text[]) AS pair (source, target),
    {VERTICES} AS a, {VERTICES} AS b
    WHERE {has_name("a", "source")} AND {has_name("b", "target")} AND {_joined("edge", "a", "b")}"""
_CUT_OFF = f"""DELETE FROM {EDGES} AS edge USING unnest($1::text[]) AS asked, {VERTICES} AS node
    WHERE {has_name("node", "asked")} AND (start_id {EQUAL} node.id OR end_id {EQUAL} node.id)"""
_REMOVE = f"DELETE FROM {VERTICES} AS node USING unnest($1::text[]) AS asked WHERE {has_name('node', 'asked')}"
_WRITE = f"""INSERT INTO {VERTICES} AS base (properties) SELECT told::ag_catalog.agtype FROM unnest($1::text[]) AS told
    ON CONFLICT ({ENTITY.format("base")}) DO UPDATE SET properties = excluded.properties"""
_JOIN = f"""WITH made AS (INSERT INTO {EDGES} (start_id, end_id, properties)
    SELECT a.id, b.id, told::ag_catalog.agtype
    FROM unnest($1::text[], $2::text[], $3::text[]) AS pair (source, target, told)
    JOIN {VERTICES} AS a ON {has_name("a", "source")} JOIN {VERTICES} AS b ON {has_name("b", "target")} RETURNING 1)
    SELECT count(*) FROM made"""


@final
@dataclass
class AgeGraph(LedgerGraph):
    """LightRAG's graph and labels in AGE, read and written in SQL. Each edge is stored once.

    LightRAG's own class names the graphs of several workspaces alike, sets a search path for the session, and sends a
    Cypher text for each node and edge.
    """

    @override
    async def initialize(self) -> None:
        await super().initialize()
        self._graph = graph_of(self._store.key)

    @override
    async def expand(self, names: Sequence[str], ends: Sequence[tuple[str, str]]) -> Expansion:
        (expansion,) = await self._rows(_EXPANSION, [*names], self.edges_per_node, *_columns(ends, 2))
        around, nodes, edges, degrees = (json.loads(rows or "[]") for rows in expansion)
        near: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
        for name, other in around:
            near[name].append((name, other))
        beside = [edge for edges in near.values() for edge in edges]
        return Expansion(
            asked={*names, *(name for pair in ends for name in pair)},
            nodes=dict(nodes),
            near=near,
            degrees={**dict.fromkeys((*names, *(name for pair in beside for name in pair)), 0), **dict(degrees)},
            pairs={ordered(*pair) for pair in (*beside, *ends)},
            edges={ordered(source, target): row for source, target, row in edges},
        )

    async def write(self, nodes: Mapping[str, Row | None], edges: Mapping[tuple[str, str], Row | None]) -> None:
        """Write nodes and edges as they are to be, and remove those that are None. Within a transaction."""
        gone = [name for name, row in nodes.items() if not row]
        written = [json.dumps({**row, "entity_id": name}, ensure_ascii=False) for name, row in nodes.items() if row]
        made = [
            (*ordered(*ends), json.dumps(dict(row), ensure_ascii=False))
            for ends, row in edges.items()
            if row is not None
        ]
        if edges:
            await self._rows(_CUT, *_columns(edges, 2))
        if gone:
            await self._rows(_CUT_OFF, gone)
            await self._rows(_REMOVE, gone)
        if written:
            await self._rows(_WRITE, written)
        if made and (await self._rows(_JOIN, *_columns(made, 3)))[0][0] != len(made):
            raise LedgerError("an edge lacks one of its entities", "got an edge without its entities")

    @override
    async def _ask(self, query: str, **values: Any) -> list[Any]:
        columns = _columns(values["pairs"], 2) if "pairs" in values else values.values()
        rows = await self._rows(_QUERIES[query], *columns)
        return [(*row[:-1], json.loads(row[-1])) for row in rows] if query in WITH_PROPERTIES else rows

    async def _rows(self, sql: str, *values: Any) -> list[Any]:
        async with translating():
            return [tuple(row) for row in await self._store.database.all(sql.format(self._graph), *values)]


def _columns(rows: Iterable[tuple[str, ...]], number: int) -> list[list[str]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(number)]
