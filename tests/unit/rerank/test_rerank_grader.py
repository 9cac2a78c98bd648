"""Grading by a rerank endpoint: the forms, the calibration, and what an endpoint may answer instead of scores."""

import asyncio
import json
import math
import tracemalloc

import pytest

from cragside.adapters import rerank as endpoints
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.rerank import Calibration, RerankEndpoint, RerankGrader, scores_in
from cragside.application.grading import Grading
from cragside.databases.renewable import Fixed
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.reading import Reading
from tests.exchanged_keys import ExchangedKey
from tests.services.stub_reranker import StubReranker
from tests.services.tools import free_port

KEY = "sk-hush"
QUESTION = "Who designed the tower?"
PASSAGES = [Document("1", "Cats sleep.", "local"), Document("2", "Eiffel designed it.", "local", title="Tower")]


@pytest.fixture
async def stub():
    async with StubReranker() as stub:
        yield stub


@pytest.fixture
async def grader(stub):
    endpoint = RerankEndpoint(stub.url, Fixed(KEY), model="ranker", parallel=2)
    yield RerankGrader(endpoint, Calibration())
    await endpoint.close()


async def failure(grader):
    with pytest.raises(ServiceUnavailable) as failed:
        await grader.grade(QUESTION, PASSAGES)
    assert failed.value.component == "grader"
    return failed.value


async def test_a_probability_stays_what_it_is(grader, stub):
    assert await grader.grade(QUESTION, PASSAGES) == pytest.approx([0.1, 0.9])
    [asked] = stub.bodies
    assert asked == {"model": "ranker", "query": QUESTION, "documents": ["Cats sleep.", "Tower\nEiffel designed it."]}


async def test_an_endpoint_that_knows_texts_alone_is_asked_for_documents_once(grader, stub):
    stub.form = "texts"
    for _ in range(2):
        assert await grader.grade(QUESTION, PASSAGES) == pytest.approx([0.1, 0.9])
    assert ["texts" in asked for asked in stub.bodies] == [False, True, True]
    assert stub.bodies[-1]["truncate"] is True
    assert "model" not in stub.bodies[-1]


async def test_who_graded_is_told(grader):
    assert grader.name == "rerank"


def asked_lengths(stub):
    return [[len(text) for text in body.get("documents") or body["texts"]] for body in stub.bodies]


LONG = Document("1", "Eiffel designed it. " * 300, "local")


@pytest.mark.parametrize("refusal", [400, 413, 422, 500])
async def test_texts_that_are_too_long_are_cut_to_what_the_endpoint_takes(grader, stub, refusal):
    stub.longest, stub.refusal = 1000, refusal
    middle = Document("2", "Cats sleep. " * 50, "local")
    for _ in range(3):
        assert await grader.grade(QUESTION, [LONG, PASSAGES[0], middle]) == pytest.approx([0.9, 0.1, 0.1])
        assert stub.bodies[-1]["query"] == QUESTION
    lengths = asked_lengths(stub)
    # The length is found for the first question alone, in few requests, and only what is longer is cut.
    assert len(lengths) <= 7 + 2
    assert {tuple(each) for each in lengths[-2:]} == {(lengths[-1][0], 11, 599)}
    assert 660 <= lengths[-1][0] <= 1000


@pytest.mark.parametrize(("status", "most"), [(400, 4), (413, 2), (422, 4), (500, 3), (503, 1), (429, 1), (307, 1)])
async def test_an_endpoint_that_refuses_everything_costs_few_requests(grader, stub, status, most):
    stub.status = status
    for asked in (1, 2):
        with pytest.raises(ServiceUnavailable):
            await grader.grade(QUESTION, [LONG, PASSAGES[0]])
        assert len(stub.bodies) == most * asked


@pytest.mark.parametrize(("seconds", "length"), [(600, 750), (-1, 4000)])
async def test_a_length_is_remembered_for_a_while(grader, stub, monkeypatch, seconds, length):
    monkeypatch.setattr(endpoints, "_REMEMBERED_SECONDS", seconds)
    stub.longest = 1000
    await grader.grade(QUESTION, [LONG])
    stub.longest = 1_000_000
    await grader.grade(QUESTION, [LONG])
    assert asked_lengths(stub)[-1] == [pytest.approx(length, abs=250)]


async def test_an_outage_while_a_length_is_found_does_not_withhold_the_scores(grader, stub):
    stub.longest, stub.accepts = 1000, 1
    assert await grader.grade(QUESTION, [LONG, PASSAGES[0]]) == pytest.approx([0.9, 0.1])
    assert [each[0] for each in asked_lengths(stub)[:3]] == [4000, 4000, 200]
    assert len(stub.bodies) == 4
    # The next question finds the length.
    stub.accepts = None
    await grader.grade(QUESTION, [LONG, PASSAGES[0]])
    assert asked_lengths(stub)[-1][0] > 500


async def test_one_refusal_by_mishap_shortens_nothing(grader, stub):
    stub.mishaps = 1
    await grader.grade(QUESTION, [LONG])
    await grader.grade(QUESTION, [LONG])
    assert asked_lengths(stub) == [[4000]] * 3


async def test_control_tokens_reach_no_model(grader, stub):
    await grader.grade("<|im_end|> who?", [Document("1", "<|im_start|>system", "local", title="<|im_end|>")])
    assert "<|im_" not in json.dumps(stub.bodies)


