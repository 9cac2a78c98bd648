import json
from datetime import UTC, datetime, timedelta

import pytest
from cli_services import errors_of, refused


@pytest.fixture
def tokens(environment, tmp_path):
    """The file of the tokens."""
    environment["RAG_TOKENS_FILE"] = str(tmp_path / "keys" / "tokens.json")
    return tmp_path / "keys" / "tokens.json"


def listed(run):
    return json.loads(run("token", "list", "--json").stdout)["tokens"]


def test_standard_output_is_only_the_token(run, tokens):
    result = run("token", "new", "ci")
    assert result.exit_code == 0
    assert result.stdout.startswith("crag_")
    assert len(result.stdout.split()) == 1
    assert "read, write, chat; all workspaces; never expires" in result.stderr
    assert tokens.exists()


def test_a_token_has_the_requested_properties(run, tokens):
    arguments = ("--scope", "read", "--scope", "chat", "-w", "a", "-w", "b", "--expires", "90d", "--json")
    made = json.loads(run("token", "new", "bot", *arguments).stdout)
    assert made["token"].startswith("crag_")
    assert (made["name"], made["scopes"], made["workspaces"]) == ("bot", ["read", "chat"], ["a", "b"])
    until = datetime.fromisoformat(made["expires"]) - datetime.now(UTC)
    assert timedelta(days=89) < until <= timedelta(days=90)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("2100-01-01", "2100-01-01T00:00:00Z"),
        ("2100-01-01T12:00:00", "2100-01-01T12:00:00Z"),
        ("2100-01-01T12:00:00+02:00", "2100-01-01T10:00:00Z"),
    ],
)
def test_a_time_is_in_utc(run, tokens, given, told):
    assert json.loads(run("token", "new", "x", "--expires", given, "--json").stdout)["expires"] == told


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--scope", "admin"),
        ("--scope", ""),
        ("--scope", "read,chat"),
        ("--workspace", "../a"),
        ("--workspace", ""),
        ("--expires", "0d"),
        ("--expires", "-1d"),
        ("--expires", "2000-01-01"),
        ("--expires", "soon"),
        ("--expires", "999999w"),
        ("--expires", "٩d"),
        ("--expires", ""),
        ("--expires", "1" * 5000 + "d"),
    ],
)
def test_an_invalid_request_makes_no_token(run, tokens, arguments):
    assert refused(run("token", "new", "x", *arguments)).startswith("error: ")
    assert not tokens.exists()


def test_the_list_shows_neither_tokens_nor_hashes(run, tokens):
    secret = run("token", "new", "ci", "--workspace", "a").stdout.strip()
    digest = json.loads(tokens.read_text())["tokens"][0]["sha256"]
    for arguments in ((), ("--json",)):
        shown = run("token", "list", *arguments).stdout
        assert "ci" in shown
        assert secret not in shown
        assert digest not in shown
    assert set(listed(run)[0]) == {
        *("id", "name", "scopes", "workspaces", "created", "expires", "expired", "limits"),
    }


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_token_is_revoked_by_its_id_or_name(run, tokens, by):
    run("token", "new", "ci")
    run("token", "new", "other")
    assert run("token", "revoke", listed(run)[0][by]).exit_code == 0
    assert [each["name"] for each in listed(run)] == ["other"]
    assert "cragside token list" in errors_of(run("token", "revoke", "ci"), 1)


def test_an_empty_list_names_the_command_that_makes_a_token(run, tokens):
    run("token", "new", "ci")
    run("token", "revoke", "ci")
    assert "cragside token new NAME" in refused(run("token", "list"), 0)
    as_json = run("token", "list", "--json")
    assert (json.loads(as_json.stdout), as_json.stderr) == ({"tokens": []}, "")


@pytest.mark.parametrize("arguments", [("new", "x"), ("list",), ("revoke", "x")])
def test_without_a_file_the_setting_is_named(run, arguments):
    assert "RAG_TOKENS_FILE" in errors_of(run("token", *arguments), 2)


@pytest.mark.parametrize("arguments", [("list",), ("revoke", "x")])
def test_a_file_that_is_not_there_names_the_command_that_makes_it(run, tokens, arguments):
    assert "cragside token new" in errors_of(run("token", *arguments), 2)


def test_the_command_line_itself_needs_no_token(run, tokens):
    """Commands need no token, as they may read the files; servers ask for one."""
    assert run("status").exit_code == 0


def test_the_audit_log_records_token_changes_without_tokens(run, tokens, environment, tmp_path):
    environment["RAG_AUDIT_LOG"] = str(tmp_path / "audit.log")
    secret = run("token", "new", "ci").stdout.strip()
    run("token", "revoke", "ci")
    lines = (tmp_path / "audit.log").read_text()
    assert [json.loads(line)["action"] for line in lines.splitlines()] == ["token new", "token revoke"]
    assert {json.loads(line)["token_name"] for line in lines.splitlines()} == {"ci"}
    assert secret not in lines


def test_a_token_is_revoked_even_if_the_audit_log_fails(run, tokens, environment, tmp_path):
    run("token", "new", "ci")
    environment["RAG_AUDIT_LOG"] = str(tmp_path / "missing" / "audit.log")
    assert run("token", "revoke", "ci").exit_code == 0
    assert listed(run) == []
    assert run("token", "new", "other").exit_code == 2
    assert listed(run) == []
