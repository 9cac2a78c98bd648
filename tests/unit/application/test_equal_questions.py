"""Equal questions that are asked at the same time are answered by one search for evidence."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cragside.application.enricher import Enriched, Enricher, EvidenceRequest
from cragside.application.grading import Deadline
from cragside.application.memory import Recollection
from cragside.application.similar_evidence import NoEvidence
from cragside.application.single_flight import SingleFlight
from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.outcome import Findings, Step
from cragside.domain.preferences import Preferences
from cragside.domain.token_counts import use_window
from cragside.settings import load_settings
from tests.clocks import MovedClock
from tests.fakes import FakeRepository, FakeSearch, FakeWorkspaces
from tests.indexing import text

ASKED = {"prompt": "/rag what?", "model": "m"}


class HeldFinder:
    """Finds the number of its run, once the test lets it go on. `failure` is raised instead."""

    def __init__(self) -> None:
        self.requests: list[EvidenceRequest] = []
        self.began = asyncio.Semaphore(0)
        self.goes_on = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.cleaned_up = asyncio.Event()
        self.cleaned_up.set()
        self.failure: Exception | None = None

    async def find(self, request: EvidenceRequest) -> Findings:
        self.requests.append(request)
        number = len(self.requests)
        self.began.release()
        if request.watch is not None:
            request.watch(Step("retrieve", 1.0))
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            await self.cleaned_up.wait()
            raise
        if self.failure is not None:
            raise self.failure
        if request.watch is not None:
            request.watch(Step("inject", 1.0))
        text = f"{request.workspace} {number}"
        return Findings(f"BLOCK {number}", (Document(f"d{number}", text, "local", score=0.9),), False)


class Arrivals:
    """The preferences of a workspace, which each request reads just before it looks for a search under way."""

    def __init__(self) -> None:
        self.given = Preferences(1000, 200, 5, None, "similarity")
        self.came = asyncio.Semaphore(0)

    async def at_hand(self, workspace: str, *, seconds: float) -> tuple[Preferences, str]:
        self.came.release()
        return self.given, ""


class VersionedRepository(FakeRepository):
    """A store whose version takes a question to a server."""

    def __init__(self) -> None:
        super().__init__()
        self.failure_of_version: Exception | None = None
        self.told = asyncio.Semaphore(0)

    async def version(self) -> str:
        await asyncio.sleep(0)
        self.told.release()
        if self.failure_of_version is not None:
            raise self.failure_of_version
        return await super().version()


class Asking:
    """An enricher, and what it asks."""

    def __init__(self, *, at_hand: str | None = "1", **settings: Any) -> None:
        self.finder, self.preferences, self.repository = HeldFinder(), Arrivals(), VersionedRepository()
        self.workspaces = FakeWorkspaces(self.repository, at_hand=at_hand)
        finders: dict[Any, Any] = {"corrective": self.finder, "off": NoEvidence()}
        usual: dict[str, Any] = {"prefix": "/rag", "default_workspace": "home", "timeout": 30, "fail_mode": "open"}
        limits = {"question_limit": 100, "evidence_tokens": 3000}
        workspaces: Any = self.workspaces
        preferences: Any = self.preferences
        self.enricher = Enricher(finders, workspaces, preferences, **{**usual, **limits, **settings})

    async def ask(self, request: dict[str, Any] = ASKED, **options: Any) -> asyncio.Task[Enriched]:
        """Ask, and return once the request waits for its evidence."""
        asking = asyncio.create_task(self.enricher.enrich(request, **options))
        await self.preferences.came.acquire()
        return asking

    @property
    def runs(self) -> int:
        return len(self.finder.requests)

    async def begun(self, runs: int = 1) -> None:
        for _ in range(runs):
            await self.finder.began.acquire()


def texts(*answered: asyncio.Task[Enriched]) -> list[str]:
    contexts = [each.result().rag_context for each in answered]
    return [context.documents[0].content for context in contexts if context is not None]


@pytest.fixture
def asking() -> Asking:
    return Asking()


async def answered(asking: Asking, *waiting: asyncio.Task[Enriched]) -> list[str]:
    asking.finder.goes_on.set()
    await asyncio.wait(waiting)
    return texts(*waiting)


async def test_equal_questions_at_the_same_time_are_searched_for_once(asking: Asking) -> None:
    waiting = [await asking.ask({**ASKED, "id": f"r{n}", "custom": n}) for n in range(100)]
    assert await answered(asking, *waiting) == ["home 1"] * 100
    assert asking.runs == 1
    assert [each.result().request for each in waiting] == [
        {"id": f"r{n}", "custom": n, "model": "m", "prompt": "BLOCK 1\n\nwhat?"} for n in range(100)
    ]
    assert set(asking.repository.queries) == {f"r{n}" for n in range(100)}


async def test_a_question_after_the_answer_is_searched_for_anew(asking: Asking) -> None:
    first = await answered(asking, await asking.ask())
    second = await answered(asking, await asking.ask())
    assert (first, second) == (["home 1"], ["home 2"])


async def test_nothing_is_kept_of_a_run_that_has_ended() -> None:
    class Found:
        pass

    async def work(_watch: object) -> Found:
        return Found()

    runs: SingleFlight[Found] = SingleFlight()
    found = weakref.ref(await runs.run("what?", work, deadline=Deadline(30), version="1"))
    await asyncio.sleep(0)
    gc.collect()
    assert found() is None
    assert "what?" not in runs


@contextmanager
def unchanged(asking: Asking) -> Iterator[None]:
    yield


@contextmanager
def changed_threshold(asking: Asking) -> Iterator[None]:
    asking.preferences.given = replace(asking.preferences.given, threshold=0.8)
    yield


@contextmanager
def another_window(asking: Asking) -> Iterator[None]:
    with use_window("m", 8192):
        yield


TURNS = [{"role": "user", "content": "/rag before?"}, {"role": "user", "content": "/rag what?"}]


@pytest.mark.parametrize(
    ("request_", "options", "meanwhile"),
    [
        ({"prompt": "/rag what else?"}, {}, unchanged),
        ({"workspace": "other"}, {}, unchanged),
        ({}, {"workspace": "other"}, unchanged),
        ({"model": "n"}, {}, unchanged),
        ({"model": None}, {}, unchanged),
        ({"persona": "strict-en"}, {}, unchanged),
        ({}, {"persona": "strict-en"}, unchanged),
        ({"compress": True}, {}, unchanged),
        ({}, {"evidence_tokens": 2999}, unchanged),
        ({"prompt": None, "messages": TURNS}, {}, unchanged),
        ({}, {}, changed_threshold),
        ({}, {}, another_window),
    ],
)
async def test_what_changes_the_evidence_is_searched_for_by_itself(
    asking: Asking, request_: dict[str, Any], options: dict[str, Any], meanwhile: Callable[[Asking], Any]
) -> None:
    first = await asking.ask()
    with meanwhile(asking):
        second = await asking.ask({**ASKED, **request_}, **options)
    await asking.begun(2)
    found = await answered(asking, first, second)
    assert [text.rpartition(" ")[2] for text in found] == ["1", "2"]


@pytest.mark.parametrize(
    ("request_", "options"),
    [({"memory": True}, {}), ({"tell_none": True}, {}), ({"user_id": "ada"}, {}), ({}, {"end_user": "ada"})],
)
async def test_what_does_not_change_the_evidence_shares_the_search(
    asking: Asking, request_: dict[str, Any], options: dict[str, Any]
) -> None:
    waiting = [await asking.ask(), await asking.ask({**ASKED, **request_}, **options)]
    assert await answered(asking, *waiting) == ["home 1"] * 2


async def test_two_tenants_never_share_a_search(asking: Asking) -> None:
    waiting = [await asking.ask(workspace=name) for name in ("ours", "theirs", "ours", "theirs")]
    assert await answered(asking, *waiting) == ["ours 1", "theirs 2", "ours 1", "theirs 2"]


async def test_each_user_gets_the_memories_of_that_user_alone() -> None:
    class Remembering:
        async def evidence(self, question: str, *, end_user: str, **_: Any) -> Recollection:
            return Recollection(f"What {end_user} said.")

    asking = Asking(memory=Remembering)
    waiting = [await asking.ask(end_user=user, memory=True) for user in ("ada", "bob")]
    assert await answered(asking, *waiting) == ["home 1"] * 2
    assert [each.result().request["prompt"] for each in waiting] == [
        "BLOCK 1\n\nWhat ada said.\n\nwhat?",
        "BLOCK 1\n\nWhat bob said.\n\nwhat?",
    ]


async def test_a_question_after_a_change_of_the_documents_gets_the_new_ones(asking: Asking) -> None:
    before = await asking.ask()
    asking.workspaces.at_hand = "2"
    after = [await asking.ask(), await asking.ask()]
    assert await answered(asking, before, *after) == ["home 1", "home 2", "home 2"]


async def test_where_a_version_has_to_be_asked_for_the_second_question_begins_the_shared_search() -> None:
    asking = Asking(at_hand=None)
    first = await asking.ask()
    second = await asking.ask()
    await asking.begun(2)
    waiting = [await asking.ask() for _ in range(3)]
    for _ in (second, *waiting):
        await asking.repository.told.acquire()
    asking.repository.changes += 1
    changed = await asking.ask()
    await asking.begun()
    assert await answered(asking, first, second, *waiting, changed) == ["home 1", *["home 2"] * 4, "home 3"]


async def test_a_question_whose_version_cannot_be_told_is_searched_for_by_itself() -> None:
    asking = Asking(at_hand=None)
    asking.repository.failure_of_version = ServiceUnavailable("knowledge_base", "down")
    waiting = [await asking.ask() for _ in range(3)]
    await asking.begun(3)
    assert await answered(asking, *waiting) == ["home 1", "home 2", "home 3"]


@pytest.mark.parametrize("leaving", [0, 1])
async def test_a_client_that_leaves_ends_no_other_ones_search(asking: Asking, leaving: int) -> None:
    waiting = [await asking.ask({**ASKED, "id": f"r{n}"}) for n in range(3)]
    await asking.begun()
    waiting[leaving].cancel()
    await asyncio.wait([waiting[leaving]])
    assert not asking.finder.cancelled.is_set()
    staying = [each for each in waiting if not each.cancelled()]
    assert await answered(asking, *staying) == ["home 1"] * 2
    assert set(asking.repository.queries) == {"r0", "r1", "r2"} - {f"r{leaving}"}


async def test_a_client_whose_time_is_up_ends_no_other_ones_search(asking: Asking) -> None:
    staying = await asking.ask()
    await asking.begun()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asking.enricher.enrich(ASKED)
    assert await answered(asking, staying) == ["home 1"]
    assert asking.runs == 1


async def test_a_search_that_nobody_waits_for_is_cancelled_and_not_joined(asking: Asking) -> None:
    asking.finder.cleaned_up.clear()
    leaving = [await asking.ask() for _ in range(2)]
    await asking.begun()
    for each in leaving:
        each.cancel()
    await asking.finder.cancelled.wait()
    later = await asking.ask()
    await asking.begun()
    asking.finder.cleaned_up.set()
    await asyncio.wait(leaving)
    assert all(each.cancelled() for each in leaving)
    assert await answered(asking, later) == ["home 2"]


async def test_an_error_reaches_all_who_wait(asking: Asking) -> None:
    asking.finder.failure = ConfigurationError("Set OPENAI_API_KEY.")
    waiting = [await asking.ask() for _ in range(3)]
    asking.finder.goes_on.set()
    await asyncio.wait(waiting)
    assert [each.exception() for each in waiting] == [asking.finder.failure] * 3
    assert asking.repository.queries == {}
    asking.finder.failure = None
    assert await answered(asking, await asking.ask()) == ["home 2"]


async def test_fail_mode_closed_refuses_each_of_them() -> None:
    asking = Asking(fail_mode="closed")
    asking.finder.failure = ServiceUnavailable("knowledge_base", "down")
    waiting = [await asking.ask() for _ in range(2)]
    asking.finder.goes_on.set()
    await asyncio.wait(waiting)
    assert [type(each.exception()) for each in waiting] == [ServiceUnavailable] * 2
    assert asking.runs == 1


async def test_whoever_watches_later_sees_all_steps_and_shares_with_watchers_alone(asking: Asking) -> None:
    seen: list[list[str]] = [[], [], []]
    plain = await asking.ask()
    first, leaving = [await asking.ask(watch=lambda step, n=n: seen[n].append(step.name)) for n in (0, 1)]
    await asking.begun(2)
    second = await asking.ask(watch=lambda step: seen[2].append(step.name))
    leaving.cancel()
    await asyncio.wait([leaving])
    assert await answered(asking, plain, first, second) == ["home 1", "home 2", "home 2"]
    assert seen == [["retrieve", "inject"], ["retrieve"], ["retrieve", "inject"]]
    assert asking.finder.requests[0].watch is None


@pytest.mark.parametrize(
    ("passed", "seconds", "shared"), [(0, 30, True), (14, 30, True), (16, 30, False), (0, 29, False), (10, 20, True)]
)
async def test_a_search_is_shared_with_those_who_have_about_its_time(
    passed: float, seconds: float, shared: bool
) -> None:
    clock = MovedClock()
    asking = Asking(clock=clock)
    first = await asking.ask()
    await asking.begun()
    clock.move(passed)
    second = await asking.ask(timeout=seconds)
    assert await answered(asking, first, second) == ["home 1", "home 1" if shared else "home 2"]


async def test_searches_of_two_event_loops_are_apart(asking: Asking) -> None:
    first = await asking.ask()
    await asking.begun()
    held, asking.finder.goes_on = asking.finder.goes_on, asyncio.Event()
    asking.finder.goes_on.set()
    elsewhere = await asyncio.to_thread(asyncio.run, asking.enricher.enrich(ASKED))
    assert elsewhere.request["prompt"] == "BLOCK 2\n\nwhat?"
    held.set()
    assert await answered(asking, first) == ["home 1"]


class HeldSearch(FakeSearch):
    """A web that answers once the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def search(self, query: str) -> list[dict[str, Any]]:
        self.asked.set()
        await self.goes_on.wait()
        return await super().search(query)


async def test_a_note_that_is_taken_while_its_question_is_under_way_answers_the_next_one(tmp_path: Path) -> None:
    search = HeldSearch()
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), search=search)
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([text("pump.md", "The pump of the mill was repaired in 1911.")])
    request = {"prompt": "/rag Who opened the Craster bridge in 1864?"}
    before = asyncio.create_task(container.enricher.enrich(request))
    await search.asked.wait()
    await repository.save_documents([text("bridge.md", "Mary Grey opened the Craster bridge in 1864.")])
    after = await container.enricher.enrich(request)
    assert not before.done()
    search.goes_on.set()
    assert (await before).rag_context.verdict == "none"  # type: ignore[union-attr]
    assert after.rag_context is not None
    assert [each.metadata["filename"] for each in after.rag_context.documents] == ["bridge.md"]
    assert len(search.searched) == 1
    await container.close()
