"""Adding a repository over HTTP: its guards, its events, its limits, and a client that leaves."""

import asyncio
import itertools
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cragside.adapters import git as checkout_module
from cragside.adapters.git import Checkout
from cragside.domain.errors import DeadlineExceeded, ReadOnlyStore
from cragside.entrypoints.http.request_access import shared
from cragside.entrypoints.http.v1 import repositories
from cragside.entrypoints.http.v1 import repositories as repository_intake
from cragside.entrypoints.http.v1.repositories import RepositoryRuns, RunProgress, followed
from cragside.ports.clock import SYSTEM_CLOCK
from cragside.store.library import Library
from tests.knowledge import Knowledge
from tests.unit.git.conftest import GitServer, Repository, drained, unfold

FILES: dict[str, bytes | str] = {
    "README.md": "# Lamp\n\nIt lights the lighthouse.\n",
    "src/lamp.py": '"""The lamp of the lighthouse."""\n',
    "src/logo.png": b"\x89PNG\x00",
}


@pytest.fixture
async def knowledge(tmp_path: Path, repository: Repository) -> AsyncIterator[Knowledge]:
    repository.write_all(FILES)
    async with Knowledge(tmp_path / "kb", pages={}, fetch_allow="127.0.0.1") as built:
        yield built


async def events(knowledge: Knowledge, url: str, **more: Any) -> list[tuple[str, Any]]:
    answer = await knowledge.http.post("/v1/repositories", json={"url": url, **more})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line.partition(": ")[::2] for line in answer.text.splitlines()]
    return list(
        zip(
            [said for name, said in lines if name == "event"],
            [json.loads(said) for name, said in lines if name == "data"],
            strict=True,
        )
    )


async def test_each_file_is_told_and_then_the_whole(knowledge: Knowledge, server: GitServer) -> None:
    url = f"http://127.0.0.1:{server.port}/project/.git"
    told = await events(knowledge, url, workspace="sea")
    assert told[:3] == [
        ("progress", {"accepted": 1, "refused": 0, "name": "README.md"}),
        ("progress", {"accepted": 2, "refused": 0, "name": "src/lamp.py"}),
        ("progress", {"accepted": 2, "refused": 1, "name": "src/logo.png"}),
    ]
    (name, done) = told[3]
    assert (name, done["accepted"], done["refused"], done["repo_id"]) == ("done", 2, 1, url)
    assert [error["name"] for error in done["errors"]] == ["src/logo.png"]
    assert done["errors"][0]["message"]
    listed = (await knowledge.http.get("/v1/documents", params={"workspace": "sea", "sort": "name"})).json()
    assert [document["name"] for document in listed["documents"]] == [f"{url}#README.md", f"{url}#src/lamp.py"]
    assert listed["documents"][1]["metadata"]["path"] == "src/lamp.py"
    again = (await events(knowledge, url, workspace="sea"))[-1]
    assert (again[0], again[1]["accepted"]) == ("done", 2)
    assert (await knowledge.http.get("/v1/documents", params={"workspace": "sea"})).json()["total"] == 2


@pytest.mark.attack("hostile addresses")
@pytest.mark.parametrize(
    "url",
    [
        "{folder}",
        "file://{folder}",
        " https://git.example/x.git",
        ".",
        "-u",
        "--upload-pack=touch /tmp/x",
        "ssh://git@git.example/x.git",
        "git@git.example:x.git",
        "ext::sh -c touch% /tmp/x",
        "https://127.0.0.2/x.git",
        "https://169.254.169.254/x.git",
        "https://localhost/x.git",
        "http://192.0.2.1/x.git",
    ],
)
async def test_a_path_of_the_server_and_hosts_inside_are_refused(
    knowledge: Knowledge, repository: Repository, url: str
) -> None:
    (told,) = await events(knowledge, url.format(folder=repository.folder))
    assert (told[0], told[1]["error"]["type"]) == ("failed", "validation_error")
    assert str(repository.folder) not in json.dumps(told)
    assert (await knowledge.http.get("/v1/documents")).json()["total"] == 0


