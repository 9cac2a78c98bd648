"""Every state transition of the corrective graph, on the real LangGraph."""

import asyncio
import re
from functools import partial
from typing import Any, Literal

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.follow_up import EmbeddedFollowUps
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.embedded.question_parts import EmbeddedQuestionParts
from cragside.application.enricher import EvidenceRequest
from cragside.application.grading import Deadline, Grading, PassageJudge
from cragside.crag.corrective import CorrectiveRag
from cragside.crag.state import CragTools
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.outcome import Findings
from cragside.domain.prompt import ChatTurn
from cragside.domain.query import SimilaritySearch
from tests.fakes import FakeRepository, FakeSearch, FakeWorkspaces, ScriptedGrader, ScriptedJudge

KELP, OTTER = "kelp grows fast", "otters eat urchins"
PAGE = {"title": "Web page", "url": "https://example.org/kelp", "content": "kelp on the web"}
EMBEDDED = {KELP: 0.5, OTTER: 0.4, "kelp on the web": 0.8}


async def find(
    *,
    repository: FakeRepository | None = None,
    grader: Any = None,
    judge: PassageJudge | None = None,
    search: FakeSearch | None = None,
    embedded: dict[str, float] | None = None,
    rule: Literal["any", "mean"] = "any",
    seconds: float = 5,
    tokens: int = 1000,
    follow_ups: Any = None,
    question: str = "kelp?",
    places: int = 5,
    early: bool = False,
    **presentation: Any,
) -> Findings:
    sources = repository or FakeRepository(SourceText("kelp.md", KELP), SourceText("otter.md", OTTER))
    by_rules = ScriptedGrader(embedded or EMBEDDED)
    tools = CragTools(
        workspaces=FakeWorkspaces(sources),
        grading=Grading(grader or ScriptedGrader({KELP: 0.9, OTTER: 0.2}), by_rules, judge),
        embedded_grader=by_rules,
        near_words=partial(EmbeddedGrader(WordLlamaEmbedder()).matches, near=True),
        search=search,
        follow_ups=follow_ups or EmbeddedFollowUps(),
        embedded_follow_ups=EmbeddedFollowUps(),
        embedded_rewrite=lambda question: f"embedded {question}",
        read_parts=EmbeddedQuestionParts().read,
        unnamed=EmbeddedQuestionParts().unnamed,
        decision=rule,
        count_tokens=lambda text: len(text.split()),
        candidates=8,
        search_early=early,
    )
    rag = CorrectiveRag(tools)
    await rag.prepare()  # LangGraph is imported before the deadline begins, as in a service
    request = EvidenceRequest(
        question, "default", Deadline(seconds), tokens, model="m", max_documents=places, **presentation
    )
    return await rag.find(request)


async def hang() -> None:
    await asyncio.sleep(60)


async def test_a_local_hit_is_injected_and_the_web_is_left_alone() -> None:
    search = FakeSearch(PAGE)
    findings = await find(search=search)
    assert [(d.content, d.score) for d in findings.documents] == [(KELP, 0.9)]
    assert KELP in findings.block
    assert OTTER not in findings.block
    assert search.searched == []
    assert not findings.search_performed
    assert findings.degraded == ()
    assert set(findings.timings_ms) == {"retrieve", "grade", "inject"}


async def test_weak_local_evidence_is_corrected_with_the_rewritten_query() -> None:
    search = FakeSearch(PAGE, rewritten="kelp growth rate")
    findings = await find(grader=ScriptedGrader({KELP: 0.6, OTTER: 0.1}), search=search)
    assert search.searched == ["kelp growth rate"]
    assert findings.search_performed
    assert [(d.source, d.url, d.score) for d in findings.documents] == [("web", PAGE["url"], 0.8)]
    assert set(findings.timings_ms) == {"retrieve", "grade", "transform_query", "web_search", "inject"}


async def test_with_the_mean_rule_passing_local_evidence_is_joined_by_the_web() -> None:
    findings = await find(rule="mean", search=FakeSearch(PAGE))
    assert [d.source for d in findings.documents] == ["local", "web"]


async def test_the_model_of_the_request_judges_where_no_passage_passes() -> None:
    judge = ScriptedJudge({KELP: 0.95, OTTER: 0.1})
    sure = await find(judge=judge)
    assert (judge.requested, sure.grader, sure.judge, sure.asked) == ([], "embedded", None, 0)
    unsure = await find(grader=ScriptedGrader({KELP: 0.5, OTTER: 0.2}), judge=judge)
    assert (judge.requested, unsure.grader, unsure.judge, unsure.asked) == (["m"], "embedded", "judge", 1)
    assert [document.content for document in unsure.documents] == [KELP]


async def test_an_empty_knowledge_base_goes_to_the_web() -> None:
    findings = await find(repository=FakeRepository(), search=FakeSearch(PAGE))
    assert [d.source for d in findings.documents] == ["web"]
    assert findings.degraded == ()


