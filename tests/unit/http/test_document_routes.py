import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.reading import NEEDS_OCR
from cragside.domain.indexing import DocumentRecord, Task
from cragside.entrypoints.http.health import SharedLook
from cragside.entrypoints.http.v1 import documents as document_events
from tests.knowledge import Knowledge, answer_of, leave_to_the_worker
from tests.unit.documents.pictures import joined, scan_of, text_pdf

FORM = "multipart/form-data; boundary=b"
OTTER = "Otters hold hands while they sleep, so that none of them drifts away from the raft."
KELP = "Kelp grows half a metre a day and shelters the raft of otters."


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path, pages={}, max_file_bytes=2000) as built:
        yield built


async def add(knowledge: Knowledge, name: str = "otter.md", text: str = OTTER, **fields: Any) -> dict[str, Any]:
    return await knowledge.add(name, text, **fields)


async def test_the_files_of_a_form_are_taken_each_by_itself(knowledge: Knowledge) -> None:
    files = [
        ("files", ("otter.md", OTTER.encode(), "text/markdown")),
        ("files", ("big.txt", b"x" * 2001)),
        ("files", ("tune.mp3", b"\x00\x01\x02\x03" * 10)),
        ("files", ("kelp.txt", KELP.encode())),
    ]
    data = {"metadata": json.dumps({"team": "sea"})}
    answer = await knowledge.http.post("/v1/documents", data=data, files=files)
    body = answer.json()
    assert answer.status_code == 202
    assert [(each["name"], each["outcome"], each["metadata"]) for each in body["documents"]] == [
        ("otter.md", "new", {"team": "sea"}),
        ("kelp.txt", "new", {"team": "sea"}),
    ]
    assert [(each["name"], each["type"]) for each in body["errors"]] == [
        ("big.txt", "payload_too_large"),
        ("tune.mp3", "validation_error"),
    ]
    assert "2000" in body["errors"][0]["message"]
    assert body["errors"][0]["details"] == {"limit": 2000}


async def test_the_answer_names_the_pages_that_were_not_read(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={}, members={"loader": FileLoader(parallel=1)})
    files = {"files": ("log.pdf", joined(text_pdf([OTTER]), scan_of([KELP])))}
    (document,) = (await knowledge.http.post("/v1/documents", files=files)).json()["documents"]
    assert document["outcome"] == "new"
    assert document["unread"] == f"page 2 was not read, because the file {NEEDS_OCR}"
    assert (await add(knowledge))["unread"] == ""
    await knowledge.close()


@pytest.mark.attack("exhausted resources")
async def test_a_file_that_waits_too_long_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={}, timeout_seconds=0.05)
    turns = knowledge.container.loader._turns  # type: ignore[attr-defined]
    files = {"files": ("weir.docx", (Path(__file__).parents[2] / "data" / "weir.docx").read_bytes())}
    for number in range(3):
        await turns.take(f"greedy{number}", patience=0)
    refused = await knowledge.http.post("/v1/documents", files=files)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert refused.json()["error"]["retryable"] is True
    assert (await knowledge.http.get("/v1/documents")).json()["total"] == 0
    turns.give_back("greedy0")
    assert (await knowledge.http.post("/v1/documents", files=files)).status_code == 202
    await knowledge.close()


