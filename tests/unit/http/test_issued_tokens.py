"""Tokens of the file, from the command that makes them to the route that they open."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cragside.adapters.local.tokens import TokenFile
from cragside.domain.errors import ConfigurationError
from cragside.domain.tokens import USUAL_SCOPES, new_token
from cragside.entrypoints.proxy import server
from cragside.settings import load_settings
from tests.clocks import BEGIN, MovedClock
from tests.knowledge import Knowledge


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


@pytest.fixture
async def knowledge(tmp_path: Path, file: TokenFile) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path / "kb", tokens_file=tmp_path / "tokens.json") as made:
        yield made


async def status(knowledge: Knowledge, token: str, path: str = "/v1/documents") -> int:
    return (await knowledge.http.get(path, headers={"Authorization": f"Bearer {token}"})).status_code


@pytest.mark.attack("hostile tokens")
async def test_a_token_works_until_it_is_revoked(knowledge: Knowledge, file: TokenFile, tmp_path: Path) -> None:
    first, made = file.create(new_token("first", created=BEGIN, scopes=USUAL_SCOPES, workspaces=("a",)))
    knowledge.container.tokens = TokenFile(tmp_path / "tokens.json", clock=(clock := MovedClock()))
    assert await status(knowledge, first) == 200
    assert await status(knowledge, first, "/v1/documents?workspace=b") == 401
    second, _ = file.create(new_token("second", created=BEGIN, scopes=USUAL_SCOPES, workspaces=None))
    file.revoke(made.id)
    clock.move(2)
    assert [await status(knowledge, token) for token in (first, second)] == [401, 200]
    file.revoke("second")
    clock.move(2)
    assert [await status(knowledge, token) for token in (first, second)] == [401, 401]
    assert (await knowledge.http.get("/v1/documents")).status_code == 401


@pytest.mark.attack("hostile tokens")
async def test_an_unreadable_token_file_denies_all_requests(
    knowledge: Knowledge, file: TokenFile, tmp_path: Path
) -> None:
    token, _ = file.create(new_token("first", created=BEGIN, scopes=USUAL_SCOPES, workspaces=None))
    knowledge.container.tokens = TokenFile(tmp_path / "tokens.json", clock=(clock := MovedClock()))
    assert await status(knowledge, token) == 200
    (tmp_path / "tokens.json").write_text("{")
    clock.move(70)
    answer = await knowledge.http.get("/v1/documents", headers={"X-API-Key": token})
    assert (answer.status_code, answer.json()["error"]["retryable"]) == (503, True)
    assert str(tmp_path) not in answer.text


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize(
    ("content", "holds"),
    [
        (b"", True),
        (b'{"version": 1, "tok', True),
        (b"{}", True),
        (b"[]", True),
        (b"null", True),
        (b'{"version": 1, "tokens": []}', False),
        (None, False),
    ],
    ids=["emptied", "half", "no fields", "list", "null", "no tokens", "removed"],
)
async def test_an_overwritten_token_file_grants_nothing_and_can_be_restored(
    knowledge: Knowledge, file: TokenFile, tmp_path: Path, content: bytes | None, holds: bool
) -> None:
    path = tmp_path / "tokens.json"
    token, _ = file.create(new_token("first", created=BEGIN, scopes=USUAL_SCOPES, workspaces=None))
    good = path.read_bytes()
    knowledge.container.tokens = TokenFile(path, clock=(clock := MovedClock()))
    assert await status(knowledge, token) == 200
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    clock.move(2)
    for given in ("", "crag_wrong", "crag_"):
        assert await status(knowledge, given) == 401
    assert (await knowledge.http.get("/v1/documents")).status_code == 401
    assert await status(knowledge, token) == (200 if holds else 401)
    clock.move(100)
    assert (await knowledge.http.get("/v1/documents")).status_code in (401, 503)
    assert await status(knowledge, token) == (503 if holds else 401)
    path.write_bytes(good)
    path.chmod(0o600)
    clock.move(2)
    assert await status(knowledge, token) == 200


async def test_a_server_does_not_start_without_the_file(knowledge: Knowledge) -> None:
    with pytest.raises(ConfigurationError, match="cragside token new"):
        server._application(knowledge.container, "127.0.0.1", None)


def test_the_file_asks_for_tokens() -> None:
    settings = load_settings({"RAG_TOKENS_FILE": "~/tokens.json"})
    assert settings.asks_for_token
    assert settings.tokens_file == Path("~/tokens.json").expanduser()