async def test_an_unavailable_knowledge_base_leads_to_the_web_and_degrades() -> None:
    down = FakeRepository(failure=ServiceUnavailable("knowledge_base", "no store"))
    findings = await find(repository=down, search=FakeSearch(PAGE))
    assert [d.source for d in findings.documents] == ["web"]
    assert [(d.component, d.reason) for d in findings.degraded] == [("knowledge_base", "no store")]


async def test_an_embedding_model_that_is_down_is_a_knowledge_base_that_could_not_be_asked() -> None:
    down = FakeRepository(failure=ServiceUnavailable("embedder", "no model"))
    findings = await find(repository=down, search=FakeSearch(failure=ServiceUnavailable("search", "down")))
    assert [(d.component, d.reason) for d in findings.degraded] == [("knowledge_base", "no model"), ("search", "down")]


async def test_a_grader_that_is_down_is_replaced_by_the_embedded_one() -> None:
    async def die() -> None:
        raise ServiceUnavailable("grader", "Ollama is gone.")

    findings = await find(grader=ScriptedGrader({}, before=die), embedded={KELP: 0.7, OTTER: 0.1})
    assert [d.score for d in findings.documents] == [0.7]
    assert [d.component for d in findings.degraded] == ["grader"]
    assert "embedded grader" in findings.degraded[0].reason


async def test_a_hanging_grader_takes_only_its_share_of_the_deadline() -> None:
    findings = await find(grader=ScriptedGrader({}, before=hang), embedded={KELP: 0.7, OTTER: 0.1}, seconds=0.5)
    assert [d.score for d in findings.documents] == [0.7]
    assert findings.degraded[0].component == "grader"


async def test_without_a_search_engine_the_best_local_evidence_is_used_and_the_gap_named() -> None:
    findings = await find(grader=ScriptedGrader({KELP: 0.5, OTTER: 0.1}))
    assert [d.score for d in findings.documents] == [0.5]
    assert not findings.search_performed
    assert [d.component for d in findings.degraded] == ["search"]
    assert "SEARXNG_HOST" in findings.degraded[0].reason


async def test_a_search_engine_that_is_down_leaves_the_local_evidence() -> None:
    search = FakeSearch(failure=ServiceUnavailable("search", "no answer"))
    findings = await find(grader=ScriptedGrader({KELP: 0.5, OTTER: 0.1}), search=search)
    assert [d.content for d in findings.documents] == [KELP]
    assert [d.component for d in findings.degraded] == ["search"]


async def test_a_rewriter_that_is_down_is_replaced_by_rules() -> None:
    search = FakeSearch(PAGE, rewritten=ServiceUnavailable("rewriter", "no model"))
    findings = await find(grader=ScriptedGrader({KELP: 0.1, OTTER: 0.1}), search=search)
    assert search.searched == ["embedded kelp?"]
    assert [d.component for d in findings.degraded] == ["rewriter"]
    assert [d.source for d in findings.documents] == ["web"]


async def test_a_search_without_results_is_not_an_outage() -> None:
    findings = await find(grader=ScriptedGrader({KELP: 0.1, OTTER: 0.1}), search=FakeSearch())
    assert findings.documents == ()
    assert findings.block == ""
    assert findings.search_performed
    assert findings.degraded == ()


async def test_weak_local_evidence_does_not_stand_in_for_a_web_that_was_asked() -> None:
    beside_the_point = {**EMBEDDED, "kelp on the web": 0.01}
    findings = await find(
        grader=ScriptedGrader({KELP: 0.6, OTTER: 0.5}), search=FakeSearch(PAGE), embedded=beside_the_point
    )
    assert findings.documents == ()
    assert findings.search_performed


async def test_with_everything_down_nothing_is_injected_and_everything_is_named() -> None:
    findings = await find(
        repository=FakeRepository(failure=ServiceUnavailable("knowledge_base", "down")),
        search=FakeSearch(failure=ServiceUnavailable("search", "down")),
    )
    assert findings.block == ""
    assert [d.component for d in findings.degraded] == ["knowledge_base", "search"]


async def test_evidence_is_packed_to_the_tokens_there_are() -> None:
    findings = await find(tokens=10)
    assert findings.block == ""
    assert findings.documents == findings.closest == ()
    assert [d.component for d in findings.degraded] == ["context_window"]
    assert not findings.hold_nothing


async def test_where_nothing_is_evidence_the_nearest_passages_are_named_and_stay_out_of_the_block() -> None:
    findings = await find(grader=ScriptedGrader({KELP: 0.1, OTTER: 0.2}))
    assert (findings.block, findings.documents) == ("", ())
    assert [(d.content, d.score) for d in findings.closest] == [(OTTER, 0.2), (KELP, 0.1)]
    assert findings.hold_nothing


