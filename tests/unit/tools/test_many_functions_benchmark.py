"""`benchmarks.many_functions` counts no answer that was refused, abandoned or incomplete."""

import json
from typing import Any

from benchmarks.harness import Load
from benchmarks.many_functions import ask, refusals, targets, wrong_with
from benchmarks.sessions import Sessions

WHOLE = {"verdict": "local", "documents": [{}], "degraded": []}


class Function:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def invoke(self, event: Any) -> tuple[Any, float]:
        assert event["rawPath"] == "/v1/enrich"
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer, 1.0


def answered(**changes: Any) -> dict[str, Any]:
    return {"statusCode": 200, "body": json.dumps({"metadata": {"rag_context": {**WHOLE, **changes}}})}


def met(*answers: Any, refused: list[str] | None = None, sessions: Sessions | None = None) -> list[bool]:
    load = Load()
    for each in answers:
        ask(Function(each), "Why?", load)  # type: ignore[arg-type]
    return [target.met for target in targets([load], refused or [], sessions or Sessions(""), 10)]


def test_whole_answers_meet_all() -> None:
    assert met(answered(), answered()) == [True] * 5


def test_a_request_without_an_answer_is_told_from_one_that_lacks_something() -> None:
    assert met(answered(), {"statusCode": 503, "body": "{}"})[:2] == [False, True]
    assert met({"errorMessage": "timed out"})[:2] == [False, True]
    assert met(json.JSONDecodeError("cut short", "", 0))[:2] == [False, True]
    assert met(answered(degraded=[{"component": "graph", "reason": "late"}]))[:2] == [True, False]
    assert met(answered(verdict="none"))[:2] == [True, False]
    assert met(answered(documents=[]))[:2] == [True, False]
    assert wrong_with({"metadata": {"rag_context": {**WHOLE, "verdict": "web"}}}) == "the verdict is web"


def test_a_client_that_was_turned_away_is_found_in_the_logs() -> None:
    refused = ["FATAL:  sorry, too many clients already", "WARNING a@b pooler error: query_wait_timeout"]
    harmless = ["LOG a@b login attempt", "WARNING a@b pooler error: failed to send welcome message"]
    assert refusals("\n".join(refused + harmless)) == refused
    assert met(answered(), refused=refused) == [True, True, False, True, True]


def test_a_session_that_stays_in_a_transaction_and_too_many_are_told() -> None:
    sessions = Sessions("")
    sessions.saw([{"state": "idle in transaction", "number": 1, "seconds": 0.5}])  # type: ignore[list-item]
    sessions.saw([{"state": "active", "number": 9, "seconds": 9.0}, {"state": "idle", "number": 1, "seconds": 9.0}])  # type: ignore[list-item]
    sessions.saw([{"state": "idle", "number": 3, "seconds": 9.0}])  # type: ignore[list-item]
    assert (sessions.in_transaction_seconds, sessions.peak) == (0.5, 10)
    assert met(answered(), sessions=sessions) == [True] * 5
    sessions.saw([{"state": "idle in transaction (aborted)", "number": 11, "seconds": 2.0}])  # type: ignore[list-item]
    assert sessions.in_transaction_seconds == 2.0
    assert met(answered(), sessions=sessions) == [True, True, True, False, False]
