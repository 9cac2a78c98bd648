"""The manifest of a baked store: what it names, and what it is not believed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cragside.store.baked import (
    MAX_MANIFEST_BYTES,
    BakedWorkspace,
    Manifest,
    ManifestError,
    baked_file,
    damage_of,
    parse_manifest,
    read_manifest,
)

NAME = "w/store.sqlite3"


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    (tmp_path / "w").mkdir()
    (tmp_path / NAME).write_bytes(b"content")
    made = Manifest({"w": BakedWorkspace("model", 1, 2, 3, 4)}, {NAME: baked_file(tmp_path / NAME)})
    (tmp_path / "baked.json").write_bytes(made.content())
    return made


def test_a_manifest_is_read_as_it_was_written(manifest: Manifest, tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == (manifest, baked_file(tmp_path / "baked.json").sha256)
    assert damage_of(tmp_path, manifest, hashes=True) == ""


def test_a_folder_without_a_manifest_is_no_baked_store(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    assert read_manifest(tmp_path / "gone") is None


def renamed(to: str) -> Callable[[dict[str, Any]], object]:
    return lambda known: known.update(files={to: known["files"][NAME]})


@pytest.mark.parametrize(
    "name",
    [
        "../w/store.sqlite3",
        "/w/store.sqlite3",
        "w/../store.sqlite3",
        "../store.sqlite3",
        ".w/store.sqlite3",
        "w\\store.sqlite3",
        "w/x/store.sqlite3",
        "w/other",
        "w/store.sqlite3\n",
        "store.sqlite3",
        "C:/store.sqlite3",
        "",
    ],
)
def test_a_file_name_that_is_no_workspaces_store_is_refused(manifest: Manifest, name: str) -> None:
    known = json.loads(manifest.content())
    renamed(name)(known)
    with pytest.raises(ManifestError, match="files that cannot be used"):
        parse_manifest(json.dumps(known).encode())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda known: known.update(format=2), "has format 2, and this version of cragside reads format 1"),
        (lambda known: known.update(format="x" * 500), "has format xxxxxxxxxxxxxxxxxxxx, and"),
        (lambda known: known.pop("format"), "is not the manifest"),
        (lambda known: known.update(files={}), "names no files"),
        (lambda known: known.update(files=[NAME]), "names no files"),
        (lambda known: known.pop("workspaces"), "names no workspaces"),
        (lambda known: known["files"][NAME].update(bytes=-1), "files that cannot be used"),
        (lambda known: known["files"][NAME].update(bytes=True), "files that cannot be used"),
        (lambda known: known["files"][NAME].update(bytes=1e30), "files that cannot be used"),
        (lambda known: known["files"][NAME].update(sha256="ABC"), "files that cannot be used"),
        (lambda known: known["files"][NAME].update(sha256=7), "files that cannot be used"),
        (lambda known: known["files"].update({NAME: "x"}), "files that cannot be used"),
        (lambda known: known["workspaces"]["w"].pop("documents"), "workspaces that cannot be used"),
        (lambda known: known["workspaces"].update(v=known["workspaces"]["w"]), "one store for each workspace"),
        (renamed("v/store.sqlite3"), "one store for each workspace"),
    ],
)
def test_a_wrong_manifest_is_reported(
    manifest: Manifest, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    known = json.loads(manifest.content())
    change(known)
    with pytest.raises(ManifestError, match=said):
        parse_manifest(json.dumps(known).encode())


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"7", b"{", b"[" * 100_000, b'{"format": ' + b"9" * 5000])
def test_a_file_that_is_not_a_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(ManifestError):
        parse_manifest(content)


def test_an_endless_manifest_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "baked.json").open("wb") as file:
        file.truncate(MAX_MANIFEST_BYTES + 1)
    with pytest.raises(ManifestError, match="too long"):
        read_manifest(tmp_path)


def test_a_changed_file_is_detected_by_size_or_hash(manifest: Manifest, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"c0ntent")
    assert damage_of(tmp_path, manifest) == "", "hashes are only checked when that is asked for"
    assert damage_of(tmp_path, manifest, hashes=True) == f"{NAME} is not what was baked (its SHA-256 differs)"
    (tmp_path / NAME).write_bytes(b"cont")
    assert damage_of(tmp_path, manifest) == f"{NAME} has 4 bytes instead of 7"
    (tmp_path / NAME).unlink()
    assert damage_of(tmp_path, manifest) == f"{NAME} is missing"
