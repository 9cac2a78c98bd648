"""Documents that are brought without a database: the inbox, and the function that publishes generations."""

import asyncio
import json
from typing import Any

import pytest
from generations_stub import ASKED_KELP, ASKED_OTTER, KELP, OTTER, World

from cragside.application.inbox import Change, Inbox
from cragside.composition.generations import Draft
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.entrypoints.aws_lambda import publishing
from cragside.entrypoints.aws_lambda.indexing import sweep
from cragside.entrypoints.aws_lambda.publishing import Publisher
from cragside.ports.files import ObjectChanged
from tests.clocks import MovedClock
from tests.knowledge import answer_of


async def test_a_document_is_accepted_published_and_cited(world: World) -> None:
    requests = world.requests()
    accepted = await requests.add("otter.md", OTTER)
    assert (accepted["outcome"], accepted["status"], accepted["searchable"]) == ("new", "pending", False)
    assert (await requests.document(accepted["id"]))["status"] == "pending"
    assert await requests.titles(ASKED_OTTER) == []
    assert await world.write() == []
    found = await requests.document(accepted["id"])
    assert (found["status"], found["id"], found["content_hash"]) == (
        "enriched",
        accepted["id"],
        accepted["content_hash"],
    )
    assert await requests.titles(ASKED_OTTER) == ["Otter"]
    assert world.keys() == ["ws/default/store.sqlite3.gz"]


async def test_a_batch_is_one_generation(world: World) -> None:
    requests = world.requests()
    for number in range(5):
        await requests.add(f"note-{number}.md", f"Note {number}. {OTTER}")
    await world.write()
    assert world.generations() == ["1"]
    listed = answer_of(await requests.http.get("/v1/documents"))
    assert listed["total"] == 5


async def test_what_is_foreseen_is_what_is_stored(world: World) -> None:
    requests = world.requests()
    for text in (OTTER, KELP):
        accepted = await requests.add("note.md", text, source="/notes/note.md", metadata={"tide": 3})
        await world.write()
        stored = await requests.document(accepted["id"])
        differing = {"status", "searchable", "enrichment", "passages", "outcome", "created_at", "updated_at"}
        assert {k: v for k, v in accepted.items() if k not in differing} == {
            k: stored[k] for k in accepted if k not in differing
        }
    assert accepted["outcome"] == "changed"
    assert (await requests.add("note.md", KELP, source="/notes/note.md", metadata={"tide": 3}))[
        "outcome"
    ] == "unchanged"


async def test_a_text_that_is_there_already_makes_no_generation(world: World) -> None:
    requests = world.requests()
    for _ in range(2):
        await requests.add("otter.md", OTTER)
        await world.write()
    assert world.generations() == ["1"]
    assert world.keys("in/") == []


async def test_a_message_that_comes_twice_changes_nothing(world: World) -> None:
    requests = world.requests()
    await requests.add("otter.md", OTTER)
    records = world.records()
    for _ in range(2):
        assert await world.function()._looked(records, 60) == []
    assert world.generations() == ["1"]


async def test_a_writer_that_ends_after_it_published_doubles_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = world.requests()
    await requests.add("otter.md", OTTER)
    await requests.add("otter.md", f"{OTTER} They are mammals.")

    async def ended(*_: Any) -> None:
        raise KeyboardInterrupt

    function, records = world.function(), world.records()
    with monkeypatch.context() as patched:
        patched.setattr(Inbox, "remove", ended)
        with pytest.raises(KeyboardInterrupt):
            await function._looked(records, 60)
    assert (world.generations(), len(world.keys("in/"))) == (["1"], 2)
    assert await function._looked(records, 60) == []
    assert world.keys("in/") == []
    listed = answer_of(await requests.http.get("/v1/documents"))["documents"]
    assert [each["characters"] for each in listed] == [len(OTTER) + len(" They are mammals.")]


async def test_a_writer_that_ends_before_it_published_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = world.requests()
    await requests.add("otter.md", OTTER)

    async def ended(_: Draft) -> int:
        raise KeyboardInterrupt

    function, records = world.function(), world.records()
    with monkeypatch.context() as patched:
        patched.setattr(Draft, "publish", ended)
        with pytest.raises(KeyboardInterrupt):
            await function._looked(records, 60)
    assert (world.keys("ws/"), len(world.keys("in/"))) == ([], 1)
    assert await function._looked(records, 60) == []
    assert await requests.titles(ASKED_OTTER) == ["Otter"]


