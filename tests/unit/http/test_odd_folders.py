"""A home in which other things have the places of stores, manifests and queues: nobody else is concerned."""

import json
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.settings import load_settings
from cragside.store.baked import misplaced, read_manifest
from tests.knowledge import Knowledge, answer_of

TEXT = "Sea otters eat urchins in the kelp forest."


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "store.sqlite3").write_bytes(b"")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _socket(path: Path) -> None:
    # The names of sockets are short.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


ODD: dict[str, Callable[[Path], Any]] = {
    "a folder": _directory,
    "an empty folder": Path.mkdir,
    "a loop": _loop,
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a link to nothing": lambda path: path.symlink_to(path.parent / "nowhere"),
}


async def add(http: httpx.AsyncClient, workspace: str) -> httpx.Response:
    body = {"text": f"{TEXT} {workspace}", "name": f"{workspace}.md"}
    return await http.post("/v1/documents", json=body, headers={"X-RAG-Workspace": workspace})


async def listed(http: httpx.AsyncClient, workspace: str) -> list[str]:
    found = answer_of(await http.get("/v1/documents", headers={"X-RAG-Workspace": workspace}))
    return [document["name"] for document in found["documents"]]


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path / "home") as made:
        yield made


@pytest.mark.attack("workspace names")
@pytest.mark.parametrize("name", ["baked.json", "BAKED.json", "store.sqlite3", "x.lock", "con"])
async def test_no_workspace_takes_a_name_that_the_store_uses(knowledge: Knowledge, name: str, tmp_path: Path) -> None:
    answer = await add(knowledge.http, name)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")
    assert not (tmp_path / "home" / name).exists()
    assert (await add(knowledge.http, "tenant")).status_code == 202


@pytest.mark.attack("odd folders")
@pytest.mark.parametrize("kind", ODD)
async def test_a_folder_named_baked_json_affects_no_tenant(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    ODD[kind](home / "baked.json")
    assert read_manifest(home) is None
    assert "Move it out" in misplaced(home)
    knowledge = Knowledge(home)
    assert knowledge.container.keeps_worker()
    assert (await add(knowledge.http, "tenant")).status_code == 202
    await knowledge.index()
    assert await listed(knowledge.http, "tenant") == ["tenant.md"]
    assert caplog.text.count("baked.json in RAG_HOME is not a file") == 1
    await knowledge.close()


@pytest.mark.attack("odd folders")
@pytest.mark.parametrize("kind", [*ODD, "a file"])
async def test_a_file_in_place_of_a_tenants_folder_affects_no_other_tenant(kind: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    {**ODD, "a file": lambda path: path.write_text("x")}[kind](home / "odd")
    knowledge = Knowledge(home)
    assert (await add(knowledge.http, "tenant")).status_code == 202
    answer = await add(knowledge.http, "odd")
    usable = kind in ("an empty folder", "a link to nothing")
    assert answer.status_code == (202 if usable else 503), answer.text
    assert str(tmp_path) not in answer.text
    await knowledge.worker().run(until_idle=True, sweep=True)
    listing = await knowledge.http.get("/v1/documents", headers={"X-RAG-Workspace": "tenant"})
    assert [document["status"] for document in listing.json()["documents"]] == ["enriched"]
    await knowledge.close()


@pytest.mark.attack("odd folders")
@pytest.mark.parametrize("kind", ODD)
async def test_a_folder_in_place_of_a_store_file_affects_no_other_tenant(kind: str, tmp_path: Path) -> None:
    (tmp_path / "home" / "odd").mkdir(parents=True)
    ODD[kind](tmp_path / "home" / "odd" / "store.sqlite3")
    knowledge = Knowledge(tmp_path / "home")
    assert (await add(knowledge.http, "tenant")).status_code == 202
    answer = await add(knowledge.http, "odd")
    assert answer.status_code == (202 if kind == "a link to nothing" else 503), answer.text
    await knowledge.worker().run(until_idle=True, sweep=True)
    assert await listed(knowledge.http, "tenant") == ["tenant.md"]
    await knowledge.close()


@pytest.mark.attack("odd folders")
@pytest.mark.parametrize("kind", [kind for kind in ODD if kind != "a link to nothing"])
async def test_an_unusable_queue_is_reported_without_its_path(kind: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    ODD[kind](tmp_path / "home" / ".queue.sqlite3")
    knowledge = Knowledge(tmp_path / "home")
    answer = await add(knowledge.http, "tenant")
    assert answer.status_code == 503
    assert str(tmp_path) not in answer.text
    health = (await knowledge.http.get("/health")).json()
    assert (health["components"]["queue"]["ok"], str(tmp_path) in json.dumps(health)) == (False, False)
    assert health["components"]["knowledge_base"]["ok"] is True
    await knowledge.close()


@pytest.mark.attack("workspace names")
async def test_names_that_differ_in_case_only_are_one_workspace(knowledge: Knowledge, tmp_path: Path) -> None:
    for name in ("Docs", "docs", "DOCS"):
        body = {"text": f"{TEXT} {name}", "name": f"{name}.md", "workspace": name}
        assert (await knowledge.http.post("/v1/documents", json=body)).status_code == 202
    assert len(await listed(knowledge.http, "dOcS")) == 3
    assert await knowledge.container.workspaces.names() == ["docs"]
    assert [path.name for path in (tmp_path / "home").iterdir() if path.is_dir()] == ["docs"]
    health = await knowledge.http.get("/health", headers={"X-RAG-Workspace": "DOCS"})
    assert health.json()["configuration"]["workspace"] == "docs"


@pytest.fixture
async def renamed(tmp_path: Path) -> Path:
    """A home whose folder `docs` was renamed to `Docs`."""
    knowledge = Knowledge(tmp_path / "home")
    await add(knowledge.http, "docs")
    await knowledge.close()
    home = tmp_path / "home"
    (home / "docs").rename(home / "Docs")
    return home


async def test_a_folder_with_capitals_is_still_its_workspaces(renamed: Path) -> None:
    knowledge = Knowledge(renamed)
    assert await listed(knowledge.http, "docs") == ["docs.md"]
    assert (await knowledge.container.queue.stats_of("docs")).pending == 1
    await knowledge.worker().run(until_idle=True, sweep=True)
    assert (await knowledge.container.queue.stats()).pending == 0
    assert not (renamed / "docs").exists()
    assert await knowledge.container.workspaces.names() == ["docs"]
    await knowledge.close()


async def test_folders_that_differ_only_in_case_are_both_refused(renamed: Path) -> None:
    shutil.copytree(renamed / "Docs", renamed / "docs")
    knowledge = Knowledge(renamed)
    found = answer_of(await knowledge.http.get("/v1/documents", headers={"X-RAG-Workspace": "Docs"}), 503)
    assert "two stores, Docs and docs" in found["error"]["message"]
    assert (await add(knowledge.http, "tenant")).status_code == 202
    (renamed / "Docs").rename(renamed / "docs-2")
    assert await listed(knowledge.http, "docs") == ["docs.md"]
    assert await listed(knowledge.http, "DOCS-2") == ["docs.md"]
    await knowledge.close()


async def test_a_token_that_was_bound_to_a_name_with_capitals_opens_it(renamed: Path) -> None:
    settings = load_settings({"RAG_HOME": str(renamed), "RAG_WORKSPACE_TOKENS": '{"key": ["Docs"]}'})
    container = Container(settings)
    transport = httpx.ASGITransport(create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        http.headers["Authorization"] = "Bearer key"
        assert await listed(http, "docs") == ["docs.md"]
        assert await listed(http, "Docs") == ["docs.md"]
    await container.close()