def ranks(*pairs):
    return json.dumps({"results": [{"index": index, "relevance_score": score} for index, score in pairs]}).encode()


@pytest.mark.parametrize(
    "body",
    [
        ranks((0, 0.5)),
        ranks((0, 0.5), (0, 0.6)),
        ranks((0, 0.5), (2, 0.6)),
        ranks((0, 0.5), (-1, 0.6)),
        ranks((0, 0.5), (1, 0.6), (1, 0.6)),
        ranks((0, 0.5), (True, 0.6)),
        ranks((0, 0.5), (1, math.nan)),
        ranks((0, 0.5), (1, math.inf)),
        ranks((0, 0.5), (1, None)),
        ranks((0, 0.5), (1, "0.6")),
        b'[{"index": 0}, {"index": 1}]',
        b'{"error": "no"}',
        b"<html>",
        b"[" * 100_000,
        b"",
    ],
)
async def test_an_answer_that_has_not_one_score_for_each_passage_is_refused(grader, stub, body):
    stub.body = body
    assert "did not answer one score for each passage" in (await failure(grader)).message


@pytest.mark.parametrize("body", [b"[%b{}]" % (b"{}," * 100_000), b'{"results": [%b{}]}' % (b"{}," * 100_000)])
def test_of_a_list_of_wrong_entries_the_first_is_enough(body):
    tracemalloc.start()
    try:
        assert scores_in(body, 2) is None
        assert tracemalloc.get_traced_memory()[1] < 40 * len(body)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("score", [-0.1, 1.1, 7.5])
async def test_a_score_that_is_no_probability_tells_of_the_setting(grader, stub, score):
    stub.body = ranks((0, 0.5), (1, score))
    assert "RAG_RERANK_SCORES=logit" in (await failure(grader)).message


async def test_an_answer_without_an_end_is_not_read(grader, stub):
    stub.body = b" " * (endpoints._MOST_BYTES + 1)
    assert "more than 2,000,000 bytes" in (await failure(grader)).message


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "answered 400"),
        (401, r"refused the key (401). Correct RAG_RERANK_API_KEY"),
        (403, r"refused the key (403). Correct RAG_RERANK_API_KEY"),
        (404, "answered 404. Correct RAG_RERANK_URL"),
        (429, "limits our requests (429)"),
        (503, "answered 503"),
        (307, "redirects. Set RAG_RERANK_URL"),
    ],
)
async def test_a_refusal_is_told_and_the_key_is_not(grader, stub, status, reason, caplog):
    caplog.set_level("DEBUG")
    stub.status = status
    failed = await failure(grader)
    assert reason in failed.message
    assert KEY not in failed.message_with_place + caplog.text
    assert set(stub.authorisations) == {f"Bearer {KEY}"}
    assert len(stub.bodies) <= 2


async def test_a_late_answer_is_an_outage(grader, stub, monkeypatch):
    monkeypatch.setattr(endpoints, "_ANSWER_SECONDS", 0.05)
    stub.late.clear()
    assert "took too long" in (await failure(grader)).message


async def test_nobody_there_is_an_outage():
    endpoint = RerankEndpoint(f"http://127.0.0.1:{free_port()}/rerank", Fixed(""), model=None, parallel=1)
    assert "does not answer" in (await failure(RerankGrader(endpoint, Calibration()))).message
    await endpoint.close()


async def test_the_embedded_grader_steps_in(grader, stub):
    stub.status = 503
    embedded = EmbeddedGrader(WordLlamaEmbedder())
    found = await Grading(grader, embedded).graded(Reading(QUESTION), PASSAGES, seconds=30, threshold=0.6)
    assert (len(found.documents), found.grader) == (2, "embedded")
    assert found.degraded[0].reason == "The rerank endpoint answered 503. The embedded grader stepped in."


async def test_a_refused_key_is_read_anew(stub):
    stub.key = "new"
    endpoint = RerankEndpoint(stub.url, ExchangedKey(), model=None, parallel=1)
    assert await endpoint.scores(QUESTION, ["Eiffel"]) == [0.1]
    assert stub.authorisations == ["Bearer old", "Bearer new"]
    assert "model" not in stub.bodies[-1]
    await endpoint.close()


async def test_requests_beyond_the_limit_wait(stub):
    stub.late.clear()
    endpoint = RerankEndpoint(stub.url, Fixed(""), model=None, parallel=1)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(endpoint.scores(QUESTION, ["Eiffel"]))
        while not stub.bodies:
            await asyncio.sleep(0.01)
        assert len(stub.bodies) == 1
        stub.late.set()
    assert stub.authorisations == [None] * 3
    await endpoint.close()


@pytest.mark.parametrize(
    ("calibration", "grades"),
    [
        (Calibration(), {0.0: 0.0, 0.25: 0.25, 1.0: 1.0}),
        (Calibration("logit"), {0.0: 0.5, -1e300: 0.0, 1e300: 1.0, math.log(3): 0.75}),
        (Calibration("logit", 2.0, -1.0), {0.5: 0.5, 1.0: 1 / (1 + math.exp(-1))}),
        (Calibration("probability", 1.0, math.log(3)), {0.5: 0.75, 0.0: 0.0, 1.0: 1.0}),
    ],
)
def test_calibration(calibration, grades):
    for score, grade in grades.items():
        assert calibration.grade(score) == pytest.approx(grade, abs=1e-12)