async def test_of_two_writers_at_once_the_later_does_it_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = world.requests()
    await requests.add("otter.md", OTTER)
    publish, refused = Draft.publish, []
    both, turn = asyncio.Event(), asyncio.Lock()
    drafts: list[Draft] = []

    async def together(draft: Draft) -> int:
        drafts.append(draft)
        if len(drafts) == 2:
            both.set()
        await both.wait()
        try:
            async with turn:  # moto looks at the condition and writes in two steps
                return await publish(draft)
        except ObjectChanged:
            refused.append(draft)
            raise

    monkeypatch.setattr(Draft, "publish", together)
    publishers = [Publisher(world.container(), world.objects, world.inbox) for _ in range(2)]
    assert await asyncio.gather(*(each.work("default", 60, alone=False) for each in publishers)) == [True, True]
    assert (world.generations(), len(refused), world.keys("in/")) == (["1"], 1, [])
    assert await requests.titles(ASKED_OTTER) == ["Otter"]


async def test_a_stale_writer_keeps_what_the_other_has_published(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requests, publish = world.requests(), Draft.publish
    await requests.add("otter.md", OTTER)

    async def overtaken(draft: Draft) -> int:
        monkeypatch.setattr(Draft, "publish", publish)
        await requests.add("kelp.md", KELP)
        await Publisher(world.container(), world.objects, world.inbox).work("default", 60, alone=False)
        return await publish(draft)

    monkeypatch.setattr(Draft, "publish", overtaken)
    await world.write()
    assert world.generations() == ["1"], "the stale one finds all changes made"
    assert await requests.titles(ASKED_OTTER) == ["Otter"]
    assert await requests.titles(ASKED_KELP) == ["Kelp"]


async def test_a_deleted_document_leaves_with_the_next_generation(world: World) -> None:
    requests = world.requests()
    document = await requests.add("otter.md", OTTER)
    await world.write()
    path = f"/v1/documents/{document['id']}"
    assert (await requests.http.delete(path)).status_code == 204
    assert (await requests.http.get(path)).status_code == 404
    assert (await requests.http.delete(path)).status_code == 404
    assert await requests.titles(ASKED_OTTER) == ["Otter"], "until it is published"
    await world.write()
    assert await requests.titles(ASKED_OTTER) == []
    assert (await requests.http.get(path)).status_code == 404


async def test_a_document_can_be_deleted_before_it_is_published(world: World) -> None:
    requests = world.requests()
    document = await requests.add("otter.md", OTTER)
    assert (await requests.http.delete(f"/v1/documents/{document['id']}")).status_code == 204
    await world.write()
    assert answer_of(await requests.http.get("/v1/documents"))["total"] == 0


async def test_a_document_can_be_moved_and_reprocessed(world: World) -> None:
    requests = world.requests()
    document = await requests.add("otter.md", OTTER)
    await world.write()
    path = f"/v1/documents/{document['id']}"
    moved = answer_of(await requests.http.patch(path, json={"source": "/new/otter.md", "name": "sea-otter.md"}))
    assert (moved["source"], moved["name"]) == ("/new/otter.md", "sea-otter.md")
    assert answer_of(await requests.http.post(f"{path}/reprocess", params={"force": "true"}), 202) == {"tasks": 1}
    await world.write()
    assert ((await requests.document(document["id"]))["name"], world.keys("in/")) == ("sea-otter.md", [])


async def test_memory_is_written_recalled_and_forgotten(world: World) -> None:
    requests = world.requests()
    said = {"user": "Which berth does the ferry use at night?", "assistant": "The night ferry uses berth seven."}
    remembered = answer_of(await requests.http.post("/v1/memories", json=said))
    assert (remembered["indexed"], remembered["searchable"]) == (True, False)
    await world.write()
    assert world.keys() == ["ws/default~memory/store.sqlite3.gz"]
    asked = {"query": "Which berth does the night ferry use?"}
    assert "berth seven" in answer_of(await requests.http.post("/v1/memories/search", json=asked))["text"]
    assert not answer_of(await requests.http.post("/v1/memories", json=said))["indexed"]
    assert (await requests.http.delete(f"/v1/memories/{remembered['id']}")).status_code == 204
    await world.write()
    assert answer_of(await requests.http.post("/v1/memories/search", json=asked))["text"] == ""


async def test_rag_stacks_route_takes_documents_too(world: World) -> None:
    requests = world.requests()
    body = {"items": [{"text": OTTER, "source": "otter.md"}], "collection": "sea"}
    assert (await requests.http.post("/ingest", json=body)).status_code in (200, 202)
    await world.write()
    assert await requests.titles(ASKED_OTTER, "sea") == ["Otter"]


async def test_an_upload_is_taken_in(world: World) -> None:
    requests = world.requests()
    offer = answer_of(await requests.http.post("/v1/documents/uploads", json={}), 201)
    world.s3.put_object(Bucket="knowledge", Key=offer["fields"]["key"], Body=OTTER.encode())
    body = {"upload": offer["id"], "name": "otter.txt"}
    assert answer_of(await requests.http.post("/v1/documents", json=body), 202)["documents"][0]["status"] == "pending"
    await world.write()
    assert await requests.titles(ASKED_OTTER) == ["Otter"]


async def test_tenants_have_objects_and_messages_of_their_own(world: World) -> None:
    tokens = json.dumps({"mine-key": ["mine"], "theirs-key": ["theirs"]})
    requests = world.requests(RAG_WORKSPACE_TOKENS=tokens)
    requests.http.headers["Authorization"] = "Bearer theirs-key"
    document = await requests.add("otter.md", OTTER)
    assert {each["attributes"]["MessageGroupId"] for each in world.records()} == {"theirs"}
    await world.inbox.call(["theirs"])
    requests.http.headers["Authorization"] = "Bearer mine-key"
    assert (await requests.http.get(f"/v1/documents/{document['id']}")).status_code == 404
    await Publisher(world.container(), world.objects, world.inbox).work("theirs", 60, alone=False)
    assert world.keys() == ["ws/theirs/store.sqlite3.gz"]
    assert (await requests.http.get(f"/v1/documents/{document['id']}")).status_code == 404
    assert answer_of(await requests.http.get("/v1/documents"))["total"] == 0


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "a/../b", "x~memory~memory", "", "ws/"])
async def test_no_name_leaves_the_folder_of_its_workspace(world: World, name: str) -> None:
    with pytest.raises(ValidationError):
        await world.inbox.put(Change("delete", name, "2026-01-01T00:00:00+00:00", "doc-1"))
    with pytest.raises(ValidationError):
        await world.inbox.waiting(name)
    container = world.container()
    with pytest.raises(ValidationError):
        await (await container.workspaces.open(name)).documents.documents()
    await container.close()
    record = {"messageId": "1", "receiptHandle": "1", "body": "", "attributes": {"MessageGroupId": name}}
    assert await world.function()._looked([record], 60) == []
    assert world.keys() == []