async def test_when_no_file_is_taken_the_refusal_is_the_answer(knowledge: Knowledge) -> None:
    one = await knowledge.http.post("/v1/documents", files={"files": ("big.txt", b"x" * 5000)})
    assert (one.status_code, one.json()["error"]["type"]) == (413, "payload_too_large")
    assert "2000" in one.json()["error"]["message"]
    both = [("files", ("big.txt", b"x" * 5000)), ("files", ("empty.txt", b""))]
    two = answer_of(await knowledge.http.post("/v1/documents", files=both), 413)
    assert [each["name"] for each in two["error"]["details"]["errors"]] == ["big.txt", "empty.txt"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", FORM),
        (b"--b\r\n", FORM),
        (b"no form", FORM),
        (b"--b--\r\n", FORM),
        (b"--b--\r\n", "multipart/form-data"),
        (b"--b--\r\n", "multipart/form-data; boundary=" + "b" * 5000),
        (
            b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.md"\r\n\r\ncut',
            FORM,
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n[1]\r\n'
            b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.md"\r\n\r\nx\r\n--b--\r\n',
            FORM,
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="f"; filename=""\r\n\r\n\r\n--b--\r\n',
            FORM,
        ),
        (b"{", "application/json"),
        (b"{}", "application/json"),
        (b'{"text": "x"}', "application/json"),
        (b'{"text": "x", "name": "  "}', "application/json"),
        (b'{"text": "x", "name": "a\\u0000b"}', "application/json"),
        (b'{"text": "x", "name": "a", "url": "https://a.example"}', "application/json"),
        (b'{"text": "x", "name": "a", "colour": 1}', "application/json"),
        (b'{"text": " ", "name": "a"}', "application/json"),
        (b'{"url": "http://127.0.0.1/"}', "application/json"),
        (b'{"text": "x", "name": "a", "workspace": "../b"}', "application/json"),
        (b'{"text": "x", "name": "a", "metadata": {"a": NaN}}', "application/json"),
    ],
)
async def test_an_unusable_upload_gets_the_error_envelope(knowledge: Knowledge, content: bytes, kind: str) -> None:
    found = answer_of(await knowledge.http.post("/v1/documents", content=content, headers={"content-type": kind}), 400)
    assert found["error"]["type"] == "validation_error"


FILE = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.md"\r\n\r\nOtters hold hands.\r\n'


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (b'--b\r\nContent-Disposition: form-data; name="enrich"\r\n\r\nfalse\r\n--b--\r\n', "comes after a file"),
        (b'--b\r\nContent-Disposition: form-data; name="f"; filename="b.md"\r\n\r\ncut', "ends in the middle"),
        (b"--b\r\nno header\r\n\r\n", "not a valid form"),
        (b'--b\r\nContent-Disposition: form-data; name="f"; filename=""\r\n\r\n\r\n' * 100 + b"--b--\r\n", "100 parts"),
    ],
)
async def test_a_form_that_fails_late_lists_the_accepted_files(knowledge: Knowledge, rest: bytes, said: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield FILE + rest[:5]
        yield rest[5:]

    found = answer_of(await knowledge.http.post("/v1/documents", content=pieces(), headers={"content-type": FORM}), 202)
    assert [each["name"] for each in found["documents"]] == ["a.md"]
    (error,) = found["errors"]
    assert (error["name"], error["type"]) == ("", "validation_error")
    assert said in error["message"]


async def test_files_of_all_requests_together_have_bounded_room(knowledge: Knowledge) -> None:
    """Files of up to 2,000 bytes: there is room for four of them, however many requests send some."""
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def slow(number: int) -> AsyncIterator[bytes]:
        yield f'--b\r\nContent-Disposition: form-data; name="f"; filename="{number}.md"\r\n\r\n'.encode()
        yield f"Otter {number}. ".encode() + b"x" * 1900
        begun.release()
        await go_on.wait()
        yield b"\r\n--b--\r\n"

    async def send(content: Any) -> httpx.Response:
        return await knowledge.http.post("/v1/documents", content=content, headers={"content-type": FORM})

    first = [asyncio.create_task(send(slow(number))) for number in range(4)]
    for _ in first:
        await begun.acquire()
    big = FILE.replace(b"Otters", b"Otters " * 250) + b"--b--\r\n"
    full = await send(big)
    assert (full.status_code, full.json()["error"]["type"]) == (503, "service_unavailable")
    assert "being uploaded" in full.json()["error"]["message"]
    go_on.set()
    assert [answer.status_code for answer in await asyncio.gather(*first)] == [202] * 4
    assert (await send(big)).status_code == 202


async def test_a_file_over_the_limit_is_not_held_in_memory(knowledge: Knowledge) -> None:
    """The file goes on for 20 MB, the limit is 2,000 bytes: what is kept of it never grows beyond."""
    from cragside.entrypoints.http import request_bodies as multipart

    kept: list[int] = []
    add_to = multipart.FormPart.add

    def noted(part: multipart.FormPart, data: bytes) -> None:
        add_to(part, data)
        kept.append(len(part.content))

    async def endless() -> AsyncIterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.md"\r\n\r\n'
        for _ in range(320):
            yield b"x" * 65536
        yield b"\r\n--b--\r\n"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(multipart.FormPart, "add", noted)
        headers = {"content-type": FORM}
        answer = await knowledge.http.post("/v1/documents", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert max(kept) <= 2000


async def test_documents_are_listed_without_their_content_latest_first(knowledge: Knowledge) -> None:
    first, second = await add(knowledge), await add(knowledge, "kelp.md", KELP)
    page = (await knowledge.http.get("/v1/documents", params={"limit": 1})).json()
    assert (page["total"], page["limit"], page["offset"]) == (2, 1, 0)
    assert [each["id"] for each in page["documents"]] == [second["id"]]
    rest = (await knowledge.http.get("/v1/documents", params={"offset": 1})).json()
    assert [each["id"] for each in rest["documents"]] == [first["id"]]
    assert "Otters" not in json.dumps(rest)
    assert (await knowledge.http.get("/v1/documents", params={"status": "enriched"})).json()["total"] == 0
    assert (await knowledge.http.get("/v1/documents", params={"status": "searchable"})).json()["total"] == 2


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1001}, {"offset": -1}, {"offset": 10**30}, {"status": "x"}])
async def test_a_page_that_cannot_be_is_refused(knowledge: Knowledge, query: dict[str, Any]) -> None:
    answer = await knowledge.http.get("/v1/documents", params=query)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")


