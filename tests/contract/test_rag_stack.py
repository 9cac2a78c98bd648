"""rag-stack's calls as its clients make them, and the shapes of the answers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.ports.files import FetchedPage, FetchFailed
from tests.knowledge import Knowledge

PAGE = "https://example.org/cragside?utm=1"
HTML = (
    b"<html><head><title>Cragside</title></head><body><article><h1>Cragside</h1><p>Cragside in Northumberland was the "
    b"first house in the world that was lit by hydroelectric power, from the lakes of William Armstrong.</p></article>"
    b"</body></html>"
)
BLANK = "unreadable: is a page without text; pages that scripts fill have to be saved from a browser"
ARMSTRONG = (
    "William Armstrong built the Swing Bridge in Newcastle. William Armstrong lived at Cragside in Northumberland."
)
CODE = "import redis\n\n\ndef connect():\n    return redis.Redis(port=6380)\n"
REPO = {"repoId": "armstrong", "path": "src/connect.py", "lang": "py", "bytes": 60}


def failed(url: str, reason: str, status: int | None = None) -> FetchFailed:
    return FetchFailed(url, reason, f"{url} was not fetched.", status=status)


PAGES: dict[str, FetchedPage | FetchFailed] = {
    PAGE: FetchedPage(PAGE, HTML, "text/html"),
    "https://example.org/a.zip": failed("https://example.org/a.zip", "unsupported_content_type: application/zip", 200),
    "https://example.org/blank": FetchedPage("https://example.org/blank", b"<html></html>", "text/html"),
    "https://example.org/no.pdf": FetchedPage("https://example.org/no.pdf", HTML, "application/pdf"),
    "http://169.254.169.254/latest": failed("http://169.254.169.254/latest", "ssrf_blocked"),
    "https://example.org/slow": failed("https://example.org/slow", "timeout"),
    "https://example.org/big": failed("https://example.org/big", "too_large", 200),
    "https://example.org/loop": failed("https://example.org/loop", "redirect_limit", 302),
}


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    made = Knowledge(tmp_path, pages=PAGES)
    yield made
    await made.close()


async def ingest(knowledge: Knowledge, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await knowledge.http.post("/ingest", json={"items": list(items), **more})
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


async def query(knowledge: Knowledge, **body: Any) -> dict[str, Any]:
    answer = await knowledge.http.post("/query", json=body)
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


async def test_texts_are_found_when_the_answer_returns_and_annotated_later(knowledge: Knowledge) -> None:
    body = await ingest(
        knowledge,
        {"id": "r1:src/connect.py", "text": CODE, "source": "https://example.org/r1/src/connect.py", "metadata": REPO},
        {"text": ARMSTRONG, "source": "armstrong.txt", "docType": "article"},
    )
    assert body == {"ok": True, "upserted": 2, "enrichment": {"enqueued": 2, "docTypes": {"code": 1, "article": 1}}}
    found = (await query(knowledge, query="Where did Armstrong live?", topK=8))["results"]
    assert [(each["source"], each["payload"]["enrichmentStatus"]) for each in found] == [
        ("armstrong.txt", "pending"),
        ("https://example.org/r1/src/connect.py", "pending"),
    ]
    await knowledge.index()
    body = await query(knowledge, query="Where did Armstrong live?", topK=1)
    assert body["ok"] is True
    (result,) = body["results"]
    assert result.keys() == {"id", "score", "source", "text", "payload"}
    document, _, index = result["id"].rpartition(":")
    assert (document, index) == (result["payload"]["documentId"], "0")
    assert result["source"] == "armstrong.txt"
    assert result["text"] == result["payload"]["text"] == ARMSTRONG
    assert 0 < result["score"] <= 1
    assert result["payload"]["docType"] == "article"
    assert result["payload"]["enrichmentStatus"] == "enriched"
    assert {"tier1", "tier2", "tier3", "chunkIndex", "totalChunks"} <= result["payload"].keys()
    assert "graph" not in body


async def test_without_enrichment_a_text_is_only_searchable(knowledge: Knowledge) -> None:
    body = await ingest(knowledge, {"text": ARMSTRONG, "source": "a.txt"}, enrich=False)
    assert body == {"ok": True, "upserted": 1}
    await knowledge.index()
    (result,) = (await query(knowledge, query="Where did Armstrong live?", topK=3))["results"]
    assert result["payload"]["enrichmentStatus"] == "none"
    counts = (await knowledge.http.get("/documents/status_counts")).json()["status_counts"]
    assert counts["PROCESSED"] == 1


async def test_fetched_pages_are_stored_and_failures_are_listed(knowledge: Knowledge) -> None:
    urls = [*PAGES, "https://example.org/none"]
    body = await ingest(
        knowledge, *({"url": url} for url in urls), {"text": " ", "source": "blank.txt"}, {"text": "x", "source": " "}
    )
    assert body["ok"] is True
    assert (body["upserted"], body["fetched"]) == (1, 1)
    assert body["errors"] == [
        {
            "url": "https://example.org/a.zip",
            "status": 200,
            "reason": "unsupported_content_type: application/zip",
        },
        {"url": "https://example.org/blank", "status": 200, "reason": BLANK},
        {"url": "https://example.org/no.pdf", "status": 200, "reason": "unreadable: is damaged, or no PDF"},
        {"url": "http://169.254.169.254/latest", "status": None, "reason": "ssrf_blocked"},
        {"url": "https://example.org/slow", "status": None, "reason": "timeout"},
        {"url": "https://example.org/big", "status": 200, "reason": "too_large"},
        {"url": "https://example.org/loop", "status": 302, "reason": "redirect_limit"},
        {"url": "https://example.org/none", "status": 404, "reason": "fetch_failed"},
        {"source": "blank.txt", "status": None, "reason": "missing_text: item has no text content"},
        {"source": " ", "status": None, "reason": "missing_source: item has no source identifier"},
    ]
    await knowledge.index()
    (result,) = (await query(knowledge, query="What was lit by hydroelectric power?", topK=2))["results"]
    assert result["source"] == PAGE
    assert result["payload"]["contentType"] == "text/html"


async def test_the_guard_of_the_real_fetcher_is_what_refuses_loopback(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path)
    body = await ingest(
        knowledge, {"url": "http://127.0.0.1:9/"}, {"url": "http://[::ffff:10.0.0.1]/"}, {"url": "file:///etc/passwd"}
    )
    await knowledge.close()
    assert body["upserted"] == 0
    assert [error["reason"] for error in body["errors"]] == ["ssrf_blocked"] * 3


async def test_a_url_with_its_text_is_not_fetched(knowledge: Knowledge) -> None:
    body = await ingest(knowledge, {"url": "https://example.org/gone?x=1", "text": ARMSTRONG})
    assert "fetched" not in body
    await knowledge.index()
    (result,) = (await query(knowledge, query="Where did Armstrong live?", topK=2))["results"]
    assert result["source"] == "https://example.org/gone"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "items"),
        ({"items": []}, "items"),
        ({"items": [{"source": "a"}]}, "each item must have either 'text' or 'url'"),
        ({"items": [{"text": "a"}]}, "'source' is required when 'url' is not provided"),
        ({"items": [{"url": "https://example.org"}] * 51}, "maximum 50 URL items per request (found 51)"),
        ({"items": [{"text": "a", "source": "b"}] * 1001}, "items"),
        ({"items": [{"text": "a", "source": "b", "docType": "novel"}]}, "docType"),
        ({"items": [{"text": 7, "source": "b"}]}, "text"),
        ({"items": [{"text": "a", "source": "b"}], "collection": "../etc"}, "workspace"),
    ],
)
async def test_an_invalid_item_refuses_the_whole_request(
    knowledge: Knowledge, body: dict[str, Any], complaint: str
) -> None:
    answer = await knowledge.http.post("/ingest", json=body)
    assert answer.status_code == 400
    assert answer.json().keys() == {"error"}
    assert complaint in answer.json()["error"]


async def test_a_body_over_the_limit_is_refused(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, max_body_bytes=2048)
    answer = await knowledge.http.post("/ingest", json={"items": [{"text": "x" * 3000, "source": "a"}]})
    await knowledge.close()
    assert answer.status_code == 413
    assert answer.json() == {"error": "The body is larger than 2048 bytes."}


async def test_filters_match_the_payload(knowledge: Knowledge) -> None:
    await ingest(
        knowledge,
        {"text": CODE, "source": "src/connect.py", "metadata": REPO},
        {"text": ARMSTRONG, "source": "armstrong.txt", "metadata": {"repoId": "other", "path": "docs/a.txt"}},
    )
    await knowledge.index()

    async def sources(*must: dict[str, Any], **more: Any) -> list[str]:
        body = await query(knowledge, query="How to connect redis?", filter={"must": list(must)}, **more)
        return sorted(result["source"] for result in body["results"])

    assert await sources() == ["armstrong.txt", "src/connect.py"]
    assert await sources({"key": "repoId", "match": {"value": "armstrong"}}) == ["src/connect.py"]
    assert await sources({"key": "path", "match": {"text": "docs/"}}) == ["armstrong.txt"]
    by_both = [{"key": "repoId", "match": {"value": "other"}}, {"key": "path", "match": {"text": "src/"}}]
    assert await sources(*by_both) == []
    assert await sources({"key": "docType", "match": {"value": "code"}}, mode="mix") == ["src/connect.py"]


@pytest.mark.parametrize(
    "filters",
    [
        {"should": []},
        {"must": [{"key": "a"}]},
        {"must": [{"key": "a", "match": {}}]},
        {"must": [{"key": "a", "match": {"any": ["b"]}}]},
        {"must": [{"key": "a", "match": {"value": "b", "text": "c"}}]},
        {"must": [{"key": "a", "range": {"gt": 1}}]},
        [],
    ],
)
async def test_a_filter_that_is_not_understood_is_refused_rather_than_left_out(
    knowledge: Knowledge, filters: Any
) -> None:
    answer = await knowledge.http.post("/query", json={"query": "x", "filter": filters})
    assert answer.status_code == 400
    assert answer.json()["error"] == answer.json()["detail"]
    assert "filter" in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        {"topK": 0},
        {"topK": 101},
        {"topK": "many"},
        {"minScore": 2},
        {"threshold": -1},
        {"strategy": "best"},
        {"strategy": "mmr", "fetchK": 0},
        {"strategy": "mmr", "lambda": 2},
    ],
)
async def test_limits_of_a_query_are_kept(knowledge: Knowledge, body: dict[str, Any]) -> None:
    assert (await knowledge.http.post("/query", json={"query": "x", **body})).status_code == 400


async def test_passages_below_the_least_score_are_left_out(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"text": ARMSTRONG, "source": "armstrong.txt"})
    await knowledge.index()
    (result,) = (await query(knowledge, query="Where did Armstrong live?", minScore=0.1))["results"]
    assert (await query(knowledge, query="Where did Armstrong live?", minScore=1))["results"] == []
    assert result["score"] < 1


async def test_omitted_options_use_the_workspaces_preferences(knowledge: Knowledge) -> None:
    items = [{"text": f"Armstrong built bridge {n}.", "source": f"{n}.txt"} for n in range(12)]
    await ingest(knowledge, *items, enrich=False)
    await knowledge.index()
    question = {"query": "Which bridge did Armstrong build?"}
    plain = {**question, "strategy": "preferred", "threshold": 0}
    assert len((await query(knowledge, **plain))["results"]) == 5
    await knowledge.http.patch("/v1/settings", json={"similarity_results": 3})
    assert len((await query(knowledge, **plain))["results"]) == 3
    assert len((await query(knowledge, **plain, topK=10))["results"]) == 10
    assert len((await query(knowledge, **plain, chunk_top_k=9))["results"]) == 9
    assert len((await query(knowledge, **question))["results"]) == 8
    assert len((await query(knowledge, **question, minScore=0))["results"]) == 8, "rag-stack's own default"


async def test_the_least_cosine_is_the_workspaces_for_a_plain_search(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"text": ARMSTRONG, "source": "armstrong.txt"}, enrich=False)
    await knowledge.index()
    question = {"query": "Where did Armstrong live?", "strategy": "similarity"}
    ((score,),) = ([r["score"] for r in (await query(knowledge, **question, threshold=0))["results"]],)
    assert 0.5 < score < 0.9, "or the settings could not tell"
    for least, found in ((0.5, 1), (0.9, 0)):
        await knowledge.http.patch("/v1/settings", json={"similarity_threshold": least})
        assert len((await query(knowledge, **question))["results"]) == found


async def test_mmr_is_chosen_by_the_request_or_the_workspace(knowledge: Knowledge) -> None:
    otters = [{"text": f"Otters sleep in rafts of kelp, number {n}.", "source": f"raft{n}.txt"} for n in range(4)]
    await ingest(knowledge, *otters, {"text": "Otters eat urchins.", "source": "food.txt"}, enrich=False)
    await knowledge.index()

    async def sources(**options: Any) -> set[str]:
        body = await query(knowledge, query="Otters sleep in rafts of kelp", topK=2, **options)
        return {result["source"] for result in body["results"]}

    nearest = await sources()
    assert "food.txt" not in nearest
    assert "food.txt" in await sources(strategy="mmr", threshold=0, **{"lambda": 0.1})
    assert await sources(strategy="mmr", threshold=0, fetchK=2, **{"lambda": 0.1}) == nearest
    assert await sources(strategy="mmr", threshold=0, **{"lambda": 1}) == nearest
    await knowledge.http.patch("/v1/settings", json={"similarity_strategy": "mmr"})
    assert "food.txt" in await sources(strategy="preferred", threshold=0, **{"lambda": 0.1})
    assert await sources(strategy="similarity", threshold=0) == nearest
    assert len(await sources(strategy="mmr", threshold=0, fetchK=1)) == 2, "never fewer than were asked for"


@pytest.mark.parametrize("options", [{"fetchK": 5}, {"lambda": 0.2}])
@pytest.mark.parametrize("strategy", [{}, {"strategy": "similarity"}])
async def test_mmr_options_without_mmr_are_refused(
    knowledge: Knowledge, options: dict[str, Any], strategy: dict[str, str]
) -> None:
    answer = await knowledge.http.post("/query", json={"query": "x", **strategy, **options})
    assert answer.status_code == 400
    assert next(iter(options)) in answer.json()["error"]
    assert "mmr" in answer.json()["error"]


async def test_compressed_passages_consist_of_their_relevant_strips(knowledge: Knowledge) -> None:
    filler = (
        "The weather of the county is mild, and its coast has many castles, of which some can be visited in summer. "
    )
    text = f"{filler * 2}{ARMSTRONG} {filler * 2}"
    await ingest(knowledge, {"text": text, "source": "armstrong.txt"}, enrich=False)
    await knowledge.index()
    body = await query(knowledge, query="Where did William Armstrong live?", compress=True, include_chunk_content=True)
    (result,) = body["results"]
    assert "lived at Cragside" in result["text"]
    assert len(result["text"]) < len(result["payload"]["text"]) == len(text.strip())
    assert result["text"] in body["response"]
    assert body["references"][0]["content"] == [result["text"]]


async def test_an_empty_response_has_a_message(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"text": ARMSTRONG, "source": "armstrong.txt"}, enrich=False)
    await knowledge.index()
    nothing = await query(knowledge, query="Armstrong", threshold=1)
    assert (nothing["response"], nothing["results"]) == ("", [])
    assert nothing["message"] == "No relevant information found in documents."
    (nearest,) = (await query(knowledge, query="Armstrong", threshold=0))["results"]
    assert nothing["best_score"] == nearest["score"] < 1
    assert "best_score" not in await query(knowledge, query="Armstrong", threshold=0)
    assert "best_score" not in await query(knowledge, query="Armstrong", collection="elsewhere", threshold=1)
    assert "best_score" not in await query(knowledge, query="Armstrong", mode="naive", minScore=1)
    assert "message" not in await query(knowledge, query="Armstrong", threshold=0)
    assert (await query(knowledge, query="Armstrong", threshold=0, minScore=1))["results"] == []


@pytest.mark.parametrize("options", [{"strategy": "mmr"}, {"fetchK": 5}, {"lambda": 0.2}, {"compress": True}])
async def test_options_of_a_search_by_cosine_do_not_go_with_a_mode(
    knowledge: Knowledge, options: dict[str, Any]
) -> None:
    answer = await knowledge.http.post("/query", json={"query": "x", "mode": "mix", **options})
    assert answer.status_code == 400
    assert next(iter(options)) in answer.json()["error"]


async def test_the_graph_around_the_passages_is_returned_on_request(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"text": ARMSTRONG, "source": "armstrong.txt"})
    assert (await query(knowledge, query="Armstrong", graphExpand=True))["graph"] == {
        "entities": [],
        "relationships": [],
        "capped": False,
    }
    await knowledge.index()
    graph = (await query(knowledge, query="Where did Armstrong live?", graphExpand=True))["graph"]
    names = {entity["name"] for entity in graph["entities"]}
    assert "William Armstrong" in names
    assert all(entity.keys() == {"name", "type", "description"} for entity in graph["entities"])
    assert {each["source"] for each in graph["relationships"]} <= names


async def test_an_entity_is_returned_with_connections_and_documents(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"text": ARMSTRONG, "source": "armstrong.txt"})
    await knowledge.index()
    answer = await knowledge.http.get("/graph/entity/william%20armstrong")
    assert answer.status_code == 200
    body = answer.json()
    assert body["entity"]["name"] == "William Armstrong"
    assert body["entity"].keys() == {"name", "type", "description", "firstSeen", "lastSeen", "mentionCount"}
    assert body["entity"]["mentionCount"] == 1
    assert {each["direction"] for each in body["connections"]} <= {"incoming", "outgoing"}
    assert "Cragside" in {each["entity"] for each in body["connections"]}
    assert [document["source"] for document in body["documents"]] == ["armstrong.txt"]
    assert len((await knowledge.http.get("/graph/entity/William Armstrong?limit=1")).json()["connections"]) == 1
    assert (await knowledge.http.get("/graph/entity/x?limit=0")).status_code == 400


async def test_an_entity_that_is_not_there_is_a_404(knowledge: Knowledge) -> None:
    answer = await knowledge.http.get("/graph/entity/AC/DC")
    assert (answer.status_code, answer.json()) == (404, {"error": "Entity not found"})


async def test_enrichment_status_is_found_by_client_id_document_id_and_source(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"id": "r1:src/connect.py", "text": CODE, "source": "src/connect.py", "docType": "code"})
    path = "/enrichment/status/r1:src%2Fconnect.py"
    waiting = {"total": 1, "enriched": 0, "pending": 1, "processing": 0, "failed": 0, "none": 0}
    assert (await knowledge.http.get(path)).json() == {
        "baseId": "r1:src/connect.py",
        "status": "pending",
        "chunks": waiting,
    }
    await knowledge.index()
    body = (await knowledge.http.get(path)).json()
    assert body["status"] == "enriched"
    assert body["chunks"]["enriched"] == body["chunks"]["total"] == 1
    assert body["extractedAt"] > "2026"
    assert body["metadata"].keys() == {"tier2", "tier3"}
    (result,) = (await query(knowledge, query="redis connect", topK=1))["results"]
    for base_id in (result["id"].rpartition(":")[0], "src/connect.py"):
        assert (await knowledge.http.get(f"/enrichment/status/{base_id}")).json()["chunks"] == body["chunks"]


async def test_items_of_one_source_with_different_ids_are_separate_documents(knowledge: Knowledge) -> None:
    items = [{"id": "a", "text": CODE, "source": "s.txt"}, {"id": "b", "text": ARMSTRONG, "source": "s.txt"}]
    for _ in range(2):
        await ingest(knowledge, *items)
    await knowledge.index()
    for base_id in "ab":
        status = (await knowledge.http.get(f"/enrichment/status/{base_id}")).json()
        assert (status["status"], status["chunks"]["total"]) == ("enriched", 1)
    found = (await query(knowledge, query="redis connect Armstrong"))["results"]
    assert sorted(result["source"].partition("#")[0] for result in found) == ["s.txt", "s.txt"]


async def test_a_text_that_two_repositories_have_is_found_in_each_of_them(knowledge: Knowledge) -> None:
    await ingest(
        knowledge, *({"text": CODE, "source": f"{repo}#a.py", "metadata": {"repoId": repo}} for repo in ("one", "two"))
    )
    await knowledge.index()
    for mode in ({}, {"mode": "naive"}, {"mode": "mix"}):
        for repo in ("one", "two"):
            wanted = {"must": [{"key": "repoId", "match": {"value": repo}}]}
            found = await query(knowledge, query="How to connect redis?", filter=wanted, **mode)
            assert [result["source"] for result in found["results"]] == [f"{repo}#a.py"]
        assert len((await query(knowledge, query="How to connect redis?", **mode))["results"]) == 1


async def test_an_unknown_id_is_a_404(knowledge: Knowledge) -> None:
    answer = await knowledge.http.get("/enrichment/status/none")
    assert (answer.status_code, answer.json()) == (404, {"error": "No chunks found for baseId: none"})


async def test_statistics_count_tasks_and_passages(knowledge: Knowledge) -> None:
    nothing = {"pending": 0, "processing": 0, "deadLetter": 0}
    zero = {"enriched": 0, "failed": 0, "pending": 0, "processing": 0, "none": 0}
    assert (await knowledge.http.get("/enrichment/stats")).json() == {"queue": nothing, "totals": zero}
    await ingest(knowledge, {"text": ARMSTRONG, "source": "armstrong.txt"})
    before = (await knowledge.http.get("/enrichment/stats")).json()
    assert before["queue"]["pending"] > 0
    assert before["totals"] == {**zero, "pending": 1}
    await knowledge.index()
    after = (await knowledge.http.get("/enrichment/stats")).json()
    assert after == {"queue": nothing, "totals": {**zero, "enriched": 1}}


async def test_enqueueing_takes_unfinished_documents_and_with_force_all(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"text": ARMSTRONG, "source": "armstrong.txt"})
    await knowledge.index()
    assert (await knowledge.http.post("/enrichment/enqueue")).json() == {"ok": True, "enqueued": 0}
    forced = await knowledge.http.post("/enrichment/enqueue", json={"force": True})
    assert forced.json()["enqueued"] > 0
    assert (await knowledge.http.get("/enrichment/stats")).json()["totals"]["pending"] == 1
    await knowledge.index()
    assert (await knowledge.http.get("/enrichment/stats")).json()["totals"]["enriched"] == 1


async def test_collections_are_separate_workspaces(knowledge: Knowledge) -> None:
    await ingest(knowledge, {"id": "a", "text": ARMSTRONG, "source": "armstrong.txt"}, collection="books")
    await knowledge.index()
    assert (await query(knowledge, query="Armstrong", topK=1))["results"] == []
    assert len((await query(knowledge, query="Armstrong", topK=1, collection="books"))["results"]) == 1
    assert (await knowledge.http.get("/enrichment/status/a")).status_code == 404
    assert (await knowledge.http.get("/enrichment/status/a?collection=books")).status_code == 200
    assert (await knowledge.http.get("/graph/entity/Cragside")).status_code == 404
    assert (await knowledge.http.get("/graph/entity/Cragside?collection=books")).status_code == 200


async def test_without_the_token_the_refusal_has_rag_stacks_shape(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, api_token="s3cret")
    answers = [
        await knowledge.http.post("/ingest", json={"items": [{"text": "a", "source": "b"}]}),
        await knowledge.http.get("/enrichment/stats"),
        await knowledge.http.get("/graph/entity/a"),
    ]
    await knowledge.close()
    assert [answer.status_code for answer in answers] == [401] * 3
    assert all(answer.json().keys() == {"error"} for answer in answers)


async def test_a_token_of_one_workspace_opens_no_other(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, workspace_tokens='{"s3cret": ["books"]}')
    headers = {"X-API-Key": "s3cret"}
    item = {"text": ARMSTRONG, "source": "armstrong.txt"}
    refused = [
        await knowledge.http.post("/ingest", json={"items": [item], "collection": "other"}, headers=headers),
        await knowledge.http.post("/query", json={"query": "x", "collection": "other"}, headers=headers),
        await knowledge.http.get("/enrichment/stats?collection=other", headers=headers),
        await knowledge.http.get("/enrichment/status/a?collection=other", headers=headers),
        await knowledge.http.post("/enrichment/enqueue", json={"collection": "other"}, headers=headers),
        await knowledge.http.get("/graph/entity/a?collection=other", headers=headers),
    ]
    taken = await knowledge.http.post("/ingest", json={"items": [item]}, headers=headers)
    stats = await knowledge.http.get("/enrichment/stats?collection=books", headers=headers)
    await knowledge.close()
    assert [answer.status_code for answer in refused] == [401] * 6
    assert all(answer.json()["error"] for answer in refused)
    assert taken.status_code == 200
    assert stats.json()["totals"]["pending"] == 1


async def test_the_documentations_examples_are_answered_as_it_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/api.md").read_text()

    def examples(heading: str) -> list[Any]:
        section = page.partition(f"\n## `{heading}`")[2].partition("\n## ")[0]
        return [json.loads(block.partition("```")[0]) for block in section.split("```json")[1:]]

    knowledge = Knowledge(tmp_path)
    asked, answered = examples("POST /ingest")
    assert (await knowledge.http.post("/ingest", json=asked)).json() == answered
    await knowledge.index()
    question, diverse, unknown, nothing = examples("POST /query")
    body = await query(knowledge, **question)
    assert [found["source"] for found in (await query(knowledge, **diverse))["results"]] == ["cragside.txt"]
    answer = await query(knowledge, **unknown)
    assert {name: answer[name] for name in nothing} == nothing
    (text,) = examples("POST /documents/text` and `POST /documents/texts")
    taken = await knowledge.http.post("/documents/text", json=text)
    await knowledge.close()
    assert [result["source"] for result in body["results"]] == ["cragside.txt"]
    assert taken.json()["status"] == "success"


async def test_every_route_reads_a_text_alike(knowledge: Knowledge) -> None:
    text = "# Weirs\n\nA weir raises the {0}.\n\n# Locks\n\nA lock lets boats pass the {0}.\n"
    mail = "From: ada@example.com\nTo: bob@example.com\nSubject: Locks\n\nThe lock of {0} is shut.\n"
    ways = {
        "/ingest": lambda text, name: {"items": [{"text": text, "source": name}]},
        "/v1/documents": lambda text, name: {"text": text, "name": name},
        "/documents/text": lambda text, name: {"text": text, "file_source": name},
    }
    library = (await knowledge.container.workspaces.open("default")).documents
    for route, body in ways.items():
        told = []
        for template, name in ((text, f"{route[1:3]}.md"), (mail, f"{route[1:3]}.txt")):
            answer = await knowledge.http.post(route, json=body(template.format(route), name))
            assert answer.status_code in (200, 202), answer.text
            record = await library.sourced(name)
            assert record is not None
            sections = [passage.section for passage in await library.passages(record.id)]
            told.append((record.file_type, record.doc_type, sections))
        assert [told[0][0], told[0][2], told[1][1]] == ["md", ["Weirs – Locks"], "email"], route


async def test_a_workspace_may_be_named_by_the_query_or_by_its_own_name(knowledge: Knowledge) -> None:
    await knowledge.http.post("/ingest", json={"items": [{"text": ARMSTRONG, "source": "a.txt"}], "workspace": "sea"})
    assert (await knowledge.http.get("/enrichment/stats", params={"workspace": "sea"})).json()["totals"]["pending"] == 1
    assert (await knowledge.http.get("/enrichment/stats")).json()["totals"]["pending"] == 0


async def test_a_path_that_no_route_takes_fails_in_rag_stacks_shape(knowledge: Knowledge) -> None:
    answer = await knowledge.http.get("/graph/entity/two%0Alines")
    assert (answer.status_code, set(answer.json())) == (404, {"error"})
    assert set((await knowledge.http.get("/nowhere")).json()["error"]) >= {"type", "message"}


async def test_items_with_addresses_of_their_own_are_documents_of_their_own(knowledge: Knowledge) -> None:
    for number, text in enumerate((CODE, ARMSTRONG)):
        address = f"https://forum.example/thread?id={number}"
        for item in ({"url": address, "text": text}, {"url": address, "text": text, "source": "forum"}):
            body = await ingest(knowledge, item, enrich=False)
            assert "errors" not in body
    library = (await knowledge.container.workspaces.open("default")).documents
    records, total = await library.documents()
    assert (total, {record.name for record in records}) == (2, {"forum"})
    assert {record.label for record in records} == {f"forum (https://forum.example/thread?id={n})" for n in (0, 1)}


async def test_items_of_one_request_do_not_replace_each_other(knowledge: Knowledge) -> None:
    texts = [{"text": text, "source": "notes"} for text in (ARMSTRONG, CODE, ARMSTRONG)]
    answer = await knowledge.http.post("/ingest", json={"items": texts})
    (error,) = answer.json()["errors"]
    assert (error["source"], error["reason"].partition(":")[0]) == ("notes", "duplicate_source")
    library = (await knowledge.container.workspaces.open("default")).documents
    (record,), _ = await library.documents()
    known = await library.source(record.id)
    assert known is not None
    assert known.text == ARMSTRONG


async def test_a_track_suffix_in_a_source_does_not_take_over_another_document(knowledge: Knowledge) -> None:
    for item in (
        {"text": ARMSTRONG, "source": "a.md#b"},
        {"text": "One.", "source": "a.md", "id": "a"},
        {"text": CODE, "source": "a.md", "id": "b"},
        {"text": "Two.", "source": "a.md", "id": "b"},
    ):
        await ingest(knowledge, item, enrich=False)
    library = (await knowledge.container.workspaces.open("default")).documents
    records, _ = await library.documents()
    texts = {record.source: known.text for record in records if (known := await library.source(record.id))}
    assert texts == {"a.md#b": ARMSTRONG, "a.md": "One.", "a.md#b#b": "Two."}


async def test_the_status_of_a_name_that_two_documents_have_asks_which(knowledge: Knowledge) -> None:
    for folder in ("w1", "w2"):
        body = {"name": "todo.md", "text": f"Work of {folder}.", "source": f"/home/ann/{folder}/todo.md"}
        await knowledge.http.post("/v1/documents", json=body)
    answer = await knowledge.http.get("/enrichment/status/todo.md")
    assert answer.status_code == 400
    assert "w1/todo.md" in answer.json()["error"]
    assert (await knowledge.http.get("/enrichment/status//home/ann/w1/todo.md")).status_code == 200
