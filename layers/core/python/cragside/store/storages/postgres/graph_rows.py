"""Statements that read and write all of a graph, row by row.

Those that read have the store's number as `$1` and LightRAG's name of the workspace as `$2`. Those that write have the
latter as `$1`, then names and properties.
"""

# ruff: noqa: S608 - statements are put together from our own text and the graph's name, values are bound

from typing import NamedTuple

from cragside.store.ledger.postgres.age import AGE_STORAGE, graph_of
from cragside.store.storages.postgres.age_graph import (
    EDGES,
    EQUAL,
    VERTICES,
    has_name,
    name_of,
    properties_of,
)

_KEYED = "$1::bigint IS NOT NULL AND $2::text IS NOT NULL"


class GraphRows(NamedTuple):
    """The statements for a graph."""

    nodes: str
    edges: str
    add_node: str
    add_edge: str


_TABLES = GraphRows(
    nodes=f"SELECT id, properties::text FROM lightrag_graph_nodes WHERE {_KEYED} AND workspace = $2 ORDER BY id",
    edges=f"""SELECT src_id, tgt_id, properties::text FROM lightrag_graph_edges
        WHERE {_KEYED} AND workspace = $2 ORDER BY 1, 2""",
    add_node="INSERT INTO lightrag_graph_nodes (workspace, id, properties) VALUES ($1, $2, $3::text::jsonb)",
    add_edge="""INSERT INTO lightrag_graph_edges (workspace, src_id, tgt_id, properties)
        VALUES ($1, $2, $3, $4::text::jsonb)""",
)
_AGE = GraphRows(
    nodes=f"SELECT {name_of('node')}, {properties_of('node')} FROM {VERTICES} AS node WHERE {_KEYED} ORDER BY 1",
    edges=f"""SELECT least({name_of("a")}, {name_of("b")}), greatest({name_of("a")}, {name_of("b")}),
        {properties_of("edge")} FROM {EDGES} AS edge JOIN {VERTICES} AS a ON a.id {EQUAL} start_id
        JOIN {VERTICES} AS b ON b.id {EQUAL} end_id WHERE {_KEYED} ORDER BY 1, 2""",
    add_node=f"""INSERT INTO {VERTICES} (properties)
        SELECT (jsonb_build_object('entity_id', $2::text) || $3::text::jsonb)::text::ag_catalog.agtype
        WHERE $1::text IS NOT NULL""",
    add_edge=f"""INSERT INTO {EDGES} (start_id, end_id, properties) SELECT a.id, b.id, $4::text::ag_catalog.agtype
        FROM {VERTICES} AS a, {VERTICES} AS b
        WHERE $1::text IS NOT NULL AND {has_name("a", "$2")} AND {has_name("b", "$3")}""",
)


def graph_rows(storage: str, key: str) -> GraphRows:
    """The statements for a graph in a class of LightRAG's."""
    if storage != AGE_STORAGE:
        return _TABLES
    return GraphRows(*(statement.format(graph_of(key)) for statement in _AGE))