async def test_a_document_is_shown_read_and_forgotten(knowledge: Knowledge) -> None:
    added = await add(knowledge, title="Otters", metadata={"team": "sea"})
    where = f"/v1/documents/{added['id']}"
    await knowledge.index()
    shown = (await knowledge.http.get(where)).json()
    assert (shown["status"], shown["passages"], shown["title"]) == ("enriched", 1, "Otters")
    tier3 = {"by": "embedded", "extraction": {"entities": 0, "relations": 0, "malformed": 0, "unusable": 0}}
    assert shown["tier3"] | tier3 == shown["tier3"]
    assert shown["parts"][0] | {"enriched_at": None, "tier3": None} == {
        "number": 0,
        "first": 0,
        "last": 0,
        "embedded": True,
        "enrichment": "enriched",
        "error": "",
        "enriched_at": None,
        "tier3": None,
    }
    assert (await knowledge.http.get(f"{where}/content")).json()["text"] == OTTER
    other = answer_of(await knowledge.http.delete(where, params={"content_hash": "of another text"}), 400)
    assert "otter.md has changed since you saw it." in other["error"]["message"]
    assert (await knowledge.http.delete(where, params={"content_hash": shown["content_hash"]})).status_code == 204
    gone = [
        await knowledge.http.request(*ask) for ask in (("GET", where), ("DELETE", where), ("GET", f"{where}/content"))
    ]
    assert [answer.status_code for answer in gone] == [404, 404, 404]


async def test_a_document_is_processed_again(knowledge: Knowledge) -> None:
    added = await add(knowledge)
    await knowledge.index()
    where = f"/v1/documents/{added['id']}/reprocess"
    assert (await knowledge.http.post(where)).json() == {"tasks": 0}
    assert answer_of(await knowledge.http.post(where, params={"force": True}), 202)["tasks"] > 0
    assert (await knowledge.http.post("/v1/documents/doc-none/reprocess")).status_code == 404


def events_of(answer: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block.splitlines() for block in answer.text.split("\n\n") if block and not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block) for block in blocks]
    return [(each["event"], json.loads(each["data"])) for each in fields]


