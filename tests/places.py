"""Stores with their queues, in files and in databases, whose whole contents tests compare."""

import asyncio
import json
import multiprocessing
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from pydantic import SecretStr

from cragside.settings import Settings
from cragside.store.queues.local import FILE_NAME
from tests.services.backends import migrated

FORK = multiprocessing.get_context("fork")
# The kinds of places, as parameters.
KINDS = [
    "files",
    pytest.param("postgres", marks=pytest.mark.services("postgres")),
    pytest.param("postgres_age", marks=pytest.mark.services("postgres_age")),
    pytest.param("postgres_neo4j", marks=pytest.mark.services("postgres", "neo4j")),
    pytest.param("postgres_qdrant", marks=pytest.mark.services("postgres", "qdrant")),
]


@contextmanager
def places(kind: str, home: Path, request: pytest.FixtureRequest) -> Iterator["Callable[[str], Place]"]:
    """A function that makes new places of a kind, by their names."""
    with ExitStack() as stack:

        def make(name: str) -> Place:
            if kind == "files":
                return InFiles(home / name)
            uri = stack.enter_context(
                migrated(request.getfixturevalue(kind.removesuffix("_neo4j").removesuffix("_qdrant")))
            )
            if kind == "postgres_qdrant":
                return InQdrant(home / name, uri, request.getfixturevalue("qdrant"))
            if kind == "postgres_neo4j":
                return InNeo4j(home / name, uri, request.getfixturevalue("neo4j").uri)
            return InAge(home / name, uri) if kind == "postgres_age" else InPostgres(home / name, uri)

        yield make


def forked(target: Callable[..., None], *arguments: Any) -> Any:
    process = FORK.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


class Place(Protocol):
    """A store with its queue."""

    def settings(self) -> Settings: ...

    def statistics(self) -> tuple[int, int, int]:
        """Tasks that wait, tasks in hand, dead letters."""

    def contents(self, workspace: str) -> dict[str, Any]:
        """All that a workspace holds, but for the order in which it came and the times."""


def settings(home: Path, **more: Any) -> Settings:
    # Small passages and parts: more moments at which something is half done.
    given: dict[str, Any] = {"chunk_tokens": 50, "chunk_overlap_tokens": 10, "part_passages": 2, "index_parallel": 6}
    return Settings(home=home, **given, **more)


@dataclass(frozen=True)
class InFiles:
    """SQLite files below a folder."""

    home: Path

    def settings(self) -> Settings:
        return settings(self.home)

    def statistics(self) -> tuple[int, int, int]:
        with closing(sqlite3.connect(self.home / FILE_NAME, timeout=30)) as queue:
            row = queue.execute("SELECT count(*) - count(lease), count(lease), (SELECT count(*) FROM dead) FROM task")
            return tuple(row.fetchone())  # type: ignore[return-value]

    def contents(self, workspace: str) -> dict[str, Any]:
        with closing(sqlite3.connect(self.home / workspace / "store.sqlite3")) as store:
            ask = store.execute
            parts = "SELECT part.key, number, first, last, embedded, enrichment, error, tier3 FROM part"
            edges = "SELECT source, target, value FROM edge"
            return {
                "documents": sorted(ask("SELECT id, content_hash, name, state, text FROM document").fetchall()),
                "parts": sorted(ask(parts).fetchall()),
                "passages": sorted(ask("SELECT id, part, number, section, tier2 FROM chunk").fetchall()),
                "texts": sorted(ask("SELECT id FROM kv WHERE namespace = 'text_chunks'").fetchall()),
                "words": ask("SELECT count(*) FROM passage").fetchone(),
                "vectors": sorted(ask("SELECT id, vector FROM vector WHERE namespace = 'chunks'").fetchall()),
                "graph vectors": sorted(ask("SELECT namespace, id FROM vector WHERE namespace <> 'chunks'").fetchall()),
                "mentions": sorted(ask("SELECT kind, name, passage FROM mention").fetchall()),
                "nodes": {
                    key: (facts(value), degree)
                    for key, value, degree in ask("SELECT id, value, degree FROM node ORDER BY id")
                },
                "edges": {(one, two): facts(value) for one, two, value in sorted(ask(edges))},
            }


