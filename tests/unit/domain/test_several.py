"""Passages of a question about several things: whose they are, and the order of their places."""

from cragside.domain.evidence import Document
from cragside.domain.outcome import nearest_question, nothing_on, one_for_each
from cragside.domain.verdict import DecisionPolicy


def passage(key: str, score: float) -> Document:
    return Document(key, f"text {key}", "local", score=score)


def test_a_passage_belongs_to_the_question_that_it_has_the_best_score_for() -> None:
    found = {"whole": [passage("a", 0.5), passage("b", 0.4)], "part": [passage("b", 0.9), passage("c", 0.2)]}
    divided = nearest_question(found)
    assert {question: [each.id for each in some] for question, some in divided.items()} == {
        "whole": ["a"],
        "part": ["b", "c"],
    }
    assert divided["part"][0].score == 0.9


def test_a_passage_that_is_as_near_to_the_whole_question_stays_with_it() -> None:
    divided = nearest_question({"whole": [passage("a", 0.5)], "part": [passage("a", 0.5)]})
    assert divided["part"] == []


def test_each_question_has_a_place_before_any_has_a_second_one() -> None:
    ranked = [passage(key, score) for key, score in (("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6))]
    question_of = {"a": "one", "b": "one", "d": "two"}
    assert [each.id for each in one_for_each(ranked, question_of)] == ["a", "c", "d", "b"]


def test_what_is_not_much_worse_is_kept_beside_what_passes() -> None:
    policy = DecisionPolicy(0.6)
    documents = [passage("a", 0.9), passage("b", 0.37), passage("c", 0.36), passage("d", 0.31)]
    assert [each.id for each in policy.beside(documents)] == ["a", "b"]


def test_nothing_is_kept_beside_what_does_not_pass() -> None:
    assert DecisionPolicy(0.6).beside([passage("a", 0.6), passage("b", 0.5)]) == []


def test_a_low_threshold_keeps_all_that_passes() -> None:
    documents = [passage("a", 0.95), passage("b", 0.3), passage("c", 0.2)]
    assert [each.id for each in DecisionPolicy(0.2).beside(documents)] == ["a", "b"]


def test_the_things_that_nothing_was_found_on_are_named() -> None:
    told = nothing_on(["PD-35", "saw"])
    assert told.component == "parts"
    assert '"PD-35", "saw"' in told.reason


def test_a_thing_is_told_in_one_neutral_line() -> None:
    reason = nothing_on(["Alpha\x1b[31m\u202eevil", "A-12\x00\nx" + "y" * 300]).reason
    assert reason.isprintable()
    assert len(reason) < 260