async def test_progress_is_sent_until_the_document_is_complete(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_events, "_LOOKS_EVERY", 0.01)
    added = await add(knowledge)
    told = asyncio.create_task(knowledge.http.get(f"/v1/documents/{added['id']}/events"))
    await asyncio.sleep(0)
    await knowledge.index()
    async with asyncio.timeout(30):
        answer = await told
    events = events_of(answer)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [name for name, _ in events][-2:] == ["progress", "done"]
    last = events[-1][1]
    assert (last["status"], last["parts"], last["embedded_parts"], last["enriched_parts"]) == ("enriched", 1, 1, 1)


async def test_a_document_that_failed_ends_its_progress_with_the_reason(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_to_the_worker(monkeypatch)
    added = await add(knowledge)
    record = await (await knowledge.container.workspaces.open("default")).documents.document(added["id"])
    assert record is not None
    indexer = (await knowledge.container.workspaces.open("default")).work
    await indexer.failed(Task("default", record.id, record.content_hash, 0, "embed"), "the model is gone")
    events = events_of(await knowledge.http.get(f"/v1/documents/{added['id']}/events"))
    assert events[-1][0] == "failed"
    assert events[-1][1]["error"] == "the model is gone"


async def test_progress_of_a_document_that_is_forgotten_meanwhile_ends(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_events, "_LOOKS_EVERY", 0.01)
    added = await add(knowledge)
    told = asyncio.create_task(knowledge.http.get(f"/v1/documents/{added['id']}/events"))
    await asyncio.sleep(0.05)
    await knowledge.http.delete(f"/v1/documents/{added['id']}")
    async with asyncio.timeout(30):
        events = events_of(await told)
    assert events[-1][0] == "failed"


@pytest.mark.attack("exhausted resources")
async def test_the_streams_of_one_document_share_each_look_and_have_a_limit(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_events, "_LOOKS_EVERY", 0.01)
    monkeypatch.setattr(document_events, "_MOST_STREAMS", 5)
    looks: list[object] = []
    waiting: list[object] = []
    looking = asyncio.Event()

    class Counted(SharedLook[DocumentRecord | None]):
        def __init__(self, look: Any, clock: Any, holds: float) -> None:
            async def counted() -> DocumentRecord | None:
                looks.append(look)
                await looking.wait()
                record: DocumentRecord | None = await look()
                return record

            super().__init__(counted, clock, holds)

        async def result(self) -> DocumentRecord | None:
            waiting.append(self)
            return await super().result()

    monkeypatch.setattr(document_events, "SharedLook", Counted)
    added = await add(knowledge)
    where = f"/v1/documents/{added['id']}/events"
    told = [asyncio.create_task(knowledge.http.get(where)) for _ in range(5)]
    async with asyncio.timeout(30):
        while len(waiting) < 5:
            await asyncio.sleep(0)
    refused = await knowledge.http.get(where)
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "service_unavailable")
    assert "5 streams are open." in refused.json()["error"]["message"]
    assert len(looks) == 1
    looking.set()
    await knowledge.index()
    async with asyncio.timeout(30):
        ends = [events_of(answer)[-1][0] for answer in await asyncio.gather(*told)]
    assert ends == ["done"] * 5
    assert (await knowledge.http.get(where)).status_code == 200


async def test_progress_of_an_unknown_document_is_not_found(knowledge: Knowledge) -> None:
    answer = await knowledge.http.get("/v1/documents/doc-none/events")
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found")


