"""A baked store out of a bucket: fetched once, checked, and opened as any other."""

import asyncio
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import boto3
import pytest
from moto import mock_aws

from cragside.adapters.aws.s3 import S3ObjectStore
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.knowledge import KnowledgeStatus
from cragside.settings import load_settings
from cragside.store.baked import fetch
from cragside.store.baking import Baking
from tests.fakes import FolderObjectStore

OTTER = SourceText("otter.md", "# Sea otter\n\nSea otters eat urchins in the kelp forest.", "Sea otter")
QUESTION = "what do sea otters eat?"
STORE = "default/store.sqlite3"


async def indexed(home: Path) -> KnowledgeStatus:
    container = Container(load_settings({"RAG_HOME": str(home)}))
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([OTTER])
    known = await repository.status()
    await container.close()
    return known


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("baked") / "kb"
    with Baking.into(out) as baking:
        known = asyncio.run(indexed(baking.home))
        return out, baking.publish(known)[1]


@pytest.fixture
def objects(made: tuple[Path, str], tmp_path: Path) -> FolderObjectStore:
    return FolderObjectStore(Path(shutil.copytree(made[0], tmp_path / "bucket")))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def bucket(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="a-bucket")
        for name in ("baked.json", STORE):
            client.put_object(Bucket="a-bucket", Key=f"kb/1/{name}", Body=(made[0] / name).read_bytes())
        yield


def in_bucket(sha256: str, **members: Any) -> Container:
    return Container(load_settings({"RAG_HOME": "s3://a-bucket/kb/1", "RAG_HOME_SHA256": sha256}), **members)


@pytest.mark.usefixtures("bucket")
async def test_a_request_is_answered_from_a_bucket(made: tuple[Path, str], temporary: Path) -> None:
    container = in_bucket(made[1])
    assert list(temporary.iterdir()) == [], "nothing is fetched before it is used"
    await container.prepare()
    context = (await container.enricher.enrich({"prompt": f"/rag {QUESTION}"})).rag_context
    assert context is not None
    assert [document.title for document in context.documents] == ["Sea otter"]
    assert [path.name for path in temporary.iterdir()] == [f"cragside-{made[1]}"]
    with pytest.raises(ConfigurationError, match=r"s3://a-bucket/kb/1 is a baked store .* upload the result"):
        await (await container.workspaces.open("default")).passages.save_documents([OTTER])
    await container.close()


@pytest.mark.usefixtures("bucket", "temporary")
async def test_many_first_requests_fetch_it_once(made: tuple[Path, str], temporary: Path) -> None:
    container = in_bucket(made[1])
    asked = [(await container.workspaces.open(name)).passages.status() for name in ("default", "other", "default")]
    first, *_ = await asyncio.gather(*asked)
    assert first.documents == 1
    await container.close()


@pytest.mark.usefixtures("bucket", "temporary")
async def test_a_start_with_another_hash_fails_and_names_both() -> None:
    container = in_bucket("0" * 64)
    with pytest.raises(ConfigurationError, match=r"asks for the baked store 0000.* but s3://a-bucket/kb/1 holds"):
        await container.prepare()
    await container.close()


@pytest.mark.usefixtures("temporary")
async def test_a_bucket_that_is_down_degrades_a_request_and_is_asked_again(
    made: tuple[Path, str], objects: FolderObjectStore
) -> None:
    objects.failure = ServiceUnavailable("object_store", "does not answer")
    container = in_bucket(made[1], object_store=objects)
    await container.prepare()
    context = (await container.enricher.enrich({"prompt": f"/rag {QUESTION}"})).rag_context
    assert context is not None
    assert ("knowledge_base", "does not answer") in [(d.component, d.reason) for d in context.degraded]
    objects.failure = None
    context = (await container.enricher.enrich({"prompt": f"/rag {QUESTION}"})).rag_context
    assert context is not None
    assert context.verdict == "local"
    await container.close()


class NoAnswer(FolderObjectStore):
    """A bucket that never answers."""

    async def fetch(self, name: str, to: BinaryIO, *, limit: int) -> None:
        self.asked.append(name)
        await asyncio.Event().wait()


async def test_a_silent_bucket_costs_one_request_timeout_and_no_time_at_closing(
    temporary: Path,
) -> None:
    objects = NoAnswer(temporary)
    environment = {"RAG_HOME": "s3://a-bucket/kb", "RAG_HOME_SHA256": "0" * 64, "RAG_TIMEOUT_SECONDS": "0.2"}
    container = Container(load_settings(environment), object_store=objects)
    async with asyncio.timeout(20):
        context = (await container.enricher.enrich({"prompt": f"/rag {QUESTION}"})).rag_context
        assert context is not None
        assert "knowledge_base" in [item.component for item in context.degraded]
        assert objects.asked == ["baked.json"], "the fetching goes on, and the next request finds it under way"
        await container.close()
    assert list(temporary.iterdir()) == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.usefixtures("bucket", "temporary")
async def test_a_snapshot_holds_no_client_of_the_bucket(
    made: tuple[Path, str],
) -> None:
    container = in_bucket(made[1])
    await container.prepare()
    assert isinstance(container.object_store, S3ObjectStore)
    assert container.object_store._aws._client is not None
    await container.disconnect()
    assert container.object_store._aws._client is None
    await container.close()


