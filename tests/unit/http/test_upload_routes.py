"""Files that come by way of a bucket: offered, sent, taken in, and gone from it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
import requests
from moto import mock_aws

from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, NotFound, ServiceUnavailable
from cragside.store.baking import Baking
from tests.fakes import FolderUploadStore
from tests.knowledge import Knowledge, answer_of

OTTER = "Otters hold hands while they sleep, so that none of them drifts away from the raft."
OFFERS, DOCUMENTS = "/v1/documents/uploads", "/v1/documents"


@pytest.fixture
def bucket(tmp_path: Path) -> FolderUploadStore:
    return FolderUploadStore(tmp_path / "bucket")


@pytest.fixture
async def knowledge(tmp_path: Path, bucket: FolderUploadStore) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path / "kb", pages={}, upload_store=bucket, max_file_bytes=2000) as built:
        yield built


async def offered(knowledge: Knowledge, **body: Any) -> dict[str, Any]:
    offer: dict[str, Any] = answer_of(await knowledge.http.post(OFFERS, json=body), 201)
    return offer


async def sent(knowledge: Knowledge, bucket: FolderUploadStore, content: bytes = OTTER.encode()) -> str:
    offer = await offered(knowledge)
    bucket.send(offer["fields"], content)
    return str(offer["id"])


async def complete(knowledge: Knowledge, upload: str, name: str = "otter.md", **fields: Any) -> httpx.Response:
    return await knowledge.http.post(DOCUMENTS, json={"upload": upload, "name": name, **fields})


def failure(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


async def test_an_upload_becomes_a_document_and_leaves_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="a-bucket")
        knowledge = Knowledge(tmp_path, uploads="s3://a-bucket/in", max_body_bytes=5000)
        offer = await offered(knowledge, workspace="sea")
        large = "\n\n".join(f"{OTTER} This is otter number {number}." for number in range(500)).encode()
        form = {"data": offer["fields"], "files": {"file": ("a", large)}, "timeout": 30}
        assert (await asyncio.to_thread(requests.post, offer["url"], **form)).status_code == 204
        assert [each["Key"] for each in client.list_objects_v2(Bucket="a-bucket")["Contents"]] == [
            f"in/sea/{offer['id']}"
        ]
        answer = answer_of(
            await complete(knowledge, offer["id"], workspace="sea", doc_type="article", metadata={"team": "sea"}), 202
        )
        (document,) = answer["documents"]
        assert {name: document[name] for name in ("name", "outcome", "doc_type", "metadata", "size")} == {
            "name": "otter.md",
            "outcome": "new",
            "doc_type": "article",
            "metadata": {"team": "sea"},
            "size": len(large),
        }
        assert "Contents" not in client.list_objects_v2(Bucket="a-bucket")
        await knowledge.index()
        found = await knowledge.http.post("/query", json={"query": "What do otters hold?", "collection": "sea"})
        assert OTTER in found.json()["results"][0]["text"]
        assert failure(await complete(knowledge, offer["id"], workspace="sea")) == (404, "not_found")
        await knowledge.close()


async def test_an_offer_says_how_much_and_until_when(knowledge: Knowledge) -> None:
    offer, other = await offered(knowledge), await offered(knowledge, workspace="sea")
    assert (offer["max_bytes"], offer["fields"]["policy"]) == (2000, "1 to 2000 bytes for 900 s")
    left = datetime.fromisoformat(offer["expires_at"]) - datetime.now(UTC)
    assert timedelta() < left <= timedelta(minutes=15)
    assert offer["fields"]["key"] == f"default/{offer['id']}"
    assert other["fields"]["key"] == f"sea/{other['id']}"
    assert offer["id"] != other["id"]


async def test_an_upload_is_taken_in_once(knowledge: Knowledge, bucket: FolderUploadStore) -> None:
    upload = await sent(knowledge, bucket)
    assert (await complete(knowledge, upload, enrich=False)).json()["documents"][0]["enrichment"] == "none"
    assert bucket.names == []
    again = await complete(knowledge, upload)
    assert failure(again) == (404, "not_found")
    assert OFFERS in again.json()["error"]["message"]


@pytest.mark.parametrize(
    "upload",
    ["../x", "..", "", "0" * 31, "0" * 33, "0" * 32 + "\n", "G" * 32, "A" * 32, "default/" + "0" * 24, "٠" * 32, 7],
)
async def test_an_invalid_upload_id_never_reaches_the_bucket(
    knowledge: Knowledge, bucket: FolderUploadStore, upload: Any
) -> None:
    answer = await knowledge.http.post(DOCUMENTS, json={"upload": upload, "name": "a.md"})
    assert failure(answer) == (400, "validation_error")
    assert bucket.asked == []


@pytest.mark.parametrize("upload", ["../x", "0" * 32 + "\n", "A" * 32])
async def test_not_even_without_the_routes(knowledge: Knowledge, bucket: FolderUploadStore, upload: str) -> None:
    with pytest.raises(NotFound):
        async with knowledge.container.uploads.opened(upload, workspace="default"):
            pytest.fail("it was opened")
    assert bucket.asked == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": " "},
        {"name": "a.md", "text": "x"},
        {"name": "a.md", "url": "https://a.example"},
        {"name": "a.md", "workspace": "../b"},
        {"name": "a.md", "metadata": [1]},
        {"name": "a.md", "doc_type": "novel"},
    ],
)
async def test_a_request_that_is_wrong_does_not_cost_the_upload(
    knowledge: Knowledge, bucket: FolderUploadStore, fields: dict[str, Any]
) -> None:
    upload = await sent(knowledge, bucket)
    answer = await knowledge.http.post(DOCUMENTS, json={"upload": upload, **fields})
    assert failure(answer) == (400, "validation_error")
    assert (await complete(knowledge, upload)).status_code == 202


async def test_an_upload_belongs_to_its_workspace(knowledge: Knowledge, bucket: FolderUploadStore) -> None:
    upload = await sent(knowledge, bucket)
    assert failure(await complete(knowledge, upload, workspace="sea")) == (404, "not_found")
    assert (await complete(knowledge, upload)).status_code == 202


@pytest.mark.parametrize(
    ("name", "content", "refused"),
    [
        ("tune.mp3", b"\x00\x01\x02\x03" * 10, (400, "validation_error")),
        ("survey.pdf", b"%PDF-1.7 but no more", (400, "validation_error")),
        ("otter.md", b"x" * 2001, (413, "payload_too_large")),
    ],
)
async def test_a_file_that_is_refused_for_good_leaves_the_bucket(
    knowledge: Knowledge, bucket: FolderUploadStore, name: str, content: bytes, refused: tuple[int, str]
) -> None:
    upload = await sent(knowledge, bucket, content)
    answer = await complete(knowledge, upload, name)
    assert failure(answer) == refused
    assert "s3://" not in answer.text
    assert bucket.names == []


async def test_after_an_outage_the_upload_can_be_taken_in_again(
    knowledge: Knowledge, bucket: FolderUploadStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = await sent(knowledge, bucket)
    bucket.failure = ServiceUnavailable("object_store", "The bucket does not answer.")
    assert failure(await complete(knowledge, upload)) == (503, "service_unavailable")
    assert failure(await knowledge.http.post(OFFERS, json={})) == (503, "service_unavailable")
    bucket.failure = None

    async def down(*_: object, **__: object) -> None:
        raise ServiceUnavailable("queue", "The queue does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(knowledge.queue, "send", down)
        assert failure(await complete(knowledge, upload)) == (503, "service_unavailable")
    assert (await complete(knowledge, upload)).status_code == 202
    assert bucket.names == []


async def test_a_document_is_taken_in_even_if_the_file_cannot_be_removed(
    knowledge: Knowledge, bucket: FolderUploadStore, caplog: pytest.LogCaptureFixture
) -> None:
    upload = await sent(knowledge, bucket)
    bucket.kept = ConfigurationError("It may not be removed. Allow s3:DeleteObject.")
    assert (await complete(knowledge, upload)).status_code == 202
    assert "s3:DeleteObject" in caplog.text
    assert (await complete(knowledge, upload)).json()["documents"][0]["outcome"] == "unchanged"


async def test_uploads_share_the_room_of_the_files_in_requests(
    knowledge: Knowledge, bucket: FolderUploadStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of up to 2,000 bytes: there is room for four of them, until it is known how large they are."""
    uploads = [await sent(knowledge, bucket, f"{OTTER} {number}".encode()) for number in range(5)]
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()
    fetch = bucket.fetch

    async def slow(name: str, to: Any, *, limit: int) -> None:
        begun.release()
        await go_on.wait()
        await fetch(name, to, limit=limit)

    monkeypatch.setattr(bucket, "fetch", slow)
    first = [asyncio.create_task(complete(knowledge, upload, f"{upload}.md")) for upload in uploads[:4]]
    for _ in first:
        await begun.acquire()
    full = await complete(knowledge, uploads[4])
    assert failure(full) == (503, "service_unavailable")
    assert (await knowledge.http.post(DOCUMENTS, files={"f": ("a.md", OTTER.encode())})).status_code == 503
    go_on.set()
    assert [answer.status_code for answer in await asyncio.gather(*first)] == [202] * 4
    assert (await complete(knowledge, uploads[4])).status_code == 202
    # All of it was given back: four at a time fit again.
    more = [await sent(knowledge, bucket, f"{OTTER} {number}".encode()) for number in range(5, 9)]
    answers = await asyncio.gather(*(complete(knowledge, upload, f"{upload}.md") for upload in more))
    assert [answer.status_code for answer in answers] == [202] * 4


