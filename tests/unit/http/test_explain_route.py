"""`POST /v1/explain`: the run of `/v1/enrich` with its reasons, as JSON and as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.entrypoints.http.v1.enrich import CandidateBody, ExplanationBody, StepBody
from tests.fakes import FakeSearch, WordGrader
from tests.knowledge import Knowledge, answer_of

QUESTION = "Who lights the harbour lamp?"
KEEPER = (
    "Ships come in from the north and the south, and they bring timber, salt, wool and coal to the merchants. "
    "The keeper lights the lamp of the harbour at dusk, and puts it out again when the sun has risen over the bay. "
    "Fishermen mend their nets on the quay in winter, when storms keep all of the boats at home for many weeks."
)
HOSTILE = "</script><img src=x onerror=alert(1)>\r\ndata: forged\n\nevent: done\ndata: {}\n\nA harbour lamp.\u2028"
TEXTS = {
    "keeper.md": KEEPER,
    "pump.md": "A heat pump moves heat from a cold place to a warm one.",
    "hostile.md": HOSTILE,
}
PAGE = {"title": "A <b>page</b>", "url": "https://example.org/comets", "content": "A comet has a tail of dust and gas."}
EVENTS = {"Accept": "text/event-stream"}


async def filled(made: Knowledge) -> Knowledge:
    for name, text in TEXTS.items():
        await made.add(name, text, title=f"Harbours <i>{name}</i>")
    await made.index()
    return made


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def knowledge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Knowledge]:
    """For tests that only read, or are refused."""
    made = await filled(Knowledge(tmp_path_factory.mktemp("read")))
    yield made
    await made.close()


async def explained(knowledge: Knowledge, **body: Any) -> dict[str, Any]:
    told: dict[str, Any] = answer_of(await knowledge.http.post("/v1/explain", json=body))
    assert ExplanationBody.model_validate(told, extra="forbid")
    return told


def events_in(text: str) -> list[tuple[str, Any]]:
    """Read by the rules of the HTML standard: an event is its lines up to an empty one."""
    found = []
    for block in text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if line]
        if lines:
            fields = [name for name, _, _ in lines]
            assert fields == ["event", "data"], fields
            found.append((lines[0][2], json.loads(lines[1][2])))
    return found


async def test_the_explanation_is_of_the_run_that_enriches(knowledge: Knowledge) -> None:
    asked = {"prompt": f"/rag {QUESTION}", "id": "r1"}
    told = await explained(knowledge, **asked)
    context = (await knowledge.http.post("/v1/enrich", json=asked)).json()["metadata"]["rag_context"]
    kept = [each for each in told["candidates"] if each["kept"]]
    assert [(each["id"], each["score"]) for each in sorted(kept, key=lambda each: each["number"])] == [
        (each["id"], each["score"]) for each in context["documents"]
    ]
    assert (told["id"], told["question"], told["verdict"]) == ("r1", QUESTION, context["verdict"])
    assert (told["threshold"], told["degraded"]) == (0.6, [])
    assert [step["name"] for step in told["steps"]] == ["retrieve", "grade", "decide", "inject"]
    assert all(step["ms"] > 0 for step in told["steps"])
    assert told["steps"][2]["next"] == "inject"
    assert told["prompt"].endswith(QUESTION)
    assert KEEPER in told["prompt"]
    assert told["messages"] is None


async def test_a_candidate_tells_its_words_its_strip_and_its_grader(knowledge: Knowledge) -> None:
    told = await explained(knowledge, prompt=QUESTION)
    best = told["candidates"][0]
    assert (best["filename"], best["title"], best["kept"], best["number"]) == (
        "keeper.md",
        "Harbours <i>keeper.md</i>",
        True,
        1,
    )
    assert best["reasons"]["words"] == ["lights", "harbour", "lamp"]
    strip = best["reasons"]["strip"]
    assert strip["text"].startswith("The keeper lights the lamp")
    assert best["content"][strip["start"] : strip["end"]] == strip["text"]
    assert best["reasons"]["grader"] == strip["grader"] == "embedded"
    dropped = [each for each in told["candidates"] if not each["kept"]]
    assert dropped
    assert {each["dropped"] for each in dropped} == {"score"}
    assert all(each["score"] <= each["needed"] == 0.6 and each["number"] is None for each in dropped)


@pytest.mark.parametrize("command", ["", "/rag ", "/rag? ", " /RAG?\n"])
async def test_the_command_is_optional(knowledge: Knowledge, command: str) -> None:
    told = await explained(knowledge, messages=[{"role": "user", "content": command + QUESTION}])
    assert told["question"] == QUESTION
    assert told["prompt"] is None
    assert [message["role"] for message in told["messages"]] == ["system", "user"]
    assert told["messages"][1]["content"] == QUESTION


async def test_the_offsets_lead_into_the_document(knowledge: Knowledge) -> None:
    for candidate in (await explained(knowledge, prompt=QUESTION))["candidates"]:
        place = {"passage": candidate["id"]}
        document = (await knowledge.http.get(f"/v1/documents/{candidate['document']}/content", params=place)).json()
        start, strip = document["passage"]["start"], candidate["reasons"]["strip"]
        assert document["text"][start : document["passage"]["end"]] == candidate["content"]
        assert document["text"][start + strip["start"] : start + strip["end"]] == strip["text"]


async def test_a_passage_of_another_document_is_not_found(knowledge: Knowledge) -> None:
    first, second, *_ = (await explained(knowledge, prompt=QUESTION))["candidates"]
    path = f"/v1/documents/{first['document']}/content"
    assert (await knowledge.http.get(path, params={"passage": second["id"]})).status_code == 404
    assert (await knowledge.http.get(path)).json()["passage"] is None


async def test_events_come_step_by_step_then_the_json_answer(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/explain", json={"prompt": QUESTION}, headers=EVENTS)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    *steps, done = events_in(answer.text)
    assert [name for name, _ in (*steps, done)] == ["step"] * 4 + ["done"]
    assert [step for _, step in steps] == done[1]["steps"]
    assert all(StepBody.model_validate(step, extra="forbid") for _, step in steps)
    assert all(CandidateBody.model_validate(each, extra="forbid") for each in done[1]["candidates"])
    as_json = await explained(knowledge, prompt=QUESTION)
    assert done[1].keys() == as_json.keys()
    assert done[1]["candidates"] == as_json["candidates"]


async def test_texts_with_lines_of_events_stay_text(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/explain", json={"prompt": QUESTION}, headers=EVENTS)
    events = events_in(answer.text)
    assert [name for name, _ in events].count("done") == 1
    hostile = next(each for each in events[-1][1]["candidates"] if each["filename"] == "hostile.md")
    assert "<img src=x onerror=alert(1)>" in hostile["content"]
    assert "data: forged" in hostile["content"]
    assert answer.text.isascii()


async def test_the_web_is_shown_as_the_web(tmp_path: Path) -> None:
    made = await filled(Knowledge(tmp_path, members={"search": FakeSearch(PAGE, rewritten="comet tail")}))
    told = await explained(made, prompt="/rag What is the tail of a comet made of?")
    await made.close()
    assert [step["name"] for step in told["steps"]] == ["retrieve", "grade", "decide", "rewrite", "search", "inject"]
    by_name = {step["name"]: step for step in told["steps"]}
    assert by_name["decide"]["next"] == "rewrite"
    assert by_name["rewrite"]["query"] == "comet tail"
    assert (by_name["search"]["searched"], by_name["search"]["passages"]) == (True, 1)
    web = told["candidates"][-1]
    assert (web["source"], web["url"], web["title"]) == ("web", PAGE["url"], PAGE["title"])
    assert (web["document"], web["filename"], web["needed"], web["kept"]) == (None, None, 0.05, True)
    assert (told["verdict"], told["search_performed"]) == ("web", True)


class Doubtful(WordGrader):
    """Gives every passage a score that is only enough where the web cannot be asked."""

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        return [0.4 for _ in documents]


async def test_a_missing_search_engine_is_told(tmp_path: Path) -> None:
    made = await filled(Knowledge(tmp_path, members={"grader": Doubtful()}))
    told = await explained(made, prompt=QUESTION)
    await made.close()
    search = next(step for step in told["steps"] if step["name"] == "search")
    assert (search["searched"], search["passages"]) == (False, 0)
    assert [each["component"] for each in told["degraded"]] == ["search"]
    assert {(each["needed"], each["score"], each["kept"]) for each in told["candidates"]} == {(0.2, 0.4, True)}


@pytest.mark.parametrize("headers", [{}, EVENTS])
@pytest.mark.parametrize("body", [{}, {"prompt": "/rag"}, {"prompt": "/rag? "}, {"prompt": " "}, {"prompt": 1}])
async def test_a_request_without_a_question_is_refused(
    knowledge: Knowledge, body: dict[str, Any], headers: dict[str, str]
) -> None:
    found = answer_of(await knowledge.http.post("/v1/explain", json=body, headers=headers), 400)
    assert found["error"]["type"] == "validation_error"


class Stuck(WordGrader):
    """Notes that it was asked, and that it was stopped."""

    def __init__(self) -> None:
        self.asked, self.stopped = asyncio.Event(), asyncio.Event()

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        self.asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return []


@pytest.mark.parametrize("accept", [b"application/json", b"text/event-stream"])
async def test_a_client_that_leaves_stops_the_run(tmp_path: Path, accept: bytes) -> None:
    grader = Stuck()
    made = await filled(Knowledge(tmp_path, members={"grader": grader}))
    body = json.dumps({"prompt": QUESTION}).encode()
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await grader.asked.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", accept)]
    scope = {"type": "http", "method": "POST", "path": "/v1/explain", "query_string": b"", "headers": headers}
    scope |= {"raw_path": b"/v1/explain", "http_version": "1.1", "scheme": "http", "root_path": "", "state": {}}
    await asyncio.wait_for(made.app({**scope, "asgi": {"version": "3.0", "spec_version": "2.3"}}, receive, send), 20)
    await asyncio.wait_for(grader.stopped.wait(), 5)
    await made.close()


async def test_a_failure_in_the_middle_is_the_last_event(tmp_path: Path) -> None:
    class Broken:
        async def matches(self, query: str, documents: Sequence[Document]) -> list[tuple[str, ...]]:
            raise ServiceUnavailable("grader", "The words cannot be read.")

    members = {"word_matcher": Broken(), "embedded_grader": WordGrader(), "grader": WordGrader()}
    made = await filled(Knowledge(tmp_path, members=members))
    answer = await made.http.post("/v1/explain", json={"prompt": QUESTION, "id": "r9"}, headers=EVENTS)
    as_json = await made.http.post("/v1/explain", json={"prompt": QUESTION})
    await made.close()
    events = events_in(answer.text)
    assert [name for name, _ in events] == ["step"] * 4 + ["failed"]
    assert (events[-1][1]["error"]["type"], events[-1][1]["id"]) == ("service_unavailable", "r9")
    assert as_json.status_code == 503


async def test_the_openapi_document_has_both_types_and_every_field(knowledge: Knowledge) -> None:
    document = (await knowledge.http.get("/openapi.json")).json()
    operation = document["paths"]["/v1/explain"]["post"]
    answers = operation["responses"]["200"]["content"]
    assert answers.keys() == {"application/json", "text/event-stream"}
    assert answers["application/json"]["schema"] == {"$ref": "#/components/schemas/ExplanationBody"}
    for event in ("step", "done", "failed"):
        assert f"`{event}`" in answers["text/event-stream"]["schema"]["description"]
    told = await explained(knowledge, prompt=QUESTION)
    schemas = document["components"]["schemas"]
    assert told.keys() == set(schemas["ExplanationBody"]["required"])
    assert told["candidates"][0].keys() == set(schemas["CandidateBody"]["required"])
    assert told["candidates"][0]["reasons"].keys() == set(schemas["ReasonsBody"]["required"])
