"""Databases of servers as `doctor` shows them, without a server."""

from types import SimpleNamespace
from typing import Any

import pytest

from cragside.composition.databases import (
    examine_graphs,
    examine_qdrant,
    examine_redis,
    postgres_address,
    usual_connections,
)
from cragside.settings import load_settings


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("5.22.0", "cragside needs Neo4j 5.23 or later."),
        ("5.23.0", ""),
        ("2025.01.0", ""),
        ("5.26-aura", ""),
        ("5.9-aura", "cragside needs Neo4j 5.23 or later."),
        ("4.4.40", "cragside needs Neo4j 5.23 or later."),
    ],
)
async def test_a_neo4j_before_the_oldest_is_told(version: str, remedy: str) -> None:
    async def server() -> tuple[str, str, str]:
        return version, "community", "neo4j"

    graphs: Any = SimpleNamespace(server=server, address="neo4j://h")
    state = await examine_graphs(graphs)
    assert (state.version, state.detail, state.remedy) == (version, "database neo4j, community edition", remedy)


@pytest.mark.parametrize(("policy", "forgets"), [("noeviction", False), ("volatile-lru", False), ("allkeys-lru", True)])
@pytest.mark.parametrize(("kept", "said"), [(1, "appendonly yes"), (0, "appendonly no")])
async def test_a_redis_that_forgets_what_it_has_is_told(policy: str, forgets: bool, kept: int, said: str) -> None:
    async def run(_: Any) -> dict[str, Any]:
        return {"maxmemory_policy": policy, "aof_enabled": kept, "redis_version": "7.4"}

    redis: Any = SimpleNamespace(run=run, address="redis://h")
    state = await examine_redis(redis)
    assert state.detail == f"maxmemory-policy {policy}, {said}"
    assert bool(state.remedy) == forgets


@pytest.mark.parametrize("tells", [True, False])
async def test_a_qdrant_whose_key_others_can_read_is_told(tells: bool) -> None:
    async def server() -> str:
        return "1.15"

    vectors: Any = SimpleNamespace(server=server, address="http://h", tells_its_key=tells)
    assert bool((await examine_qdrant(vectors)).remedy) == tells


def test_a_function_is_known_to_postgresql_by_its_log_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings({"POSTGRES_URI": "postgresql://me@h/crag"})
    assert (postgres_address(settings).application_name, usual_connections()) == ("cragside", 10)
    monkeypatch.setenv("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/25/[$LATEST]0f0f")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "index")
    assert (postgres_address(settings).application_name, usual_connections()) == ("cragside-0f0f", 2)
