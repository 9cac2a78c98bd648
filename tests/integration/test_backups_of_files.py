"""The commands of docs/backup.md for files: a service that is lost comes back from its backup."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.blocks import blocks
from tests.places import InFiles
from tests.services.cragside_server import CragsideServer, Given
from tests.services.stub_ollama import StubOllama
from tests.services.threads import in_a_thread

pytestmark = [pytest.mark.guides, pytest.mark.enable_socket]

DOWN = (500, "out of memory")
EXCHANGE = {"user": "Which port does Redis have?", "assistant": "Redis has port 6380 here."}


class Service(CragsideServer):
    """A service whose vectors come from a scripted Ollama, and the page's commands beside it."""

    def __init__(self, ollama: StubOllama) -> None:
        models = {"OLLAMA_BASE_URL": ollama.url, "RAG_EMBEDDING_MODEL": "judge", "RAG_INDEX_ATTEMPTS": "1"}
        super().__init__(Given(environment=models))
        self.ollama = ollama

    def take_in(self, name: str) -> None:
        with self.client() as client:
            text = {"name": name, "text": f"The {name} is described here.", "enrich": False}
            client.post("/v1/documents", json=text).raise_for_status()

    def told(self, route: str) -> Any:
        with self.client() as client:
            return client.get(route).raise_for_status().json()

    def statuses(self) -> dict[str, str]:
        return {each["name"]: each["status"] for each in self.told("/v1/documents")["documents"]}

    def until(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + 90
        while not holds():
            assert time.monotonic() < deadline, f"{self.statuses()}\n{self.log[-2000:]}"
            time.sleep(0.1)

    def page(self, beginning: str) -> str:
        """Run the commands of a block; what they print."""
        (block,) = [each for each in blocks("docs/backup.md", "sh") if each.text.startswith(beginning)]
        environment = self.environment()
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        ran = subprocess.run(
            ["bash", "-e", "-c", block.text],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    def knows_all(self) -> bool:
        """Return True if documents, memory and settings are there."""
        (exchange,) = self.told("/v1/memories")["memories"]
        assert EXCHANGE["assistant"] in exchange["text"]
        assert self.told("/v1/settings")["threshold"] == 0.42
        return set(self.statuses()) == {"lamp.md", "bad.md", "boat.md"}


@pytest.fixture(scope="module")
def ollama() -> Iterator[StubOllama]:
    with in_a_thread(StubOllama()) as running:
        yield running


@pytest.fixture(scope="module")
def backed_up(ollama: StubOllama) -> Iterator[Service]:
    """A lost service, with the backups that were made while it ran, and when it had ended.

    It had a document, an exchange, a setting, a document that had failed, and one that waited.
    """
    with Service(ollama) as service:
        service.take_in("lamp.md")
        with service.client() as client:
            client.post("/v1/memories", json=EXCHANGE).raise_for_status()
            client.patch("/v1/settings", json={"threshold": 0.42}).raise_for_status()
        service.until(lambda: service.statuses()["lamp.md"] != "pending")
        service.until(lambda: service.told("/v1/memories")["memories"][0]["searchable"])
        service.until(lambda: not service.told("/health")["pipeline_busy"])  # annotations come after that
        ollama.status = DOWN
        service.take_in("bad.md")
        service.until(lambda: service.told("/v1/queue/dead")["letters"])
        service.take_in("boat.md")
        service.until(lambda: len(service.statuses()) == 3)

        service.page("cragside copy --to backup")
        service.stop()
        service.page("cp -a")
        yield service


@pytest.fixture
def lost(backed_up: Service) -> Iterator[Service]:
    """The service, whose machine has none of its data any more."""
    shutil.rmtree(backed_up.store)
    backed_up.ollama.status = None
    yield backed_up
    backed_up.stop()


def indexed(service: Service) -> bool:
    return set(service.statuses().values()) == {"searchable"}


def test_a_backup_of_a_service_that_ran_brings_everything_back(lost: Service) -> None:
    backup = InFiles(lost.home / "backup")
    assert backup.home.stat().st_mode & 0o077 == 0
    restored = lost.page("cragside copy --from backup")
    assert "copied    default: 4 texts" in restored
    assert "documents        3" in restored
    for workspace in ("default", "default~memory"):
        assert InFiles(lost.store).contents(workspace) == backup.contents(workspace)

    lost.ollama.status = DOWN
    lost.start()
    assert lost.knows_all()
    assert lost.statuses() == {"lamp.md": "searchable", "bad.md": "failed", "boat.md": "pending"}
    lost.ollama.status = None
    lost.until(lambda: lost.statuses()["boat.md"] == "searchable")
    assert lost.statuses()["bad.md"] == "failed"
    (bad,) = [each for each in lost.told("/v1/documents")["documents"] if each["name"] == "bad.md"]
    assert DOWN[1] in str(lost.told(f"/v1/documents/{bad['id']}"))
    with lost.client() as client:
        client.post("/v1/queue/revive", json={}).raise_for_status()
    lost.until(lambda: indexed(lost))


def test_a_copy_of_the_whole_folder_has_the_dead_letters_too(lost: Service) -> None:
    lost.store.mkdir()  # what is moved away
    lost.page("mv")
    restored, backup = InFiles(lost.store), InFiles(lost.home / "backup-of-all")
    assert restored.statistics() == backup.statistics() == (1, 0, 1)
    for workspace in ("default", "default~memory"):
        assert restored.contents(workspace) == backup.contents(workspace)
