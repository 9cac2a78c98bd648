import asyncio
import logging
import socket
from dataclasses import dataclass
from queue import SimpleQueue

import pytest
from cli_services import errors_of

from cragside.entrypoints.proxy import server


@dataclass(frozen=True)
class Listening:
    """A socket that listens."""

    host: str
    port: int

    def getsockname(self):
        return self.host, self.port


@pytest.fixture
def served(monkeypatch, kept):
    calls = []

    async def serve(container, listening, host, *, announce, metrics):
        calls.append((host, listening.port))
        announce(server.address_of(listening, host))

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(server, "listen", Listening)
    return calls


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", ""])
def test_a_host_beyond_this_machine_is_refused_without_a_token(run, container, served, host):
    said = errors_of(run("serve", "--host", host), 2)
    assert "RAG_API_TOKEN" in said
    assert "--allow-anonymous" in said
    assert (served, container.closed) == ([], 0)


def test_the_container_serves_on_loopback_and_is_closed(run, container, served):
    result = run("serve")
    said = "cragside listens on http://127.0.0.1:8642\nIts console is at http://127.0.0.1:8642/console/\n"
    assert (result.exit_code, result.stdout, served) == (0, said, [("127.0.0.1", 8642)])
    assert container.closed == 1


@pytest.mark.parametrize(
    ("host", "prefix", "console"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8642/console/"),
        ("127.0.0.1", "/rag", "http://127.0.0.1:8642/rag/console/"),
        ("0.0.0.0", None, "http://127.0.0.1:8642/console/"),
        ("::", None, "http://[::1]:8642/console/"),
    ],
)
def test_the_console_is_opened_where_that_is_asked_for(run, environment, served, monkeypatch, host, prefix, console):
    opened = SimpleQueue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    if prefix:
        environment["RAG_PATH_PREFIX"] = prefix
    assert run("serve", "--allow-anonymous", "--host", host).exit_code == 0
    assert opened.empty()
    assert run("serve", "--allow-anonymous", "--host", host, "--open").exit_code == 0
    assert opened.get(timeout=60) == console


def test_a_host_beyond_this_machine_is_served_with_a_token(run, environment, served):
    environment["RAG_API_TOKEN"] = "secret"
    assert run("serve", "--host", "0.0.0.0", "--port", "9000").exit_code == 0
    assert served == [("0.0.0.0", 9000)]


def test_a_host_beyond_this_machine_is_served_to_anybody_when_asked(run, served):
    assert run("serve", "--host", "::", "--allow-anonymous").exit_code == 0
    assert served == [("::", 8642)]


def test_the_parent_distributes_connections_and_prints_its_address_once(run, served, monkeypatch):
    started = []

    class Handover:
        def __init__(self, listening, workers, on_ready):
            self.made_for = (listening, workers)
            self.attend = lambda endings, forker: on_ready()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            started.append("closed")

        def channel(self, number):
            return (self.made_for[0].port, self.made_for[1], number)

    async def serve_handed(container, channel, host, *, metrics):
        started.append((channel, host))

    def supervise(count, work, attend):
        for number in range(count):
            work(number)
        attend([])

    monkeypatch.setattr(server, "serve_handed", serve_handed)
    monkeypatch.setattr("cragside.entrypoints.proxy.processes.Handover", Handover)
    monkeypatch.setattr("cragside.entrypoints.proxy.processes.supervise", supervise)
    result = run("serve", "--workers", "3", "--port", "9000")
    assert (result.exit_code, result.stdout.splitlines()[0], served) == (
        0,
        "cragside listens on http://127.0.0.1:9000",
        [],
    )
    assert started == [*(((9000, 3, number), "127.0.0.1") for number in range(3)), "closed"]


def test_an_address_in_use_is_bad_input(run, taken_port):
    assert f"Cannot listen on 127.0.0.1:{taken_port}" in errors_of(run("serve", "--port", str(taken_port)), 2)


@pytest.fixture
def taken_port():
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


@pytest.fixture
def kept(monkeypatch):
    """The workers that servers kept, with whether each was started at once."""
    from contextlib import asynccontextmanager

    from cragside.entrypoints import worker_process

    processes = []

    @asynccontextmanager
    async def keep(process, *, at_once):
        processes.append(at_once)
        yield

    monkeypatch.setattr(worker_process, "keeping_worker", keep)
    return processes


@pytest.mark.parametrize(("names", "at_once"), [([], False), (["default"], True)])
def test_a_server_keeps_a_worker_that_starts_at_once_where_there_is_a_store(
    run, container, served, kept, names, at_once
):
    container.names = names
    assert run("serve").exit_code == 0
    assert kept == [at_once]


def test_a_server_of_a_baked_store_keeps_none(run, served, kept, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "baked.json").touch()
    assert run("serve").exit_code == 0
    assert kept == []


def test_a_server_warns_of_a_database_that_is_down_and_serves(run, environment, served, monkeypatch):
    told = []

    async def serve(*_, **__):
        while not told:
            await asyncio.sleep(0.01)

    monkeypatch.setattr(logging.getLogger("cragside"), "warning", lambda form, *given: told.append(form % given))
    monkeypatch.setattr(server, "serve", serve)
    environment |= {"POSTGRES_URI": "postgresql://u:p@127.0.0.1:1/d", "NEO4J_URI": "bolt://u:p@127.0.0.1:1"}
    assert run("serve").exit_code == 0
    [line] = told
    assert "graph: The part of the store in Neo4j is out of reach: Neo4j does not answer. Start it, or correct" in line
    assert "queue: The queue is out of reach: PostgreSQL does not answer. Start it, or correct POSTGRES_URI." in line
