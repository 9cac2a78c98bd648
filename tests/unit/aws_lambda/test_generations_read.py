"""Generations as readers see them: looked for, unpacked beside the old, checked, and swapped."""

import asyncio
import gzip
import hashlib
import shutil
import tempfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from generations_stub import ASKED_KELP, ASKED_OTTER, BUCKET, KELP, OTTER, PREFIX, World

from cragside.adapters.aws.versions import S3VersionedStore
from cragside.domain.errors import ConfigurationError, NotFound, ServiceUnavailable
from cragside.ports.files import ObjectVersion
from cragside.store.generations import fetch_generation
from cragside.store.temporary import OwnFolder
from tests.clocks import MovedClock

KEY = f"{PREFIX}/ws/default/store.sqlite3.gz"
_Usage = namedtuple("_Usage", "total used free")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names that are asked for, with what came of it."""
    noted: list[str] = []
    read = S3VersionedStore.read

    async def note(self: S3VersionedStore, name: str, *given: Any, **named: Any) -> ObjectVersion | None:
        try:
            found = await read(self, name, *given, **named)
        except NotFound:
            noted.append(f"{name} missing")
            raise
        noted.append(f"{name} {'unchanged' if found is None else 'read'}")
        return found

    monkeypatch.setattr(S3VersionedStore, "read", note)
    return noted


async def brought(world: World, name: str, text: str, **fields: Any) -> dict[str, Any]:
    document = await world.requests().add(name, text, **fields)
    await world.write()
    return document


async def test_a_reader_looks_at_most_every_few_seconds_and_reads_what_is_newer(world: World, reads: list[str]) -> None:
    await brought(world, "otter.md", OTTER)
    clock = MovedClock()
    reader = world.requests(clock, RAG_GENERATION_SECONDS="5")
    reads.clear()
    for _ in range(3):
        assert await reader.titles(ASKED_OTTER) == ["Otter"]
    store = "ws/default/store.sqlite3.gz"
    assert reads == [f"{store} read"]
    clock.move(6)
    assert await reader.titles(ASKED_OTTER) == ["Otter"]
    assert reads == [f"{store} read", f"{store} unchanged"]
    await brought(world, "kelp.md", KELP)
    reads.clear()
    assert await reader.titles(ASKED_KELP) == []
    clock.move(6)
    assert await reader.titles(ASKED_KELP) == ["Kelp"]
    assert reads == [f"{store} read"]


async def test_a_document_that_is_asked_for_by_its_id_is_looked_for_at_once(world: World) -> None:
    clock = MovedClock()
    reader = world.requests(clock, RAG_GENERATION_SECONDS="3600")
    document = await reader.add("otter.md", OTTER)
    await world.write()
    assert (await reader.document(document["id"]))["status"] == "enriched"


async def test_a_search_that_is_under_way_ends_in_the_generation_it_began_with(world: World) -> None:
    document = await brought(world, "otter.md", OTTER)
    reader = world.requests()
    library = (await reader.container.workspaces.open("default")).documents
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> list[str]:
        async def read(ledger: Any) -> list[str]:
            began.set()
            await go_on.wait()
            return [passage.text for passage in await ledger.passages(document["id"], None)]

        return await library._read(read, [])

    task = asyncio.create_task(slow())
    await began.wait()
    await asyncio.create_task(reader.http.delete(f"/v1/documents/{document['id']}"))
    await brought(world, "kelp.md", KELP)
    assert await asyncio.create_task(reader.titles(ASKED_OTTER)) == []
    assert len(list(reader.container.folder.glob("default/*"))) >= 2, "the old one is still there"
    go_on.set()
    assert "urchins" in (await task)[0]
    for _ in range(2):  # as the next requests, which have tasks of their own
        assert await asyncio.create_task(reader.titles(ASKED_KELP)) == ["Kelp"]
    assert len(list(reader.container.folder.glob("default/*"))) == 1


async def test_readers_see_a_whole_generation_or_the_one_before(world: World) -> None:
    """While generations follow each other, each answer has all documents of a batch or none of it."""
    reader, over = world.requests(), asyncio.Event()

    async def publish() -> None:
        for batch in range(4):
            for number in range(3):
                await world.requests().add(f"b{batch}-{number}.md", f"{OTTER} Batch {batch}, number {number}.")
            await world.write()
        over.set()

    async def read() -> set[int]:
        seen: set[int] = set()
        while not over.is_set():
            total = (await reader.http.get("/v1/documents")).json()["total"]
            assert total >= max(seen, default=0)
            seen.add(total)
        return seen

    _, seen = await asyncio.gather(publish(), read())
    assert seen <= {0, 3, 6, 9, 12}


async def test_many_first_requests_fetch_a_generation_once(world: World, reads: list[str]) -> None:
    await brought(world, "otter.md", OTTER)
    reader = world.requests(RAG_GENERATION_SECONDS="60")
    reads.clear()
    await asyncio.gather(*(reader.http.get("/v1/documents") for _ in range(5)))
    assert reads == ["ws/default/store.sqlite3.gz read"]


def republished(world: World, content: bytes, facts: dict[str, str]) -> None:
    world.s3.put_object(Bucket=BUCKET, Key=KEY, Body=content, Metadata=facts)


def facts_of(content: bytes, **changes: str) -> dict[str, str]:
    sha256 = hashlib.sha256(content).hexdigest()
    return {"generation": "2", "bytes": str(len(content)), "sha256": sha256, **changes}


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda c: (gzip.compress(c), facts_of(c, sha256="0" * 64)), ServiceUnavailable, "not what was published"),
        (lambda c: (gzip.compress(c + b"x"), facts_of(c)), ServiceUnavailable, "not what was published"),
        (lambda c: (gzip.compress(c)[:-9], facts_of(c)), ServiceUnavailable, "not what was published"),
        (lambda c: (c, facts_of(c)), ServiceUnavailable, "not what was published"),
        (lambda c: (gzip.compress(bytes(50_000_000)), facts_of(c)), ServiceUnavailable, "not what was published"),
        (lambda c: (gzip.compress(c), {}), ConfigurationError, "metadata is not cragside's"),
        (lambda c: (gzip.compress(c), facts_of(c, bytes="-1")), ConfigurationError, "metadata is not cragside's"),
        (lambda c: (gzip.compress(c), facts_of(c, sha256="../x")), ConfigurationError, "metadata is not cragside's"),
    ],
    ids=["another hash", "longer", "cut off", "not packed", "a bomb", "no facts", "wrong size", "wrong form"],
)
async def test_what_was_not_published_is_refused_and_leaves_no_file(
    world: World,
    tmp_path: Path,
    change: Callable[[bytes], tuple[bytes, dict[str, str]]],
    error: type[Exception],
    said: str,
) -> None:
    republished(world, *change(OTTER.encode() * 1000))
    path = tmp_path / "store" / "file"
    with pytest.raises(error, match=said):
        await fetch_generation(world.objects, "default", path)
    assert not path.exists()
    shutil.rmtree(path.parent, ignore_errors=True)


async def test_a_damaged_generation_degrades_requests_and_names_the_way_back(world: World) -> None:
    await brought(world, "otter.md", OTTER)
    reader = world.requests()
    republished(world, gzip.compress(b"else"), facts_of(OTTER.encode()))
    answer = (await reader.http.post("/v1/enrich", json={"prompt": ASKED_OTTER})).json()
    reasons = [each["reason"] for each in answer["metadata"]["rag_context"]["degraded"]]
    assert any("cragside generations rollback" in reason for reason in reasons), reasons


async def test_a_store_for_which_there_is_no_room_is_refused_before_it_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await brought(world, "otter.md", OTTER)
    written: list[bytes] = []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(1 << 30, 0, 17 << 20))
    monkeypatch.setattr("cragside.store.generations._Unpacking._write", lambda _, piece: written.append(piece))
    facts = facts_of(OTTER.encode(), bytes=str(900 << 20))
    republished(world, gzip.compress(OTTER.encode()), facts)
    with pytest.raises(ServiceUnavailable, match="needs 900 MB, and the temporary directory has room for 1 MB"):
        await fetch_generation(world.objects, "default", tmp_path / "store" / "file")
    assert written == []
    shutil.rmtree(tmp_path / "store")


async def test_while_the_bucket_is_down_the_generation_at_hand_answers(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await brought(world, "otter.md", OTTER)
    reader, new = world.requests(), world.requests()
    assert await reader.titles(ASKED_OTTER) == ["Otter"]

    async def down(*_: Any, **__: Any) -> None:
        raise ServiceUnavailable("object_store", "S3 does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(S3VersionedStore, "read", down)
        assert await reader.titles(ASKED_OTTER) == ["Otter"]
        assert "An older generation of workspace default is used: S3 does not answer." in caplog.text
        answer = (await new.http.post("/v1/enrich", json={"prompt": ASKED_OTTER})).json()
        degraded = answer["metadata"]["rag_context"]["degraded"]
        assert ("knowledge_base", "S3 does not answer.") in [(each["component"], each["reason"]) for each in degraded]
    assert await new.titles(ASKED_OTTER) == ["Otter"]


async def test_a_workspace_that_was_forgotten_is_empty(world: World) -> None:
    await brought(world, "otter.md", OTTER)
    reader = world.requests()
    assert await reader.titles(ASKED_OTTER) == ["Otter"]
    world.s3.delete_object(Bucket=BUCKET, Key=KEY)
    assert await reader.titles(ASKED_OTTER) == []
    await brought(world, "kelp.md", KELP)
    assert await reader.titles(ASKED_KELP) == ["Kelp"]


async def test_workspaces_are_listed_and_strange_objects_are_passed_over(world: World) -> None:
    await brought(world, "otter.md", OTTER, workspace="sea")
    for key in ("ws/../x/store.sqlite3.gz", "ws/A/store.sqlite3.gz", "ws/y", "ws/con/store.sqlite3.gz"):
        world.s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{key}", Body=b"")
    reader = world.requests()
    assert await reader.container.workspaces.names() == ["sea"]


async def test_what_writes_a_store_at_once_is_refused(world: World) -> None:
    await brought(world, "otter.md", OTTER)
    reader = world.requests()
    for refused in (
        reader.container.workspaces.remove("default"),
        reader.container.workspaces.reindex("default", lambda _: None),
    ):
        with pytest.raises(ConfigurationError, match="published in generations"):
            await refused


def test_a_folder_that_a_killed_process_has_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used = OwnFolder("generations"), OwnFolder("generations")
    (left.make() / "store").write_text("large")
    assert left._lock is not None
    left._lock.release()
    used.make()
    fresh = OwnFolder("generations")
    fresh.make()
    assert {path for path in tmp_path.iterdir() if path.is_dir()} == {used.path, fresh.path}
    used.remove()
    fresh.remove()
    assert list(tmp_path.iterdir()) == []
