"""Answers name the database outside of PostgreSQL that they had to do without."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from cragside.databases import gate
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from cragside.entrypoints.http import health
from tests.integration.test_hanging_databases import served
from tests.services.backends import migrated
from tests.services.neo4j_server import Neo4jServer
from tests.services.qdrant_server import LastingStandIn
from tests.services.redis_server import RedisServer

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres

pytestmark = pytest.mark.services

ASKED = "Who lit the first house by electric light?"


def told(answer: Any) -> dict[str, str]:
    """The reasons by the components of `degraded`, wherever it is."""
    body = answer.json()
    return {each["component"]: each["reason"] for each in body.get("metadata", {}).get("rag_context", body)["degraded"]}


async def test_a_neo4j_that_hangs_is_in_degraded_and_in_the_health(
    postgres: "Postgres", started: Any, tmp_path: Path
) -> None:
    neo4j = started("neo4j", Neo4jServer)
    async with served(tmp_path, postgres, kv_storage=None, doc_status_storage=None, neo4j_uri=SecretStr(neo4j.uri)) as (
        _,
        http,
    ):
        health = (await http.get("/health")).json()
        assert health["components"]["graph"] == {"ok": True, "reason": ""}
        assert (await http.get("/ready")).json()["not_ready"] == []
        neo4j.pause()
        for route, body in (
            ("/v1/query", {"query": ASKED}),
            ("/v1/enrich", {"prompt": f"/rag {ASKED}"}),
            ("/v1/explain", {"prompt": f"/rag {ASKED}"}),
        ):
            answer = await http.post(route, json=body)
            assert answer.status_code == 200, answer.text
            assert told(answer)["graph"].startswith("Neo4j does not answer"), answer.text
        health = (await http.get("/health")).json()
        assert health["components"]["graph"]["ok"] is False
        assert health["status"] == "healthy"
        assert (await http.get("/ready")).json()["not_ready"] == ["graph"]
        neo4j.resume()


async def test_a_redis_that_hangs_is_in_the_health(
    postgres: "Postgres", started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 1000.0)
    monkeypatch.setattr(health, "_HOLDS_SECONDS", 0.0)
    redis = started("redis", RedisServer)
    async with served(tmp_path, postgres, redis_uri=SecretStr(redis.uri)) as (_, http):
        assert (await http.get("/health")).json()["components"]["values"]["ok"] is True
        redis.pause()
        assert (await http.get("/ready")).json()["not_ready"] == ["values"]
        assert (await http.get("/health")).json()["components"]["values"]["ok"] is False
        redis.resume()


async def test_a_qdrant_that_is_away_is_in_degraded_and_in_the_health(
    postgres: "Postgres", started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_HOLDS_SECONDS", 0.0)
    server = started("qdrant", lambda: LastingStandIn("hush"))
    chosen = {"kv_storage": None, "doc_status_storage": None, "vector_storage": "QdrantVectorDBStorage"}
    uris = {"qdrant_url": SecretStr(server.url), "qdrant_api_key": SecretStr("hush")}
    async with served(tmp_path, postgres, **chosen, **uris) as (_, http):
        assert (await http.get("/health")).json()["components"]["vectors"] == {"ok": True, "reason": ""}
        server.stop()
        answer = await http.post("/v1/query", json={"query": ASKED})
        assert told(answer)["vectors"].startswith("Qdrant does not answer. "), answer.text
        assert (await http.get("/ready")).json()["not_ready"] == ["vectors"]
        assert (await http.get("/health")).json()["components"]["vectors"]["ok"] is False


def test_migrate_tells_of_a_wrong_password_of_neo4j_and_ends_with_0(
    postgres: "Postgres", neo4j: "Neo4j", tmp_path: Path
) -> None:
    with migrated(postgres) as uri:
        environment = {
            "RAG_HOME": str(tmp_path),
            "POSTGRES_URI": uri,
            "NEO4J_URI": f"bolt://127.0.0.1:{urlsplit(neo4j.uri).port}",
            "NEO4J_USERNAME": "neo4j",
            "NEO4J_PASSWORD": "wrong",
        }
        ran = CliRunner().invoke(app, ["migrate"], obj=Session(environment=environment, folder=tmp_path))
    assert (ran.exit_code, "Check NEO4J_USERNAME" in ran.stderr, "wrong" in ran.stderr) == (0, True, False), ran.output
