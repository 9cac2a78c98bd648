"""A full disk: it is told, nothing new is accepted, and documents can be deleted until there is room again."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.errors import ServiceUnavailable
from cragside.store import spare_room
from cragside.store.spare_room import SpareRoom
from tests.knowledge import Knowledge

NOTE = "Sea otters eat urchins in the kelp forest."
LARGE = "\n\n".join(" ".join(f"w{row * word % 9973} Otter{row % 20}" for word in range(100)) for row in range(100))


def disk_with(free: int) -> Any:
    return lambda _: shutil._ntuple_diskusage(10**9, 10**9 - free, free)  # type: ignore[attr-defined]


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path / "home") as made:
        await made.add("otters.md", NOTE)
        yield made


@pytest.mark.attack("exhausted resources")
async def test_health_and_ready_tell_a_full_disk_and_nothing_is_accepted(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", disk_with(free=4096))
    health = (await knowledge.http.get("/health")).json()
    assert health["status"] == "unhealthy"
    assert "The disk of RAG_HOME is full" in health["components"]["knowledge_base"]["reason"]
    ready = await knowledge.http.get("/ready")
    assert (ready.status_code, ready.json()["not_ready"]) == (503, ["store"])
    for path, body in (
        ("/v1/documents", {"text": "more", "name": "more.md"}),
        ("/v1/memories", {"user": "What do sea otters eat?", "assistant": "They eat urchins, in the kelp forest."}),
    ):
        answer = await knowledge.http.post(path, json=body)
        assert "The disk of RAG_HOME is full" in answer.text
    monkeypatch.undo()
    assert (await knowledge.http.get("/health")).json()["status"] == "healthy"
    assert (await knowledge.http.get("/v1/documents")).json()["total"] == 1


def test_room_is_set_aside_only_on_a_disk_that_has_ample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare = SpareRoom(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", disk_with(free=9_000_000))
    spare.keep()
    with pytest.raises(ServiceUnavailable, match="full"):
        spare.check()
    monkeypatch.setattr(shutil, "disk_usage", disk_with(free=90_000_000))
    spare.check()
    made = tmp_path / ".spare"
    assert made.stat().st_size == spare_room._BYTES
    assert made.stat().st_mode & 0o077 == 0
    assert not spare.give()  # the disk is not full
    monkeypatch.setattr(shutil, "disk_usage", disk_with(free=0))
    assert spare.give()
    assert not made.exists()
    assert not spare.give()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.slow
@pytest.mark.attack("exhausted resources")
async def test_documents_can_be_deleted_on_a_full_disk_until_there_is_room(small_disk: Path) -> None:
    knowledge = Knowledge(small_disk / "home")
    for name, text in (("otters.md", NOTE), ("large.md", LARGE)):
        await knowledge.add(name, text)
    await knowledge.index()
    spare = knowledge.container.spare_room
    assert spare is not None
    spare.keep()
    with (small_disk / "fill").open("wb", buffering=0) as fill:
        try:
            while fill.write(bytes(4096)):
                pass
        except OSError:
            pass
    refused = await knowledge.http.post("/v1/documents", json={"text": "The tide turns.", "name": "tide.md"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "service_unavailable")
    listed = (await knowledge.http.get("/v1/documents")).json()["documents"]
    for document in listed:
        assert (await knowledge.http.delete(f"/v1/documents/{document['id']}")).status_code == 204
    for _ in range(300):
        accepted = await knowledge.http.post("/v1/documents", json={"text": "The tide turns.", "name": "tide.md"})
        if accepted.status_code == 202:
            break
        await asyncio.sleep(0.1)
    assert accepted.status_code == 202
    await knowledge.close()
