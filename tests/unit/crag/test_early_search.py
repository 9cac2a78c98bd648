"""The web is searched while a model judges, if that is set: what counts of it, and what becomes of the rest."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from cragside.crag.early_search import EarlySearch
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.outcome import Findings, Step
from tests.fakes import FakeRepository, FakeSearch, ScriptedGrader, ScriptedJudge
from tests.unit.crag.test_graph import EARLIER, KELP, OTTER, PAGE, find

DOUBTED = {KELP: 0.5, OTTER: 0.2}


class WatchedSearch(FakeSearch):
    """A web that tells when it is asked and when a search is given up. It answers once `goes_on` is set."""

    def __init__(self, *results: dict[str, Any], **scripted: Any) -> None:
        super().__init__(*results, **scripted)
        self.asked = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.given_up = 0
        self.rewrites = 0

    async def search(self, query: str) -> list[dict[str, Any]]:
        self.asked.set()
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return await super().search(query)

    async def transform_query(self, query: str, *, model: str | None = None) -> str:
        self.rewrites += 1
        return await super().transform_query(query, model=model)


class JudgeBeside(ScriptedJudge):
    """A model that judges once the web was asked, and calls `then` before it tells."""

    def __init__(self, search: WatchedSearch, probability: float, then: Callable[[], None] = lambda: None) -> None:
        super().__init__({KELP: probability, OTTER: 0.1})
        self._search = search
        self._then = then

    async def probability(self, model: str, question: str, passage: Document) -> float:
        await self._search.asked.wait()
        self._then()
        return await super().probability(model, question, passage)


async def early(search: FakeSearch | None, **options: Any) -> Findings:
    async with asyncio.timeout(10):
        return await find(search=search, early=True, **{"grader": ScriptedGrader(DOUBTED), **options})


def no_task_is_left() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_web_is_searched_beside_the_judge_and_counts_where_no_passage_passes() -> None:
    search = WatchedSearch(PAGE, rewritten="by a model")
    findings = await early(search, judge=JudgeBeside(search, 0.1, search.goes_on.set))
    assert [(d.source, d.url, d.score) for d in findings.documents] == [("web", PAGE["url"], 0.8)]
    assert search.searched == ["embedded kelp?"]
    assert search.rewrites == 0
    assert findings.search_performed
    assert findings.degraded == ()
    assert set(findings.timings_ms) == {"retrieve", "grade", "transform_query", "web_search", "inject"}
    assert no_task_is_left()


async def test_a_search_that_the_judge_makes_needless_is_given_up_and_dropped() -> None:
    search = WatchedSearch(PAGE)
    findings = await early(search, judge=JudgeBeside(search, 0.95))
    assert [document.content for document in findings.documents] == [KELP]
    assert not findings.search_performed
    assert (search.searched, search.given_up) == ([], 1)
    assert no_task_is_left()


@pytest.mark.parametrize("failure", [None, ServiceUnavailable("search", "down")])
async def test_results_and_errors_that_come_before_a_passage_passes_are_dropped(
    failure: ServiceUnavailable | None,
) -> None:
    search = WatchedSearch(PAGE, failure=failure)
    search.goes_on.set()
    findings = await early(search, judge=JudgeBeside(search, 0.95))
    assert [document.source for document in findings.documents] == ["local"]
    assert (findings.search_performed, findings.degraded) == (False, ())
    assert len(search.searched) == 1


async def test_the_log_has_no_error_of_a_search_that_was_dropped() -> None:
    logged: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))

    class FailingAtTheEnd(WatchedSearch):
        async def search(self, query: str) -> list[dict[str, Any]]:
            try:
                return await super().search(query)
            except asyncio.CancelledError:
                raise ServiceUnavailable("search", "The connection broke.") from None

    search = FailingAtTheEnd()
    begun = EarlySearch(search)
    begun.begin("kelp")
    await search.asked.wait()
    await begun.drop()
    del begun
    gc.collect()
    assert search.given_up == 1
    assert logged == []


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ({KELP: 0.9, OTTER: 0.2}, {"judge": ScriptedJudge({})}),  # a passage passes
        (DOUBTED, {"judge": None}),
        (DOUBTED, {"judge": ScriptedJudge({}, model=None)}),
        ({KELP: 0.1, OTTER: 0.1}, {"judge": ScriptedJudge({})}),  # none could pass
        ({}, {"judge": ScriptedJudge({}), "repository": FakeRepository()}),
    ],
)
async def test_without_a_judgement_the_web_is_searched_as_usual_or_not_at_all(
    scores: dict[str, float], options: dict[str, Any]
) -> None:
    told: list[tuple[list[str], Findings]] = []
    for set_so in (True, False):
        search = FakeSearch(PAGE, rewritten="by a model")
        findings = await find(search=search, early=set_so, grader=ScriptedGrader(scores), **options)
        told.append((search.searched, findings))
    (searched, findings), (usual, expected) = told
    assert searched == usual == ([] if 0.9 in scores.values() else ["by a model"])
    assert [d.content for d in findings.documents] == [d.content for d in expected.documents]
    assert (findings.search_performed, findings.degraded) == (expected.search_performed, expected.degraded)


async def test_a_judge_that_fails_leaves_the_search_that_has_begun() -> None:
    search = WatchedSearch(PAGE)
    judge = JudgeBeside(search, 0.1, search.goes_on.set)
    judge.failure = ServiceUnavailable("grader", "no model")
    findings = await early(search, judge=judge)
    assert [d.source for d in findings.documents] == ["web"]
    assert [d.component for d in findings.degraded] == ["grader"]
    assert len(search.searched) == 1


async def test_a_search_that_fails_beside_the_judge_is_told_as_any_other() -> None:
    search = WatchedSearch(failure=ServiceUnavailable("search", "no answer"))
    findings = await early(search, judge=JudgeBeside(search, 0.1, search.goes_on.set))
    assert [d.content for d in findings.documents] == [KELP]
    assert [(d.component, d.reason) for d in findings.degraded] == [("search", "no answer")]
    assert findings.search_performed
    assert len(search.searched) == 1


async def test_a_search_that_never_answers_takes_only_its_share_of_the_deadline() -> None:
    search = WatchedSearch(PAGE)
    findings = await early(search, judge=JudgeBeside(search, 0.1), seconds=5.0)
    assert [d.component for d in findings.degraded] == ["search"]
    assert search.given_up == 1
    assert no_task_is_left()


async def test_a_client_that_leaves_ends_the_search() -> None:
    search = WatchedSearch(PAGE)
    judge = JudgeBeside(search, 0.1)
    never = asyncio.Event()

    async def wait() -> float:
        await never.wait()
        return 0.0

    judge.probability = lambda *_: wait()  # type: ignore[method-assign]
    asking = asyncio.create_task(early(search, judge=judge))
    await search.asked.wait()
    asking.cancel()
    await asyncio.wait([asking])
    assert search.given_up == 1
    assert no_task_is_left()


async def test_an_error_that_ends_the_run_ends_the_search() -> None:
    search = WatchedSearch(PAGE)
    judge = JudgeBeside(search, 0.1)

    def wrong() -> None:
        raise ConfigurationError("two models")

    judge._then = wrong
    with pytest.raises(ConfigurationError):
        await early(search, judge=judge)
    assert search.given_up == 1
    assert no_task_is_left()


async def test_without_a_search_engine_nothing_begins() -> None:
    findings = await early(None, judge=ScriptedJudge({KELP: 0.1, OTTER: 0.1}))
    assert [d.component for d in findings.degraded] == ["search"]
    assert not findings.search_performed


async def test_a_follow_up_question_is_searched_for_as_it_was_completed() -> None:
    search = WatchedSearch(PAGE)
    judge = JudgeBeside(search, 0.1, search.goes_on.set)
    await early(search, judge=judge, question="Where does it grow?", turns=EARLIER)
    assert search.searched == ["embedded Where does bull kelp grow?"]


async def test_whoever_watches_sees_the_query_and_the_same_steps() -> None:
    search, steps = WatchedSearch(PAGE), list[Step]()
    await early(search, judge=JudgeBeside(search, 0.1, search.goes_on.set), watch=steps.append)
    assert [step.name for step in steps] == ["retrieve", "grade", "decide", "rewrite", "search", "inject"]
    assert steps[3].facts == {"query": "embedded kelp?"}
    assert steps[4].facts == {"searched": True, "passages": 1}


async def test_a_judge_of_two_passages_has_the_web_searched_once() -> None:
    search = WatchedSearch(PAGE)
    judge = JudgeBeside(search, 0.1, search.goes_on.set)
    await early(search, judge=judge, grader=ScriptedGrader({KELP: 0.5, OTTER: 0.4}))
    assert judge.judged == [KELP, OTTER]
    assert len(search.searched) == 1


async def test_questions_about_several_things_are_searched_for_once() -> None:
    search = WatchedSearch(PAGE)
    judge = JudgeBeside(search, 0.1, search.goes_on.set)
    await early(search, judge=judge, question="What does kelp need, and what do otters eat?")
    assert len(search.searched) == 1
