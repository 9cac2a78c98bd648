"""Documents that wait for a database outside of PostgreSQL count towards the limit of bytes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx
import pytest
from pydantic import SecretStr

from cragside.adapters.local.tokens import TokenFile
from cragside.domain.tokens import USUAL_SCOPES, Limits, new_token
from tests.clocks import BEGIN
from tests.knowledge import Knowledge
from tests.services.backends import migrated
from tests.services.redis_server import RedisServer

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

MOST = 60_000


class Limited:
    """A store whose list and values are in Redis, and a client with a limit of bytes."""

    def __init__(self, home: Path, uri: str, redis: RedisServer) -> None:
        self.redis, self.uri = redis, uri
        tokens = TokenFile(home / "tokens.json")
        made = new_token("t", created=BEGIN, scopes=USUAL_SCOPES, workspaces=("w",), limits=Limits(None, None, MOST))
        self._key = {"X-API-Key": tokens.create(made)[0]}
        self.knowledge = Knowledge(
            home / "kb",
            tokens_file=home / "tokens.json",
            postgres_uri=SecretStr(uri),
            redis_uri=SecretStr(redis.uri),
            kv_storage="RedisKVStorage",
            doc_status_storage="RedisDocStatusStorage",
        )

    async def send(self, name: str, kilobytes: int) -> httpx.Response:
        """Add or replace a text. No two are the same."""
        sentence = f"Otters of {name} hold hands while they sleep in kelp bed {kilobytes}. "
        body = {"text": sentence * (kilobytes * 1000 // len(sentence)), "name": name, "enrich": False}
        return await self.ask("POST", "", json=body)

    async def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Ask one of the routes of documents."""
        return await self.knowledge.http.request(method, f"/v1/documents{path}", headers=self._key, timeout=60, **more)

    async def waiting(self) -> int:
        """The bytes of the journal."""
        connection = await asyncpg.connect(self.uri)
        try:
            return int(await connection.fetchval("SELECT coalesce(sum(octet_length(change)), 0) FROM crag.journal"))
        finally:
            await connection.close()


@pytest.fixture
async def limited(postgres: "Postgres", started: Any, tmp_path: Path) -> AsyncIterator[Limited]:
    with migrated(postgres) as uri:
        limited = Limited(tmp_path, uri, started("redis", RedisServer))
        yield limited
        limited.redis.resume()
        await limited.knowledge.close()


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_texts_that_another_database_does_not_get_fill_no_disk(limited: Limited, how: str) -> None:
    assert (await limited.send("first.md", 1)).status_code == 202
    assert await limited.waiting() == 0
    limited.redis.pause()
    answers = []
    for number in range(6):
        answers.append(await limited.send("again.md", 20 + number % 2))
        if how == "deleted" and answers[-1].is_success:
            identifier = answers[-1].json()["documents"][0]["id"]
            assert (await limited.ask("DELETE", f"/{identifier}")).status_code == 204
    assert [answer.status_code for answer in answers[-3:]] == [403] * 3
    assert "wait for another database to answer" in answers[-1].text
    # The text that was accepted last may be there twice, as a text and as passages.
    assert await limited.waiting() < 2 * MOST
    limited.redis.resume()


@pytest.mark.attack("exhausted resources")
async def test_a_document_is_not_moved_and_indexed_again_and_again_meanwhile(limited: Limited) -> None:
    identifier = (await limited.send("first.md", 20)).json()["documents"][0]["id"]
    limited.redis.pause()
    moves = [{"source": f"{'x' * 3000}{number}.md", "name": f"{'y' * 200}{number}.md"} for number in range(12)]
    assert (await limited.ask("PATCH", f"/{identifier}", json=moves[0])).status_code == 200
    sent = [await limited.send(f"{number}.md", 20) for number in range(3)]
    assert sent[-1].status_code == 403
    held = await limited.waiting()
    answers = [await limited.ask("PATCH", f"/{identifier}", json=move) for move in moves]
    answers += [await limited.ask("POST", f"/{identifier}/reprocess", json={"force": True}) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {403}
    assert await limited.waiting() == held
    limited.redis.resume()


async def test_what_is_on_its_way_leaves_room_and_so_does_what_has_arrived(limited: Limited) -> None:
    for number in range(6):
        answer = await limited.send("again.md", 40 + number % 2)
        assert answer.status_code == 202, answer.text
        identifier = answer.json()["documents"][0]["id"]
    limited.redis.pause()
    assert (await limited.ask("DELETE", f"/{identifier}")).status_code == 204
    assert await limited.waiting() > 0
    limited.redis.resume()
    limited.knowledge.container.backend._journal.targets["kv"]._database._gate._next_try = 0.0  # type: ignore[attr-defined]
    assert (await limited.send("other.md", 50)).status_code == 202
    assert await limited.waiting() == 0
