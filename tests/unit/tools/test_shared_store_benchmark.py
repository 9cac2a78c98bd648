"""`benchmarks.shared_store` asks and judges, without its servers: a wrong answer never counts as a fast one."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from benchmarks import corpus, shared_store
from benchmarks.harness import Load, Target
from benchmarks.shared_prompts import CONNECTIONS, MEGABYTES, Prompts, promises
from benchmarks.shared_store import Questions, Round, ask, body_of, check_retrieval, details, targets

FOUND = {"status": "success", "data": {"chunks": [{"content": "A lamp."}], "entities": [{"entity_name": "Swan"}]}}


def load(*milliseconds: float, seconds: float = 1.0) -> Load:
    return Load(list(milliseconds), seconds)


def test_no_question_comes_twice_and_each_has_the_passage_that_answers_it() -> None:
    passages = corpus.passages(20)
    questions = Questions(passages)
    asked = questions.next(30) + questions.next(30)
    assert len({question for question, _ in asked}) == 60
    texts = {passage.text: passage.question for passage in passages}
    assert all(question.startswith(texts[text].rstrip("?")[:20]) for question, text in asked)


def test_both_servers_get_keywords_so_that_neither_asks_a_model() -> None:
    for question in ("Who lit Cragside?", "?"):
        body = body_of(question)
        assert body["ll_keywords"]
        assert body["hl_keywords"]


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (FOUND, True),
        ({"status": "failure", "data": FOUND["data"]}, False),
        ({"status": "success", "data": {**FOUND["data"], "chunks": []}}, False),
        ({"status": "success", "data": {**FOUND["data"], "entities": []}}, False),
    ],
)
def test_an_answer_without_passages_or_entities_is_wrong(answer: dict[str, Any], *, good: bool) -> None:
    assert (check_retrieval(answer) == "") is good


def test_a_wrong_answer_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(_: str, bodies: Sequence[Any], *, check: Callable[[Any], str]) -> Load:
        done = Load()
        for _ in bodies:
            done.took(1.0, 200, b'{"status": "failure"}', check)
        return done

    monkeypatch.setattr(shared_store, "post_each", answered)
    with pytest.raises(SystemExit, match="2 of 2 answers are wrong"):
        ask("http://server", [("Who?", ""), ("Where?", "")], concurrency=1)


def test_ratios_are_those_of_the_median_round_and_have_the_right_direction() -> None:
    quick = Round(load(10), load(10, 10, seconds=0.1), load(100), load(100, seconds=0.5), 1.0, 9.0)
    slow = Round(load(90), load(90, seconds=1), load(100), load(100, seconds=1), 1.0, 9.0)
    prompts = Prompts(load(1), load(2), connections=1, allowed=CONNECTIONS, memory=1)
    met = {each.name: each.met for each in targets([quick, quick, slow], prompts)}
    missed = {each.name: each.met for each in targets([quick, slow, slow], prompts)}
    assert set(met.values()) == {True}
    compared = [name for name in missed if "lightrag-server" in name]
    assert len(compared) == 4
    assert not any(missed[name] for name in compared)
    assert len(details([quick], prompts)) == 6


@pytest.mark.parametrize(
    "broken",
    [
        {"burst": Load([1.0], 1.0, ["status 503"])},
        {"single": Load([1.0], 1.0, ["no evidence"])},
        {"connections": CONNECTIONS + 1},
        {"memory": MEGABYTES + 1},
    ],
)
def test_a_failure_a_connection_too_many_or_too_much_memory_breaks_a_promise(broken: dict[str, Any]) -> None:
    kept: dict[str, Any] = {"single": load(1), "burst": load(2), "connections": CONNECTIONS, "memory": MEGABYTES}

    def broken_promises(**given: Any) -> list[Target]:
        return [each for each in promises(Prompts(allowed=CONNECTIONS, **given)) if not each.met]

    assert broken_promises(**kept) == []
    assert len(broken_promises(**{**kept, **broken})) == 1
