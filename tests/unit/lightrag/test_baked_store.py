"""A baked store: what it answers, where it can be opened, and that nothing is written to it."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.evidence import Document
from cragside.domain.knowledge import KnowledgeStatus
from cragside.domain.query import Query
from cragside.entrypoints.cli.demo import PROMPTS
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.samples.documents import corpus
from cragside.settings import load_settings
from cragside.store.baked import read_manifest
from cragside.store.baking import Baking

MERCURY = "Why did Mercury's orbit puzzle astronomers?"
NOTE = SourceText("note.md", "# Note\n\nSomething new.", "Note")


def opened(home: Path, **environment: str) -> Container:
    return Container(load_settings({"RAG_HOME": str(home), **environment}))


async def answers(container: Container) -> list[Any]:
    """Everything that can be asked of a store, with scores."""
    repository = (await container.workspaces.open("default")).passages
    found: list[Any] = [await repository.status()]
    for prompt in PROMPTS:
        enriched = await container.enricher.enrich({"prompt": f"/rag {prompt.text}"})
        assert enriched.rag_context is not None
        # The code that delimits the evidence differs from request to request.
        code = re.search(r"<evidence-(\w+)>", enriched.request["prompt"])
        told = enriched.request["prompt"].replace(code[1], "CODE") if code else enriched.request["prompt"]
        found += [told, enriched.rag_context.documents, await repository.retrieve(prompt.text, limit=20)]
    return found


async def index_and_ask(home: Path) -> tuple[list[Any], KnowledgeStatus]:
    container = opened(home)
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents(corpus())
    known, found = await repository.status(), await answers(container)
    await container.close()
    return found, known


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any], str]:
    """The demo's corpus, baked; what the writable store answered; and the SHA-256 of its manifest."""
    out = tmp_path_factory.mktemp("baked") / "kb"
    with Baking.into(out) as baking:
        found, known = asyncio.run(index_and_ask(baking.home))
        _, sha256 = baking.publish(known)
    return out, found, sha256