@pytest.mark.parametrize("field", ["source", "id"])
async def test_two_sources_with_one_name_are_two_labelled_documents_in_lists(knowledge: Knowledge, field: str) -> None:
    texts = {"/home/ann/w1/todo.md": OTTER, "/home/ann/w2/todo.md": KELP, "crm-42": "Sea lions bark at night."}
    for source, text in texts.items():
        assert (await add(knowledge, "todo.md", text, **{field: source}))["outcome"] == "new"
    plain = await add(knowledge, "todo.md", "Gulls steal fish.")
    assert (plain["source"], plain["label"]) == ("todo.md", "todo.md")
    listed = (await knowledge.http.get("/v1/documents")).json()["documents"]
    assert {each["name"] for each in listed} == {"todo.md"}
    assert {each["source"]: each["label"] for each in listed} == {
        "/home/ann/w1/todo.md": "w1/todo.md",
        "/home/ann/w2/todo.md": "w2/todo.md",
        "crm-42": "todo.md (crm-42)",
        "todo.md": "todo.md",
    }
    assert len({each["id"] for each in listed}) == 4
    changed = await add(knowledge, "done.md", KELP * 2, **{field: "crm-42"})
    assert (changed["outcome"], changed["name"], changed["label"]) == ("changed", "done.md", "done.md")
    await knowledge.index()
    answer = (
        await knowledge.http.post("/query", json={"query": "Who holds hands while they sleep?", "topK": 1})
    ).json()
    assert [each["source"] for each in answer["results"]] == ["w1/todo.md"]
    assert answer["references"][0]["file_path"] == "w1/todo.md"
    asked = {"prompt": "/rag Do otters hold hands while they sleep?"}
    shown = (await knowledge.http.post("/v1/enrich", json=asked)).json()
    assert "w1/todo.md" in shown["prompt"]
    assert {each["metadata"]["filename"] for each in shown["metadata"]["rag_context"]["documents"]} == {"w1/todo.md"}


async def test_a_name_without_source_identifies_a_document(knowledge: Knowledge) -> None:
    first, again = await add(knowledge, "todo.md", OTTER), await add(knowledge, "todo.md", KELP)
    assert (again["outcome"], again["id"]) == ("changed", first["id"])


@pytest.mark.parametrize("field", ["source", "id"])
async def test_the_file_of_a_form_may_have_a_source(knowledge: Knowledge, field: str) -> None:
    for folder in ("w1", "w2"):
        data, files = {field: f"/home/ann/{folder}/todo.md"}, {"files": ("todo.md", f"Work of {folder}.".encode())}
        (taken,) = (await knowledge.http.post("/v1/documents", data=data, files=files)).json()["documents"]
        assert (taken["outcome"], taken["name"], taken["source"]) == ("new", "todo.md", data[field])


async def test_a_form_with_several_files_cannot_have_one_source(knowledge: Knowledge) -> None:
    files = [("files", ("a.md", OTTER.encode())), ("files", ("b.md", KELP.encode()))]
    answer = (await knowledge.http.post("/v1/documents", data={"source": "crm-42"}, files=files)).json()
    assert [(each["name"], each["source"]) for each in answer["documents"]] == [("a.md", "crm-42")]
    assert "in a form of its own" in answer["errors"][0]["message"]


async def test_a_file_of_a_form_does_not_replace_another_one_of_the_same_form(knowledge: Knowledge) -> None:
    files = [("files", ("todo.md", OTTER.encode())), ("files", ("todo.md", KELP.encode()))]
    answer = (await knowledge.http.post("/v1/documents", files=files)).json()
    (taken,), (refused,) = answer["documents"], answer["errors"]
    assert (refused["name"], refused["type"]) == ("todo.md", "validation_error")
    text = (await knowledge.http.get(f"/v1/documents/{taken['id']}/content")).json()["text"]
    assert text == OTTER


