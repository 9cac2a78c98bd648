"""Every way in is tried with a token that has room for little."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from cragside.adapters.local.tokens import TokenFile
from cragside.application.allowance import Allowance, StorageLimits, allow
from cragside.domain.errors import Forbidden
from cragside.domain.indexing import DocumentKey
from cragside.domain.names import memory_of, owner_of
from cragside.domain.tokens import USUAL_SCOPES, Limits, new_token
from cragside.ports.files import FetchedPage
from cragside.store.sqlite.database import FILE_NAME
from tests.clocks import BEGIN
from tests.embedded_workspaces import open_stores
from tests.fakes import FolderUploadStore
from tests.knowledge import Knowledge

URL = "https://otters.example/"
TEXT = "Otters hold hands while they sleep in kelp, so that they do not drift apart."
EXCHANGE = {"user": "What do otters do at night, and where do they do it?", "assistant": TEXT}


class Place:
    """A store, and a token of it with limits."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.home = home
        self.file = TokenFile(home / "tokens.json")
        self.knowledge = Knowledge(
            home / "kb",
            tokens_file=home / "tokens.json",
            pages={f"{URL}{n}": FetchedPage(f"{URL}{n}", TEXT.encode(), "text/plain") for n in range(3)},
            upload_store=FolderUploadStore(home / "bucket"),
            **settings,
        )

    def token(self, *limits: int | None, workspaces: tuple[str, ...] | None = ("w",)) -> dict[str, str]:
        name = f"t{len(self.file.all()) if (self.home / 'tokens.json').exists() else 0}"
        made = new_token(name, created=BEGIN, scopes=USUAL_SCOPES, workspaces=workspaces, limits=Limits(*limits))
        return {"X-API-Key": self.file.create(made)[0]}

    async def documents(self, workspace: str = "w") -> int:
        """Count the documents and the exchanges."""
        stores = self.knowledge.container.workspaces
        held = [await stores.stored(name) for name in (workspace, memory_of(workspace))]
        return sum(each.documents for each in held)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    await made.knowledge.close()


Way = Callable[[Place, dict[str, str], int], Awaitable[httpx.Response]]


async def form(place: Place, key: dict[str, str], number: int) -> httpx.Response:
    files = {"files": (f"{number}.md", f"{TEXT} {number}".encode())}
    return await place.knowledge.http.post("/v1/documents", files=files, headers=key)


async def upload(place: Place, key: dict[str, str], number: int) -> httpx.Response:
    http = place.knowledge.http
    offered = await http.post("/v1/documents/uploads", json={}, headers=key)
    if offered.status_code != 201:
        return offered
    FolderUploadStore(place.home / "bucket").send(offered.json()["fields"], f"{TEXT} {number}".encode())
    taken = {"upload": offered.json()["id"], "name": f"{number}.md"}
    return await http.post("/v1/documents", json=taken, headers=key)


def posted(path: str, body: dict[str, Any]) -> Way:
    async def post(place: Place, key: dict[str, str], number: int) -> httpx.Response:
        filled = json.loads(json.dumps(body).replace("NUMBER", str(number)))
        return await place.knowledge.http.post(path, json=filled, headers=key)

    return post


WAYS: dict[str, Way] = {
    "form": form,
    "upload": upload,
    "text": posted("/v1/documents", {"text": f"{TEXT} NUMBER", "name": "NUMBER.md"}),
    "page": posted("/v1/documents", {"url": f"{URL}NUMBER", "name": "NUMBER.txt"}),
    "ingest": posted("/ingest", {"items": [{"text": f"{TEXT} NUMBER", "source": "NUMBER.md"}]}),
    "ingest a page": posted("/ingest", {"items": [{"url": f"{URL}NUMBER", "source": "NUMBER.md"}]}),
    "LightRAG's text": posted("/documents/text", {"text": f"{TEXT} NUMBER", "file_source": "NUMBER.md"}),
    "LightRAG's texts": posted("/documents/texts", {"texts": [f"{TEXT} NUMBER"]}),
    "exchange": posted("/v1/memories", {**EXCHANGE, "user": "What do otters do NUMBER times at night, and where?"}),
}


