"""`X-RAG-Context` puts the evidence into the end of an answer, and OpenAI's annotations where it is cited."""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.responses import ResponseOutputTextAnnotationAddedEvent
from proxy_stub import Proxied, Recorded
from starlette.types import Message

from cragside.domain.citations import marks_in
from cragside.domain.evidence import Document
from cragside.domain.outcome import RagContext
from cragside.entrypoints.proxy.shown_evidence import Passages, ResponseAnnotations, ShownEvidence, passages_of
from tests.bounds import bounded
from tests.hosts import forms
from tests.hosts.upstream import ANSWER, PIECES

SHOWN = (b"X-RAG-Context: true",)
ASKED: dict[str, dict[str, Any]] = {
    "/api/chat": {"messages": [{"role": "user", "content": "/rag why?"}]},
    "/api/generate": {"prompt": "/rag why?"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "/rag why?"}]},
    "/v1/completions": {"prompt": "/rag why?"},
    "/v1/responses": {"input": "/rag why?"},
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "/rag why?"}]},
}
PLACE = {"start_index": ANSWER.index("[1]"), "end_index": ANSWER.index("[1]") + 3}


async def answered(proxied: Proxied, path: str, *, stream: bool, headers: tuple[bytes, ...] = SHOWN) -> list[Any]:
    """The parts of the answer as JSON, which arrived from Ollama a few bytes at a time."""
    asked = {"model": "m", "stream": stream, **ASKED[path]}
    kind = forms.media_type(path) if stream else "application/json"
    parts = forms.streamed(path, asked, PIECES, endless=False)
    whole = b"".join(parts) if stream else json.dumps(forms.whole(path, asked, PIECES)).encode()

    async def answer(_: Recorded, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind.encode(), len(whole)))
        for start in range(0, len(whole), 7):
            writer.write(whole[start : start + 7])
            await writer.drain()

    proxied.ollama.answer = answer
    reply = await proxied.post(path, asked, headers)
    assert proxied.ollama.requests[-1].header(b"x-rag-context") == []
    if headers != SHOWN:
        assert reply.body == whole
    lines = [line.removeprefix(b"data:").strip() for line in reply.body.splitlines() if not line.startswith(b"event:")]
    return [json.loads(line) for line in lines if line and line != b"[DONE]"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ASKED)
async def test_the_end_of_each_answer_has_the_evidence(proxied: Proxied, path: str, stream: bool) -> None:
    parts = await answered(proxied, path, stream=stream)
    found = [part.get("response", part) if isinstance(part.get("response"), dict) else part for part in parts]
    shown = [part["rag_context"] for part in found if "rag_context" in part]
    assert len(shown) == 1
    assert (shown[0]["verdict"], shown[0]["documents"][0]["content"]) == ("local", "a passage")
    assert shown[0]["documents"][0]["link"] == "http://127.0.0.1/console/#/documents"


@pytest.mark.parametrize("headers", [(), (b"X-RAG-Context: false",)])
@pytest.mark.parametrize("path", ASKED)
async def test_without_being_asked_for_it_passes_byte_for_byte(
    proxied: Proxied, path: str, headers: tuple[bytes, ...]
) -> None:
    await answered(proxied, path, stream=True, headers=headers)


@pytest.mark.parametrize("stream", [False, True])
async def test_chats_annotate_what_the_answer_cites(proxied: Proxied, stream: bool) -> None:
    parts = await answered(proxied, "/v1/chat/completions", stream=stream)
    last = parts[-1]["choices"][0]
    cited = {**PLACE, "url": "http://127.0.0.1/console/#/documents", "title": ""}
    assert last["delta" if stream else "message"]["annotations"] == [{"type": "url_citation", "url_citation": cited}]
    assert all("annotations" not in str(part) for part in parts[:-1])


