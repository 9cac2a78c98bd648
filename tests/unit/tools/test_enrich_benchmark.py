"""`benchmarks.enrich` ends where a request made other calls than its way has, and its stub judges by the facts."""

import json
from typing import Any

import pytest

from benchmarks import corpus, enrich
from benchmarks.harness import Load
from benchmarks.stubs.ollama import answer, chances, kind_of
from cragside.adapters.model_host.judge import SCORE_SCHEMA, question_about
from cragside.adapters.model_host.text_host import probabilities
from cragside.domain.evidence import Document

WRITTEN = corpus.passages(30)
QUESTION = WRITTEN[3].question


@pytest.mark.parametrize(
    ("way", "floor"),
    [
        (enrich.PASSING, 20),
        (enrich.JUDGED, 320),
        (enrich.WEB, 520),
        (enrich.EARLY, 320),
        (enrich.GRADED, 320),
        (enrich.REWRITTEN, 820),
    ],
)
def test_the_floor_of_a_way_is_the_time_of_its_calls(way: enrich.Way, floor: int) -> None:
    assert way.floor_ms == floor


def test_a_passage_states_what_its_own_question_asks_and_no_other_one() -> None:
    answering = [passage for passage in WRITTEN if corpus.states(passage.text, QUESTION)]
    assert answering == [WRITTEN[3]]
    assert corpus.states(WRITTEN[3].text, corpus.distinct(QUESTION, 7))
    absent = QUESTION.replace("For whom", "In Ostravane, for whom")
    assert not any(corpus.states(passage.text, absent) for passage in WRITTEN)


@pytest.mark.parametrize(("number", "said"), [(3, "yes"), (4, "no")])
def test_the_stub_judges_a_passage_by_what_the_question_asks(number: int, said: str) -> None:
    prompt = question_about(QUESTION, Document("d", WRITTEN[number].text, "local"))
    assert kind_of(prompt, {"logprobs": True}) == "judge"
    assert answer("judge", prompt, None) == said
    told = probabilities(chances(said)["logprobs"])
    assert told["yes"] == pytest.approx(0.95 if said == "yes" else 0.05)
    assert kind_of(prompt, {"format": SCORE_SCHEMA}) == "judge"
    assert json.loads(answer("judge", prompt, SCORE_SCHEMA))["score"] == pytest.approx(told["yes"])


def test_the_stub_grades_each_passage_of_a_batch() -> None:
    blocks = "\n".join(f'<evidence number="{n}">\n{WRITTEN[n + 1].text}\n</evidence>' for n in (1, 2, 3))
    wanted = {"type": "object", "properties": {"1": {}, "2": {}, "3": {}}}
    prompt = f"Question: {QUESTION}\n\n{blocks}\n\nQuestion: {QUESTION}\nScore each."
    assert kind_of(prompt, {"format": wanted}) == "grade batch"
    assert json.loads(answer("grade batch", prompt, wanted)) == {"1": 0.05, "2": 0.95, "3": 0.05}


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        ({"embed": 2, "embedded texts": 6, "judge": 2}, True),
        ({"embed": 2, "judge": 3}, False),
        ({"embed": 2}, False),
        ({"embed": 2, "judge": 2, "keywords": 1}, False),
        ({"embed": 2, "judge": 2, "search": 1}, False),
    ],
)
def test_a_request_with_other_calls_than_its_way_ends_the_benchmark(
    made: dict[str, int], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts(url: str, body: Any = None) -> dict[str, int]:
        return made if url == "http://ollama/stub/calls" else {}

    monkeypatch.setattr(enrich, "get_json", counts)
    monkeypatch.setattr(enrich, "cpu_seconds", lambda _: 0.0)
    monkeypatch.setattr(enrich, "ask", lambda *_, **__: Load([1.0, 1.0], 2.0))
    server = enrich.Server("ours", "http://ours", 1, {enrich.JUDGED: enrich.JUDGED})
    servers = enrich.Servers("http://ollama", "http://searxng", server, server, None)
    measuring = enrich.Measuring(servers, enrich.QUICK, enrich.Questions({}))
    if fits:
        measuring._ask(server, enrich.JUDGED, ["a?", "b?"], concurrency=1)
        assert measuring.done.loads.keys() == {"ours: local, one judgement, 1"}
        return
    with pytest.raises(SystemExit, match="another way was taken"):
        measuring._ask(server, enrich.JUDGED, ["a?", "b?"], concurrency=1)