def refused(answer: httpx.Response, limit: str) -> bool:
    return limit in answer.text and (answer.status_code == 403 or "limit_reached" in answer.text)


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_no_way_in_gets_past_the_limit_of_documents(place: Place, way: Way) -> None:
    key = place.token(None, 2, None)
    for number in range(2):
        answer = await way(place, key, number)
        assert answer.is_success, answer.text
        assert "limit" not in answer.text
    assert refused(answer := await way(place, key, 2), "2 documents"), answer.text
    assert await place.documents() == 2


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_no_way_in_gets_past_the_limit_of_bytes(place: Place, way: Way) -> None:
    key = place.token(None, None, 40)
    answer = await way(place, key, 1)
    assert refused(answer, "40 bytes"), answer.text
    assert await place.documents() == 0


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_no_way_in_gets_past_the_limit_of_workspaces(place: Place, way: Way) -> None:
    key = place.token(1, None, None, workspaces=None)
    answer = await way(place, {**key, "X-RAG-Workspace": "one"}, 1)
    assert answer.is_success, answer.text
    assert refused(answer := await way(place, {**key, "X-RAG-Workspace": "two"}, 1), "1 workspaces"), answer.text
    assert {owner_of(name) for name in await place.knowledge.container.workspaces.names()} == {"one"}
    assert (await way(place, {**key, "X-RAG-Workspace": "one"}, 2)).is_success


@pytest.mark.attack("hostile tokens")
async def test_with_a_limit_of_workspaces_settings_are_saved_for_those_with_documents_alone(place: Place) -> None:
    key = place.token(1, None, None, workspaces=None)
    change = {"chunk_tokens": 700}
    answer = await place.knowledge.http.patch("/v1/settings", json={"workspace": "w", **change}, headers=key)
    assert refused(answer, "1 workspaces"), answer.text
    await WAYS["text"](place, {**key, "X-RAG-Workspace": "w"}, 1)
    answer = await place.knowledge.http.patch("/v1/settings", json={"workspace": "other", **change}, headers=key)
    assert refused(answer, "1 workspaces"), answer.text
    answer = await place.knowledge.http.patch("/v1/settings", json={"workspace": "w", **change}, headers=key)
    assert answer.is_success, answer.text


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("limits", [(None, 3, None), (None, None, 240)])
async def test_requests_at_the_same_time_do_not_get_past_it_together(
    place: Place, limits: tuple[int | None, ...]
) -> None:
    key = place.token(*limits)
    answers = await asyncio.gather(*(WAYS["text"](place, key, number) for number in range(30)))
    assert sorted({answer.status_code for answer in answers}) == [202, 403]
    assert await place.documents() <= 3


@pytest.mark.attack("hostile tokens")
async def test_the_files_of_a_form_count_together(place: Place) -> None:
    key = place.token(None, 2, None)
    files = [("files", (f"{number}.md", f"{TEXT} {number}".encode())) for number in range(5)]
    answer = await place.knowledge.http.post("/v1/documents", files=files, headers=key)
    assert [len(answer.json()[kind]) for kind in ("documents", "errors")] == [2, 3]
    assert {error["type"] for error in answer.json()["errors"]} == {"forbidden"}


@pytest.mark.attack("hostile tokens")
async def test_documents_of_all_workspaces_of_a_token_count_together(place: Place) -> None:
    key = place.token(None, 2, None, workspaces=("a", "b"))
    for workspace, status in (("a", 202), ("b", 202), ("a", 403), ("b", 403)):
        answer = await WAYS["text"](place, {**key, "X-RAG-Workspace": workspace}, len(workspace))
        answer = await WAYS["text"](place, {**key, "X-RAG-Workspace": workspace}, 9) if status == 403 else answer
        assert answer.status_code == status


@pytest.mark.attack("hostile tokens")
async def test_metadata_counts_towards_the_limit(place: Place) -> None:
    body = {"text": "kelp", "name": "a.md", "metadata": {"x": "y" * 2000}}
    answer = await place.knowledge.http.post("/v1/documents", json=body, headers=place.token(None, None, 1000))
    assert refused(answer, "1000 bytes")


async def test_deleting_makes_room(place: Place) -> None:
    key = place.token(None, 1, None)
    first = (await WAYS["text"](place, key, 1)).json()["documents"][0]["id"]
    full = await WAYS["text"](place, key, 2)
    error = full.json()["error"]
    assert error["details"] == {"limit": "documents", "most": 1, "stored": 1}
    assert "Delete documents" in error["message"]
    assert (await place.knowledge.http.delete(f"/v1/documents/{first}", headers=key)).status_code == 204
    assert (await WAYS["text"](place, key, 2)).status_code == 202