@pytest.fixture
def baked(made: tuple[Path, list[Any], str], tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return Path(shutil.copytree(made[0], tmp_path / "kb"))


def files(folder: Path) -> dict[str, tuple[int, int]]:
    found = {p.relative_to(folder).as_posix(): p.stat() for p in folder.rglob("*")}
    return {name: (status.st_size, status.st_mtime_ns) for name, status in found.items()}


async def test_it_answers_exactly_as_the_store_that_it_was_made_of(made: tuple[Path, list[Any], str]) -> None:
    out, before, sha256 = made
    container = opened(out, RAG_HOME_SHA256=sha256)
    assert await answers(container) == before
    await container.close()


def test_a_baked_store_is_one_file_per_workspace_and_a_manifest(made: tuple[Path, list[Any], str]) -> None:
    out, _, sha256 = made
    assert sorted(files(out)) == ["baked.json", "default", "default/store.sqlite3"]
    assert not [path for path in out.parent.iterdir() if path != out]
    with sqlite3.connect(f"file:{out}/default/store.sqlite3?mode=ro&immutable=1", uri=True) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM kv WHERE namespace = 'llm_response_cache'").fetchone() == (0,)
    found = read_manifest(out)
    assert found is not None
    assert found[1] == sha256
    assert (found[0].workspaces["default"].documents, found[0].workspaces["default"].passages) == (34, 34)


_WITHOUT_PRIVILEGES = """
import asyncio, json, os, sys
from cragside.bootstrap import Container
from cragside.settings import load_settings

async def ask(home):
    container = Container(load_settings({"RAG_HOME": home}))
    await container.prepare()
    context = (await container.enricher.enrich({"prompt": "/rag " + sys.argv[3]})).rag_context
    await container.close()
    return [[d.title, d.score] for d in context.documents], [d.reason for d in context.degraded]

# What is imported late is imported with the privileges that the interpreter's own files need.
asyncio.run(ask(sys.argv[1]))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.chdir("/")
os.environ.update(HOME="/nonexistent", TMPDIR="/nonexistent", SQLITE_TMPDIR="/nonexistent")
assert not os.access(sys.argv[2], os.W_OK) and not os.access(sys.argv[2] + "/default/store.sqlite3", os.W_OK)
print(json.dumps(asyncio.run(ask(sys.argv[2]))))
"""


@pytest.fixture
def read_only(made: tuple[Path, list[Any], str]) -> Iterator[Path]:
    """A copy that nobody may write, where every user may read."""
    folder = Path(tempfile.mkdtemp(prefix="cragside-read-only-"))
    folder.chmod(0o755)
    home = Path(shutil.copytree(made[0], folder / "kb ?#%41"))
    for path in (*home.rglob("*"), home):
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield home
    for path in (home, *home.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_it_opens_in_a_read_only_folder(read_only: Path, baked: Path) -> None:
    before = files(read_only)
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PRIVILEGES, str(baked), str(read_only), MERCURY],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    documents, degraded = json.loads(done.stdout)
    assert documents[0][0] == "Mercury, the innermost planet"
    assert degraded == []
    assert files(read_only) == before


async def test_it_opens_without_the_configured_model_server(made: tuple[Path, list[Any], str]) -> None:
    container = opened(made[0], OLLAMA_BASE_URL="http://127.0.0.1:1")
    repository = (await container.workspaces.open("default")).passages
    assert (await repository.retrieve(MERCURY, limit=1))[0].title == "Mercury, the innermost planet"
    await container.close()


async def test_naming_another_model_is_an_error_that_does_not_advise_to_reindex(baked: Path) -> None:
    with sqlite3.connect(baked / "default/store.sqlite3") as connection:
        connection.execute("UPDATE meta SET value = 'other-model' WHERE key = 'embedding_model'")
    container = opened(baked, RAG_EMBEDDING_MODEL="embedded")
    with pytest.raises(ConfigurationError, match=r"other-model, but .* Unset the variable$"):
        await (await container.workspaces.open("default")).passages.status()


def test_requests_and_health_checks_are_answered(baked: Path) -> None:
    before = files(baked)
    with TestClient(create_app(opened(baked))) as client:
        assert client.get("/healthz").json() == {"ok": True}
        context = client.post("/v1/enrich", json={"prompt": f"/rag {MERCURY}"}).json()["metadata"]["rag_context"]
    assert context["verdict"] == "local"
    assert context["degraded"] == []
    assert files(baked) == before


def test_a_question_is_explained_and_its_passage_found_in_its_document(baked: Path) -> None:
    before = files(baked)
    with TestClient(create_app(opened(baked))) as client:
        told = client.post("/v1/explain", json={"prompt": MERCURY}).json()
        best = told["candidates"][0]
        path = f"/v1/documents/{best['document']}/content"
        document = client.get(path, params={"passage": best["id"]}).json()
    assert (told["verdict"], best["kept"]) == ("local", True)
    assert document["text"][document["passage"]["start"] : document["passage"]["end"]] == best["content"]
    assert files(baked) == before


async def test_a_query_is_not_remembered_and_that_is_no_error(baked: Path) -> None:
    before = files(baked)
    container = opened(baked)
    repository = (await container.workspaces.open("default")).passages
    await repository.save_query(Query("q", "what?"))
    assert await repository.get_query("q") is None
    await container.close()
    assert files(baked) == before


@pytest.mark.parametrize("workspace", ["default", "unknown"])
async def test_every_write_is_refused_with_a_remedy(baked: Path, workspace: str) -> None:
    before = files(baked)
    container = opened(baked)
    repository = (await container.workspaces.open(workspace)).passages
    documents = (await container.workspaces.open(workspace)).documents
    for write in (
        lambda: repository.save_documents([NOTE]),
        lambda: documents.delete("doc-note"),
        lambda: container.workspaces.reindex(workspace, lambda _: None),
    ):
        with pytest.raises(ConfigurationError) as caught:
            await write()
        assert caught.value.message == (
            f"{baked} is a baked store and cannot be written. Bake its texts again with `cragside bake PATH... --out "
            f"{baked}`, or set RAG_HOME to another folder."
        )
    await container.close()
    assert files(baked) == before


async def test_an_unknown_workspace_is_empty(baked: Path) -> None:
    (baked / "stray").mkdir()
    shutil.copy(baked / "default/store.sqlite3", baked / "stray")
    container = opened(baked)
    for name in ("unknown", "stray"):
        repository = (await container.workspaces.open(name)).passages
        assert await repository.retrieve(MERCURY, limit=3) == []
        assert (await repository.status()).documents == 0
        await repository.save_query(Query("q", "what?"))
        assert await repository.get_query("q") is None
    await container.close()
    assert not (baked / "unknown").exists()


async def refused_opening(home: Path, **environment: str) -> str:
    container = opened(home, **environment)
    with pytest.raises((ServiceUnavailable, ConfigurationError)) as caught:
        await (await container.workspaces.open("default")).passages.status()
    await container.close()
    return caught.value.message


async def test_the_error_for_a_damaged_store_names_the_damage(baked: Path) -> None:
    store = baked / "default/store.sqlite3"
    content = store.read_bytes()
    store.write_bytes(content[:-1])
    assert "The baked store is damaged: default/store.sqlite3 has" in await refused_opening(baked)
    store.write_bytes(b"\xff" * len(content))
    assert "damaged (file is not a database). Bake it again." in await refused_opening(baked)
    store.unlink()
    assert "default/store.sqlite3 is missing. Bake it again" in await refused_opening(baked)
    (baked / "baked.json").write_text('{"format": 99}')
    assert "its baked.json has format 99, and this version of cragside reads format 1" in await refused_opening(baked)


async def test_a_store_of_another_format_says_so(baked: Path) -> None:
    with sqlite3.connect(baked / "default/store.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "it has format 99" in await refused_opening(baked)


async def test_a_damaged_store_degrades_a_request(baked: Path) -> None:
    (baked / "default/store.sqlite3").unlink()
    container = opened(baked)
    await container.prepare()
    context = (await container.enricher.enrich({"prompt": f"/rag {MERCURY}"})).rag_context
    assert context is not None
    assert [item.component for item in context.degraded] == ["knowledge_base", "search"]
    await container.close()


async def test_a_store_whose_pages_are_damaged_degrades_a_request(baked: Path) -> None:
    store = baked / "default/store.sqlite3"
    content = bytearray(store.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    store.write_bytes(content)
    assert "is damaged (database disk image is malformed). Bake it again." in await refused_opening(baked)
    container = opened(baked)
    context = (await container.enricher.enrich({"prompt": f"/rag {MERCURY}"})).rag_context
    assert context is not None
    assert [item.component for item in context.degraded] == ["knowledge_base", "search"]
    await container.close()


async def test_only_the_pinned_store_is_opened(baked: Path, tmp_path: Path) -> None:
    found = read_manifest(baked)
    assert found is not None
    message = await refused_opening(baked, RAG_HOME_SHA256="0" * 64)
    assert f"{baked} is the baked store {found[1]}" in message
    message = await refused_opening(tmp_path / "empty", RAG_HOME_SHA256=found[1])
    assert f"{tmp_path / 'empty'} is not a baked store" in message


async def test_the_manifest_is_read_once(baked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container, read = opened(baked), list[Path]()

    def counted(folder: Path) -> Any:
        read.append(folder)
        return read_manifest(folder)

    monkeypatch.setattr("cragside.store.home.read_manifest", counted)
    for workspace in ("default", "unknown", "unknown"):
        await (await container.workspaces.open(workspace)).passages.retrieve(MERCURY, limit=1)
    assert read == [baked]
    await container.close()


async def test_a_server_keeps_its_open_store_when_a_new_one_replaces_it(baked: Path) -> None:
    container = opened(baked)
    repository = (await container.workspaces.open("default")).passages
    before = await repository.retrieve(MERCURY, limit=3)
    shutil.rmtree(baked)
    assert await asked_again(container) == before
    await container.close()


async def asked_again(container: Container) -> list[Document]:
    return await (await container.workspaces.open("default")).passages.retrieve(MERCURY, limit=3)


def known(workspace: str, made: tuple[Path, list[Any], str]) -> KnowledgeStatus:
    status: KnowledgeStatus = made[1][0]
    return replace(status, workspace=workspace)


def bake_copy(made: tuple[Path, list[Any], str], out: Path, workspace: str) -> None:
    with Baking.into(out) as baking:
        shutil.copytree(made[0] / "default", baking.home / workspace)
        baking.publish(known(workspace, made))


async def test_other_workspaces_stay_when_one_is_baked_again(made: tuple[Path, list[Any], str], tmp_path: Path) -> None:
    out = tmp_path / "kb"
    for workspace in ("a", "b", "a"):
        bake_copy(made, out, workspace)
    container = opened(out)
    for workspace in ("a", "b"):
        assert (await (await container.workspaces.open(workspace)).passages.status()).documents == 34
    await container.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb"]


def test_a_damaged_workspace_is_not_carried_over(made: tuple[Path, list[Any], str], tmp_path: Path) -> None:
    bake_copy(made, tmp_path / "kb", "a")
    with (tmp_path / "kb/a/store.sqlite3").open("r+b") as file:
        file.seek(5000)
        file.write(b"\x00\xff\x00\xff")
    before = files(tmp_path / "kb")
    with pytest.raises(ValidationError, match=r"a/store.sqlite3 is not what was baked"):
        bake_copy(made, tmp_path / "kb", "b")
    assert files(tmp_path / "kb") == before


def test_leftovers_of_a_killed_bake_are_removed_or_restored(made: tuple[Path, list[Any], str], tmp_path: Path) -> None:
    scratch = tmp_path / ".kb.baking"
    (scratch / "home/default").mkdir(parents=True)
    (scratch / "home/default/store.sqlite3").write_text("half")
    shutil.copytree(made[0], scratch / "before")
    bake_copy(made, tmp_path / "kb", "b")
    found = read_manifest(tmp_path / "kb")
    assert found is not None
    assert sorted(found[0].workspaces) == ["b", "default"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(16, "Device or resource busy")])
def test_a_store_that_cannot_be_replaced_is_still_there(
    made: tuple[Path, list[Any], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    bake_copy(made, tmp_path / "kb", "a")
    before, rename = files(tmp_path / "kb"), Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name == "home":
            raise failure
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises((KeyboardInterrupt, ValidationError)):
        bake_copy(made, tmp_path / "kb", "b")
    assert files(tmp_path / "kb") == before
    assert [path.name for path in tmp_path.iterdir()] == ["kb"]


def test_two_runs_do_not_bake_into_one_folder_at_once(tmp_path: Path) -> None:
    with Baking.into(tmp_path / "kb"):  # noqa: SIM117 (one inside the other is what is tested)
        with pytest.raises(ValidationError, match="Another run is baking into"):
            with Baking.into(tmp_path / "kb"):
                pass
    assert list(tmp_path.iterdir()) == []
