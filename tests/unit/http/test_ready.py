"""`GET /ready`: what does not answer, by name."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import QueueStats
from cragside.entrypoints.cli.serve import faults_logged
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.http.health import Readiness
from cragside.settings import load_settings
from cragside.store.workspaces import Workspace
from tests.clocks import MovedClock
from tests.fakes import FakeRepository, FakeSearch, FakeWorkspaces
from tests.services.tools import free_port
from tests.unit.http.components import Component

DOWN = ServiceUnavailable("it", "secret-host does not answer")


class Queue(Component):
    async def stats(self) -> QueueStats:
        await self.answer()
        return QueueStats(0, 0, 0)

    async def close(self) -> None:
        pass


class Host(Component):
    async def version(self) -> str:
        await self.answer()
        return "0.17"


class EmptyLibrary:
    async def documents(self, limit: int) -> list[Any]:
        return []


class OpenWorkspaces(FakeWorkspaces):
    """Workspaces that can be opened and list no documents."""

    def __init__(self) -> None:
        super().__init__(FakeRepository())

    async def open(self, name: str) -> Workspace:
        library: Any = EmptyLibrary()
        return replace(await super().open(name), documents=library)


def container(home: Path, **members: Any) -> Container:
    given = {"queue": Queue(), "host": Host(), "search": FakeSearch(), **members}
    return Container(load_settings({"RAG_HOME": str(home)}), workspaces=OpenWorkspaces(), **given)


async def answer(built: Container) -> httpx.Response:
    transport = httpx.ASGITransport(app=create_app(built), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.get("/ready")


async def test_a_server_whose_components_answer_is_ready(tmp_path: Path) -> None:
    answered = await answer(container(tmp_path))
    assert (answered.status_code, answered.json()) == (200, {"ready": True, "not_ready": []})


async def test_an_embedded_server_asks_for_no_host(tmp_path: Path) -> None:
    answered = await answer(container(tmp_path, host=None, search=None))
    assert (answered.status_code, answered.json()["not_ready"]) == (200, [])


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("queue", {"queue": Queue(DOWN)}),
        ("ollama", {"host": Host(DOWN)}),
        ("search", {"search": FakeSearch(failure=DOWN)}),
        ("queue", {"queue": Queue(RuntimeError("secret-host"))}),
    ],
)
async def test_what_is_down_is_named_and_the_reason_is_in_the_log_alone(
    name: str, broken: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "cragside"):
        answered = await answer(container(tmp_path, **broken))
    assert (answered.status_code, answered.json()) == (503, {"ready": False, "not_ready": [name]})
    assert any(record.getMessage().startswith(f"Not ready: {name}: ") for record in caplog.records)


async def test_a_server_logs_at_its_start_what_does_not_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    built = container(tmp_path, host=Host(ServiceUnavailable("ollama", "Ollama does not answer").at("http://gpu.lan")))
    async with faults_logged(built):
        while not caplog.messages:
            await asyncio.sleep(0.01)
    remedy = "Start it with `ollama serve`, or correct OLLAMA_BASE_URL."
    assert caplog.messages == [f"Not ready: ollama: Ollama does not answer. {remedy} [http://gpu.lan]"]


async def test_the_end_of_a_server_waits_for_no_component(tmp_path: Path) -> None:
    async with asyncio.timeout(5), faults_logged(container(tmp_path, queue=Queue(waits=True))):
        await asyncio.sleep(0)


async def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "store.sqlite3").write_bytes(b"no store at all" * 100)
    built = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    try:
        answered = await answer(built)
    finally:
        await built.close()
    assert (answered.status_code, answered.json()["not_ready"]) == (503, ["store"])


async def test_a_component_that_never_answers_is_named(tmp_path: Path) -> None:
    readiness = Readiness(container(tmp_path, queue=Queue(waits=True)), patience=0.01)
    assert await readiness.missing() == ["queue"]


async def test_many_who_ask_cause_one_look(tmp_path: Path) -> None:
    queue, clock = Queue(), MovedClock()
    readiness = Readiness(container(tmp_path, queue=queue, clock=clock))
    await asyncio.gather(*(readiness.missing() for _ in range(20)))
    await readiness.missing()
    assert queue.asked == 1
    clock.move(1.5)
    queue.failure = DOWN
    assert await readiness.missing() == ["queue"]
    assert queue.asked == 2


async def test_a_silent_searxng_is_not_ready(tmp_path: Path) -> None:
    home = {"RAG_HOME": str(tmp_path), "SEARXNG_HOST": f"http://127.0.0.1:{free_port()}"}
    built = Container(load_settings(home), workspaces=OpenWorkspaces(), queue=Queue())
    try:
        assert (await answer(built)).json()["not_ready"] == ["search"]
    finally:
        await built.close()