@pytest.mark.parametrize(
    "body", [{}, {"url": ""}, {"url": "x" * 4097}, {"url": "https://a.example/x", "repo": 1}, {"url": 1}, []]
)
async def test_an_invalid_request_has_a_status_of_its_own(knowledge: Knowledge, body: Any) -> None:
    answer = await knowledge.http.post("/v1/repositories", json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")


async def test_a_branch_that_is_no_name_is_refused(knowledge: Knowledge, server: GitServer) -> None:
    (told,) = await events(knowledge, f"http://127.0.0.1:{server.port}/project/.git", branch="--bad")
    assert told[0] == "failed"


async def test_files_beyond_the_limits_of_a_token_are_refused(
    tmp_path: Path, repository: Repository, server: GitServer
) -> None:
    repository.write_all(FILES)
    knowledge = Knowledge(
        tmp_path / "kb", pages={}, fetch_allow="127.0.0.1", api_token=SecretStr("all"), limit_documents=1
    )
    knowledge.http.headers["X-API-Key"] = "all"
    _, done = (await events(knowledge, f"http://127.0.0.1:{server.port}/project/.git"))[-1]
    await knowledge.close()
    assert (done["accepted"], done["refused"]) == (1, 2)


async def test_a_read_only_store_is_refused_before_anything_is_cloned(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch, server: GitServer
) -> None:
    async def refuse(_: Library) -> None:
        raise ReadOnlyStore("baked")

    monkeypatch.setattr(Library, "check_writable", refuse)
    url = f"http://127.0.0.1:{server.port}/project/.git"
    answer = await knowledge.http.post("/v1/repositories", json={"url": url})
    assert (answer.status_code, server.requests) == (400, [])
    assert "read-only" in answer.json()["error"]["message"]


@pytest.mark.attack("exhausted resources")
async def test_few_repositories_are_added_at_once_and_one_to_a_workspace(knowledge: Knowledge) -> None:
    runs = shared(knowledge.app, RepositoryRuns)
    runs.begin("sea", None)
    body = {"url": "https://localhost/x.git", "workspace": "sea"}
    busy = await knowledge.http.post("/v1/repositories", json=body)
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "5")
    assert "to this workspace" in busy.json()["error"]["message"]
    assert (await events(knowledge, "https://localhost/x.git", workspace="land"))[0][0] == "failed"
    runs.begin("land", None)
    assert (await knowledge.http.post("/v1/repositories", json={**body, "workspace": "air"})).status_code == 503
    runs.end("sea")
    assert (await events(knowledge, "https://localhost/x.git", workspace="sea"))[0][0] == "failed"


@pytest.mark.attack("exhausted resources")
async def test_a_token_adds_one_repository_at_a_time_and_leaves_room_for_another(tmp_path: Path) -> None:
    tokens = SecretStr(json.dumps({"of two": ["sea", "land"], "of one": ["air"]}))
    knowledge = Knowledge(tmp_path / "kb", pages={}, workspace_tokens=tokens)
    runs = shared(knowledge.app, RepositoryRuns)
    runs.begin("sea", "RAG_WORKSPACE_TOKENS[1]")
    knowledge.http.headers["X-API-Key"] = "of two"
    body = {"url": "https://localhost/x.git", "workspace": "land"}
    busy = await knowledge.http.post("/v1/repositories", json=body)
    assert (busy.status_code, "with this token" in busy.json()["error"]["message"]) == (503, True)
    knowledge.http.headers["X-API-Key"] = "of one"
    assert (await events(knowledge, "https://localhost/x.git", workspace="air"))[0][0] == "failed"
    await knowledge.close()


@pytest.mark.attack("exhausted resources")
async def test_a_repository_that_unfolds_without_end_fails_with_the_limit(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch, repository: Repository, server: GitServer
) -> None:
    monkeypatch.setattr(checkout_module, "_MOST_ENTRIES", 1000)
    blob = repository.git("rev-parse", "HEAD:README.md").decode()
    unfold(repository, f"blob {blob}", "vendor", 12)
    (told,) = await events(knowledge, f"http://127.0.0.1:{server.port}/project/.git")
    assert (told[0], told[1]["error"]["type"]) == ("failed", "validation_error")
    assert "more than 1,000 files and folders" in told[1]["error"]["message"]


@pytest.mark.attack("exhausted resources")
async def test_a_run_that_waits_for_a_slow_reader_ends_in_time_and_gives_its_turn_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repository_intake, "_MOST_SECONDS", 0.05)
    cleaned, over = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncGenerator[RunProgress]:
        try:
            for number in itertools.count(1):
                yield RunProgress(accepted=number)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    async with followed(endless(), ends=None, clock=SYSTEM_CLOCK, over=over.set) as told:
        await over.wait()
        assert cleaned.is_set()
        with pytest.raises(DeadlineExceeded):
            await drained(told)


async def test_a_run_that_takes_too_long_fails_and_keeps_what_was_accepted(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch, server: GitServer
) -> None:
    monkeypatch.setattr(repository_intake, "_MOST_SECONDS", -1.0)
    (told,) = await events(knowledge, f"http://127.0.0.1:{server.port}/project/.git")
    assert (told[0], told[1]["error"]["type"]) == ("failed", "timeout_error")


@pytest.mark.attack("exhausted resources")
async def test_a_client_that_leaves_stops_the_clone_and_removes_it(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: GitServer
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "clones"))
    (tmp_path / "clones").mkdir()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(checkout: Checkout, **_: Any) -> AsyncIterator[Any]:
        begun.set()
        try:
            await asyncio.Event().wait()
            yield checkout
        finally:
            ended.set()

    monkeypatch.setattr(repositories, "files_of", endless)
    body = json.dumps({"url": f"http://127.0.0.1:{server.port}/project/.git"}).encode()
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        """Nobody reads it."""

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST",
        "path": "/v1/repositories", "raw_path": b"/v1/repositories", "root_path": "", "scheme": "http",
        "query_string": b"", "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
    }  # fmt: skip
    await knowledge.app(scope, receive, send)
    assert ended.is_set()
    assert list((tmp_path / "clones").iterdir()) == []
    shared(knowledge.app, RepositoryRuns).begin("default", None)
