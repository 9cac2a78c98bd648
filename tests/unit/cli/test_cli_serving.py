"""Commands ask a `cragside serve` of their own home, and nobody else."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_services import RealCommands, printed

from cragside.composition.serving import announced, serving_address
from cragside.entrypoints.cli import target
from cragside.settings import Settings, load_settings

Stub = Callable[[int, str], AbstractContextManager[str]]

# No command in this process would say so of an empty store.
ANSWER = json.dumps({"documents": [], "total": 7})
ASKED, OWN = "0 of 7 documents.\n", "0 documents.\n"
TOKENS = '{"token": ["default"]}'


def settings_of(home: Path, **variables: str) -> Settings:
    return load_settings({"RAG_HOME": str(home), **variables})


@contextmanager
def serving(home: Path, stub: Stub, status: int = 200, **variables: str) -> Iterator[Path]:
    """A service of the home that answers everything so. Yields its file."""
    with stub(status, ANSWER) as address, announced(settings_of(home, **variables), address):
        yield home / ".serving"


def test_a_running_service_of_the_home_is_asked_and_of_another_home_not(
    real: RealCommands, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # for this machine nobody needs one
    with serving(real.home, stub) as file:
        assert file.stat().st_mode & 0o777 == 0o600
        assert printed(real("documents")) == ASKED
        assert printed(real("documents", "--workspace", "other")) == ASKED
        assert printed(RealCommands(tmp_path / "elsewhere")("documents")) == OWN
    assert not file.exists()
    assert printed(real("documents")) == OWN


def test_a_token_that_command_and_service_share_is_sent(real: RealCommands, stub: Stub) -> None:
    with serving(real.home, stub, RAG_API_TOKEN="secret") as file:
        assert "secret" not in file.read_text()
        assert printed(real("documents", RAG_API_TOKEN="secret")) == ASKED
        assert printed(real("documents")) == OWN


def test_a_service_that_does_not_answer_is_not_waited_for(real: RealCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_LIVES_WITHIN_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with announced(settings_of(real.home), address):
            assert printed(real("documents")) == OWN


def test_an_answer_that_is_none_of_cragsides_is_passed_over(real: RealCommands, stub: Stub) -> None:
    with stub(200, "[1]") as address, announced(settings_of(real.home), address):
        assert real("query", "lamp").exit_code == 0


def test_a_child_that_outlives_the_service_does_not_keep_it_announced(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    reader, writer = os.pipe()
    service = os.fork()
    if not service:
        with announced(settings, "http://127.0.0.1:9"):
            child = os.fork()
            if not child:
                os.write(writer, b"started")
                os.read(reader, 1)
                os._exit(0)
            os.read(reader, 7)
            os._exit(0)  # as by SIGKILL: nothing is removed
    os.waitpid(service, 0)
    try:
        assert (tmp_path / ".serving").exists()
        assert serving_address(settings) is None
    finally:
        os.write(writer, b".")


def test_a_pipe_in_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".serving", 0o600)
    assert serving_address(settings_of(tmp_path)) is None


@pytest.mark.parametrize("status", [401, 403, 503, 504])
def test_a_service_that_cannot_answer_is_passed_over(real: RealCommands, stub: Stub, status: int) -> None:
    with serving(real.home, stub, status):
        assert printed(real("documents")) == OWN


def test_a_service_with_other_settings_is_not_asked(real: RealCommands, stub: Stub) -> None:
    with serving(real.home, stub, RAG_THRESHOLD="0.9"):
        assert printed(real("documents")) == OWN
        assert printed(real("documents", RAG_THRESHOLD="0.9")) == ASKED


@pytest.mark.parametrize("variables", [{"RAG_WORKSPACE_TOKENS": TOKENS}, {"RAG_TOKENS_FILE": "tokens.json"}])
def test_a_service_with_tokens_that_commands_do_not_have_is_not_announced(
    tmp_path: Path, stub: Stub, variables: dict[str, str]
) -> None:
    with serving(tmp_path / "home", stub, **variables) as file:
        assert not file.exists()


@pytest.mark.parametrize("address", ["http://192.0.2.1:8642", "http://example.org:8642", "http://[2001:db8::1]:8642"])
def test_an_address_beyond_this_machine_is_neither_announced_nor_asked(tmp_path: Path, address: str) -> None:
    settings = settings_of(tmp_path / "home")
    with announced(settings, address):
        assert not (tmp_path / "home" / ".serving").exists()
    with announced(settings, "http://127.0.0.1:9"):
        file = tmp_path / "home" / ".serving"
        file.write_text(file.read_text().replace("http://127.0.0.1:9", address))
        assert serving_address(settings) is None


@pytest.mark.parametrize(
    ("bound", "asked"),
    [("http://0.0.0.0:9", "http://127.0.0.1:9"), ("http://[::]:9", "http://[::1]:9")],
)
def test_a_service_on_all_addresses_is_asked_on_this_machine(tmp_path: Path, bound: str, asked: str) -> None:
    settings = settings_of(tmp_path / "home", RAG_PATH_PREFIX="/crag")
    with announced(settings, bound):
        assert serving_address(settings) == f"{asked}/crag"


@pytest.mark.attack("forged files")
def test_a_file_that_nobody_keeps_locked_or_that_others_can_read_or_redirect_counts_as_none(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home")
    file = tmp_path / "home" / ".serving"
    with announced(settings, "http://127.0.0.1:9"):
        assert serving_address(settings) == "http://127.0.0.1:9"
        file.chmod(0o644)
        assert serving_address(settings) is None
        file.chmod(0o600)
        left = file.read_bytes()
        file.write_bytes(b"[1, " + left)
        assert serving_address(settings) is None
        file.write_bytes(left)
        file.rename(tmp_path / "moved")
        file.symlink_to(tmp_path / "moved")
        assert serving_address(settings) is None
    file.write_bytes(left)
    file.chmod(0o600)
    assert serving_address(settings) is None, "as after a crash of the service"


def test_of_two_services_the_first_is_asked(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home")
    with announced(settings, "http://127.0.0.1:9"):
        with announced(settings, "http://127.0.0.1:10"):
            assert serving_address(settings) == "http://127.0.0.1:9"
        assert serving_address(settings) == "http://127.0.0.1:9"


def test_a_home_that_cannot_be_written_is_served_unannounced(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with announced(settings_of(tmp_path / "home"), "http://127.0.0.1:9"):
        assert os.listdir(tmp_path) == ["home"]


def test_a_service_of_a_baked_store_is_not_announced(tmp_path: Path) -> None:
    (tmp_path / "baked.json").write_text("{}")
    with announced(settings_of(tmp_path), "http://127.0.0.1:9"):
        assert os.listdir(tmp_path) == ["baked.json"]


def test_a_service_on_another_machine_that_shares_the_home_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path / "home")
    with announced(settings, "http://127.0.0.1:9"):
        monkeypatch.setattr("platform.node", lambda: "another")
        assert serving_address(settings) is None


def test_serve_announces_itself_while_it_runs(run: Any, environment: dict[str, str], monkeypatch: Any) -> None:
    from cragside.entrypoints.proxy import server

    told: list[str | None] = []

    async def serve(container: Any, listening: Any, host: str, **_: Any) -> None:
        told.append(serving_address(load_settings(environment)))

    monkeypatch.setattr(server, "serve", serve)
    assert run("serve", "--port", "0").exit_code == 0
    assert told[0] is not None
    assert told[0].startswith("http://127.0.0.1:")
    assert serving_address(load_settings(environment)) is None
