"""A file that is too large for a request of the service goes to the service's bucket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_services import answering

from cragside.client import Client
from cragside.domain.errors import PayloadTooLarge, ProcessingError, ServiceUnavailable
from cragside.entrypoints.cli.offers import Offer, Options
from cragside.entrypoints.cli.service import Service
from tests.fakes import FolderUploadStore
from tests.knowledge import Knowledge

GATEWAY_LIMIT = 4000
OTTERS = b"Otters hold hands while they sleep in kelp. " * 200


class Gateway:
    """In front of an application: it refuses large requests in words of its own."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        headers = dict(scope["headers"])
        if int(headers.get(b"content-length", 0)) <= GATEWAY_LIMIT:
            await self.app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 413, "headers": []})
        await send({"type": "http.response.body", "body": b'{"message":"Request Too Long"}'})


class Bucket(FolderUploadStore):
    """A bucket that files are posted to on loopback."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.headers: list[httpx.Headers] = []
        self.status = 204

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = httpx.Headers(dict(line.split(": ", 1) for line in head.splitlines()[1:] if line))
        content = await reader.readexactly(int(headers["content-length"]))
        self.headers.append(headers)
        key, file = (part.split(b"\r\n\r\n", 1)[1] for part in _parts(headers, content, b"key", b"file"))
        self.send({"key": key.decode()}, file)
        writer.write(f"HTTP/1.1 {self.status} .\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


def _parts(headers: httpx.Headers, content: bytes, *names: bytes) -> Iterator[bytes]:
    parts = content.split(b"--" + headers["content-type"].partition("boundary=")[2].encode())
    for name in names:
        (found,) = (part.removesuffix(b"\r\n") for part in parts if b'name="' + name + b'"' in part)
        yield found


@pytest.fixture
async def bucket(tmp_path: Path) -> AsyncIterator[Bucket]:
    store = Bucket(tmp_path / "bucket")
    server = await asyncio.start_server(store.answer, "127.0.0.1", 0)
    store.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    yield store
    server.close()
    await server.wait_closed()


def there(knowledge: Knowledge) -> Service:
    transport = httpx.ASGITransport(Gateway(knowledge.app))
    return Service(lambda: Client("http://service", token="secret", workspace="sea", transport=transport))


async def test_a_bucket_upload_sends_no_token(tmp_path: Path, bucket: Bucket) -> None:
    knowledge = Knowledge(tmp_path / "kb", pages={}, upload_store=bucket)
    offer = Offer("otter.md", OTTERS, {"team": "sea"})
    taken = await there(knowledge).take(offer, Options(enrich=False, doc_type="article"))
    assert (taken.outcome, taken.name, taken.metadata) == ("new", "otter.md", {"team": "sea"})
    (record,) = (await (await knowledge.container.workspaces.open("sea")).documents.documents())[0]
    assert (record.size, record.doc_type, record.enrichment) == (len(OTTERS), "article", "none")
    assert bucket.names == []
    assert {"authorization", "x-rag-workspace"}.isdisjoint(bucket.headers[0])
    await knowledge.close()


async def test_small_files_are_sent_in_the_request(tmp_path: Path, bucket: Bucket) -> None:
    knowledge = Knowledge(tmp_path / "kb", pages={}, upload_store=bucket)
    await there(knowledge).take(Offer("otter.md", OTTERS[:100]), Options())
    assert bucket.headers == []
    await knowledge.close()


@pytest.mark.parametrize("most_bytes", [None, 2000], ids=["no bucket", "too large for that too"])
async def test_without_another_way_the_refusal_stays(tmp_path: Path, bucket: Bucket, most_bytes: int | None) -> None:
    limited = {"upload_store": bucket, "max_file_bytes": most_bytes} if most_bytes else {}
    knowledge = Knowledge(tmp_path / "kb", pages={}, **limited)  # type: ignore[arg-type]
    with pytest.raises(PayloadTooLarge, match="at most 2000" if most_bytes else "413"):
        await there(knowledge).take(Offer("otter.md", OTTERS), Options())
    assert bucket.headers == []
    await knowledge.close()


async def test_a_bucket_that_fails_is_unavailable(tmp_path: Path, bucket: Bucket) -> None:
    knowledge = Knowledge(tmp_path / "kb", pages={}, upload_store=bucket)
    bucket.status = 403
    with pytest.raises(ServiceUnavailable, match="403"):
        await there(knowledge).take(Offer("otter.md", OTTERS), Options())
    for url in ("http://127.0.0.1:1/", "nonsense"):
        bucket.url = url
        with pytest.raises(ServiceUnavailable, match="cannot be reached"):
            await there(knowledge).take(Offer("otter.md", OTTERS), Options())
    await knowledge.close()


@pytest.mark.parametrize(
    ("body", "kind"),
    [("{}", ProcessingError), ("[]", ProcessingError), ('{"max_bytes": "1"}', ProcessingError)],
)
async def test_a_service_that_answers_nonsense_is_named(body: str, kind: type[Exception]) -> None:
    with answering(201, body) as address:
        async with Client(address) as client:
            with pytest.raises(kind, match="place for uploads"):
                await Service(lambda: client)._uploaded(OTTERS, PayloadTooLarge("Too large."))