async def test_a_change_that_can_never_be_made_is_told_and_keeps_no_text(world: World) -> None:
    requests = world.requests()
    documents = [await requests.add(name, OTTER) for name in ("one.md", "two.md")]
    await world.write()
    for document in documents:
        place = {"source": "/new/place.md", "name": "place.md"}
        answer_of(await requests.http.patch(f"/v1/documents/{document['id']}", json=place))
    await world.write()
    dead = answer_of(await requests.http.get("/v1/queue/dead"))
    assert (dead["dead"], dead["pending"], len(dead["letters"])) == (1, 0, 1)
    assert "has this source already" in dead["letters"][0]["reason"]
    (refused,) = world.keys("refused/")
    content = world.s3.get_object(Bucket="knowledge", Key=f"kb/{refused}")["Body"].read().decode()
    assert "urchins" not in content


async def test_a_change_that_ends_the_function_is_given_up_and_others_are_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = world.requests()
    bad = await requests.add("bad.md", "This one ends the function.")
    await requests.add("otter.md", OTTER)
    make = publishing.make

    async def deadly(container: Any, store: str, change: Change) -> bool:
        if change.document_id == bad["id"]:
            raise KeyboardInterrupt
        return await make(container, store, change)

    monkeypatch.setattr(publishing, "make", deadly)
    records, clock = world.records()[:1], MovedClock()
    for times in range(1, 5):
        records[0]["attributes"]["ApproximateReceiveCount"] = str(times)
        with pytest.raises(KeyboardInterrupt):
            await world.function(clock)._looked(records, 60)
    records[0]["attributes"]["ApproximateReceiveCount"] = "5"
    assert await world.function(clock)._looked(records, 60) == records, "the other may still be at work"
    clock.move(16 * 60)
    assert await world.function(clock)._looked(records, 60) == []
    assert await requests.titles(ASKED_OTTER) == ["Otter"]
    found = await requests.document(bad["id"])
    assert (found["status"], found["error"]) == ("failed", "Its writer ended each time it made this change.")
    assert (world.keys("in/"), len(world.keys("refused/"))) == ([], 1)


