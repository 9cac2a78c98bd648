"""Each answer to a new text says if it can be found now, or is queued."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.knowledge import Knowledge, answer_of, leave_to_the_worker

NOTE = {"name": "otter.md", "text": "Sea otters hold hands while they sleep."}
ITEM = {"source": "otter.md", "text": NOTE["text"]}
SAID = {"user": "Which port does Redis have here?", "assistant": "Redis has port 6380 on this machine."}


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path) as made:
        yield made


async def sent(knowledge: Knowledge, path: str, body: dict[str, Any], status: int = 200) -> Any:
    return answer_of(await knowledge.http.post(path, json=body), status)


async def test_a_document_is_found_when_its_answer_says_so(knowledge: Knowledge) -> None:
    (document,) = (await sent(knowledge, "/v1/documents", NOTE, 202))["documents"]
    assert (document["status"], document["searchable"]) == ("searchable", True)
    (found,) = (await sent(knowledge, "/v1/query", {"query": "What do sea otters hold?"}))["results"]
    assert found["text"] == NOTE["text"]


async def test_an_exchange_is_recalled_when_its_answer_says_so(knowledge: Knowledge) -> None:
    answer = await sent(knowledge, "/v1/memories", SAID)
    assert (answer["indexed"], answer["searchable"]) == (True, True)
    assert SAID["assistant"] in (await sent(knowledge, "/v1/memories/search", {"query": "redis port"}))["text"]
    assert "searchable" not in await sent(knowledge, "/v1/memories", SAID)  # it is known


async def test_the_answers_for_short_texts_name_none_that_is_queued(knowledge: Knowledge) -> None:
    assert "queued" not in await sent(knowledge, "/ingest", {"items": [ITEM]})
    body = {"text": "Kelp grows half a metre a day.", "file_source": "kelp.txt"}
    told = (await sent(knowledge, "/documents/text", body))["message"]
    assert told == "1 text taken and searchable; indexing goes on in the background."


async def test_the_answers_for_other_texts_say_that_they_are_queued(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sent(knowledge, "/ingest", {"items": [ITEM]})
    leave_to_the_worker(monkeypatch)
    (document,) = (await sent(knowledge, "/v1/documents", NOTE | {"name": "b.md"}, 202))["documents"]
    assert (document["status"], document["searchable"]) == ("pending", False)
    other = {"source": "kelp.md", "text": "Kelp grows half a metre a day."}
    answer = await sent(knowledge, "/ingest", {"items": [ITEM, other]})
    assert (answer["upserted"], answer["queued"]) == (2, 1)
    remembered = await sent(knowledge, "/v1/memories", SAID)
    assert (remembered["indexed"], remembered["searchable"]) == (True, False)
    told = (await sent(knowledge, "/documents/text", {"text": "Rafts of otters.", "file_source": "raft.txt"}))[
        "message"
    ]
    assert told == "1 text taken and soon searchable; indexing goes on in the background."
    await knowledge.index()
    assert (await sent(knowledge, "/v1/memories/search", {"query": "redis port"}))["text"]
