"""`cragside workspaces list`, on real stores."""

import json
from typing import Any

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
