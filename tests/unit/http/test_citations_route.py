"""Citations of an answer are checked over HTTP."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cragside.application.answerer import CitationChecker, CitedPassage, Support
from tests.knowledge import Knowledge, answer_of

PASSAGES = [
    {"number": 1, "content": "At dusk the keeper lights the lamp of the harbour.", "title": "Harbour"},
    {"number": 2, "content": "Otters hold hands while they sleep."},
]


async def test_each_citation_is_judged_by_its_passage(knowledge: Knowledge) -> None:
    answer = (
        "🦦 The keeper lights the harbour's lamp at dusk [1]. The keeper lights the lamp at dusk [2][7]. Good night."
    )
    checked = answer_of(await knowledge.http.post("/v1/citations", json={"answer": answer, "passages": PASSAGES}))
    first, second, third = checked["citations"]
    assert (first["number"], first["supported"], answer[first["start"] : first["end"]]) == (1, True, "[1]")
    assert first["claim"] == "🦦 The keeper lights the harbour's lamp at dusk."
    assert (second["number"], second["supported"]) == (2, False)
    assert (third["number"], third["supported"], third["score"]) == (7, False, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"answer": "x" * 50_001},
        {"answer": None},
        {"passages": PASSAGES[:1] * 2},
        {"passages": [{"number": n, "content": "x"} for n in range(1, 52)]},
        {"passages": [{"number": 0, "content": "x"}]},
        {"passages": [{"number": n, "content": "x" * 50_000} for n in range(1, 6)]},
        {"workspace": "other"},
    ],
)
async def test_what_is_too_much_is_refused(knowledge: Knowledge, change: dict[str, Any]) -> None:
    body = {"answer": "It is lit [1].", "passages": PASSAGES, **change}
    answer = await knowledge.http.post("/v1/citations", json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")


async def test_a_check_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    class Slow:
        def judge(self, sentence: str, title: str, text: str) -> Support:
            raise TimeoutError

    built = Knowledge(tmp_path, members={"support_judge": Slow()})
    answer = await built.http.post("/v1/citations", json={"answer": "It is lit [1].", "passages": PASSAGES})
    await built.close()
    assert (answer.status_code, answer.json()["error"]["type"]) == (504, "timeout_error")


async def test_an_answer_of_many_citations_is_refused_in_words(knowledge: Knowledge) -> None:
    body = {"answer": "It is lit [1]. " * 1_001, "passages": PASSAGES}
    found = answer_of(await knowledge.http.post("/v1/citations", json=body), 400)
    assert found["error"]["message"] == "The answer has 1,001 citations; 1,000 can be checked."


@pytest.mark.attack("exhausted resources")
async def test_a_check_waits_for_one_check_of_each_other_holder_at_most() -> None:
    order: list[str] = []

    class Judge:
        def judge(self, sentence: str, title: str, text: str) -> Support:
            order.append(sentence)
            return Support(1.0, supported=True)

    checker = CitationChecker(Judge().judge, timeout=30)
    passages = {1: CitedPassage("It is lit.")}
    async with asyncio.TaskGroup() as checks:
        for number in range(5):
            checks.create_task(checker.check(f"Of many {number} [1].", passages, holder="busy"))
        checks.create_task(checker.check("Of one [1].", passages, holder="other"))
    assert order.index("Of one.") == 1
