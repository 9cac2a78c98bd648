"""`POST /v1/query`: both figures under their names, and the same relevance as `/rag`."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.store.chunking import searched_text
from tests.fakes import WordGrader
from tests.knowledge import Knowledge, answer_of

QUESTION = "Who lights the harbour lamp?"
# The words of the question, and its answer: the first one is nearer, the second one answers.
TEXTS = {
    "names.md": "Lamp, harbour lamp, harbour light, lights of the harbour lamp: who lights?",
    "keeper.md": "The keeper lights the lamp of the harbour at dusk, and puts it out again when the sun has risen.",
    "pump.md": "A heat pump moves heat from a cold place to a warm one.",
}


async def filled(made: Knowledge) -> Knowledge:
    for name, text in TEXTS.items():
        document = {"name": name, "title": "Harbours", "text": text, "metadata": {"kind": name[0]}}
        await made.http.post("/v1/documents", json=document)
    await made.index()
    return made


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def knowledge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Knowledge]:
    """For tests that only read, or are refused."""
    made = await filled(Knowledge(tmp_path_factory.mktemp("read")))
    yield made
    await made.close()


async def ask(knowledge: Knowledge, query: str = QUESTION, **body: Any) -> dict[str, Any]:
    told: dict[str, Any] = answer_of(await knowledge.http.post("/v1/query", json={"query": query, **body}))
    return told


def sources(answer: dict[str, Any]) -> list[str]:
    return [result["source"] for result in answer["results"]]


async def test_passages_come_by_relevance_with_the_figure_of_rag(knowledge: Knowledge) -> None:
    answer = await ask(knowledge)
    assert (answer["by"], answer["degraded"], answer["best"], answer["graph"]) == ("relevance", [], None, None)
    assert sources(answer)[0] == "keeper.md"
    enriched = await knowledge.http.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"})
    injected = {each["content"]: each["score"] for each in enriched.json()["metadata"]["rag_context"]["documents"]}
    assert injected
    graded = {result["text"]: result["relevance"] for result in answer["results"]}
    assert injected.items() <= graded.items()
    assert answer["results"][0].keys() == {"id", "relevance", "similarity", "source", "title", "text", "payload"}


async def test_the_similarity_is_the_cosine_in_both_rankings(knowledge: Knowledge) -> None:
    texts = [searched_text("Harbours", text) for text in TEXTS.values()]
    question, *vectors = WordLlamaEmbedder().encode([QUESTION, *texts])
    cosines = dict(zip(TEXTS, np.clip(np.array(vectors) @ question, 0, 1).round(4).tolist(), strict=True))
    for options in ({}, {"by": "similarity", "min_similarity": 0}):
        answer = await ask(knowledge, **options)
        told = {result["source"]: result["similarity"] for result in answer["results"]}
        assert told == pytest.approx(cosines, abs=2e-4)
    assert sources(answer) == sorted(cosines, key=lambda name: -cosines[name])
    assert {result["relevance"] for result in answer["results"]} == {None}


async def test_least_figures_leave_passages_out(knowledge: Knowledge) -> None:
    everything = (await ask(knowledge))["results"]
    assert len(everything) == 3
    best = everything[0]
    assert sources(await ask(knowledge, min_relevance=best["relevance"] - 0.001)) == [best["source"]]
    near = [each["source"] for each in everything if each["similarity"] >= 0.5]
    assert sources(await ask(knowledge, min_similarity=0.5)) == near != []
    assert len(near) < 3
    nothing = await ask(knowledge, min_relevance=1)
    assert (nothing["results"], nothing["best"]) == ([], best["relevance"])
    nothing = await ask(knowledge, by="similarity", min_similarity=1)
    assert (nothing["results"], nothing["best"]) == ([], max(each["similarity"] for each in everything))


async def test_a_plain_similarity_search_takes_a_least_cosine_that_fits_the_model(tmp_path: Path) -> None:
    knowledge = await filled(Knowledge(tmp_path))
    answer = await ask(knowledge, by="similarity")
    assert sources(answer) == ["names.md", "keeper.md"]
    assert all(result["similarity"] >= 0.3 for result in answer["results"])
    await knowledge.http.patch("/v1/settings", json={"similarity_threshold": 0})
    assert (await knowledge.http.get("/v1/settings")).json()["similarity_threshold"] == 0
    assert len((await ask(knowledge, by="similarity"))["results"]) == 3
    await knowledge.http.patch("/v1/settings", json={"similarity_threshold": 0.9})
    assert sources(await ask(knowledge, by="similarity")) == ["names.md"]
    await knowledge.close()


async def test_a_filter_finds_what_the_question_is_far_from(knowledge: Knowledge) -> None:
    wanted = {"must": [{"key": "kind", "match": {"value": "p"}}]}
    for by in ("relevance", "similarity"):
        assert sources(await ask(knowledge, by=by, min_similarity=0, filter=wanted)) == ["pump.md"]


async def test_the_number_the_mode_and_the_graph_can_be_asked_for(knowledge: Knowledge) -> None:
    assert sources(await ask(knowledge, limit=1)) == ["keeper.md"]
    assert sources(await ask(knowledge, mode="naive", limit=1)) == ["keeper.md"]
    assert (await ask(knowledge, graph=True))["graph"].keys() == {"entities", "relationships", "capped"}
    assert (await ask(knowledge, workspace="empty"))["results"] == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"by": "taste"}, "by"),
        ({"limit": 0}, "limit"),
        ({"min_relevance": 2}, "min_relevance"),
        ({"topK": 3}, "topK"),
        ({"by": "similarity", "mode": "mix"}, "mode is an option of a search by relevance"),
        ({"by": "similarity", "min_relevance": 0}, "min_relevance is an option of a search by relevance"),
        ({"by": "similarity", "model": "llama3.2"}, "model is an option of a search by relevance"),
        ({"strategy": "mmr"}, "strategy is an option of a search by similarity"),
        ({"balance": 0}, "balance is an option of a search by similarity"),
        ({"by": "similarity", "strategy": "similarity", "fetch": 9}, "options of the strategy mmr"),
        ({"query": " "}, "query"),
    ],
)
async def test_what_cannot_be_meant_is_refused(knowledge: Knowledge, body: dict[str, Any], said: str) -> None:
    answer = await knowledge.http.post("/v1/query", json={"query": QUESTION, **body})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "validation_error")
    assert said in answer.json()["error"]["message"]


class Grader(WordGrader):
    """Stands for the grader of `/rag`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        self.asked.append(query)
        if self.fails:
            raise ServiceUnavailable("grader", "The endpoint is down.")
        return [0.9 if "heat" in document.content else 0.2 for document in documents]