@pytest.mark.parametrize("source", ["", "  ", "a\u0000b", "a\nb", "x" * 5000])
async def test_an_invalid_source_is_refused(knowledge: Knowledge, source: str) -> None:
    body = {"name": "todo.md", "text": OTTER, "source": source}
    answer = await knowledge.http.post("/v1/documents", json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")
    assert "source" in answer.json()["error"]["message"]
    assert (await knowledge.http.get("/v1/documents")).json()["total"] == 0


async def _added(knowledge: Knowledge, *sources: str) -> list[str]:
    ids = []
    for source in sources:
        body = {"text": f"Otters at {source}.", "name": source.rpartition("/")[2], "source": source}
        ids.append((await knowledge.http.post("/v1/documents", json=body)).json()["documents"][0]["id"])
    return ids


async def test_documents_below_a_folder_are_listed_in_the_order_of_their_sources(knowledge: Knowledge) -> None:
    await _added(knowledge, "/notes/b.md", "/notes/sub/a.md", "/notes-of-mine/c.md", "/notes/a.md")
    answer = (await knowledge.http.get("/v1/documents", params={"below": "/notes/", "limit": 2})).json()
    assert ([each["source"] for each in answer["documents"]], answer["total"]) == (["/notes/a.md", "/notes/b.md"], 3)
    rest = (await knowledge.http.get("/v1/documents", params={"below": "/notes", "limit": 2, "offset": 2})).json()
    assert [each["source"] for each in rest["documents"]] == ["/notes/sub/a.md"]
    none = await knowledge.http.get("/v1/documents", params={"below": "/notes", "status": "failed"})
    assert none.json()["total"] == 0
    assert (await knowledge.http.get("/v1/documents", params={"below": ""})).status_code == 400


async def test_a_document_is_moved_without_being_indexed_again(knowledge: Knowledge) -> None:
    first, second = await _added(knowledge, "/notes/a.md", "/notes/b.md")
    before = (await knowledge.http.get(f"/v1/documents/{first}")).json()
    moved = answer_of(
        await knowledge.http.patch(f"/v1/documents/{first}", json={"source": "/notes/c.md", "name": "c.md"})
    )
    assert (moved["id"], moved["source"], moved["name"]) == (first, "/notes/c.md", "c.md")
    assert (moved["content_hash"], moved["passages"]) == (before["content_hash"], before["passages"])
    taken = answer_of(
        await knowledge.http.patch(f"/v1/documents/{first}", json={"source": "/notes/b.md", "name": "b.md"}), 400
    )
    assert second in taken["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"source": "/a"}',
        b'{"source": "/a", "name": " "}',
        b'{"source": "/a\\u0000", "name": "a"}',
        b'{"source": "/a", "name": "a", "id": "b"}',
        b'{"source": 1, "name": "a"}',
    ],
)
async def test_a_move_that_makes_no_sense_is_refused(knowledge: Knowledge, body: bytes) -> None:
    (identifier,) = await _added(knowledge, "/notes/a.md")
    found = answer_of(
        await knowledge.http.patch(
            f"/v1/documents/{identifier}", content=body, headers={"content-type": "application/json"}
        ),
        400,
    )
    assert found["error"]["type"] == "validation_error"


async def test_an_unknown_document_cannot_be_moved(knowledge: Knowledge) -> None:
    answer = await knowledge.http.patch("/v1/documents/doc-none", json={"source": "/a", "name": "a"})
    assert answer.status_code == 404


async def test_a_list_is_searched_filtered_and_sorted(knowledge: Knowledge) -> None:
    await add(knowledge, "b.md", "Otters.", title="Night log", source="/sea/b.md")
    await add(knowledge, "a.txt", "Kelp.", source="/land/a.txt")
    await add(knowledge, "C.md", "Rafts.", source="/sea/C.md")

    async def names(**asked: Any) -> list[str]:
        page = (await knowledge.http.get("/v1/documents", params=asked)).json()
        assert page["file_types"] == {"md": 2, "txt": 1}
        return [document["name"] for document in page["documents"]]

    assert await names() == await names(sort="added") == ["C.md", "a.txt", "b.md"]
    assert await names(order="asc") == ["b.md", "a.txt", "C.md"]
    assert await names(sort="name") == ["a.txt", "b.md", "C.md"]
    assert await names(sort="name", order="desc", limit=1) == ["C.md"]
    assert await names(search=" NIGHT ") == ["b.md"]
    assert await names(search="/SEA/", file_type="md", sort="name") == ["b.md", "C.md"]
    assert await names(search="%") == []
    assert await names(below="/sea") == ["C.md", "b.md"]
    assert await names(below="/sea", sort="name") == ["b.md", "C.md"]
    assert await names(below="/sea", search="log") == ["b.md"]
    assert await names(workspace="default", file_type="exe") == []


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "title"},
        {"sort": "created_at; DROP TABLE document"},
        {"order": "up"},
        {"search": "x" * 201},
        {"file_type": ""},
        {"file_type": "x" * 41},
    ],
)
async def test_an_unknown_order_or_an_overlong_search_is_refused(knowledge: Knowledge, query: dict[str, str]) -> None:
    answer = await knowledge.http.get("/v1/documents", params=query)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")