@pytest.mark.parametrize("stream", [False, True])
async def test_responses_annotate_what_the_answer_cites(proxied: Proxied, stream: bool) -> None:
    parts = await answered(proxied, "/v1/responses", stream=stream)
    content = parts[-1].get("response", parts[-1])["output"][0]["content"][0]
    assert [(each["type"], each["start_index"]) for each in content["annotations"]] == [
        ("url_citation", PLACE["start_index"])
    ]
    if stream:
        done = {part["type"]: part for part in parts}
        assert done["response.output_item.done"]["item"]["content"][0]["annotations"] == content["annotations"]
        assert done["response.content_part.done"]["part"]["annotations"] == content["annotations"]
        assert [part["sequence_number"] for part in parts] == list(range(len(parts)))


async def test_openais_client_gets_an_event_for_each_annotation_before_its_text_ends(proxied: Proxied) -> None:
    body = b"".join(forms.streamed("/v1/responses", {"model": "m", "stream": True}, PIECES, endless=False))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body)
    proxied.ollama.answer = head + body
    shown = {"X-RAG-Context": "true"}
    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{proxied.port}/v1", api_key="none", default_headers=shown)
    async with client.responses.stream(model="m", input="/rag why?") as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    await client.close()
    kinds = [event.type for event in events]
    told = events[kinds.index("response.output_text.done") - 1]
    assert isinstance(told, ResponseOutputTextAnnotationAddedEvent)
    assert kinds.count(told.type) == 1
    assert (told.item_id, told.output_index, told.content_index, told.annotation_index) == ("msg_1", 0, 0, 0)
    (annotation,) = final.output[0].content[0].annotations  # type: ignore[union-attr]
    assert told.model_dump()["annotation"] == annotation.model_dump()
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize("text", [None, [1], 7])
def test_an_event_without_its_text_keeps_the_order_of_the_sequence(text: Any) -> None:
    context = RagContext("why?", (Document("1", "a passage", "local"),), False, 1, "local", 0.5)
    annotations = ResponseAnnotations(Passages(context, "http://127.0.0.1/console/"))
    part = {"type": "output_text", "text": text}
    events = [
        b'{"type": "response.output_text.done", "text": "So [1].", "logprobs": [NaN], "sequence_number": 0}',
        b'{"type": "response.output_text.done", "text": "So [1].", "sequence_number": 1}',
        json.dumps({"type": "response.content_part.done", "part": part, "sequence_number": 2}).encode(),
        b'{"sequence_number": 3}',
    ]
    lines = b"".join(annotations.line(b"data: " + event + b"\n") for event in events).splitlines()
    parts = [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]
    assert [part["sequence_number"] for part in parts] == [0, 1, 2, 3, 4]


async def test_links_are_below_the_path_of_the_reverse_proxy(start: Any) -> None:
    parts = await answered(await start(path_prefix="/rag"), "/api/chat", stream=False)
    assert parts[-1]["rag_context"]["documents"][0]["link"] == "http://127.0.0.1/rag/console/#/documents"


async def test_a_response_without_citations_has_no_further_event(proxied: Proxied) -> None:
    body = b"".join(forms.streamed("/v1/responses", {"model": "m", "stream": True}, ["none", "."], endless=False))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body)
    proxied.ollama.answer = head + body
    asked = {"model": "m", "stream": True, **ASKED["/v1/responses"]}
    reply = await proxied.post("/v1/responses", asked, SHOWN)
    assert reply.body.count(b"event: ") == body.count(b"event: ")
    assert b"annotation.added" not in reply.body


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 404 No\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"error": "x"}',
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 11\r\n\r\ndata: {}\n\nx",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nxy",
    ],
)
async def test_what_cannot_be_read_passes_unchanged(proxied: Proxied, answer: bytes) -> None:
    proxied.ollama.answer = answer
    reply = await proxied.post("/v1/chat/completions", {"model": "m", **ASKED["/v1/chat/completions"]}, SHOWN)
    assert reply.body == answer.partition(b"\r\n\r\n")[2]