async def test_a_fetched_store_is_reused(made: tuple[Path, str], objects: FolderObjectStore, temporary: Path) -> None:
    for _ in range(2):
        await fetch(objects, made[1], temporary / "kb")
    assert objects.asked == ["baked.json", STORE]
    assert [path.name for path in temporary.iterdir()] == ["kb"]


@pytest.mark.parametrize("harm", ["shorter", "changed", "missing", "no manifest"])
async def test_a_store_that_was_damaged_meanwhile_is_fetched_again(
    made: tuple[Path, str], objects: FolderObjectStore, temporary: Path, harm: str
) -> None:
    await fetch(objects, made[1], temporary / "kb")
    store = temporary / "kb" / STORE
    content = store.read_bytes()
    if harm == "shorter":
        store.write_bytes(content[:100])
    elif harm == "changed":
        store.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        (store if harm == "missing" else temporary / "kb/baked.json").unlink()
    await fetch(objects, made[1], temporary / "kb")
    assert store.read_bytes() == content
    assert [path.name for path in temporary.iterdir()] == ["kb"]


async def test_another_process_may_install_its_store_while_a_damaged_one_is_removed(
    made: tuple[Path, str], objects: FolderObjectStore, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rename, rmtree = temporary / "kb", Path.rename, shutil.rmtree
    place.mkdir()
    (place / "baked.json").write_text("damaged")

    def renamed(path: Path, target: Path) -> Path:
        result = rename(path, target)
        if path == place:
            shutil.copytree(made[0], place)
        return result

    def removed(path: Path, **named: Any) -> None:
        rmtree(path, **named)
        if path == place:
            shutil.copytree(made[0], place)

    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(shutil, "rmtree", removed)
    await fetch(objects, made[1], place)
    assert (place / STORE).read_bytes() == (made[0] / STORE).read_bytes()
    assert [path.name for path in temporary.iterdir()] == ["kb"]


async def test_a_store_that_another_process_has_just_put_there_is_never_half_there(
    made: tuple[Path, str], objects: FolderObjectStore, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "kb").mkdir()
    (temporary / "kb/baked.json").write_text("damaged")
    removed: list[str] = []
    rmtree = shutil.rmtree

    def noted(path: Path, *arguments: Any, **named: Any) -> None:
        removed.append(Path(path).name)
        rmtree(path, *arguments, **named)

    monkeypatch.setattr(shutil, "rmtree", noted)
    await fetch(objects, made[1], temporary / "kb")
    assert "kb" not in removed


async def test_two_processes_may_fetch_at_once(
    made: tuple[Path, str], objects: FolderObjectStore, temporary: Path
) -> None:
    await asyncio.gather(*(fetch(objects, made[1], temporary / "kb") for _ in range(4)))
    assert [path.name for path in temporary.iterdir()] == ["kb"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("baked.json", None, "holds no baked.json. Check RAG_HOME"),
        (STORE, None, f"holds no {STORE}. Check RAG_HOME"),
        (STORE, b"short", f"{STORE} is not what was baked"),
        (STORE, b"x" * 10_000_000, f"{STORE} is longer than what was baked"),
        ("baked.json", b"{}", "asks for the baked store"),
    ],
)
async def test_a_fetched_store_that_fails_its_check_leaves_no_files(
    made: tuple[Path, str], objects: FolderObjectStore, temporary: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is None:
        (objects.folder / name).unlink()
    else:
        (objects.folder / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=said):
        await fetch(objects, made[1], temporary / "kb")
    assert list(temporary.iterdir()) == []


async def test_a_name_that_leads_out_of_the_folder_is_not_fetched_though_its_hash_is_right(
    objects: FolderObjectStore, temporary: Path
) -> None:
    known = json.loads((objects.folder / "baked.json").read_bytes())
    known["files"] = {"../../evil/store.sqlite3": known["files"][STORE]}
    content = json.dumps(known).encode()
    (objects.folder / "baked.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"s3://fake/store/baked.json has an entry among its files"):
        await fetch(objects, hashlib.sha256(content).hexdigest(), temporary / "kb")
    assert objects.asked == ["baked.json"]


@pytest.mark.parametrize("foreign", ["writable by others", "a link", "a file"])
async def test_a_folder_that_others_could_change_is_not_opened(
    made: tuple[Path, str], objects: FolderObjectStore, temporary: Path, foreign: str
) -> None:
    if foreign == "a link":
        (temporary / "kb").symlink_to(made[0])
    elif foreign == "a file":
        (temporary / "kb").write_text("")
    else:
        shutil.copytree(made[0], temporary / "kb")
        (temporary / "kb").chmod(0o777)
    with pytest.raises(ConfigurationError, match="only this user can write"):
        await fetch(objects, made[1], temporary / "kb")


async def test_an_unwritable_temporary_directory_is_reported(
    made: tuple[Path, str], objects: FolderObjectStore, tmp_path: Path
) -> None:
    with pytest.raises(ServiceUnavailable, match="cannot be kept in the temporary directory"):
        await fetch(objects, made[1], tmp_path / "gone" / "kb")
