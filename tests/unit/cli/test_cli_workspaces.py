"""`cragside workspaces list`, on real stores."""

import json
from typing import Any

import pytest
from cli_services import RealCommands


def test_workspaces_are_listed_with_what_they_store(real: RealCommands, tmp_path: Any) -> None:
    note = tmp_path / "otter.md"
    note.write_text("Sea otters eat urchins, crabs and clams.")
    for workspace in ("beta", "alpha"):
        assert real("ingest", str(note), "--workspace", workspace).exit_code == 0
    said = ("--user", "What do sea otters eat in winter?", "--assistant", "They eat urchins, crabs and clams.")
    assert real("memory", "add", *said, "--workspace", "beta").exit_code == 0
    rows = real.json("workspaces", "list")
    assert [(row["workspace"], row["documents"], row["exchanges"]) for row in rows] == [("alpha", 1, 0), ("beta", 1, 1)]
    assert rows[1]["bytes"] > rows[0]["bytes"] > 0
    lines = real("workspaces", "list").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["alpha", "1", "0"], ["beta", "1", "1"], ["total", "2", "1"]]


def test_a_damaged_workspace_does_not_hide_the_others(real: RealCommands, tmp_path: Any) -> None:
    note = tmp_path / "otter.md"
    note.write_text("Sea otters eat urchins, crabs and clams.")
    assert real("ingest", str(note), "--workspace", "whole").exit_code == 0
    (real.home / "broken").mkdir()
    (real.home / "broken" / "store.sqlite3").write_bytes(b"no store at all" * 100)
    result = real("workspaces", "list", "--json")
    broken, whole = json.loads(result.stdout)
    assert result.exit_code == 3
    assert (broken["workspace"], bool(broken["error"]), whole["documents"]) == ("broken", True, 1)


def test_without_a_workspace_it_says_what_to_do(real: RealCommands) -> None:
    result = real("workspaces", "list")
    assert (result.exit_code, "cragside ingest" in result.stdout) == (0, True)
    assert real.json("workspaces", "list") == []


def test_a_workspace_is_removed_with_all_that_belongs_to_it(real: RealCommands, tmp_path: Any) -> None:
    note = tmp_path / "otter.md"
    note.write_text("Sea otters eat urchins, crabs and clams.")
    for workspace in ("beta", "alpha"):
        assert real("ingest", str(note), "--workspace", workspace).exit_code == 0
    (real.home / ".settings.json").write_text(json.dumps({"beta": {"threshold": 0.5}, "alpha": {"threshold": 0.4}}))
    (real.home / ".conversation-beta.json").write_text("[]")
    told = real.json("workspaces", "remove", "Beta", "--yes")
    assert (told["workspace"], told["removed"], told["documents"]) == ("beta", True, 1)
    assert [row["workspace"] for row in real.json("workspaces", "list")] == ["alpha"]
    assert json.loads((real.home / ".settings.json").read_text()) == {"alpha": {"threshold": 0.4}}
    assert not [path.name for path in real.home.iterdir() if "beta" in path.name or "removed" in path.name]
    again = real("workspaces", "remove", "beta", "--yes")
    assert (again.exit_code, "no workspace beta" in again.stderr) == (1, True)


def test_it_asks_before_it_removes(real: RealCommands, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "otter.md"
    note.write_text("Sea otters eat urchins, crabs and clams.")
    assert real("ingest", str(note), "--workspace", "w").exit_code == 0
    refused = real("workspaces", "remove", "w")
    assert (refused.exit_code, "1 documents" in refused.stderr, "--yes" in refused.stderr) == (2, True, True)
    monkeypatch.setattr("cragside.entrypoints.cli.terminal.on_terminal", lambda: True)
    for answer, left in ((False, ["w"]), (True, [])):
        monkeypatch.setattr("typer.confirm", lambda *_, answer=answer, **__: answer)
        assert real("workspaces", "remove", "w").exit_code == (0 if answer else 1)
        assert [row["workspace"] for row in real.json("workspaces", "list")] == left