@dataclass(frozen=True)
class InPostgres:
    """A database of PostgreSQL."""

    home: Path
    uri: str

    def settings(self) -> Settings:
        return settings(self.home, postgres_uri=SecretStr(self.uri))

    def statistics(self) -> tuple[int, int, int]:
        counts = "count(*) - count(lease), count(lease), (SELECT count(*) FROM crag.dead_task)"
        return self._rows(f"SELECT {counts} FROM crag.task")[0]  # type: ignore[return-value]

    def waiting(self) -> int:
        """Count the changes that may not have reached other databases."""
        return int(self._rows("SELECT count(*) FROM crag.journal")[0][0])

    def contents(self, workspace: str) -> dict[str, Any]:
        ((store, key),) = self._rows("SELECT id, key FROM crag.store WHERE workspace = $1", workspace)
        documents = "SELECT version, id, content_hash, name, state, text FROM crag.document WHERE store = $1"
        versions = {row[0]: row[2] for row in self._rows(documents, store)}
        parts = """SELECT part.version, number, key, first, last, embedded, enrichment, error, tier3
            FROM crag.part JOIN crag.document USING (version) WHERE store = $1"""
        words_of = "SELECT id, words::text, vector::text FROM crag.searched WHERE store = $1"
        vectors = [
            row[0] for row in self._rows("SELECT table_name FROM information_schema.tables") if "_vdb_" in row[0]
        ]
        return {
            "documents": sorted(row[1:] for row in self._rows(documents, store)),
            "parts": sorted((versions[row[0]], *row[1:]) for row in self._rows(parts, store)),
            "passages": self._sorted(
                "id, part, number, section, tier2, text FROM crag.passage WHERE store = $1", store
            ),
            "texts": self._sorted("id, content FROM lightrag_doc_chunks WHERE workspace = $1", key),
            # The number of the store stands before each word.
            "words": sorted(
                (key, words.replace(f"'{store}:", "'"), vector) for key, words, vector in self._rows(words_of, store)
            ),
            "vectors": {name: self._sorted(f"id FROM {name} WHERE workspace = $1", key) for name in vectors},
            "mentions": self._sorted("kind, name, passage FROM crag.mention WHERE store = $1", store),
            "nodes": {name: facts(value) for name, value in sorted(self._nodes(key))},
            "edges": {(one, two): facts(value) for one, two, value in sorted(self._edges(key))},
        }

    def _nodes(self, key: str) -> list[tuple[Any, ...]]:
        return self._rows("SELECT id, properties FROM lightrag_graph_nodes WHERE workspace = $1", key)

    def _edges(self, key: str) -> list[tuple[Any, ...]]:
        return self._rows("SELECT src_id, tgt_id, properties FROM lightrag_graph_edges WHERE workspace = $1", key)

    def _sorted(self, what: str, *values: Any) -> list[Any]:
        return sorted(self._rows(f"SELECT {what}", *values))

    def _rows(self, sql: str, *values: Any, path: str = '"$user", public') -> list[tuple[Any, ...]]:
        async def ask() -> list[tuple[Any, ...]]:
            import asyncpg

            connection = await asyncpg.connect(self.uri, server_settings={"search_path": path})
            try:
                return [tuple(row) for row in await connection.fetch(sql, *values)]
            finally:
                await connection.close()

        return asyncio.run(ask())


class InAge(InPostgres):
    """A database of PostgreSQL, with the graph in Apache AGE."""

    def settings(self) -> Settings:
        return settings(self.home, postgres_uri=SecretStr(self.uri), graph_storage="PGGraphStorage")

    def _nodes(self, key: str) -> list[tuple[Any, ...]]:
        return self._asked(key, "MATCH (n:base) RETURN n.entity_id, properties(n)", "name text, told agtype")

    def _edges(self, key: str) -> list[tuple[Any, ...]]:
        edges = "MATCH (a)-[e:DIRECTED]->(b) RETURN a.entity_id, b.entity_id, properties(e)"
        return self._asked(key, edges, "one text, two text, told agtype")

    def _asked(self, key: str, cypher: str, columns: str) -> list[tuple[Any, ...]]:
        graph = f"'{key}_chunk_entity_relation', $$ {cypher} $$"
        return self._rows(f"SELECT * FROM cypher({graph}) AS ({columns})", path='ag_catalog, "$user", public')


