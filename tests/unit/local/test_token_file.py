import hashlib
import json
import logging
import multiprocessing
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.local.tokens import TokenFile
from cragside.domain.errors import ConfigurationError, NotFound, ServiceUnavailable, ValidationError
from cragside.domain.tokens import ALL_SCOPES, IssuedToken, Limits, new_token
from tests.clocks import BEGIN, MovedClock

FORK = multiprocessing.get_context("fork")


def token(name: str = "ci", **more: Any) -> IssuedToken:
    return new_token(name, **{"created": BEGIN, "scopes": ALL_SCOPES, "workspaces": None, **more})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def names(file: TokenFile) -> list[str]:
    return [each.name for each in file.tokens()]


def test_only_the_hash_of_a_token_is_stored(path: Path) -> None:
    file = TokenFile(path)
    secret, made = file.create(token())
    assert secret.startswith("crag_")
    assert len(secret) == len("crag_") + 43
    assert made.digest == hashlib.sha256(secret.encode()).digest()
    assert secret not in path.read_text()
    assert secret[5:] not in path.read_text()
    assert file.all() == (made,)
    assert made.digest.hex() not in repr(made)


def test_the_properties_of_a_token_survive_storage(path: Path) -> None:
    file, expires = TokenFile(path), datetime(2100, 1, 2, 3, 4, 5, tzinfo=UTC)
    said = token(scopes=frozenset({"read", "chat"}), workspaces=("a", "b"), expires=expires, limits=Limits(1, 2, 3))
    _, made = file.create(said)
    (read,) = TokenFile(path).tokens()
    assert read == made
    assert (read.scopes, read.workspaces, read.expires, read.limits) == (
        frozenset({"read", "chat"}),
        ("a", "b"),
        expires,
        Limits(1, 2, 3),
    )


def test_the_file_is_private(path: Path) -> None:
    before = os.umask(0)
    try:
        TokenFile(path).create(token())
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_name(f"{path.name}.lock").stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path: Path, path: Path) -> None:
    TokenFile(tmp_path / "real.json").create(token())
    path.symlink_to(tmp_path / "real.json")
    TokenFile(path).create(token("second"))
    assert path.is_symlink()
    assert names(TokenFile(tmp_path / "real.json")) == ["ci", "second"]


@pytest.mark.attack("hostile tokens")
def test_a_revoked_token_is_refused_by_every_process_within_two_seconds(path: Path) -> None:
    clock = MovedClock()
    _, made = (commands := TokenFile(path)).create(token())
    server = TokenFile(path, clock=clock)
    assert names(server) == ["ci"]
    assert commands.revoke(made.id) == made
    clock.move(2)
    assert names(server) == []


def test_an_unchanged_file_is_cached_between_requests(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TokenFile(path).create(token())
    server = TokenFile(path, clock=(clock := MovedClock()))
    known = server.tokens()
    looked: list[Path] = []
    stat = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **more: looked.append(self) or stat(self, **more))
    assert all(server.tokens() is known for _ in range(100))
    assert looked == []
    clock.move(2)
    assert server.tokens() is known
    assert looked == [path]


