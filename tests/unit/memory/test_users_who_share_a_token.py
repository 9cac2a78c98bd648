"""Users behind one host share its token, and nobody's memory but their own."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.names import end_user_name
from cragside.entrypoints.request_headers import end_user_of
from tests.knowledge import Knowledge, answer_of

QUESTION = "What is my door code at home?"
ADAS = {"user": "My door code at home is 4471, keep it for me.", "assistant": "I keep it: your door code is 4471."}
TOMS = {"user": "My door code at home is 9052, keep it for me.", "assistant": "I keep it: your door code is 9052."}
NOBODYS = {"user": "The door code of the shed is 1818, keep it.", "assistant": "I keep it: the shed's code is 1818."}


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path) as made:
        for exchange, user in ((ADAS, "ada"), (TOMS, "tom"), (NOBODYS, None)):
            await made.http.post("/v1/memories", json={**exchange, "end_user": user})
        await made.index()
        yield made


async def told(knowledge: Knowledge, headers: dict[str, str], **fields: Any) -> str:
    body = {"prompt": f"/rag {QUESTION}", "memory": True, **fields}
    found = answer_of(await knowledge.http.post("/v1/enrich", json=body, headers=headers))
    return str(found["prompt"])


@pytest.mark.attack("other users' memories")
@pytest.mark.parametrize(
    ("headers", "fields", "own"),
    [
        ({"X-OpenWebUI-User-Id": "ada"}, {}, "4471"),
        ({"X-OpenWebUI-User-Id": "tom"}, {}, "9052"),
        ({"X-RAG-User": "ada"}, {}, "4471"),
        ({"X-LiteLLM-End-User-Id": "tom"}, {}, "9052"),
        ({}, {"user": "ada"}, "4471"),
        ({}, {"user_id": "tom"}, "9052"),
        ({}, {"safety_identifier": "ada"}, "4471"),
        ({}, {}, "1818"),
        ({"X-RAG-User": "  "}, {"user": ""}, "1818"),
        ({"X-RAG-User": "eve"}, {}, None),
    ],
)
async def test_a_prompt_gets_the_exchanges_of_its_user_alone(
    knowledge: Knowledge, headers: dict[str, str], fields: dict[str, str], own: str | None
) -> None:
    prompt = await told(knowledge, headers, **fields)
    assert {code for code in ("4471", "9052", "1818") if code in prompt} == ({own} if own else set())


async def test_a_search_of_memory_finds_the_exchanges_of_its_user_alone(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/v1/memories/search", json={"query": QUESTION, "end_user": "tom"})
    assert "9052" in answer.json()["text"]
    assert "4471" not in answer.json()["text"]


@pytest.mark.attack("other users' memories")
async def test_lightrags_routes_separate_users_too(knowledge: Knowledge) -> None:
    answer = await knowledge.http.post("/query", json={"query": QUESTION, "mode": "mix"}, headers={"X-RAG-User": "tom"})
    assert "9052" in answer.json()["response"]
    assert "4471" not in answer.json()["response"]


async def test_exchanges_of_many_others_do_not_push_out_ones_own(knowledge: Knowledge) -> None:
    for number in range(40):
        said = {
            "user": f"{QUESTION} I think it is {number}.",
            "assistant": f"Your door code at home is {number}0{number}.",
        }
        await knowledge.http.post("/v1/memories", json={**said, "end_user": f"user {number}"})
    await knowledge.index()
    assert "4471" in await told(knowledge, {"X-RAG-User": "ada"})


async def test_the_list_of_exchanges_names_their_users(knowledge: Knowledge) -> None:
    listed = (await knowledge.http.get("/v1/memories")).json()["memories"]
    assert {each["text"][-5:-1]: each["end_user"] for each in listed} == {"4471": "ada", "9052": "tom", "1818": None}


async def test_two_users_may_say_the_same_at_the_same_moment(knowledge: Knowledge) -> None:
    said = {**ADAS, "date": "2026-01-01T10:00:00Z"}
    ids = set()
    for user in ("uma", "vic", None):
        answer = (await knowledge.http.post("/v1/memories", json={**said, "end_user": user})).json()
        assert answer["indexed"]
        ids.add(answer["id"])
    assert len(ids) == 3
    again = (await knowledge.http.post("/v1/memories", json={**said, "end_user": "uma"})).json()
    assert again["reason"] == "known"


def test_the_header_of_cragside_comes_before_those_of_hosts_and_the_body() -> None:
    headers = [(b"x-openwebui-user-id", b"host"), (b"x-rag-user", b"own")]
    assert end_user_of(headers, {"user": "body"}) == "own"
    assert end_user_of(headers[:1], {"user": "body"}) == "host"
    assert end_user_of([], {"user": "body"}) == "body"
    assert end_user_of([], {"user": "", "safety_identifier": "text"}) == "text"
    assert end_user_of([]) == ""


@pytest.mark.attack("other users' memories")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((b"J\xfcrgen", None), (b"J\xf6rgen", None)),
        ((b"\xc8\xe2\xe0\xed", None), (b"\xce\xeb\xe5\xe3", None)),
        ((None, {"user": 41}), (None, {"user": 42})),
        ((None, {"user": {"id": "a"}}), (None, {"user": {"id": "b"}})),
        ((None, {"user": True}), (None, {"user": 1})),
        ((None, {"metadata": {"user_id": "a"}}), (None, {"metadata": {"user_id": "b"}})),
        ((None, {"user": 41}), (None, {"user": None})),
    ],
)
def test_names_that_differ_name_different_users(one: Any, other: Any) -> None:
    def user(given: Any) -> str:
        header, body = given
        return end_user_of([(b"x-rag-user", header)] if header else [], body)

    assert user(one)
    assert user(one) != user(other)


@pytest.mark.parametrize("given", ["x" * 129, "line\nbreak", "\x00"])
def test_a_long_or_unprintable_name_is_replaced_by_its_digest(given: str) -> None:
    assert end_user_name(given).startswith("sha256:")
    assert end_user_name(given) != end_user_name(f"{given}.")