@dataclass(frozen=True)
class InNeo4j(InPostgres):
    """A database of PostgreSQL, with the graph in Neo4j."""

    graphs: str

    def settings(self) -> Settings:
        return settings(self.home, postgres_uri=SecretStr(self.uri), neo4j_uri=SecretStr(self.graphs))

    def contents(self, workspace: str) -> dict[str, Any]:
        """See the base. Every change has reached Neo4j, where each entity and each relation is once."""
        assert self.waiting() == 0
        ((key, last),) = self._rows(
            "SELECT key, seq FROM crag.store LEFT JOIN crag.outside ON store = id WHERE workspace = $1", workspace
        )
        fences = self._asked("MATCH (fence:CragsideFence {workspace: $key}) RETURN fence.applied", key)
        assert fences == ([] if last is None else [(last,)])
        return super().contents(workspace)

    def _nodes(self, key: str) -> list[tuple[Any, ...]]:
        nodes = self._asked(f"MATCH (node:`{key}`) RETURN node.entity_id, properties(node)", key)
        assert len({name for name, _ in nodes}) == len(nodes)
        return [(name, json.dumps(told)) for name, told in nodes]

    def _edges(self, key: str) -> list[tuple[Any, ...]]:
        asked = (
            f"MATCH (:`{key}`)-[edge]->() RETURN startNode(edge).entity_id, endNode(edge).entity_id, properties(edge)"
        )
        edges = [(*sorted((one, other)), json.dumps(told)) for one, other, told in self._asked(asked, key)]
        assert len({(one, other) for one, other, _ in edges}) == len(edges)
        return edges

    def _asked(self, cypher: str, key: str) -> list[Any]:
        import neo4j

        from cragside.databases.server_addresses import Neo4jAddress

        address = Neo4jAddress.parse(self.graphs)
        with neo4j.GraphDatabase.driver(address.uri, auth=(address.user, address.password)) as driver:
            return [tuple(record) for record in driver.execute_query(cypher, key=key).records]


@dataclass(frozen=True)
class InQdrant(InPostgres):
    """A database of PostgreSQL, with LightRAG's vectors in Qdrant."""

    qdrant: str

    def settings(self) -> Settings:
        given = {"qdrant_url": SecretStr(self.qdrant), "vector_storage": "QdrantVectorDBStorage"}
        return settings(self.home, postgres_uri=SecretStr(self.uri), **given)

    def contents(self, workspace: str) -> dict[str, Any]:
        """See the base. Every change has reached Qdrant."""
        assert self.waiting() == 0
        ((key, last),) = self._rows(
            "SELECT key, seq FROM crag.store LEFT JOIN crag.outside ON store = id WHERE workspace = $1", workspace
        )
        there = InPostgres.contents(self, workspace)
        assert not any(there["vectors"].values())
        return {**there, "vectors": self._vectors(key, last)}

    def _vectors(self, key: str, last: int | None) -> dict[str, list[Any]]:
        """The ids by collections, each of which has the latest change."""
        from qdrant_client import QdrantClient, models

        def of(field: str) -> models.Filter:
            return models.Filter(must=[models.FieldCondition(key=field, match=models.MatchValue(value=key))])

        found: dict[str, list[Any]] = {}
        client = QdrantClient(url=self.qdrant)
        for each in client.get_collections().collections:
            fences, _ = client.scroll(each.name, of("cragside_fence"))
            rows, _ = client.scroll(each.name, of("workspace_id"), limit=100_000)
            assert fences or not rows
            assert all((fence.payload or {})["cragside_change"] == last for fence in fences)
            if fences:
                found[each.name] = sorted((row.payload or {})["id"] for row in rows)
        client.close()
        return found


@dataclass(frozen=True)
class InRedis(InPostgres):
    """A database of PostgreSQL, with LightRAG's values and its list of documents in Redis."""

    redis: str

    def settings(self) -> Settings:
        given = {"kv_storage": "RedisKVStorage", "doc_status_storage": "RedisDocStatusStorage"}
        return settings(self.home, postgres_uri=SecretStr(self.uri), redis_uri=SecretStr(self.redis), **given)

    def contents(self, workspace: str) -> dict[str, Any]:
        """See the base. Every change has reached Redis."""
        import redis

        assert self.waiting() == 0
        rows = self._rows("SELECT key, role, seq FROM crag.store JOIN crag.outside ON store = id ORDER BY role")
        key = rows[0][0]
        with redis.from_url(self.redis, decode_responses=True) as client:
            fences = [
                (key, role, int(client.hget(f"cragside:fence:{key}:{role}", "applied") or 0)) for _, role, _ in rows
            ]
            assert fences == rows
            names = sorted(client.keys(f"{key}_*"))
            values = {name.removeprefix(key): self._value(client.get(name)) for name in names if "__" not in name}
        return {**super().contents(workspace), "values": values, "keys": [name.removeprefix(key) for name in names]}

    @staticmethod
    def _value(text: Any) -> dict[str, Any]:
        """Return the parts that do not depend on the time and the order of writing."""
        told = json.loads(text)
        return {name: told.get(name) for name in ("content", "status", "file_path", "chunks_count", "count")}


def facts(value: str) -> dict[str, Any]:
    """Return the content of a node or an edge, in an order of its own."""
    known = json.loads(value)
    kept = {name: sorted(str(known[name]).split("<SEP>")) for name in ("source_id", "description", "file_path")}
    return {**kept, "weight": known.get("weight"), "type": known.get("entity_type")}
