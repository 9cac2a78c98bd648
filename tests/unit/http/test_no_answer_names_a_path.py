"""No answer of any route names a path of the machine, for any failure."""

import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock
import pytest
from test_no_route_reads_another_workspace import ATTEMPTS

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.store.part_indexer import PartIndexer
from cragside.store.sqlite import database
from cragside.store.sqlite.driver import SqliteDriver
from tests.knowledge import Knowledge

pytestmark = pytest.mark.slow

Break = Callable[[Path, pytest.MonkeyPatch], object]
FILLED = {"document": "doc-0", "entity": "Otter", "track": "track-0"}
FILE = {"files": ("page.html", b"<html><body><p>Sea otters eat urchins.</p></body></html>")}


def _raising(owner: Any, name: str, error: Callable[[Path], Exception]) -> Break:
    def broken(home: Path, patch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise error(home / "default" / "store.sqlite3")

        patch.setattr(owner, name, fail)

    return broken


def _replaced(name: str, make: Callable[[Path], object]) -> Break:
    def broken(home: Path, _: pytest.MonkeyPatch) -> None:
        place = home / name
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        make(place)

    return broken


def _denied(path: Path) -> OSError:
    return PermissionError(13, "Permission denied", str(path))


def _full(path: Path) -> OSError:
    return OSError(28, f"No space left on device: {path}", str(path))


BROKEN: dict[str, Break] = {
    "the home is a file": _replaced("", lambda path: path.write_text("x")),
    "the home is a loop": _replaced("", lambda path: path.symlink_to(path)),
    "the workspace is a file": _replaced("default", lambda path: path.write_text("x")),
    "the workspace is a loop": _replaced("default", lambda path: path.symlink_to(path)),
    "the store is a folder": _replaced("default/store.sqlite3", Path.mkdir),
    "the store is garbage": _replaced("default/store.sqlite3", lambda path: path.write_bytes(b"\xa5" * 9000)),
    "the queue is a folder": _replaced(".queue.sqlite3", Path.mkdir),
    "the queue is garbage": _replaced(".queue.sqlite3", lambda path: path.write_bytes(b"\xa5" * 9000)),
    "the settings are a folder": _replaced(".settings.json", Path.mkdir),
    "the settings' lock is a folder": _replaced(".settings.json.lock", Path.mkdir),
    "a manifest is garbage": _replaced("baked.json", lambda path: path.write_text("{")),
    "a manifest without its store": _replaced(
        "baked.json",
        lambda path: path.write_text(
            json.dumps(
                {
                    "format": 1,
                    "workspaces": {
                        "default": {
                            "embedding_model": "x",
                            "documents": 1,
                            "passages": 1,
                            "entities": 1,
                            "relations": 1,
                        }
                    },
                    "files": {"default/store.sqlite3": {"bytes": 1, "sha256": "0" * 64}},
                }
            )
        ),
    ),
    "the store may not be opened": _raising(database, "make_store", _denied),
    "the store's folder may not be made": _raising(database, "make_folder", _denied),
    "the locks may not be taken": _raising(filelock.BaseFileLock, "acquire", _denied),
    "the locks are held": _raising(filelock.BaseFileLock, "acquire", lambda path: filelock.Timeout(str(path))),
    "no lease may be taken": _raising(SqliteDriver, "take_lease", _denied),
    "SQLite names its file": _raising(
        database.Database, "all", lambda path: database.failure_of(sqlite3.OperationalError(f"unable to open {path}"))
    ),
    "a defect names a file": _raising(database.Database, "all", lambda path: RuntimeError(f"no {path}")),
    "the embedder names a file": _raising(WordLlamaEmbedder, "embed", lambda path: RuntimeError(f"no {path}")),
    "no child can be started": _raising(subprocess, "Popen", _denied),
    "the worker meets a full disk": _raising(PartIndexer, "embed", _full),
}


async def answers(knowledge: Knowledge) -> list[tuple[str, str]]:
    """All that the routes answer, and all that they tell of a document that could not be indexed."""
    told = []
    for route, attempt in ATTEMPTS.items():
        method, path = route.split(" ")
        for name, value in {**FILLED, **attempt.path}.items():
            filled = re.sub(r"\{(document|entity|track)\}", lambda match: FILLED[match[1]], value)
            if path.endswith("/events"):
                filled = "doc-0"  # the events of a document that waits do not end
            path = path.replace(f"{{{name}}}", filled)
        answer = await knowledge.http.request(method, path, params=attempt.query, json=attempt.body)
        told.append((route, f"{answer.headers} {answer.text}"))
    form = await knowledge.http.post("/v1/documents", files=FILE)
    told.append(("form", form.text))
    return told


@pytest.mark.attack("paths in answers")
@pytest.mark.parametrize("failure", BROKEN)
async def test_no_answer_names_a_path(failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    first = Knowledge(home)
    body = {"text": "Sea otters eat urchins in the kelp forest.", "name": "otter.md"}
    accepted = (await first.http.post("/v1/documents", json=body)).json()["documents"][0]["id"]
    await first.close()
    monkeypatch.setitem(FILLED, "document", accepted)
    with monkeypatch.context() as patched:
        BROKEN[failure](home, patched)
        knowledge = Knowledge(home, pages={}, index_attempts=1)
        with suppress(Exception):  # the queue may be what is broken
            for delivery in await knowledge.queue.receive(limit=9, wait=0):
                await knowledge.container.attempts.handle(delivery, wait=False)
        told = await answers(knowledge)
    with suppress(Exception):
        await knowledge.close()
    places = {str(home), str(tmp_path), tempfile.gettempdir(), str(Path.home()), str(Path.cwd())}
    leaks = [(route, text) for route, text in told if any(f"{place}/" in text or place in text for place in places)]
    assert leaks == []