async def test_work_that_is_left_is_gone_on_with(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = world.requests()
    document = await requests.add("otter.md", OTTER)

    class Down:
        def tier2(self, _: str) -> dict[str, Any]:
            raise ServiceUnavailable("annotator", "It is down.")

    with monkeypatch.context() as patched:
        patched.setattr(
            publishing, "Container", lambda settings: world.container().__class__(settings, annotator=Down())
        )
        again = await world.write()
        assert len(again) == 1
    assert (await requests.document(document["id"]))["status"] == "searchable"
    assert await requests.titles(ASKED_OTTER) == ["Otter"]
    assert len(world.keys("in/")) == 1
    assert await world.function()._looked(again, 60) == []
    assert (await requests.document(document["id"]))["status"] == "enriched"
    assert (world.generations(), world.keys("in/")) == (["2", "1"], [])


async def test_a_message_that_was_lost_is_made_up_for_by_the_schedule(world: World) -> None:
    requests = world.requests()
    await requests.add("otter.md", OTTER)
    world.take(world.records())
    container = world.container()
    assert await sweep(container, 10) == {"swept": True, "workspaces": 1, "tasks": 0}
    await world.write()
    assert await requests.titles(ASKED_OTTER) == ["Otter"]
    assert await sweep(container, 10) == {"swept": True, "workspaces": 0, "tasks": 0}
    await container.close()


async def test_a_queue_that_is_down_is_told_and_the_change_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = world.requests()

    async def down(*_: Any) -> None:
        raise ServiceUnavailable("queue", "SQS does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(Inbox, "call", down)
        answer = await requests.http.post("/v1/documents", json={"name": "otter.md", "text": OTTER})
    assert answer.status_code == 503
    assert "The change itself is stored" in answer.json()["error"]["message"]
    await world.inbox.call(await world.inbox.workspaces())
    await world.write()
    assert await requests.titles(ASKED_OTTER) == ["Otter"]


async def test_without_a_queue_nothing_can_be_brought(world: World) -> None:
    requests = world.requests(RAG_QUEUE_URL="")
    answer = await requests.http.post("/v1/documents", json={"name": "otter.md", "text": OTTER})
    assert answer.json()["error"]["type"] == "validation_error"
    assert "read-only" in answer.json()["error"]["message"]


async def test_a_change_that_fails_alone_is_not_to_blame(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requests, clock = world.requests(), MovedClock()
    await requests.add("otter.md", OTTER)
    records = world.records()
    records[0]["attributes"]["ApproximateReceiveCount"] = "4"

    async def overtaken(_: Draft) -> int:
        raise ServiceUnavailable("object_store", "S3 does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(Draft, "publish", overtaken)
        assert await world.function(clock)._looked(records, 60) == records
    assert world.keys("refused/") == []
    clock.move(16 * 60)
    assert await world.function(clock)._looked(records, 60) == []
    assert await requests.titles(ASKED_OTTER) == ["Otter"]


async def test_what_is_no_change_blocks_no_other(world: World) -> None:
    requests = world.requests()
    world.s3.put_object(Bucket="knowledge", Key="kb/in/default/0-0-0.json", Body=b"no change")
    world.s3.put_object(Bucket="knowledge", Key="kb/in/default/1-0-0.json", Body=b'{"kind": "unheard of"}')
    await requests.add("otter.md", OTTER)
    await world.write()
    assert await requests.titles(ASKED_OTTER) == ["Otter"]
    dead = answer_of(await requests.http.get("/v1/queue/dead"))
    assert dead["dead"] == 2
    assert "no change that this version of cragside can read" in dead["letters"][0]["reason"]


async def test_what_there_is_no_time_for_is_made_by_the_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requests, clock, make = world.requests(), MovedClock(), publishing.make
    for number in range(3):
        await requests.add(f"note-{number}.md", f"Note {number}. {OTTER}")

    async def slow(container: Any, store: str, change: Change) -> bool:
        clock.move(30)
        return await make(container, store, change)

    monkeypatch.setattr(publishing, "make", slow)
    records = world.records()
    (again,) = await world.function(clock)._looked(records, 60)
    assert again in records
    assert len(world.keys("in/")) == 2
    assert answer_of(await requests.http.get("/v1/documents"))["total"] == 1
    for _ in range(2):
        again = await world.function(clock)._looked(records[:1], 60)
    assert (again, world.keys("in/")) == ([], [])
    assert answer_of(await requests.http.get("/v1/documents"))["total"] == 3
