"""Nobody else on the machine can read the store, with any umask and any maker of the folders."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import load_settings
from cragside.store.baking import Baking
from tests.knowledge import Knowledge

OTTER = {"text": "Sea otters eat urchins in the kelp forest.", "name": "otter.md"}


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def open_to_others(*places: Path) -> dict[str, str]:
    """Return the paths that others may read, write or enter, with their permissions."""
    found = [path for place in places for path in (place, *place.rglob("*"))]
    modes = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in found if not path.is_symlink()}
    return {path: oct(mode) for path, mode in modes.items() if mode & 0o077}


async def use(home: Path) -> Knowledge:
    """Have everything made that a home can have; the store is open, so that SQLite's own files are there."""
    knowledge = Knowledge(home)
    assert (await knowledge.http.post("/v1/documents", json=OTTER)).status_code == 202
    assert (await knowledge.http.patch("/v1/settings", json={"similarity_results": 9})).status_code == 200
    await knowledge.worker().run(until_idle=True, sweep=True)
    return knowledge


@pytest.mark.attack("readable files")
async def test_created_files_are_private(umask: int, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    knowledge = await use(tmp_path / "new" / "home")
    made = {path.name for path in (tmp_path / "new").rglob("*")}
    assert {".queue.sqlite3", ".settings.json", ".worker.lock", "store.sqlite3", "store.sqlite3-wal"} <= made
    assert open_to_others(tmp_path / "new") == {}
    await knowledge.close()


@pytest.mark.attack("readable files")
async def test_files_of_older_versions_become_private_at_the_next_write(umask: int, tmp_path: Path) -> None:
    home = tmp_path / "home"
    await (await use(home)).close()
    for path in home.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    knowledge = await use(home)
    assert open_to_others(home) == {}
    await knowledge.close()


@pytest.mark.attack("readable files")
async def test_an_existing_folder_keeps_its_permissions_and_files(umask: int, tmp_path: Path) -> None:
    home = tmp_path / "shared"
    home.mkdir()
    home.chmod(0o775)
    (home / "notes.txt").write_text("somebody's")
    (home / "notes.txt").chmod(0o664)
    (home / "pictures").mkdir(mode=0o755)
    mode = oct(stat.S_IMODE((home / "pictures").stat().st_mode))
    knowledge = await use(home)
    kept = {str(home): "0o775", str(home / "notes.txt"): "0o664", str(home / "pictures"): mode}
    assert open_to_others(home) == kept
    await knowledge.close()


async def test_files_with_fixed_permissions_are_still_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    await (await use(home)).close()
    (home / "default" / "store.sqlite3").chmod(0o644)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    await (await use(home)).close()


async def test_a_baked_store_can_be_read_by_those_it_is_shipped_to(umask: int, tmp_path: Path) -> None:
    with Baking.into(tmp_path / "baked") as baking:
        container = Container(load_settings({"RAG_HOME": str(baking.home)}))
        repository = (await container.workspaces.open("default")).passages
        await repository.save_documents([SourceText("otter.md", OTTER["text"], "Otter")])
        known = await repository.status()
        await container.close()
        baking.publish(known)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "baked").rglob("*")}
    assert modes == {
        "default": 0o777 & ~umask,
        "store.sqlite3": 0o666 & ~umask,
        "baked.json": 0o666 & ~umask,
    }
