"""Tests share real servers; here the server is a small Python program."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.services import fixtures
from tests.services.requirement import stay_down
from tests.services.run import Report, Run
from tests.services.server import PID, LoggingServer, Server, end_survivor
from tests.services.tools import Unavailable

ROOT = Path(__file__).parents[3]
# With a child in a group of its own, as PostgreSQL has them.
PROGRAM = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
print("ready", child.pid, flush=True)
child.wait()
"""


class Example(LoggingServer):
    ready = "ready"

    def __init__(self) -> None:
        super().__init__("example")

    def command(self) -> list[str]:
        return [sys.executable, "-S", "-c", PROGRAM]

    def version(self) -> str:
        return "1"

    @property
    def processes(self) -> list[psutil.Process]:
        parent = psutil.Process(int((self.home / PID).read_text().split()[0]))
        return [parent, *parent.children()]


class Broken(Example):
    def command(self) -> list[str]:
        return [sys.executable, "-S", "-c", "print('no such library'); raise SystemExit(1)"]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of these tests know nothing of the run that they are in."""
    monkeypatch.setattr(Server, "homes", None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def run() -> Iterator[Run]:
    run = Run.begin()
    yield run
    if run.folder.exists():
        run.end()


def gone(processes: list[psutil.Process]) -> bool:
    deadline = time.monotonic() + 10
    while any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_many_that_ask_for_a_server_at_once_get_the_same(run: Run) -> None:
    starts: list[int] = []

    def start() -> Report:
        starts.append(1)
        time.sleep(0.05)
        return Report("example", f"start {len(starts)}", "1")

    with ThreadPoolExecutor(8) as threads:
        reports = list(threads.map(lambda _: Run(run.folder).report("example", start), range(8)))
    assert {report.uri for report in reports} == {"start 1"}
    assert reports[0].started.startswith("up in ")
    assert run.reports() == reports[:1]


def test_a_server_that_cannot_start_is_tried_once_and_named(run: Run) -> None:
    tries: list[int] = []

    def start() -> Report:
        tries.append(1)
        with Broken():
            raise AssertionError("it started")

    for _ in range(2):
        report = run.report("broken", start)
        assert report.reason == "example did not come up: no such library"
    assert tries == [1]


def test_the_end_of_a_run_ends_its_servers_and_removes_its_folder(run: Run) -> None:
    server = Example()
    server.start()
    processes = server.processes
    assert len(processes) == 2
    run.end()
    assert gone(processes)
    assert not run.folder.exists()


_KILLED = """
import sys
from tests.services.run import Run
from tests.unit.services.test_runs import Example
run, server = Run.begin(), Example()
server.start()
print(run.folder, *[each.pid for each in server.processes], flush=True)
sys.stdin.read()
"""


def test_the_next_run_removes_what_a_killed_one_left_and_no_other(run: Run) -> None:
    command = [sys.executable, "-c", _KILLED]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        folder, *pids = killed.stdout.readline().split()
        left = [psutil.Process(int(pid)) for pid in pids]
        Run.begin().end()
        assert all(each.is_running() for each in left), "its run goes on"
        killed.send_signal(signal.SIGKILL)
    assert Path(folder).exists()
    Run.begin().end()
    assert gone(left)
    assert not Path(folder).exists()
    assert run.folder.exists()


def test_a_program_that_got_the_number_of_a_dead_server_lives_on(tmp_path: Path) -> None:
    (tmp_path / PID).write_text(f"{os.getpid()} {psutil.Process().create_time() - 100}")
    end_survivor(tmp_path)
    assert psutil.Process().is_running()


def test_a_paused_server_and_its_children_stand_still_until_they_are_resumed() -> None:
    with Example() as server:
        processes = server.processes
        server.pause()
        assert {each.status() for each in processes} == {psutil.STATUS_STOPPED}
        server.resume()
        assert psutil.STATUS_STOPPED not in {each.status() for each in processes}
    assert gone(processes)
    assert not server.home.exists()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_server_can_be_started_again_with_its_folder(how: str) -> None:
    with Example() as server:
        (server.home / "kept").touch()
        processes = server.processes
        getattr(server, how)()
        assert gone(processes)
        server.start()
        assert server.processes[0].pid != processes[0].pid
        assert (server.home / "kept").exists()


def test_a_server_that_does_not_come_up_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no such library"), Broken():
        pass
    assert list(tmp_path.glob("cragside-*")) == []


def test_a_missing_server_is_named_to_those_who_can_do_without() -> None:
    with pytest.raises(pytest.skip.Exception, match="neo4j: needs Java"):
        stay_down("neo4j: needs Java", {"CI": "true", "SERVERS": "optional"})
    with pytest.raises(pytest.fail.Exception, match=r"needs Java\nSERVERS=optional skips"):
        stay_down("neo4j: needs Java", {"CI": "true"})


_TESTS = """
import pytest
def test_database(database): pass
def test_started(started): pass
@pytest.mark.real_ollama
def test_ollama(servers): pass
def test_plain(tmp_path): pass
"""


def test_what_asks_for_a_server_is_marked(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source = tmp_path / "test_asking.py"
    source.write_text(_TESTS)
    module = pytest.Module.from_parent(request.session, path=source)
    items = {item.name: item for item in module.collect()}
    for item in items.values():
        fixtures.pytest_itemcollected(item)
    marks = {name: {mark.name for mark in item.iter_markers()} for name, item in items.items()}
    assert marks == {
        "test_database": {"services"},
        "test_started": {"services"},
        "test_ollama": {"real_ollama"},
        "test_plain": set(),
    }
    assert ("server", "postgres") in items["test_database"].user_properties
    assert ("server", "ollama") in items["test_ollama"].user_properties


def test_a_report_survives_its_file(run: Run) -> None:
    run.report("example", lambda: Report("example", "redis://:p@127.0.0.1:1/0", "Redis 8", "from TEST_REDIS_URI"))
    (note,) = run.folder.glob("*.json")
    assert json.loads(note.read_text())["started"] == "from TEST_REDIS_URI"
