"""`cragside sync` and `ingest` on a store whose documents are known by their names alone."""

import json
import sqlite3
from contextlib import closing

import pytest

FAST = ("--no-enrich", "--no-wait")


def disown(home):
    """Make the documents of a store such as earlier versions made them: without a source."""
    with closing(sqlite3.connect(home / "default" / "store.sqlite3")) as connection:
        connection.execute("DELETE FROM origin")
        connection.commit()


@pytest.fixture
def notes(tmp_path):
    """A folder that an earlier version took in. Since then a file has changed wholly, and another one has gone."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("same", "changed", "gone"):
        (folder / f"{name}.md").write_text(f"The {name} text.")
    return folder


def age(notes, home):
    disown(home)
    (notes / "changed.md").write_text("Something else.")
    (notes / "gone.md").unlink()


@pytest.fixture
def old(real, notes):
    assert real("ingest", str(notes), *FAST).exit_code == 0
    age(notes, real.home)
    return {each["name"]: each["id"] for each in real.json("documents")["documents"]}


def expected(old, *names):
    return ", ".join(f"{name} ({old[name]})" for name in names)


def test_sync_lists_old_documents_without_a_successor(real, notes, old):
    result = real("sync", str(notes), *FAST)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("2 documents of an earlier version are known by their name alone") == 1
    assert expected(old, "changed.md", "gone.md") in result.stderr
    assert "cragside forget ID..." in result.stderr
    told = json.loads(real("sync", str(notes), *FAST, "--json").stdout)["known_by_name_alone"]
    assert told == [{"name": name, "id": old[name]} for name in ("changed.md", "gone.md")]
    assert real("forget", *(each["id"] for each in told)).exit_code == 0
    assert "earlier version" not in real("sync", str(notes), *FAST).stderr


def test_prune_and_dry_run_list_them_too(real, notes, old):
    dry = real("sync", str(notes), "--dry-run")
    assert expected(old, "changed.md", "gone.md") in dry.stderr
    pruned = real("ingest", str(notes), "--prune", *FAST)
    assert expected(old, "changed.md", "gone.md") in pruned.stderr


def test_ingest_names_only_the_old_document_with_the_same_name(real, notes, old):
    result = real("ingest", str(notes), *FAST)
    assert "1 document of an earlier version is known by its name alone" in result.stderr
    assert expected(old, "changed.md") in result.stderr
    assert "gone.md" not in result.stderr
    assert "earlier version" not in real("ingest", str(notes), *FAST).stderr


def test_pages_and_repository_files_are_not_listed(real, notes, old):
    with closing(sqlite3.connect(real.home / "default" / "store.sqlite3")) as connection:
        connection.execute("UPDATE document SET name = 'https://a.example/' WHERE name = 'gone.md'")
        connection.execute("UPDATE document SET metadata = '{\"repoId\": \"r\"}' WHERE name = 'changed.md'")
        connection.commit()
    assert "earlier version" not in real("sync", str(notes), *FAST).stderr


def test_many_are_counted_and_some_are_named(real, notes):
    for number in range(30):
        (notes / f"m{number:02}.md").write_text(f"Number {number}.")
    assert real("ingest", str(notes), *FAST).exit_code == 0
    disown(real.home)
    for path in notes.glob("*.md"):
        path.write_text("New text.")
    said = real("sync", str(notes), *FAST).stderr
    assert "33 documents of an earlier version" in said
    assert "m05.md (" in said
    assert "m25.md" not in said
    assert "and 23 more" in said


def test_a_service_lists_them_too(real, served, notes, tmp_path):
    at = ("--api", served.address, "--token", "secret", "--no-enrich")
    assert real("ingest", str(notes), *at).exit_code == 0
    age(notes, tmp_path / "served")
    result = real("sync", str(notes), *at)
    assert result.exit_code == 0, result.stderr
    assert "2 documents of an earlier version" in result.stderr
    assert "gone.md (" in result.stderr


def test_a_dry_run_says_which_documents_files_would_take_over(real, notes, old):
    dry = real("sync", str(notes), "--dry-run")
    assert "take over same.md\n" in dry.stdout
    assert "add       changed.md  (or takes changed.md over, if most of its lines are kept)" in dry.stdout
    assert "Would add 1, take over 1; 0 unchanged." in dry.stdout
    assert "same.md" not in dry.stderr
    told = json.loads(real("sync", str(notes), "--dry-run", "--json").stdout)
    assert [source.rpartition("/")[2] for source in told["taken_over"]] == ["same.md"]
    assert [source.rpartition("/")[2] for source in told["added"]] == ["changed.md"]
    real("sync", str(notes), *FAST)
    assert "taken over" not in real("sync", str(notes), "--dry-run").stdout