async def test_where_there_is_evidence_nothing_is_closest() -> None:
    assert (await find()).closest == ()
    assert (await find(grader=ScriptedGrader({KELP: 0.5, OTTER: 0.1}))).closest == ()
    nothing_local = ScriptedGrader({KELP: 0.1, OTTER: 0.1})
    assert (await find(grader=nothing_local, search=FakeSearch(PAGE))).closest == ()


async def test_the_nearest_are_three_passages_that_the_budget_of_evidence_takes() -> None:
    texts = {f"{name} {'kelp ' * 60}".strip(): 0.2 - number / 100 for number, name in enumerate("abcde")}
    repository = FakeRepository(*(SourceText(f"{text[0]}.md", text) for text in texts))
    grader = ScriptedGrader(texts)
    closest = (await find(repository=repository, grader=grader)).closest
    assert [each.content[0] for each in closest] == ["a", "b", "c"]
    closest = (await find(repository=repository, grader=grader, tokens=200)).closest
    assert [each.content[0] for each in closest] == ["a", "b"]


async def test_a_knowledge_base_that_could_not_be_asked_is_not_said_to_hold_nothing() -> None:
    down = FakeRepository(failure=ServiceUnavailable("knowledge_base", "down"))
    assert not (await find(repository=down, search=FakeSearch())).hold_nothing


async def test_a_knowledge_base_that_fails_at_the_nearest_passages_names_none() -> None:
    class Failing(FakeRepository):
        async def similar(self, search: SimilaritySearch) -> list[Document]:
            raise ServiceUnavailable("knowledge_base", "down")

    findings = await find(repository=Failing())
    assert (findings.block, findings.documents, findings.closest) == ("", (), ())


async def test_a_configuration_error_is_not_degraded_away() -> None:
    with pytest.raises(ConfigurationError):
        await find(repository=FakeRepository(failure=ConfigurationError("two models")))


async def test_a_hundred_runs_at_once_do_not_mix() -> None:
    runs = [find(grader=ScriptedGrader({KELP: 0.61 + i / 1000, OTTER: 0.0})) for i in range(100)]
    scores = [findings.documents[0].score for findings in await asyncio.gather(*runs)]
    assert scores == [0.61 + i / 1000 for i in range(100)]


async def test_the_instruction_stands_ahead_of_the_evidence() -> None:
    block = (await find(instruction="Say it in verse.")).block
    assert re.match(r"Say it in verse\.\n<evidence-\w{6}>\n\[1\] kelp", block)


async def test_compressed_evidence_is_injected_and_reported() -> None:
    kelp, rest = f"kelp {'grows ' * 25}.", f"Otters {'sleep ' * 25}."
    scores = {kelp: 0.9, rest: 0.1, f"{kelp} {rest}": 0.8}
    repository = FakeRepository(SourceText("kelp.md", f"{kelp} {rest}"))
    findings = await find(repository=repository, grader=ScriptedGrader(scores), embedded=scores, compress=True)
    assert [(d.content, d.score) for d in findings.documents] == [(kelp, 0.8)]
    assert "Otters" not in findings.block


class RecordingGrader(ScriptedGrader):
    """Remembers the questions it grades for."""

    asked: list[str]

    async def grade(self, question: str, documents: Any) -> list[float]:
        self.asked = [*getattr(self, "asked", []), question]
        return await super().grade(question, documents)


class FailingReader:
    """A chat model that is down, or never answers."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.hangs = hangs

    async def standalone(self, _question: str, _turns: Any, *, model: str | None) -> str:
        if self.hangs:
            await hang()
        raise ServiceUnavailable("conversation", f"{model} is gone.")


EARLIER = (ChatTurn("user", "What is bull kelp?"),)


async def test_a_follow_up_question_is_graded_and_searched_with_the_words_it_leaves_out() -> None:
    grader, search = RecordingGrader({KELP: 0.1, OTTER: 0.1}), FakeSearch(PAGE)
    findings = await find(grader=grader, search=search, question="Where does it grow?", turns=EARLIER)
    assert findings.standalone_question == "Where does bull kelp grow?"
    assert grader.asked == ["Where does bull kelp grow?"]
    assert "complete_question" in findings.timings_ms


async def test_a_question_that_stands_alone_is_unchanged_by_the_conversation() -> None:
    grader = RecordingGrader({KELP: 0.9, OTTER: 0.2})
    findings = await find(grader=grader, question="How fast does giant kelp grow?", turns=EARLIER)
    assert findings.standalone_question is None
    assert grader.asked == ["How fast does giant kelp grow?"]


@pytest.mark.parametrize("hangs", [False, True])
async def test_rules_complete_the_question_when_the_model_fails(hangs: bool) -> None:
    reader = FailingReader(hangs=hangs)
    findings = await find(follow_ups=reader, question="Where does it grow?", turns=EARLIER, seconds=0.5)
    assert findings.standalone_question == "Where does bull kelp grow?"
    assert [d.component for d in findings.degraded] == ["conversation"]
    assert [d.content for d in findings.documents] == [KELP]
