"""All that a query of LightRAG's looks for in PostgreSQL, in one statement."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import Mapping
from typing import Any, Protocol

import orjson

from cragside.ports.embedder import Vectors
from cragside.store.ledger.postgres.store import NOW, PostgresStore, since
from cragside.store.storages.interface import Expansion, Found, Search, ordered
from cragside.store.storages.postgres.graph import EDGES_OF, PostgresGraph
from cragside.store.storages.postgres.searches import Values, ranking

# What a part of the statement finds if the query's mode leaves it out.
_NO_ENTITY = "SELECT NULL::text AS entity_name WHERE false"
_NO_RELATION = "SELECT NULL::text AS src_id, NULL::text AS tgt_id WHERE false"
_GRAPH = """,
asked AS MATERIALIZED (
    SELECT entity_name::text AS name FROM entity UNION SELECT src_id FROM relation UNION SELECT tgt_id FROM relation),
near AS MATERIALIZED (
    SELECT entity_name::text AS name, other, side FROM entity CROSS JOIN LATERAL {edges} AS edge),
pair AS MATERIALIZED (
    SELECT CASE side WHEN 1 THEN name ELSE other END AS source, CASE side WHEN 1 THEN other ELSE name END AS target
        FROM near
    UNION SELECT least(src_id COLLATE "C", tgt_id COLLATE "C"), greatest(src_id COLLATE "C", tgt_id COLLATE "C")
        FROM relation),
counted AS MATERIALIZED (SELECT entity_name::text AS name FROM entity UNION SELECT name FROM near
    UNION SELECT other FROM near)
"""
# There are few names, which the planner cannot know: OFFSET 0 keeps it from reading all of a table.
_NODES = """SELECT node.* FROM asked CROSS JOIN LATERAL (
    SELECT id, properties FROM lightrag_graph_nodes WHERE {own} AND id = name OFFSET 0) AS node"""
_EDGES = """SELECT edge.* FROM pair CROSS JOIN LATERAL (SELECT src_id, tgt_id, properties FROM lightrag_graph_edges
    WHERE {own} AND src_id = source COLLATE "default" AND tgt_id = target COLLATE "default" OFFSET 0) AS edge"""
_DEGREES = """SELECT name, (SELECT count(*) FROM lightrag_graph_edges WHERE {own} AND src_id = name)
    + (SELECT count(*) FROM lightrag_graph_edges WHERE {own} AND tgt_id = name) AS degree FROM counted"""


class Searches(Protocol):
    """A vector storage, whose searches may be parts of a statement."""

    def near_rows(self, values: Values, vector: Vectors, most: int) -> str:
        """The search for the nearest rows."""

    def passages(self, values: Values, query: str, vector: Vectors, most: int) -> dict[str, str]:
        """The searches for passages: `close` by vectors and, if there are words, `worded`; `held` counts these."""

    def remember_held(self, counts: Mapping[str, int]) -> None:
        """Keep what `held` tells."""


async def find(
    store: PostgresStore,
    search: Search,
    chunks: Searches,
    entities: Searches,
    relations: Searches,
    graph: PostgresGraph | None,
) -> Found:
    """Search as `VectorStorage.find` does, while the store has vectors."""
    values = Values(store.number)
    parts = {
        "entity": _NO_ENTITY
        if search.entities is None
        else entities.near_rows(values, search.vectors[search.entities], search.related),
        "relation": _NO_RELATION
        if search.relations is None
        else relations.near_rows(values, search.vectors[search.relations], search.related),
    }
    if search.passages is not None:
        parts |= chunks.passages(values, search.passages, search.vectors[search.passages], search.most)
    shown = {name: f"SELECT * FROM {name}" for name in parts}
    shown["store"] = NOW.format(workspace=values.mark(store.workspace, "text"))
    beside = ""
    if graph is not None:
        beside, more = _expanded(values, graph)
        shown |= more
    ahead = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in parts.items())
    columns = ", ".join(f"(SELECT json_agg(shown) FROM ({sql}) AS shown) AS {name}" for name, sql in shown.items())
    row = await store.one(f"SELECT * FROM (WITH {ahead}{beside} SELECT {columns}) AS told", *values.values[1:])
    found: dict[str, list[dict[str, Any]]] = {name: orjson.loads(rows or "[]") for name, rows in row.items()}
    chunks.remember_held({row["word"]: row["passages"] for row in found.get("held", ())})
    near, lexical = ([tuple(each.values()) for each in found.get(name, ())] for name in ("close", "worded"))
    return Found(
        found["entity"],
        found["relation"],
        ranking(near, lexical, search.most),
        None if graph is None else _expansion(found, graph),
        since(next(iter(found["store"]), None)),
    )


def _expanded(values: Values, graph: PostgresGraph) -> tuple[str, dict[str, str]]:
    """The parts of the statement that read the graph, and what they show."""
    own = f"workspace = {values.mark(graph.workspace, 'text')} AND namespace = {values.mark(graph.namespace, 'text')}"
    edges = EDGES_OF.format(own=own, node="entity_name::text", most=values.mark(graph.edges_per_node, "integer"))
    shown = {
        "around": 'SELECT name, other FROM near ORDER BY name, side, other COLLATE "C"',
        "nodes": _NODES.format(own=own),
        "edges": _EDGES.format(own=own),
        "degrees": _DEGREES.format(own=own),
    }
    return _GRAPH.format(edges=edges), shown


def _expansion(found: dict[str, list[dict[str, Any]]], graph: PostgresGraph) -> Expansion:
    names = [row["entity_name"] for row in found["entity"]]
    ends = [(row["src_id"], row["tgt_id"]) for row in found["relation"]]
    near: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    for row in found["around"]:
        near[row["name"]].append((row["name"], row["other"]))
    return Expansion(
        asked={*names, *(name for pair in ends for name in pair)},
        nodes={row["id"]: graph._node_props(row["id"], row["properties"]) for row in found["nodes"]},
        near=near,
        degrees={row["name"]: row["degree"] for row in found["degrees"]},
        pairs={ordered(*edge) for edges in near.values() for edge in edges} | {ordered(*pair) for pair in ends},
        edges={(row["src_id"], row["tgt_id"]): row["properties"] for row in found["edges"]},
    )