async def test_the_settings_limit_tokens_without_limits_and_anonymous_requests(tmp_path: Path) -> None:
    place = Place(tmp_path, limit_documents=1)
    try:
        key, own = place.token(), place.token(None, 2, None)
        assert [(await WAYS["text"](place, key, number)).status_code for number in range(2)] == [202, 403]
        assert (await WAYS["text"](place, own, 3)).status_code == 202
    finally:
        await place.knowledge.close()
    async with Knowledge(tmp_path / "open", limit_documents=1) as anonymous:
        body = {"text": TEXT, "name": "a.md"}
        answers = [await anonymous.http.post("/v1/documents", json={**body, "name": name}) for name in ("a", "b")]
        assert [answer.status_code for answer in answers] == [202, 403]


async def test_an_upload_that_finds_no_room_is_kept_for_another_time(place: Place) -> None:
    key = place.token(None, 1, None)
    http = place.knowledge.http
    offered = (await http.post("/v1/documents/uploads", json={}, headers=key)).json()
    FolderUploadStore(place.home / "bucket").send(offered["fields"], TEXT.encode())
    first = (await WAYS["text"](place, key, 1)).json()["documents"][0]["id"]
    taken = {"upload": offered["id"], "name": "up.md"}
    assert (await http.post("/v1/documents", json=taken, headers=key)).status_code == 403
    await http.delete(f"/v1/documents/{first}", headers=key)
    assert (await http.post("/v1/documents", json=taken, headers=key)).status_code == 202


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("first", ["unlimited", "limited"])
async def test_a_second_token_does_not_raise_the_limit(tmp_path: Path, first: str) -> None:
    log = tmp_path / "audit.log"
    place = Place(tmp_path, audit_log=str(log))
    try:
        wide, narrow = place.token(workspaces=("x",)), place.token(None, 1, workspaces=("y",))
        tokens = [wide["X-API-Key"], narrow["X-API-Key"]]
        bearer, key = tokens if first == "unlimited" else reversed(tokens)
        both = {"Authorization": f"Bearer {bearer}", "X-API-Key": key}
        answers = [await WAYS["text"](place, {**both, "X-RAG-Workspace": "y"}, number) for number in range(2)]
        assert [answer.status_code for answer in answers] == [202, 403]
        answers = [await WAYS["text"](place, {**both, "X-RAG-Workspace": "x"}, number) for number in range(2)]
        assert [answer.status_code for answer in answers] == [202, 202]
        events = [json.loads(line) for line in log.read_text().splitlines()]
        assert [(event["workspace"], event["name"]) for event in events] == [("y", "t1")] * 2 + [("x", "t0")] * 2
    finally:
        await place.knowledge.close()


@pytest.mark.attack("hostile tokens")
async def test_a_damaged_store_does_not_block_other_workspaces(place: Place) -> None:
    key = place.token(None, 2, None, workspaces=None)
    assert (await WAYS["text"](place, {**key, "X-RAG-Workspace": "good"}, 1)).status_code == 202
    broken = place.home / "kb" / "broken"
    broken.mkdir()
    (broken / FILE_NAME).write_bytes(b"garbage" * 1000)
    answers = [await WAYS["text"](place, {**key, "X-RAG-Workspace": "good"}, number) for number in (2, 3)]
    assert [answer.status_code for answer in answers] == [202, 403]


async def test_counting_opens_no_store(tmp_path: Path) -> None:
    place = Place(tmp_path, max_open_workspaces=4)
    try:
        key = place.token(None, 5, None, workspaces=None)
        for name in "abcde":
            assert (await WAYS["text"](place, {**key, "X-RAG-Workspace": name}, 1)).status_code == 202
        opened = open_stores()
        assert (await WAYS["text"](place, {**key, "X-RAG-Workspace": "a"}, 2)).status_code == 403
        assert open_stores() == opened
    finally:
        await place.knowledge.close()


async def test_the_wider_of_two_tokens_counts(place: Place) -> None:
    narrow, wide = place.token(None, 1, None), place.token(None, 2, None)
    both = {"Authorization": f"Bearer {narrow['X-API-Key']}", **wide}
    assert [(await WAYS["text"](place, both, number)).status_code for number in range(3)] == [202, 202, 403]


def brought(place: Place, key: dict[str, str], name: str, text: str) -> Awaitable[httpx.Response]:
    return place.knowledge.http.post("/v1/documents", json={"text": text, "name": name}, headers=key)