async def test_the_grader_of_rag_grades_and_the_embedded_one_replaces_it(tmp_path: Path) -> None:
    grader = Grader()
    knowledge = await filled(Knowledge(tmp_path, members={"grader": grader}))
    try:
        assert (await ask(knowledge))["results"][0]["relevance"] == 0.9
        assert len(grader.asked) == 1
        peers = (await knowledge.http.post("/query", json={"query": QUESTION, "topK": 1})).json()
        assert peers["results"][0]["source"] == "keeper.md"
        assert len(grader.asked) == 1, "peers' routes wait for no host"
        await ask(knowledge, by="similarity")
        assert len(grader.asked) == 1, "a search by similarity grades nothing"
        grader.fails = True
        answer = await ask(knowledge)
        assert sources(answer)[0] == "keeper.md"
        reason = "The endpoint is down. The embedded grader stepped in."
        assert answer["degraded"] == [{"component": "grader", "reason": reason}]
    finally:
        await knowledge.close()


async def test_peers_get_the_relevance_as_score_unless_they_ask_for_similarity(knowledge: Knowledge) -> None:
    own = {result["source"]: result for result in (await ask(knowledge))["results"]}
    for body, figure in (
        ({"topK": 3}, "relevance"),
        ({"mode": "naive"}, "relevance"),
        ({"strategy": "similarity", "threshold": 0}, "similarity"),
    ):
        answer = (await knowledge.http.post("/query", json={"query": QUESTION, **body})).json()
        results = answer["results"]
        scores = [result["score"] for result in results]
        assert (f"(local, relevance {scores[0]:.2f})" in answer["response"]) == (figure == "relevance")
        assert all(result.keys() == {"id", "score", "source", "text", "payload"} for result in results)
        assert scores == sorted(scores, reverse=True)
        told = {result["source"]: result["score"] for result in results}
        assert told == pytest.approx({name: own[name][figure] for name in told}, abs=1e-4)
