"""`GET /metrics`: what the processes of a server have counted together."""

import asyncio
import errno
import multiprocessing
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cragside.application.attempts import Handled
from cragside.bootstrap import Container
from cragside.databases.gate import Gate, ServerFailure
from cragside.domain.indexing import QueueStats, Task
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.metrics import (
    DatabaseCounts,
    RequestCounts,
    TaskCounts,
    counting_as,
    counting_folder,
    exposition,
    forget_figures,
)
from cragside.entrypoints.metrics import worker as a_worker
from cragside.entrypoints.proxy import server
from cragside.settings import load_settings
from tests.figures import of, read


@pytest.fixture
def folder() -> Iterator[str]:
    with counting_folder() as made:
        yield made


def _serve_one(_: int) -> None:
    RequestCounts().count("/v1/enrich", "POST", 200, 0.02, "local")


def test_processes_add_up(folder: str) -> None:
    RequestCounts().count("/v1/enrich", "POST", 200, 0.2, "web")
    workers = [multiprocessing.get_context("fork").Process(target=_serve_one, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counted = read(exposition(folder, None))
    assert of(counted, "cragside_requests_total", route="/v1/enrich", method="POST", status="200") == 3
    assert of(counted, "cragside_enrichments_total", verdict="local") == 2
    assert of(counted, "cragside_enrichments_total", verdict="web") == 1
    assert of(counted, "cragside_request_seconds_bucket", route="/v1/enrich", le="0.025") == 2
    assert of(counted, "cragside_request_seconds_count", route="/v1/enrich") == 3


@pytest.mark.attack("exhausted resources")
def test_counts_never_grow_into_a_full_disk(folder: str) -> None:
    """A full disk ends a process that writes to a mapped file which has no space of its own yet."""
    counts = RequestCounts()
    files = {file: file.stat().st_blocks for file in Path(folder).iterdir()}
    assert all(512 * blocks >= file.stat().st_size for file, blocks in files.items())
    for route in range(150):
        for status in (200, 400, 404, 500, 503):
            counts.count(f"/v1/some/route/of/usual/length/{route}", "POST", status, 0.1, "local")
    assert {file: file.stat().st_blocks for file in Path(folder).iterdir()} == files


def test_without_room_on_the_disk_nothing_is_counted(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Path, "write_bytes", _full)
    with pytest.raises(OSError, match="No space"):
        RequestCounts()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with counting_folder() as none:
        assert none is None
    assert "Requests are not counted for /metrics" in caplog.text


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_counts_of_a_folder_that_is_gone_are_left_out(folder: str) -> None:
    RequestCounts().count("/v1/enrich", "POST", 200, 0.2, "web")
    shutil.rmtree(folder)
    assert of(read(exposition(folder, QueueStats(1, 0, 0))), "cragside_queue_tasks", state="pending") == 1


def test_the_folder_of_a_killed_server_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = multiprocessing.get_context("fork").Process(target=str)
    gone.start()
    gone.join()
    for process in (gone.pid, os.getpid()):
        (tmp_path / f"cragside-metrics-{process}-x").mkdir()
    with counting_folder():
        assert not (tmp_path / f"cragside-metrics-{gone.pid}-x").exists()
        assert (tmp_path / f"cragside-metrics-{os.getpid()}-x").exists()


def test_workers_that_follow_each_other_continue_one_count(folder: str) -> None:
    task = Task("default", "d1", "hash", 0, "embed")
    for _ in range(2):
        counts = TaskCounts()
        counts.count(Handled(task, "done", 1, 0.1))
        counts.count(Handled(task, "buried", 3, 0.1))
    counted = read(exposition(folder, QueueStats(4, 2, 1)))
    assert of(counted, "cragside_index_tasks_total", stage="embed", outcome="done") == 2
    assert of(counted, "cragside_index_tasks_total", stage="embed", outcome="buried") == 2
    assert of(counted, "cragside_queue_tasks", state="pending") == 4
    assert len(list(Path(folder).iterdir())) == 1


def _crowd_of_one(_: int) -> None:
    DatabaseCounts().connections("neo4j", most=10, in_use=1, waiting=2)
    os._exit(0)  # without any good order


def test_what_a_killed_process_used_counts_no_more(folder: str) -> None:
    DatabaseCounts().connections("neo4j", most=10, in_use=3, waiting=0)
    process = multiprocessing.get_context("fork").Process(target=_crowd_of_one, args=(0,))
    process.start()
    process.join()
    counted = read(exposition(folder, None))
    assert of(counted, "cragside_database_connections", server="neo4j", state="in_use") == 3
    assert of(counted, "cragside_database_connections", server="neo4j", state="open") is None


@pytest.mark.parametrize("ended", [pytest.param(False, id="another worker began"), pytest.param(True, id="it ended")])
def test_connections_of_a_worker_of_before_count_no_more(folder: str, ended: bool) -> None:
    DatabaseCounts(a_worker).connections("postgres", most=10, in_use=3, waiting=0, opened=4)
    DatabaseCounts(a_worker).statement("read", 0.1)
    if ended:
        forget_figures(Path(folder), a_worker())
    counted = read(exposition(folder, None))
    assert of(counted, "cragside_database_connections", server="postgres", state="in_use") is None
    assert of(counted, "cragside_postgres_statement_seconds_count", kind="read") == 1


def test_a_process_that_begins_leaves_the_others_readable(folder: str) -> None:
    """Somebody asks whenever a file of it comes into being."""
    RequestCounts().count("/v1/enrich", "POST", 200, 0.2, "web")
    stopped = threading.Event()

    def begin() -> None:
        while not stopped.is_set():
            counting_as(a_worker, "counter", "gauge_livesum")

    beginning = threading.Thread(target=begin)
    beginning.start()
    try:
        for _ in range(100):
            assert of(read(exposition(folder, None)), "cragside_enrichments_total", verdict="web") == 1
    finally:
        stopped.set()
        beginning.join()


async def test_a_gate_tells_who_uses_a_server_and_who_waits(folder: str) -> None:
    async def alive() -> None:
        """It is."""

    gate = Gate("Redis", ServerFailure, alive, most=1, figures=DatabaseCounts())

    def counts() -> list[float | None]:
        counted = read(exposition(folder, None))
        states = ("most", "in_use", "waiting")
        return [of(counted, "cragside_database_connections", server="redis", state=state) for state in states]

    async def wait() -> None:
        async with gate.passed():
            """Through."""

    async with gate.passed():
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        assert counts() == [1, 1, 1]
    await waiting
    assert counts() == [1, 0, 0]


async def test_no_label_has_a_value_that_a_client_chooses(folder: str, tmp_path: Path) -> None:
    home = {"RAG_HOME": str(tmp_path), "OLLAMA_HOST": "127.0.0.1:1"}
    container = Container(load_settings(home))
    application, _ = server._application(container, "127.0.0.1", folder)
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for method, path in (("GET", "/chosen"), ("CHOSEN", "/v1/chosen"), ("GET", "/v1/documents/a/chosen")):
                await client.request(method, path, headers={"X-Request-ID": "chosen"})
            await client.get("/api/tags")
            answer = await client.get("/metrics")
    finally:
        await container.close()
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "chosen" not in answer.text.lower()
    counted = read(answer.content)
    assert of(counted, "cragside_requests_total", route="/api/tags", method="GET", status="502") == 1
    assert of(counted, "cragside_requests_total", route="other", method="GET", status="502") == 1
    assert of(counted, "cragside_queue_tasks", state="dead") == 0


@pytest.mark.attack("hostile tokens")
async def test_a_token_of_some_workspaces_does_not_see_all_requests(folder: str, tmp_path: Path) -> None:
    tokens = {"RAG_API_TOKEN": "all", "RAG_WORKSPACE_TOKENS": '{"some": ["a"]}'}
    container = Container(load_settings({"RAG_HOME": str(tmp_path), **tokens}))

    def exposed(*_: Any) -> bytes:
        return b"figures"

    transport = httpx.ASGITransport(create_app(container, exposition=exposed))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answers = [await client.get("/metrics", headers={"X-API-Key": key}) for key in ("all", "some", "none")]
    await container.close()
    assert [answer.status_code for answer in answers] == [200, 403, 401]
    assert answers[0].text == "figures"


async def test_an_application_that_counts_nothing_has_no_figures(tmp_path: Path) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    transport = httpx.ASGITransport(create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found")
    await container.close()