AGAIN = ["form", "text", "page", "ingest", "ingest a page"]


@pytest.mark.parametrize("way", [WAYS[name] for name in AGAIN], ids=AGAIN)
async def test_a_stored_document_is_accepted_again_at_the_limit(place: Place, way: Way) -> None:
    key = place.token(None, 1, None)
    for number, allowed in ((1, True), (1, True), (2, False)):
        answer = await way(place, key, number)
        assert answer.is_success is allowed or refused(answer, "1 documents"), answer.text
        assert refused(answer, "1 documents") is not allowed, answer.text
    assert await place.documents() == 1


@pytest.mark.attack("hostile tokens")
async def test_a_corrected_document_needs_room_only_for_its_growth(place: Place) -> None:
    key = place.token(None, 2, len(TEXT) + 10)
    tried = [
        ("a.md", TEXT, 202),
        ("a.md", TEXT, 202),
        ("a.md", TEXT.replace("Otters", "Badger"), 202),
        ("a.md", f"{TEXT} and eels", 202),
        ("a.md", f"{TEXT} and many an eel", 403),
        ("b.md", TEXT, 403),
    ]
    answers = [await brought(place, key, name, text) for name, text, _ in tried]
    assert [answer.status_code for answer in answers] == [status for *_, status in tried]
    assert await place.documents() == 1


@pytest.mark.attack("hostile tokens")
async def test_a_text_with_a_generated_name_counts_as_a_new_document(place: Place) -> None:
    key, http = place.token(None, 1, None), place.knowledge.http
    first = {"items": [{"text": TEXT, "source": "a.md", "id": "one"}]}
    assert (await http.post("/ingest", json=first, headers=key)).is_success
    assert not refused(await http.post("/ingest", json=first, headers=key), "1 documents")
    other = {"items": [{"text": f"{TEXT} 2", "source": "a.md", "id": "two"}]}
    assert refused(await http.post("/ingest", json=other, headers=key), "1 documents")
    renamed = {"text": f"{TEXT} 3", "file_source": "a.md"}
    assert refused(await http.post("/documents/text", json=renamed, headers=key), "1 documents")
    assert await place.documents() == 1


@pytest.mark.attack("hostile tokens")
async def test_a_document_that_is_deleted_while_it_is_corrected_counts_as_another(place: Place) -> None:
    limits = StorageLimits(place.knowledge.container.workspaces)
    key = place.token(None, 1, None)
    first = (await brought(place, key, "a.md", TEXT)).json()["documents"][0]["id"]
    allow(Allowance("holder", Limits(None, 1, None), ("w",)))
    async with limits.room("w", 10, DocumentKey("a.md")):
        assert await place.knowledge.container.intake.delete(first, workspace="w")
        with pytest.raises(Forbidden):
            await limits.check("w", 10, DocumentKey("b.md"))
    await limits.check("w", 10, DocumentKey("b.md"))


@pytest.mark.attack("hostile tokens")
async def test_corrections_at_the_same_time_do_not_get_past_it_together(place: Place) -> None:
    names, more = ["a.md", "b.md", "c.md"], 10
    room = len(names) * len(TEXT) + more
    key = place.token(None, len(names), room)
    for name in names:
        assert (await brought(place, key, name, TEXT)).status_code == 202
    texts = [f"{TEXT}{'!' * (1 + number % 12)}" for number in range(30)]
    answers = await asyncio.gather(
        *(brought(place, key, names[number % 3], text) for number, text in enumerate(texts)),
        *(brought(place, key, f"new {number}.md", TEXT) for number in range(5)),
    )
    assert {answer.status_code for answer in answers[:30]} == {202, 403}
    assert {answer.status_code for answer in answers[30:]} == {403}
    await place.knowledge.index()
    stored = await place.knowledge.container.workspaces.stored("w")
    assert stored.documents == len(names)
    assert stored.bytes <= room + len(names) * len("{}")


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("sources", [1, 2])
async def test_the_same_new_source_at_the_same_time_makes_one_document(place: Place, sources: int) -> None:
    key = place.token(None, 1, None)
    answers = await asyncio.gather(
        *(brought(place, key, f"{number % sources}.md", f"{TEXT} {number}") for number in range(30))
    )
    assert {202} <= {answer.status_code for answer in answers} <= {202, 403}
    assert await place.documents() == 1
