"""Settings from files, and `cragside config`, which tells where each setting comes from."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_services import errors_of, printed

from cragside.entrypoints.cli.worker import command


@pytest.fixture
def home(environment: dict[str, str]) -> Path:
    folder = Path(environment["RAG_HOME"])
    folder.mkdir()
    return folder


def written(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def told(run: Any) -> Any:
    def settings() -> dict[str, tuple[Any, str]]:
        said = printed(run("config", "--json"))
        return {row["variable"]: (row["value"], row["from"]) for row in json.loads(said)}

    return settings


def test_each_setting_has_its_value_and_its_place(told: Any, environment: dict[str, str]) -> None:
    environment |= {"RAG_THRESHOLD": "0.5", "RAG_WORKSPACE": ""}
    rows = told()
    assert rows["RAG_THRESHOLD"] == (0.5, "environment")
    assert rows["RAG_WORKSPACE"] == ("default", "default")
    assert rows["OLLAMA_BASE_URL"] == (None, "default")
    assert len(rows) > 50


def test_the_first_place_that_has_a_setting_counts(
    told: Any, environment: dict[str, str], tmp_path: Path, home: Path
) -> None:
    names = ["RAG_CANDIDATES", "RAG_MAX_DOCUMENTS", "RAG_CHUNK_TOKENS", "RAG_SAVED_QUERIES", "RAG_PART_PASSAGES"]
    files = [tmp_path / ".env", tmp_path / "cragside.toml", home / ".env", home / "cragside.toml"]
    for number, path in enumerate(files, start=1):
        written(path, "\n".join(f"{name}={300 + number}" for name in names[number:]) + "\n")
    environment["RAG_CANDIDATES"] = "9"
    written(files[0], "RAG_CANDIDATES=1\nRAG_MAX_DOCUMENTS=31\nPATH=ignored\nSECRET=ignored\n")
    rows = told()
    assert rows["RAG_CANDIDATES"] == (9, "environment")
    assert rows["RAG_MAX_DOCUMENTS"] == (31, str(files[0]))
    assert rows["RAG_CHUNK_TOKENS"] == (302, str(files[1]))
    assert rows["RAG_SAVED_QUERIES"] == (302, str(files[1]))
    (tmp_path / "cragside.toml").unlink()
    assert told()["RAG_SAVED_QUERIES"] == (303, str(files[2]))
    (home / ".env").unlink()
    assert told()["RAG_PART_PASSAGES"] == (304, str(files[3]))


def test_toml_has_its_own_types(told: Any, tmp_path: Path) -> None:
    place = written(
        tmp_path / "cragside.toml",
        'ollama_base_url = "http://ada:secret@gpu:11434"\nthreshold = 0.55\nmemory_evidence = true\n'
        'allow_origins = ["https://app.example", "null"]\nRAG_WORKSPACE = "notes"\n'
        '[workspace_tokens]\nsesame = ["team"]\n',
    )
    rows = told()
    assert rows["RAG_THRESHOLD"] == (0.55, place)
    assert rows["RAG_MEMORY_EVIDENCE"] == (True, place)
    assert rows["RAG_ALLOW_ORIGINS"] == ("https://app.example,null", place)
    assert rows["RAG_WORKSPACE"] == ("notes", place)
    assert rows["OLLAMA_BASE_URL"] == ("http://********@gpu:11434", place)
    assert rows["RAG_WORKSPACE_TOKENS"] == ("********", place)
    assert not any("sesame" in str(row) or "secret" in str(row) for row in rows.values())


def test_a_table_for_people_has_what_is_set(run: Any, tmp_path: Path) -> None:
    place = written(tmp_path / ".env", "RAG_API_TOKEN=sesame\n")
    result = run("config", "--set")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["RAG_HOME", str(tmp_path / "home"), "environment"],
        ["RAG_API_TOKEN", "********", place],
    ]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (".env", "RAG_TRESHOLD=0.5", "RAG_TRESHOLD is not a setting. Did you mean RAG_THRESHOLD?"),
        (".env", "RAG_THRESHOLD=high", "RAG_THRESHOLD: "),
        ("cragside.toml", "treshold = 0.5", "RAG_TRESHOLD is not a setting. Did you mean RAG_THRESHOLD?"),
        ("cragside.toml", "threshold = 0.5\napi_token = sesame", "is not valid TOML, at line 2, column 13"),
        ("cragside.toml", "threshold = [1]", "threshold must be a text, a number"),
        ("cragside.toml", "[ollama_options]\nday = 2026-01-01", "ollama_options must be a text, a number"),
        ("cragside.toml", "threshold = " + "1" * 5000, "is not valid TOML"),
        ("cragside.toml", "threshold = " + "[" * 5000, "is not valid TOML"),
        (".env", "RAG_THRESHOLD=" + " " * 70_000, "is longer than 64,000 bytes"),
    ],
)
def test_a_wrong_file_is_named(run: Any, tmp_path: Path, name: str, text: str, complaint: str) -> None:
    place = written(tmp_path / name, text)
    said = errors_of(run("config"), 2)
    assert place in said
    assert complaint in said
    assert "sesame" not in said


@pytest.mark.attack("hostile files")
@pytest.mark.parametrize("name", [".env", "cragside.toml"])
@pytest.mark.parametrize("there", ["", "home"])
def test_a_file_that_everybody_can_write_is_refused(
    run: Any, tmp_path: Path, home: Path, name: str, there: str
) -> None:
    path = tmp_path / there / name
    path.write_text('OLLAMA_BASE_URL="http://evil.example"\n')
    path.chmod(0o646)
    result = run("status")
    assert (result.exit_code, str(path) in result.stderr) == (2, True)
    assert "chmod o-w" in result.stderr


@pytest.mark.attack("hostile files")
def test_another_users_file_in_a_folder_of_everybody_is_refused(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / ".env", "RAG_THRESHOLD=0.5\n")
    owner = (tmp_path / ".env").stat().st_uid
    if owner == 0:
        os.chown(tmp_path / ".env", 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert run("config").exit_code == 0
    tmp_path.chmod(0o1777)
    result = run("config")
    assert (result.exit_code, "another user's file" in result.stderr) == (2, True)


def test_home_cannot_be_moved_by_a_file_in_it(
    run: Any, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".cragside").mkdir()
    place = written(tmp_path / ".cragside" / "cragside.toml", 'home = "/elsewhere"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    environment.clear()
    result = run("config")
    assert (result.exit_code, f"{place} sets RAG_HOME" in result.stderr) == (2, True)


def test_a_server_serves_by_the_files(run: Any, tmp_path: Path) -> None:
    written(tmp_path / ".env", "RAG_API_TOKEN=sesame\n")
    result = run("serve", "--host", "203.0.113.1")
    assert "Cannot listen on 203.0.113.1" in result.stderr  # not refused for want of a token


def test_a_pipe_in_place_of_a_file_of_settings_is_refused_at_once(run: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    assert ".env is not a file" in errors_of(run("config"), 2)


_READ_AS_NOBODY = """
import os, sys
from pathlib import Path
from cragside.entrypoints.setting_files import completed_environment

if os.geteuid() == 0:
    os.setuid(65534)
try:
    completed_environment({}, Path(sys.argv[1]))
except Exception as error:
    print(error)
"""


def test_a_folder_that_may_not_be_searched_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o600)
    told = subprocess.check_output([sys.executable, "-c", _READ_AS_NOBODY, str(closed)], text=True)
    assert f"You may not see whether {closed} has settings" in told
    assert "Start cragside in a folder of yours" in told


@pytest.mark.attack("odd folders")
def test_a_worker_takes_the_settings_of_its_server(tmp_path: Path) -> None:
    """A file of settings that changes while a server runs, or that another user makes, does not stop its worker."""
    written(tmp_path / ".env", "RAG_THRESHOL=1")
    environment = {"RAG_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    ended = subprocess.run([*command(0.1, 0), "--no-sweep"], env=environment, cwd=tmp_path, capture_output=True)
    assert ended.returncode == 0, ended.stderr