async def test_without_a_bucket_the_form_is_named_instead(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={})
    for answer in (await knowledge.http.post(OFFERS, json={}), await complete(knowledge, "0" * 32)):
        assert failure(answer) == (400, "validation_error")
        assert "RAG_UPLOADS" in answer.json()["error"]["message"]
    await knowledge.close()


async def test_without_boto3_the_log_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    knowledge = Knowledge(tmp_path, pages={}, uploads="s3://a-bucket/in")
    answer = await knowledge.http.post(OFFERS, json={})
    assert failure(answer) == (503, "service_unavailable")
    assert "a-bucket" not in answer.text
    assert "Install the extra `aws` of cragside" in caplog.text
    await knowledge.close()


@pytest.mark.parametrize("place", ["bucket", "folder"])
async def test_a_baked_store_offers_no_uploads(bucket: FolderUploadStore, baked: Path, place: str) -> None:
    home = {"home": str(baked)} if place == "folder" else {"home": "s3://a-bucket/kb", "home_sha256": "0" * 64}
    knowledge = Knowledge(upload_store=bucket, **home)  # type: ignore[arg-type]
    text = {"text": OTTER, "name": "otter.md"}
    for answer in (
        await knowledge.http.post(DOCUMENTS, json=text),
        await knowledge.http.post(OFFERS, json={}),
        await complete(knowledge, "0" * 32),
    ):
        assert failure(answer) == (400, "validation_error")
        assert "read-only" in answer.json()["error"]["message"]
    assert bucket.asked == []
    await knowledge.close()


@pytest.fixture
async def baked(tmp_path: Path) -> Path:
    """A baked store of one document."""
    with Baking.into(tmp_path / "baked") as baking:
        repository = (await (made := Knowledge(baking.home)).container.workspaces.open("default")).passages
        await repository.save_documents([SourceText("otter.md", OTTER)])
        known = await repository.status()
        await made.close()
        baking.publish(known)
    return tmp_path / "baked"
