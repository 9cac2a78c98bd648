import os
import sys
from pathlib import Path

import pytest

from cragside.adapters.documents.folders import FoundFile, Refused, find_files, read_file, source_of
from cragside.store.chunking import storable


def names(*paths):
    return [found.name for found in find_files(paths) if isinstance(found, FoundFile)]


def refusals(*paths):
    return [found for found in find_files(paths) if isinstance(found, Refused)]


def test_names_are_relative_to_the_given_folder_and_sorted(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("z.md", "a.TXT", "b/c.md", ".hidden.md"):
        (tmp_path / name).write_text("text")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.md").write_text("text")
    assert names(tmp_path) == ["a.TXT", "z.md", "b/c.md"]
    assert names(tmp_path / ".hidden.md") == [".hidden.md"], "asked for by name"


def test_files_of_our_settings_are_no_documents(tmp_path):
    for name in ("cragside.toml", ".env", "other.toml"):
        (tmp_path / name).write_text('api_token = "sesame"')
    assert names(tmp_path) == ["other.toml"]


def test_types_that_no_reader_is_for_are_refused_or_skipped(tmp_path):
    for name in ("photo.heic", "x.exe", "a.pdf", "Makefile", "b.PY"):
        (tmp_path / name).write_text("text")
    assert names(tmp_path) == ["Makefile", "a.pdf", "b.PY"]
    skipped = {refused.name: refused for refused in refusals(tmp_path)}
    assert set(skipped) == {"photo.heic", "x.exe"}
    assert all(refused.skipped for refused in skipped.values())
    (asked,) = refusals(tmp_path / "photo.heic")
    assert not asked.skipped
    assert "is a picture" in asked.reason


def test_links_that_lead_in_circles_end(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("text")
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "again.md").symlink_to(tmp_path / "sub" / "a.md")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    found = names(tmp_path)
    assert found == ["again.md", "self.md"]
    (refused,) = [read for name in found if isinstance(read := read_file(FoundFile(name, tmp_path / name)), Refused)]
    assert refused.name == "self.md"
    assert refused.reason.startswith("cannot be read")


def test_the_same_file_given_twice_is_found_once(tmp_path):
    (tmp_path / "a.md").write_text("text")
    assert names(tmp_path, tmp_path / "a.md") == ["a.md"]


def test_two_files_of_one_name_have_two_sources(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.md").write_text(folder)
    found = list(find_files([tmp_path / "x", tmp_path / "y"]))
    assert [(file.name, file.source) for file in found] == [
        ("a.md", f"{tmp_path}/x/a.md"),
        ("a.md", f"{tmp_path}/y/a.md"),
    ]


def test_a_file_has_one_source_however_its_folder_is_spelt(tmp_path, monkeypatch):
    (tmp_path / "w" / "deep").mkdir(parents=True)
    (tmp_path / "w" / "a.md").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "w", target_is_directory=True)
    (tmp_path / "far").symlink_to(tmp_path / "w" / "deep", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    spelt = ["w/a.md", "./w/../w/a.md", "link/a.md", f"{tmp_path}//w/a.md", "w/deep/../a.md", "far/../a.md"]
    assert {source_of(path) for path in spelt} == {f"{tmp_path}/w/a.md"}
    for folder in (Path("w"), Path("link"), tmp_path, Path(".")):
        assert [file.source for file in find_files([folder])] == [f"{tmp_path}/w/a.md"]
    monkeypatch.chdir(tmp_path / "w")
    assert source_of("a.md") == f"{tmp_path}/w/a.md"
    assert source_of(".") == source_of("../w/") == f"{tmp_path}/w"
    assert source_of("/") == "/"


@pytest.mark.attack("colliding names")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"caf\xe9.md", b"caf\xe8.md"),
        (b"caf\xe9.md", b"caf\\xe9.md"),
        (b"a\x01.md", b"a\x02.md"),
        (b"a\x01.md", b"a .md"),
        (b"a\n.md", b"a\\x0a.md"),
        ("caf\u00e9.md".encode(), "cafe\u0301.md".encode()),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems hold no such names apart")
def test_names_that_look_alike_are_two_sources(tmp_path, one, other):
    for name in (one, other):
        with open(os.fsencode(tmp_path) + b"/" + name, "w") as file:
            file.write("text")
    sources = {storable(file.source) for file in find_files([tmp_path])}
    assert len(sources) == 2


def test_a_name_that_is_no_unicode_is_made_one(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.md"
    with open(path, "w") as file:
        file.write("text")
    assert names(tmp_path) == ["caf�.md"]


def test_accents_are_composed_so_that_a_name_is_the_same_everywhere(tmp_path):
    (tmp_path / "cafe\u0301.md").write_text("text")
    assert names(tmp_path) == ["caf\u00e9.md"]


def test_a_named_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert read_file(FoundFile("pipe.txt", tmp_path / "pipe.txt")) == Refused("pipe.txt", "is not a regular file")


def test_a_file_over_the_limit_is_not_read(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 11)
    assert "limit" in read_file(FoundFile("a.txt", tmp_path / "a.txt"), max_bytes=10).reason
    assert read_file(FoundFile("a.txt", tmp_path / "a.txt"), max_bytes=11) == b"x" * 11


def test_a_file_that_vanished_is_refused(tmp_path):
    assert "No such file" in read_file(FoundFile("a.txt", tmp_path / "a.txt")).reason


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    return folder


def test_links_below_a_folder_that_lead_out_of_it_are_refused(tmp_path, outside):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "own.md").write_text("text")
    (docs / "pw.txt").symlink_to(outside / "secret.txt")
    (docs / "hop.txt").symlink_to(docs / "pw.txt")
    (docs / "deep").symlink_to(outside, target_is_directory=True)
    (tmp_path / "docs-beside").mkdir()
    (docs / "beside").symlink_to(tmp_path / "docs-beside", target_is_directory=True)
    (docs / "inside.txt").symlink_to("own.md")
    refused = refusals(docs)
    assert names(docs) == ["inside.txt"], "own.md is the same file"
    assert sorted(refusal.name for refusal in refused) == ["beside", "deep", "hop.txt", "pw.txt"]
    assert all("leads out of the folder" in refusal.reason and not refusal.skipped for refusal in refused)


def test_links_that_are_given_themselves_are_followed(tmp_path, outside):
    (tmp_path / "one.txt").symlink_to(outside / "secret.txt")
    (tmp_path / "all").symlink_to(outside, target_is_directory=True)
    assert names(tmp_path / "one.txt") == ["one.txt"]
    assert names(tmp_path / "all") == ["secret.txt"]
