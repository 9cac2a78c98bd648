"""Names that a workspace can have."""

import pytest

from cragside.domain.errors import ValidationError
from cragside.domain.names import workspace_name
from cragside.entrypoints.access import Grant, Pass, workspace_of


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("docs", "docs"),
        ("Docs", "docs"),
        ("TEAM-A_2.x", "team-a_2.x"),
        ("7", "7"),
        ("a.b", "a.b"),
        ("json", "json"),
        ("console", "console"),
        ("x" * 63, "x" * 63),
    ],
)
def test_a_name_is_written_in_lower_case(given: str, name: str) -> None:
    assert workspace_name(given) == name


@pytest.mark.attack("workspace names")
@pytest.mark.parametrize(
    "given",
    [
        # What is no name at all.
        *(
            "",
            " ",
            ".",
            "..",
            "../a",
            "a/b",
            "a\\b",
            ".a",
            "-a",
            "a\n",
            "a\0",
            "x" * 64,
            "é",
            "İ",
            "ｄocs",
            "a:b",
            "s3://x",
        ),
        *(None, 7, True, ["a"], {"a": 1}, b"a"),
        # What the store, the queue, the settings and a baked store use, and what SQLite puts beside its files.
        *("baked.json", "BAKED.JSON", "store.sqlite3", "writer.lock", "catalogue.lock", "queue.sqlite3", "a.db"),
        *("store.sqlite3-wal", "a-shm", "a-journal", "a.tmp", "a.log", "a.sqlite", "worker.pid", "a-WAL"),
        # What Windows and macOS would take for something else.
        *("con", "NUL", "aux", "prn", "com1", "LPT9", "con.txt", "nul.tar.gz", "docs.", "docs..", "a.. "),
    ],
)
def test_an_invalid_name_is_refused_with_a_remedy(given: object) -> None:
    with pytest.raises(ValidationError, match=r"(begins with a letter|Choose another)") as refused:
        workspace_name(given)
    assert refused.value.details["field"] == "workspace"


@pytest.mark.attack("workspace names")
@pytest.mark.parametrize(("granted", "named"), [("docs", "DOCS"), ("docs", "dOcS")])
def test_a_token_opens_its_workspace_however_its_name_is_written(granted: str, named: str) -> None:
    assert workspace_of(Grant((Pass(workspaces=(granted,)),)), [], named, "home") == granted
    assert (
        workspace_of(Grant((Pass(workspaces=(granted,)),)), [(b"x-rag-workspace", named.encode())], None, "home")
        == granted
    )
