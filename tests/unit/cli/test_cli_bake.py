"""`cragside bake` as it is run, with the real container."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from cli_services import errors_of, printed
from typer.testing import CliRunner

from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.service import OwnService
from cragside.entrypoints.cli.session import Session
from tests.programs import CRAGSIDE


@pytest.fixture
def bake(tmp_path):
    """Run a command for real; a store of the user's own must not be touched by it."""

    def invoke(*arguments, **environment):
        environment = {"RAG_HOME": str(tmp_path / "home"), **environment}
        return CliRunner().invoke(app, list(map(str, arguments)), obj=Session(environment=environment))

    yield invoke
    assert not (tmp_path / "home").exists()


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "otter.md").write_text("# Sea otter\n\nSea otters eat urchins in the kelp forest.")
    (folder / "pump.txt").write_text("A heat pump moves heat from a cold place to a warm one.")
    return folder


def listing(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_texts_become_a_store_whose_hash_is_printed(bake, notes, tmp_path):
    out = tmp_path / "kb"
    # Nothing listens there, and nothing is asked.
    result = bake("bake", notes, "--out", out, "-w", "w", OLLAMA_BASE_URL="http://127.0.0.1:1", RAG_CHAT_MODEL="x:1")
    assert (result.exit_code, result.stderr) == (0, "")
    sha256 = hashlib.sha256((out / "baked.json").read_bytes()).hexdigest()
    assert "2 indexed. Workspace w baked into" in result.stdout
    assert "2 documents, 2 passages, 0." in result.stdout
    assert result.stdout.endswith(f"SHA-256 of baked.json: {sha256}\n")
    assert listing(out) == ["baked.json", "w/store.sqlite3"]
    known = json.loads((out / "baked.json").read_text())
    assert known["workspaces"]["w"]["embedding_model"] == "wordllama-256"
    status = json.loads(bake("status", "--json", "-w", "w", RAG_HOME=str(out), RAG_HOME_SHA256=sha256).stdout)
    assert (status["documents"], status["store"]) == (2, str(out))
    enriched = json.loads(
        bake("enrich", "--json", "/rag what do sea otters eat?", RAG_HOME=str(out), RAG_WORKSPACE="w").stdout
    )
    assert enriched["metadata"]["rag_context"]["verdict"] == "local"
    assert listing(out) == ["baked.json", "w/store.sqlite3"]


def test_writing_to_a_baked_store_is_refused_with_a_remedy(bake, notes, tmp_path):
    bake("bake", notes, "--out", tmp_path / "kb")
    for arguments in (("ingest", notes), ("forget", "otter.md"), ("reindex",)):
        said = errors_of(bake(*arguments, RAG_HOME=str(tmp_path / "kb")), 2)
        assert f"{tmp_path / 'kb'} is a baked store and cannot be written. Bake its texts again" in said
    assert listing(tmp_path / "kb") == ["baked.json", "default/store.sqlite3"]


def test_the_doctor_finds_what_opening_does_not(bake, notes, tmp_path):
    bake("bake", notes, "--out", tmp_path / "kb")
    store = tmp_path / "kb/default/store.sqlite3"

    def doctor(**environment):
        result = bake("doctor", "--json", RAG_HOME=str(tmp_path / "kb"), **environment)
        return result.exit_code, {finding["component"]: finding for finding in json.loads(result.stdout)}

    code, found = doctor()
    assert code == 0
    assert found["folder"]["detail"] == f"{tmp_path / 'kb'}, a baked store, opened read-only"
    assert "2 documents" in found["store"]["detail"]
    assert doctor(RAG_WORKSPACE="other")[1]["store"]["state"] == "ok"
    content = store.read_bytes()
    store.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    code, found = doctor()
    assert code == 3
    assert found["store"]["detail"] == "default/store.sqlite3 is not what was baked (its SHA-256 differs)"
    assert "cragside bake" in found["store"]["remedy"]
    store.unlink()
    code, found = doctor()
    assert code == 3
    assert "is damaged: default/store.sqlite3 is missing." in found["store"]["detail"]
    assert found["store"]["remedy"].startswith("Bake it again")
    code, found = doctor(RAG_HOME_SHA256="0" * 64)
    assert code == 3
    assert "RAG_HOME_SHA256 asks for" in f"{found['store']['detail']} {found['store']['remedy']}"


def test_an_unreadable_file_gives_exit_code_1_and_keeps_the_store(bake, notes, tmp_path):
    assert bake("bake", notes, "--out", tmp_path / "kb").exit_code == 0
    before = (tmp_path / "kb" / "baked.json").read_text()
    (notes / "binary.md").write_bytes(b"\x00\x01\x02" * 9)
    said = printed(bake("bake", notes, "--out", tmp_path / "kb"), 1)
    assert "failed    binary.md  (holds binary data" in said
    assert "2 indexed, 1 failed. Nothing was baked. Fix or leave out the failed files." in said
    assert (tmp_path / "kb" / "baked.json").read_text() == before


def test_nothing_to_bake_makes_nothing(bake, notes, tmp_path):
    (tmp_path / "none").mkdir()
    said = errors_of(bake("bake", tmp_path / "none", "--out", tmp_path / "kb"), 2)
    assert said.startswith("error: There is no file to index; supported are PDF (.pdf), Word (.docx),")
    (notes / "x.exe").write_bytes(b"MZ")
    assert "1 failed. Nothing was baked. Fix" in printed(bake("bake", notes / "x.exe", "--out", tmp_path / "kb"), 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none", "notes"]


def test_an_interrupted_bake_does_not_promise_to_continue(bake, notes, tmp_path, monkeypatch):
    async def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(OwnService, "progress", interrupted)
    result = bake("bake", notes, "--out", tmp_path / "kb")
    assert (result.exit_code, "queue" in result.stderr) == (130, False)
    assert not (tmp_path / "kb" / "baked.json").exists()


def test_baking_again_replaces_the_texts_and_an_empty_folder_is_as_good_as_none(bake, notes, tmp_path):
    (tmp_path / "kb").mkdir()
    bake("bake", notes, "--out", tmp_path / "kb")
    (notes / "pump.txt").unlink()
    assert "1 document," in printed(bake("bake", notes, "--out", tmp_path / "kb"))
    assert json.loads((tmp_path / "kb/baked.json").read_text())["workspaces"]["default"]["documents"] == 1


@pytest.mark.parametrize("other", ["own.txt", "default/own.txt", "default/store.sqlite3", "baked.json"])
def test_a_folder_with_anything_else_in_it_is_refused_and_left_alone(bake, notes, tmp_path, other):
    (tmp_path / "kb/default").mkdir(parents=True)
    (tmp_path / "kb" / other).write_text("mine")
    said = errors_of(bake("bake", notes, "--out", tmp_path / "kb"), 2)
    assert "another folder" in said or "Name a new or empty folder" in said
    assert (tmp_path / "kb" / other).read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb", "notes"]


def test_a_file_or_a_place_that_cannot_be_is_bad_input(bake, notes, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file/kb"):
        assert str(tmp_path / "file") in errors_of(bake("bake", notes, "--out", out), 2)
    assert bake("bake", notes).exit_code == 2


def test_a_killed_run_leaves_nothing_that_looks_like_a_store_and_the_next_one_cleans_up(bake, notes, tmp_path):
    for number in range(200):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nNote number {number} is about topic {number * 7}.")
    out, scratch = tmp_path / "kb", tmp_path / ".kb.baking"
    arguments = ["bake", str(notes), "--out", str(out)]
    run = subprocess.Popen(
        [*CRAGSIDE, *arguments],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "RAG_HOME": str(tmp_path / "home")},
        stdout=subprocess.DEVNULL,
    )
    while run.poll() is None and not (scratch / "home/default/store.sqlite3").exists():
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert not out.exists()
    assert (scratch / "home/default/store.sqlite3").exists()
    for path in notes.glob("*.md"):
        path.unlink()
    assert bake(*arguments).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb", "notes"]
