import json
import sqlite3
import subprocess
import sys

import pytest
from cli_services import errors_of, printed
from typer.testing import CliRunner

from cragside import __version__
from cragside.domain.errors import ConfigurationError, DeadlineExceeded, ProcessingError, ServiceUnavailable
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.reference import reference
from cragside.store.sqlite.database import failure_of

HEAVY = (
    *("lightrag", "langgraph", "langchain_core", "wordllama", "numpy", "fastapi", "pydantic", "rich.console"),
    *("httpx", "aiohttp", "yarl", "pathspec", "trafilatura", "lxml"),
)


def test_the_version_is_printed(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"cragside {__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_the_help_names_every_command_and_exit_code(run, arguments):
    said = printed(run(*arguments))
    for word in ("query", "graph", "memory", "index", "documents", "enrich-docs"):
        assert f" {word} " in " ".join(said.split())
    for word in ("demo", "serve", "enrich", "ingest", "forget", "status", "reindex", "doctor", "130 interrupted"):
        assert word in " ".join(said.split())


def test_help_imports_nothing_heavy():
    # Typer itself imports pydantic for the parameters of a command, so the help without one comes first.
    script = (
        "import json, sys\nfrom cragside.entrypoints.cli.app import app\nloaded = []\n"
        "for command in [], ['ingest'], ['index'], ['memory']:\n"
        "    try:\n        app([*command, '--help'])\n    except SystemExit as end:\n        assert end.code == 0\n"
        f"    loaded.append([name for name in {HEAVY!r} if name in sys.modules])\n"
        "print(json.dumps(loaded), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    at_all, *of_commands = json.loads(done.stderr)
    assert at_all == []
    assert {name for loaded in of_commands for name in loaded} <= {"pydantic"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("enrch",), "No such command 'enrch'. Did you mean 'enrich', 'enrich-docs'?"),
        (("enrich",), "Missing argument 'TEXT'."),
        (("status", "--jsno"), "No such option: --jsno"),
        (("serve", "--port", "70000"), "65535"),
        (("status", "--workspace", "../up"), "A workspace name has 1 to 63"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(run, arguments, said):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ServiceUnavailable("knowledge_base", "is locked"), 3, "error: knowledge_base: is locked\n"),
        (DeadlineExceeded("too slow"), 3, "error: too slow\n"),
        (ConfigurationError("wrong\nmodel"), 2, "error: wrong model\n"),
        (ProcessingError("our fault"), 1, "error: our fault\n"),
        (PermissionError(13, "Permission denied", "/home/x"), 1, "error: /home/x: Permission denied\n"),
    ],
)
def test_an_error_is_one_line_with_its_exit_code(run, container, error, code, said):
    container.error = error
    result = run("status")
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", said)
    assert container.closed == 1


def test_a_damaged_store_is_reported_with_a_remedy(run, container, tmp_path):
    (tmp_path / "store.sqlite3").write_bytes(b"no database at all " * 100)
    with pytest.raises(sqlite3.DatabaseError) as damage:
        sqlite3.connect(tmp_path / "store.sqlite3").execute("SELECT * FROM sqlite_master")
    container.error = failure_of(damage.value)
    said = errors_of(run("status"), 3)
    assert said == (
        "error: The knowledge base is damaged (file is not a database). "
        "Stop cragside, move the workspace's folder away, and ingest again.\n"
    )


def test_a_store_that_is_locked_is_not_called_damaged(run, container, tmp_path):
    holder = sqlite3.connect(tmp_path / "a.sqlite3", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError) as locked:
        sqlite3.connect(tmp_path / "a.sqlite3", timeout=0).execute("SELECT * FROM sqlite_master")
    container.error = failure_of(locked.value)
    result = run("status")
    assert (result.exit_code, result.stderr) == (
        3,
        "error: The knowledge base cannot be used now: database is locked.\n",
    )


def test_a_store_that_cannot_be_opened_is_not_called_damaged(run, container, tmp_path):
    with pytest.raises(sqlite3.OperationalError) as refused:
        sqlite3.connect(tmp_path).execute("SELECT * FROM sqlite_master")
    container.error = failure_of(refused.value)
    result = run("status")
    assert (result.exit_code, result.stderr) == (
        3,
        "error: The knowledge base cannot be used now: unable to open database file. "
        "Check the permissions of its folder, and its disk.\n",
    )


def test_an_unforeseen_error_shows_its_trace_only_when_asked(run, container):
    container.error = KeyError("http://user:secret@host")
    plain = errors_of(run("status"), 1)
    assert "secret" not in plain
    assert "Traceback" not in plain
    assert "--debug" in plain
    assert "Traceback" in run("--debug", "status").stderr


def test_an_interrupt_ends_with_130_and_closes_the_container(run, container):
    container.error = KeyboardInterrupt()  # type: ignore[assignment]
    assert "Traceback" not in errors_of(run("status"), 130)
    assert container.closed == 1


def test_a_misspelt_setting_is_bad_configuration(run, environment):
    environment["RAG_THRESHHOLD"] = "0.5"
    assert "Did you mean RAG_THRESHOLD?" in errors_of(run("status"), 2)


def test_the_reference_has_the_help_of_each_command_and_each_exit_code(run):
    page = reference()
    for command in ("query", "memory search", "graph"):
        title, usage = f"## cragside {command}\n", f"Usage: cragside {command} "
        assert usage in page.partition(title)[2].partition("\n## ")[0]
        assert usage.replace("cragside ", "") in run(*command.split(), "--help").stdout.replace("cragside ", "")
    for code, meaning in exit_codes.MEANINGS.items():
        assert f"\n| {code} | {meaning} |\n" in page


def test_an_interrupt_while_the_command_loads_shows_no_trace():
    script = (
        "import builtins\nfrom cragside.entrypoints.cli.main import main\nload = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'typer':\n        raise KeyboardInterrupt\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = interrupted\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("group", ["workspaces", "memory", "token"])
def test_a_group_without_a_command_shows_its_usage(group: str) -> None:
    result = CliRunner().invoke(app, [group])
    assert result.exit_code == 2
    assert (result.stdout + result.stderr).startswith("Usage: ")
