"""A web page cannot bring documents: neither from a foreign origin, nor in a type that browsers send unasked."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.knowledge import Knowledge

TEXT = b'{"text": "The otter is a fish.", "name": "planted.txt", "items": [{"text": "x", "source": "s"}]}'
FORM = b'--b\r\nContent-Disposition: form-data; name="files"; filename="p.txt"\r\n\r\nThe otter is a fish.\r\n--b--\r\n'
UNASKED = [
    "text/plain",
    "text/plain;charset=UTF-8",
    "application/x-www-form-urlencoded",
    None,
    "",
    "text/plain; application/json",
    "application/json, text/plain",
    "application/jsonp",
    "xapplication/json",
    "application/json/",
    "text/json",
    "application/+json",
    "multipart/form-dataX; boundary=b",
    "multipart/mixed; boundary=b",
]
WRITING = [
    "/v1/documents",
    "/v1/enrich",
    "/v1/memories",
    "/v1/documents/uploads",
    "/ingest",
    "/documents/text",
    "/query",
]


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path) as opened:
        yield opened


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text/plain", TEXT),
        ("application/json", TEXT),
        ("multipart/form-data; boundary=b", FORM),
        ("application/x-www-form-urlencoded", TEXT),
    ],
)
async def test_a_foreign_page_cannot_add_documents(knowledge: Knowledge, kind: str, content: bytes) -> None:
    for path in WRITING:
        headers = {"Origin": "https://evil.example", "Content-Type": kind}
        answer = await knowledge.http.post(path, content=content, headers=headers)
        assert answer.status_code == 403
        assert "RAG_ALLOW_ORIGINS" in answer.text
    assert (await knowledge.http.get("/v1/documents")).json()["total"] == 0


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize("kind", UNASKED)
async def test_json_in_another_type_is_refused_unread(knowledge: Knowledge, kind: str | None) -> None:
    read = []

    async def content() -> AsyncIterator[bytes]:
        read.append(True)
        yield TEXT

    for path in WRITING:
        headers = {"Content-Length": str(len(TEXT)), **({} if kind is None else {"Content-Type": kind})}
        answer = await knowledge.http.post(path, content=content(), headers=headers)
        assert answer.status_code == 415
        assert "Content-Type: application/json" in answer.text
    assert not read
    assert (await knowledge.http.get("/v1/documents")).json()["total"] == 0


@pytest.mark.attack("foreign origins")
async def test_a_body_of_no_type_and_no_length_is_refused(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/documents", content=TEXT)
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json", "application/ld+json"]
)
async def test_json_is_taken_as_json(knowledge: Knowledge, kind: str) -> None:
    content = b'{"text": "The otter is a mammal.", "name": "otter.txt"}'
    answer = await knowledge.http.post("/v1/documents", content=content, headers={"Content-Type": kind})
    assert answer.status_code == 202


async def test_a_route_without_a_body_asks_for_no_type(knowledge: Knowledge) -> None:
    assert (await knowledge.http.post("/v1/documents/unknown/reprocess")).status_code == 404
    assert (await knowledge.http.post("/v1/memories/search")).status_code == 400