async def test_another_value_is_refused(proxied: Proxied) -> None:
    reply = await proxied.post("/api/chat", {"model": "m", **ASKED["/api/chat"]}, (b"X-RAG-Context: yes",))
    assert (reply.status, reply.json) == (400, {"error": "X-RAG-Context must be true or false."})


def test_links_open_the_passage_and_citations_name_pages_of_the_web() -> None:
    documents = (
        Document("p&1", "a", "local", title="A", metadata={"documentId": "d 1"}),
        Document("p2", "b", "web", title="B", url="https://example.org/b"),
        Document("p3", "c", "local", title="C", url="javascript:alert(1)"),
    )
    context = RagContext("q", documents, False, 1, "mixed", 0.6)
    passages = passages_of(context, {"scheme": "https", "headers": [(b"host", b"rag.example")]}, "/rag")
    link = "https://rag.example/rag/console/#/documents?open=d%201&passage=p%261"
    assert passages.as_dict()["documents"][0]["link"] == link
    found = passages.annotations(marks_in("x [1]. y [2, 3]. z [4] [0]."))
    assert [(each["title"], each["url"]) for each in found] == [
        ("A", link),
        ("B", "https://example.org/b"),
        ("C", "https://rag.example/rag/console/#/documents"),
    ]


def test_the_nearest_passages_have_links_too() -> None:
    near = Document("p1", "a", "local", title="A", metadata={"documentId": "d"})
    context = RagContext("q", (), False, 1, "none", 0.6, closest=(near,))
    shown = passages_of(context, {"headers": [(b"host", b"rag.example")]}).as_dict()
    assert shown["documents"] == []
    assert shown["closest"][0]["link"] == "http://rag.example/console/#/documents?open=d&passage=p1"


def test_links_carry_no_mark_up() -> None:
    documents = (
        Document("p1", "a", "local", title="A"),
        Document("p2", "b", "web", title="B", url='https://example.org/"><script>'),
    )
    passages = passages_of(RagContext("q", documents, False, 1, "mixed", 0.6), {"headers": [(b"host", b'evil"><x')]})
    assert [each["url"] for each in passages.annotations(marks_in("x [1]. y [2]."))] == [
        "/console/#/documents",
        "https://example.org/%22%3E%3Cscript%3E",
    ]


