"""`benchmarks.stack` asks and judges, without its servers: a wrong answer never counts as a fast one."""

import json
import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from itertools import islice
from typing import Any

import pytest

from benchmarks.harness import Load
from benchmarks.stack.answers import Answers, Routes, telling, wrong_with
from benchmarks.stack.load import Burst, add_bursts
from benchmarks.stack.questions import Knowledge, answer_of, turns
from benchmarks.stack.servers import stop_on_sigterm
from benchmarks.stack.steady import Steady, drift
from benchmarks.stack.targets import of_answers, of_load, of_steady


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(20, 3)


def answered(*sources: str, degraded: tuple[str, ...] = ()) -> dict[str, Any]:
    documents = [{"source": source} for source in sources]
    return {"metadata": {"rag_context": {"documents": documents, "degraded": list(degraded)}}}


def test_the_web_has_the_page_of_a_question_and_the_documents_have_not(knowledge: Knowledge) -> None:
    for passage in islice(turns(knowledge.web), 20):
        page = knowledge.find(passage.question)[0]
        assert answer_of(passage) in page["content"]
        assert not any(passage.text in text for _, text in [*knowledge.documents, *knowledge.later])


def test_no_question_that_is_asked_of_the_model_names_its_answer(knowledge: Knowledge) -> None:
    for passage in islice(telling(knowledge.local), 20):
        assert answer_of(passage) in passage.text
        assert answer_of(passage) not in passage.question


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (answered("local"), ""),
        (answered("web"), ""),
        (answered(), "no evidence"),
        (answered("local", degraded=("graph",)), "['graph']"),
        ({"metadata": {}}, "no rag_context"),
    ],
)
def test_degraded_answers_and_such_without_evidence_are_failures(answer: dict[str, Any], wrong: str) -> None:
    assert wrong_with(answer) == wrong


def test_drift_compares_the_last_quarter_with_the_second() -> None:
    assert drift([50.0, 90.0, 100.0, 100.0, 300.0, 300.0, 110.0, 110.0]) == pytest.approx(10)
    assert drift([200.0] * 5) == 0
    with pytest.raises(ValueError, match="Four samples"):
        drift([1.0, 2.0, 3.0])


def test_each_promise_is_missed_by_itself() -> None:
    fast, slow = Load([1.0], 1.0), Load([11_000.0], 11.0, ["late"])
    right, wrong = Answers(fast, [1.0], right=1), Answers(slow, [1.0])
    good = [
        *of_answers(Routes(right, Answers(fast, [1.0]), right, fast, fast, ["web"], searches=0)),
        *of_load(Burst(Load([1.0] * 100, 1.0), fast, fast)),
        *of_steady(Steady([1.0] * 4)),
    ]
    assert all(target.met for target in good)
    bad = [
        *of_answers(Routes(wrong, wrong, wrong, slow, slow, ["local"], searches=1)),
        *of_load(Burst(slow, slow, slow, service_mb=501, worker_mb=501)),
        *of_steady(Steady([1.0, 1.0, 1.0, 2.0], failures=["late"], wrong=["no evidence"], cpu=21)),
    ]
    assert [target.name for target in bad if target.met] == []


def test_quick_errors_are_no_quick_answers() -> None:
    refused = Load([1.0] * 20, 0.02, ["status 503"] * 20)
    nothing = Answers(refused, [120_000.0] * 20)
    told = of_answers(Routes(nothing, nothing, nothing, refused, refused, verdicts=[], searches=0))
    assert [target.name for target in told if target.met] == []
    assert "20 failed" in told[0].row()[2]


def test_more_right_than_a_model_that_failed_is_no_gain() -> None:
    fast = Load([1.0], 1.0)
    right, failed = Answers(fast, [1.0], right=1), Answers(Load([1.0], 1.0, ["status 503"]), [120_000.0])
    told = of_answers(Routes(right, failed, right, fast, fast, verdicts=["web"], searches=0))
    assert [target.name.split()[0] for target in told if not target.met] == ["SC-003"]


def test_questions_that_failed_count_as_not_answered_from_the_web() -> None:
    some, fast = Load([1.0] * 20, 1.0, ["status 503"] * 10), Load([1.0], 1.0)
    nothing = Answers(fast, [1.0])
    routes = Routes(nothing, nothing, nothing, fast, some, verdicts=["web", "mixed"] * 4 + ["local"] * 2, searches=0)
    assert routes.fallbacks == 40


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [([9, 5], [5, 0], 1), ([9, 5, 0], [5, 2], 2), ([9, 0], [0], 0), ([0], [], 0), ([9] * 10, [9] * 10, 10)],
)
async def test_only_bursts_that_end_while_tasks_wait_count(before: list[int], after: list[int], kept: int) -> None:
    def in_turn(counts: list[int]) -> Callable[[], Awaitable[int]]:
        given = iter([*counts, 0])

        async def count() -> int:
            return next(given)

        return count

    async def burst() -> Load:
        return Load([1.0] * 100, 1.0)

    done = Burst()
    await add_bursts(done, burst, in_turn(before), in_turn(after))
    assert len(done.local.latencies_ms) == 100 * kept
    assert done.waiting == (9 if kept else 0)


def test_no_burst_while_indexing_is_a_target_missed() -> None:
    fast = Load([1.0], 1.0)
    missed = [target.name for target in of_load(Burst(Load(), fast, fast)) if not target.met]
    assert missed == ["SC-005 100 at once while indexing: requests"]


def test_a_steady_rate_tells_degraded_answers_from_failures() -> None:
    done = Steady()
    for answer in (answered("local"), answered(), answered("local", degraded=("graph",))):
        done.add(200, "", json.dumps(answer).encode())
    done.add(200, "", b'{"message": {"content": "Yes"}}\n{"done": true}\n')
    done.add(200, "search", b'{"done": true}\n')
    done.add(200, "", b'{"message": {"content": "Y"}, "done": false}\n')
    done.add(200, "", b"")
    done.add(503, "", b"busy")
    assert done.answered == 2
    assert done.wrong[:3] == ["no evidence", "['graph']", "search"]
    assert "Y" in done.wrong[3]
    assert done.wrong[4:] == ["no rag_context"]
    assert done.failures == ["status 503: b'busy'"]


def test_sigterm_ends_the_blocks_that_started_servers() -> None:
    before, stopped = signal.getsignal(signal.SIGTERM), []

    def run() -> None:
        with ExitStack() as stack:
            stack.callback(lambda: stopped.append("all"))
            stack.callback(signal.raise_signal, signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

    try:
        stop_on_sigterm()
        with pytest.raises(SystemExit):
            run()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stopped == ["all"]