def test_a_missing_file_names_the_command_that_makes_it(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cragside token new"):
        TokenFile(path).tokens()


def entry(**changes: Any) -> dict[str, Any]:
    usual = {"id": "1", "name": "n", "sha256": "0" * 64, "scopes": ["read"], "workspaces": None, "expires": None}
    return {**usual, "created": "2026-01-01T00:00:00Z", **changes}


def content(*entries: Any, version: Any = 1) -> bytes:
    return json.dumps({"version": version, "tokens": list(entries)}).encode()


def test_an_entry_written_by_hand_is_read(path: Path) -> None:
    path.write_bytes(content(entry()))
    path.chmod(0o600)
    assert names(TokenFile(path)) == ["n"]


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "half": content(entry())[:-20],
    "no JSON": b"s3cret",
    "no UTF-8": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "a later version": content(version=2),
    "no version": b'{"tokens": []}',
    "an unknown field": content(entry(addresses=["10.0.0.1"])),
    "an unknown scope": content(entry(scopes=["admin"])),
    "scopes as a text": content(entry(scopes="read")),
    "workspaces missing": content({name: value for name, value in entry().items() if name != "workspaces"}),
    "expires missing": content({name: value for name, value in entry().items() if name != "expires"}),
    "expires without a zone": content(entry(expires="2027-01-01T00:00:00")),
    "expires is no time": content(entry(expires="never")),
    "a short hash": content(entry(sha256="00")),
    "a hash in upper case": content(entry(sha256="A" * 64)),
    "a token in place of its hash": content(entry(sha256="crag_s3cret")),
    "limits below zero": content(entry(limits={"documents": -1})),
    "twice the same id": content(entry(), entry(sha256="1" * 64)),
    "twice the same hash": content(entry(), entry(id="2")),
    "NaN": b'{"version": NaN, "tokens": []}',
}


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_keeps_the_last_good_state_for_a_minute(
    path: Path, broken: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    clock = MovedClock()
    TokenFile(path).create(token())
    server = TokenFile(path, clock=clock)
    assert names(server) == ["ci"]
    path.write_bytes(broken)
    for _ in range(3):
        clock.move(15)
        assert names(server) == ["ci"]
    clock.move(16)
    with pytest.raises(ServiceUnavailable):
        server.tokens()
    assert len(caplog.records) == 1
    assert "s3cret" not in caplog.text
    with pytest.raises(ConfigurationError, match="damaged") as raised:
        TokenFile(path).tokens()
    assert "s3cret" not in str(raised.value)


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("broken", [BROKEN["half"], BROKEN["a later version"]])
def test_no_command_writes_over_a_file_that_it_cannot_read(path: Path, broken: bytes) -> None:
    path.write_bytes(broken)
    path.chmod(0o600)
    changes: list[Callable[[TokenFile], object]] = [lambda file: file.create(token()), lambda file: file.revoke("1")]
    for change in changes:
        with pytest.raises(ConfigurationError):
            change(TokenFile(path))
    assert path.read_bytes() == broken


def test_a_file_that_was_mended_is_taken_up_again(path: Path) -> None:
    clock = MovedClock()
    TokenFile(path).create(token())
    server, good = TokenFile(path, clock=clock), path.read_bytes()
    server.tokens()
    path.write_bytes(b"{")
    clock.move(300)
    with pytest.raises(ServiceUnavailable):
        server.tokens()
    path.write_bytes(good)
    clock.move(2)
    assert names(server) == ["ci"]


@pytest.mark.attack("hostile tokens")
def test_a_file_that_was_removed_holds_no_tokens_at_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = MovedClock()
    TokenFile(path).create(token())
    server = TokenFile(path, clock=clock)
    server.tokens()
    path.unlink()
    clock.move(2)
    assert names(server) == []
    clock.move(300)
    assert names(server) == []
    assert len(caplog.records) == 1


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o622, 0o666])
def test_a_file_that_others_may_write_is_refused(path: Path, mode: int) -> None:
    clock = MovedClock()
    TokenFile(path).create(token())
    server = TokenFile(path, clock=clock)
    server.tokens()
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        TokenFile(path).tokens()
    clock.move(61)
    with pytest.raises(ServiceUnavailable):
        server.tokens()


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("kind", ["FIFO", "directory", "device", "link to a FIFO"])
def test_a_special_file_is_refused_without_waiting(tmp_path: Path, path: Path, kind: str) -> None:
    if kind == "FIFO":
        os.mkfifo(path, 0o600)
    elif kind == "directory":
        path.mkdir(0o700)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "fifo", 0o600)
        path.symlink_to(tmp_path / "fifo")
    # In a process of its own: one that waits for a writer can be ended there.
    reader = FORK.Process(target=_refused, args=(path,))
    reader.start()
    reader.join(10)
    waits = reader.is_alive()
    reader.kill()
    reader.join()
    assert not waits
    assert reader.exitcode == 0


def _refused(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a file|Is a directory"):
        TokenFile(path).tokens()


@pytest.mark.attack("hostile tokens")
def test_a_file_that_was_replaced_by_a_fifo_does_not_stop_the_server(path: Path) -> None:
    TokenFile(path).create(token())
    server = TokenFile(path, clock=(clock := MovedClock()))
    server.tokens()
    path.unlink()
    os.mkfifo(path, 0o600)
    writer = os.open(path, os.O_RDWR)  # so that a reader that waits for a writer goes on
    try:
        os.write(writer, b"{")
        clock.move(2)
        assert names(server) == ["ci"]
        clock.move(61)
        with pytest.raises(ServiceUnavailable):
            server.tokens()
    finally:
        os.close(writer)


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize(("owner", "refused"), [(1, True), (0, False)])
def test_a_file_of_another_user_but_root_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, refused: bool
) -> None:
    """Nobody but root can give a file away, so this replaces what the system says of the owner."""
    TokenFile(path).create(token())
    fstat, user = os.fstat, 4242

    def of_owner(handle: int) -> os.stat_result:
        status = list(fstat(handle))
        status[4] = owner
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", of_owner)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if refused:
        with pytest.raises(ConfigurationError, match="another user"):
            TokenFile(path).tokens()
    else:
        assert names(TokenFile(path)) == ["ci"]


def test_a_file_that_others_may_read_is_warned_of(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    TokenFile(path).create(token())
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert names(TokenFile(path)) == ["ci"]
    assert "chmod 600" in caplog.text


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\x1b[2J", "a\u2028b", "x" * 101, "crag_abc", "\x00"])
def test_a_name_that_could_forge_a_line_or_is_a_token_is_refused(path: Path, name: str) -> None:
    with pytest.raises(ValidationError):
        TokenFile(path).create(token(name))
    assert not path.exists()


def test_a_name_is_taken_once(path: Path) -> None:
    file = TokenFile(path)
    _, made = file.create(token())
    for name in ("ci", made.id):
        with pytest.raises(ValidationError, match="already"):
            file.create(token(name))
    with pytest.raises(NotFound):
        file.revoke("another")
    assert names(TokenFile(path)) == ["ci"]


def _create(path: Path, number: int) -> None:
    for each in range(5):
        TokenFile(path).create(token(f"{number}-{each}"))


def test_commands_at_the_same_time_lose_no_token(path: Path) -> None:
    processes = [FORK.Process(target=_create, args=(path, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(TokenFile(path).tokens()) == 15
    assert sorted(each.name for each in path.parent.iterdir()) == ["tokens.json", "tokens.json.lock"]