async def sent_on(path: str, pieces: list[bytes], kind: bytes = b"") -> bytes:
    """Send a stream in these pieces, or another kind of answer, and return what the client gets."""
    got: list[bytes] = []

    async def send(message: Message) -> None:
        got.append(message.get("body", b""))

    document = Document("p", "a passage", "local")
    context = RagContext("why?", (document,), False, 1, "local", 0.6)
    shown = ShownEvidence(send, path, passages_of(context, {"headers": []}))
    await shown({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    for piece in pieces:
        await shown({"type": "http.response.body", "body": piece, "more_body": True})
    await shown({"type": "http.response.body", "body": b"", "more_body": False})
    return b"".join(got)


class Counted(bytearray):
    """Bytes that count how many of them were copied."""

    copied = 0

    def __getitem__(self, key: Any) -> Any:
        taken = super().__getitem__(key)
        self.copied += len(taken)
        return taken


async def test_a_long_line_in_many_pieces_is_copied_once() -> None:
    async def send(_: Message) -> None: ...

    pieces = [b"y" * 64] * 1_000
    context = RagContext("why?", (), False, 1, "local", 0.6)
    shown = ShownEvidence(send, "/v1/chat/completions", passages_of(context, {"headers": []}))
    shown._held = held = Counted()
    await shown({"type": "http.response.start", "status": 200, "headers": []})
    for piece in pieces:
        await shown({"type": "http.response.body", "body": piece, "more_body": True})
    assert shown._held is held  # the pieces are added to it, and it is not copied to do so
    await shown({"type": "http.response.body", "body": b"\n", "more_body": False})
    assert held.copied <= 2 * 64 * 1_000


async def test_a_number_that_json_cannot_say_passes_unchanged() -> None:
    line = b'{"done":true,"x":1e999}\n'
    assert await sent_on("/api/chat", [line[:9], line[9:]]) == line


def chunk(piece: str, index: int = 0, *, ends: bool = False) -> bytes:
    choice = {"index": index, "delta": {"content": piece}, "finish_reason": "stop" if ends else None}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def annotated(line: bytes) -> list[int]:
    """Return the beginnings of the citations that a chunk has annotations for."""
    delta = json.loads(line.removeprefix(b"data: "))["choices"][0]["delta"]
    return [each["url_citation"]["start_index"] for each in delta.get("annotations", ())]


@pytest.mark.parametrize("text", ["[1]", "[1] ", "[9999]", "[1, ", "so. [1]", "[1].\n"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_an_answer_that_is_made_of_citations_does_not_stall_the_others(path: str, text: str) -> None:
    said = text * (1_000_000 // len(text))
    whole = {"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}
    if path == "/v1/responses":
        content = [{"type": "output_text", "text": said}]
        whole = {"object": "response", "status": "completed", "output": [{"content": content}]}
    with bounded():  # up to six seconds, when each citation was read
        told = json.loads(await sent_on(path, [json.dumps(whole).encode()], b"application/json"))
    piece = told["output"][0]["content"][0] if path == "/v1/responses" else told["choices"][0]["message"]
    assert len(piece.get("annotations", ())) == (1000 if "[1]" in text else 0)


async def test_a_long_stream_is_not_kept() -> None:
    piece = chunk("[1] " + "y" * 10_000)
    with bounded(5):
        line = (await sent_on("/v1/chat/completions", [piece] * 4_000 + [chunk("", ends=True)])).splitlines()[-2]
    assert annotated(line) == [10_004 * number for number in range(1000)]


async def test_a_citation_may_come_in_pieces_and_each_choice_has_its_own() -> None:
    pieces = [chunk("so [", 1), chunk("no [2", 0), chunk("1", 1), chunk(", 1] x [1].", 1, ends=True)]
    line = (await sent_on("/v1/chat/completions", pieces)).splitlines()[-2]
    assert annotated(line) == [4, 7, 12]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_an_answer_of_many_parts_has_as_many_annotations_as_one_that_is_long(path: str) -> None:
    said = "[1]" * 1000
    choices = [{"index": number, "message": {"content": said}, "finish_reason": "stop"} for number in range(9)]
    output = [{"content": [{"type": "output_text", "text": said}] * 9}]
    whole = {"choices": choices, "object": "response", "status": "completed", "output": output}
    told = await sent_on(path, [json.dumps(whole).encode()], b"application/json")
    assert told.count(b"start_index") == 4000


@pytest.mark.parametrize("kind", ["output_text.done", "content_part.done"])
async def test_a_response_that_ends_again_and_again_is_not_annotated_each_time(kind: str) -> None:
    event = {"type": f"response.{kind}", "text": "[1]" * 500, "part": {"type": "output_text", "text": "[1]" * 500}}
    told = await sent_on("/v1/responses", [b"data: " + json.dumps(event).encode() + b"\n\n"] * 20)
    assert told.count(b"start_index") == 4000


async def test_a_choice_that_ends_again_is_annotated_once() -> None:
    told = await sent_on("/v1/chat/completions", [chunk("[1]", ends=True), chunk("x", ends=True)])
    assert told.count(b"start_index") == 1


async def test_of_endless_choices_some_are_annotated() -> None:
    pieces = [chunk("[1]", number) for number in range(200)] + [chunk("", 0, ends=True), chunk("", 199, ends=True)]
    lines = (await sent_on("/v1/chat/completions", pieces)).splitlines()
    assert (annotated(lines[-4]), annotated(lines[-2])) == ([0], [])
