"""What the graph says of its entities, by queries that look at no more of it than they return."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from cragside.adapters.lightrag.ledger.sqlite.database import Database

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
_NODES = """
SELECT node.id, node.value,
       (SELECT count(*) FROM mention WHERE kind = 'entity' AND mention.name = node.id)
FROM node WHERE node.id IN ({})
"""
_DOCUMENTS = """
SELECT document.id, document.name, min(document.created_at) FROM mention
JOIN chunk ON chunk.id = mention.passage JOIN document ON document.version = chunk.version
WHERE mention.kind = 'entity' AND mention.name = ? AND document.state <> 'gone'
GROUP BY document.id ORDER BY min(document.created_at), document.name LIMIT ?
"""
_MENTIONED = """
SELECT mention.name, count(*), node.degree FROM json_each(?) AS wanted
CROSS JOIN mention ON mention.passage = wanted.value AND mention.kind = 'entity'
JOIN node ON node.id = mention.name
GROUP BY mention.name ORDER BY count(*) DESC, node.degree DESC, mention.name LIMIT ?
"""


class Strong(NamedTuple):
    """An edge of an entity. `forward` tells that the other end is alphabetically later."""

    other: str
    value: dict[str, Any]
    forward: bool


class GraphReader:
    """Reads nodes, edges and mentions. An edge's ends are in alphabetical order; the heaviest edges come first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def named(self, name: str, spellings: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
        """The name and properties of a node of exactly this name, or of the best connected one of these spellings."""
        marks = ",".join("?" * len(spellings))
        row = self._database.one("SELECT id, value FROM node WHERE id = ?", (name,)) or self._database.one(
            f"SELECT id, value FROM node WHERE lower(id) IN ({marks}) ORDER BY degree DESC, id LIMIT 1",  # noqa: S608
            spellings,
        )
        return None if row is None else (row[0], orjson.loads(row[1]))

    def containing(self, spellings: Sequence[str], limit: int) -> list[str]:
        """Names that contain any of the spellings, best connected first."""
        contains = " OR ".join(["instr(lower(id), ?)"] * len(spellings))
        rows = self._database.all(
            f"SELECT id FROM node WHERE {contains} ORDER BY degree DESC, id LIMIT ?",  # noqa: S608 (our own text)
            (*spellings, limit),
        )
        return [row[0] for row in rows]

    def documents_of(self, name: str, limit: int) -> list[tuple[str, str, str]]:
        """Ids, names and times of acceptance of the documents that mention an entity, earliest first."""
        return self._database.all(_DOCUMENTS, (name, limit))

    def mentioned_by(self, passage_ids: Sequence[str], limit: int) -> list[str]:
        """Names of the entities that passages mention: by how many of the passages, then by their connections."""
        return [row[0] for row in self._database.all(_MENTIONED, (orjson.dumps(passage_ids).decode(), limit))]

    def nodes(self, names: Sequence[str]) -> dict[str, tuple[dict[str, Any], int]]:
        """Properties of the nodes that are there, and how often each is mentioned."""
        rows = self._database.within(_NODES, names)
        return {name: (orjson.loads(value), mentions) for name, value, mentions in rows}

    def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, dict[str, Any]]]:
        """Edges whose ends are both among these."""
        rows = self._database.all(_AMONG, (orjson.dumps(names).decode(), limit))
        return [(source, target, orjson.loads(value)) for source, target, value in rows]

    def strongest(self, name: str, limit: int) -> list[Strong]:
        """The heaviest edges of a node with their properties."""
        rows = self._database.all(_STRONGEST, (name, limit))
        return [Strong(other, orjson.loads(value), bool(forward)) for other, value, _, forward in rows]

    def neighbours(self, name: str, limit: int) -> list[tuple[str, float | None]]:
        """Neighbours by the heaviest edges from either side, `limit` from each, and the weights."""
        return self._database.all(_NEIGHBOURS, (name, limit))
