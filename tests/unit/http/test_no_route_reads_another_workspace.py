"""Every route of the OpenAPI document is tried with a token of one workspace against another workspace."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import httpx
import pytest
import pytest_asyncio
from pydantic import SecretStr

from cragside.domain.indexing import Task
from cragside.domain.names import memory_of
from tests.described import openapi
from tests.fakes import FolderUploadStore
from tests.knowledge import Knowledge, answer_of

MINE, THEIRS, NOBODYS = "mine", "theirs", "nobodys"
STORES = sorted(name for workspace in (MINE, THEIRS) for name in (workspace, memory_of(workspace)))
KEYS = {"mine-key": [MINE], "theirs-key": [THEIRS]}
# What only the other workspace knows: words, names, and how much there is of it.
TEXT = "Quillfeather Brigade repaired the Zanthorpe lighthouse with Mirabelle Okonkwo in Port Vellamo."
SECRETS = ("quillfeather", "zanthorpe", "mirabelle", "vellamo", "ledger")
DOCUMENTS = 4
QUESTION = "Who repaired the Zanthorpe lighthouse?"


@dataclass(frozen=True)
class Attempt:
    """A request for one route. `body` is JSON, `form` a form with one file; `shows` says that it reads content."""

    body: dict[str, Any] | None = None
    form: bool = False
    query: dict[str, str] = field(default_factory=dict)
    path: dict[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ("workspace", "collection")
    shows: bool = False
    open: bool = False


DOCUMENT = {"document_id": "{document}"}
SEARCH = {"query": QUESTION, "mode": "naive"}
NEW = {"text": "Otters hold hands while they sleep in kelp.", "name": "otter.md"}
EXCHANGE = {"user": "What do otters do at night, and where?", "assistant": "They hold hands in the kelp."}
ATTEMPTS = {
    "GET /healthz": Attempt(open=True),
    "GET /ready": Attempt(open=True),
    "GET /metrics": Attempt(open=True),  # of no workspace; 403 for tokens of some
    "GET /health": Attempt(),
    "POST /v1/enrich": Attempt({"prompt": f"/rag {QUESTION}"}, shows=True),
    "POST /v1/explain": Attempt({"prompt": QUESTION}, shows=True),
    "POST /v1/citations": Attempt({"answer": "It is lit [1].", "passages": []}, open=True),  # of no workspace
    "POST /v1/query": Attempt(SEARCH, shows=True),
    "POST /v1/documents": Attempt(NEW),
    "POST /v1/documents/uploads": Attempt({}),
    "GET /v1/documents": Attempt(shows=True),
    "GET /v1/documents/{document_id}": Attempt(path=DOCUMENT, shows=True),
    "GET /v1/documents/{document_id}/content": Attempt(path=DOCUMENT, shows=True),
    "GET /v1/documents/{document_id}/events": Attempt(path=DOCUMENT),
    "POST /v1/documents/{document_id}/reprocess": Attempt(path=DOCUMENT),
    "PATCH /v1/documents/{document_id}": Attempt({"source": "/a.md", "name": "a.md"}, path=DOCUMENT),
    "DELETE /v1/documents/{document_id}": Attempt(path=DOCUMENT),
    "POST /v1/repositories": Attempt({"url": "https://localhost/x.git"}),
    "GET /v1/workspaces": Attempt(open=True),  # of those that the token opens; test_console_routes.py
    "GET /v1/components": Attempt(open=True),  # of no workspace; 403 for tokens of some
    "GET /v1/samples": Attempt(open=True),  # of no workspace
    "POST /v1/samples": Attempt({}),
    "POST /v1/memories": Attempt(EXCHANGE),
    "GET /v1/memories": Attempt(shows=True),
    "DELETE /v1/memories/{memory_id}": Attempt(path={"memory_id": "{memory}"}),
    "POST /v1/memories/search": Attempt(SEARCH, shows=True),
    "GET /v1/graph": Attempt(shows=True),
    "GET /v1/graph/search": Attempt(shows=True),
    "GET /v1/graph/neighbourhood": Attempt(query={"entity": "{entity}"}, shows=True),
    "GET /v1/graph/passages": Attempt(query={"entity": "{entity}"}, shows=True),
    "GET /v1/settings": Attempt(),
    "PATCH /v1/settings": Attempt({"similarity_results": 9}),
    "POST /v1/reindex": Attempt({}),
    "GET /v1/queue/dead": Attempt(shows=True),
    "POST /v1/queue/revive": Attempt({}),
    "POST /ingest": Attempt({"items": [{"text": NEW["text"], "source": "otter.md"}]}),
    "POST /query": Attempt(SEARCH, shows=True),
    "POST /query/data": Attempt(SEARCH, shows=True),
    "GET /enrichment/status/{baseId}": Attempt(path={"baseId": "{document}"}, shows=False),
    "GET /enrichment/stats": Attempt(),
    "POST /enrichment/enqueue": Attempt({"force": True}),
    "GET /graph/entity/{name}": Attempt(path={"name": "{entity}"}, shows=True),
    "POST /documents/text": Attempt({"text": NEW["text"], "file_source": "otter.md"}),
    "POST /documents/texts": Attempt({"texts": [NEW["text"]], "file_sources": ["otter.md"]}),
    "GET /documents/track_status/{track_id}": Attempt(path={"track_id": "{track}"}),
    "GET /documents/status_counts": Attempt(),
    "GET /documents/pipeline_status": Attempt(),
    "DELETE /documents/delete_document": Attempt({"doc_ids": ["{document}"]}),
}


def operations() -> list[str]:
    return sorted(f"{method.upper()} {path}" for path, methods in openapi()["paths"].items() for method in methods)


def test_it_is_known_how_to_try_every_route() -> None:
    assert operations() == sorted(ATTEMPTS)


@dataclass
class Tenants:
    """Two workspaces with a token each, the other one's full of secrets."""

    knowledge: Knowledge
    known: dict[str, str]

    async def ask(
        self, route: str, key: str, workspace: str | None, way: str = "header", known: dict[str, str] | None = None
    ) -> httpx.Response:
        attempt, filled = ATTEMPTS[route], known or self.known
        method, path = route.split(" ")
        headers = {"Authorization": f"Bearer {key}"}
        query = {name: _filled(value, filled) for name, value in attempt.query.items()}
        body = json.loads(_filled(json.dumps(attempt.body), filled)) if attempt.body is not None else None
        for name, value in attempt.path.items():
            path = path.replace(f"{{{name}}}", _filled(value, filled))
        if workspace is not None:
            for place in way.split("+"):
                _name(place, workspace, headers, query, body)
        return await self.knowledge.http.request(method, path, headers=headers, params=query, json=body)

    async def state(self) -> dict[str, Any]:
        """All that there is of the other workspace."""
        container = self.knowledge.container
        library = (await container.workspaces.open(THEIRS)).documents
        memory = (await container.workspaces.open(memory_of(THEIRS))).documents
        return {
            "documents": await library.documents(),
            "memory": await memory.documents(),
            "queue": await container.intake.backlog(THEIRS),
            "dead": await container.queue.dead(workspace=THEIRS),
            "settings": await container.preferences.of(THEIRS),
            "workspaces": await container.workspaces.names(),
        }


def _filled(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\{(document|memory|entity|track)\}", lambda match: known[match[1]], text)


def _name(
    place: str, workspace: str, headers: dict[str, str], query: dict[str, str], body: dict[str, Any] | None
) -> None:
    if place in ("X-RAG-Workspace", "LIGHTRAG-WORKSPACE"):
        headers[place] = workspace
    elif body is not None and place.startswith("body "):
        body[place.removeprefix("body ")] = workspace
    elif place.startswith("query "):
        query[place.removeprefix("query ")] = workspace


HEADERS = {"X-RAG-Workspace", "LIGHTRAG-WORKSPACE"}
WAYS = (
    "X-RAG-Workspace",
    "LIGHTRAG-WORKSPACE",
    "X-RAG-Workspace+LIGHTRAG-WORKSPACE",
    "body workspace",
    "body collection",
    "query workspace",
    "query collection",
    "body workspace+query workspace+X-RAG-Workspace",
    "body collection+query collection+LIGHTRAG-WORKSPACE",
)


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Tenants]:
    tokens = SecretStr(json.dumps(KEYS))
    knowledge = Knowledge(
        home / "kb",
        pages={},
        upload_store=FolderUploadStore(home / "bucket"),
        workspace_tokens=tokens,
        api_token=SecretStr("every-key"),
        workspace=MINE,
    )
    http = knowledge.http
    try:
        for number in range(DOCUMENTS):
            name = f"ledger-{number}.md"
            item = {"text": f"{TEXT} Page {number}.", "file_source": name}
            answer = await http.post("/documents/text", json=item, headers={"X-API-Key": "theirs-key"})
            assert answer.status_code == 200, answer.text
        said = {"user": QUESTION, "assistant": f"{TEXT} So it is said.", "date": "2026-02-07T14:30:00Z"}
        remembered = await http.post("/v1/memories", json=said, headers={"X-API-Key": "theirs-key"})
        await knowledge.index()
        library = (await knowledge.container.workspaces.open(THEIRS)).documents
        records, _ = await library.documents()
        dead = Task(THEIRS, records[0].id, records[0].content_hash, 0, "enrich")
        await knowledge.queue.send([dead])
        (delivery,) = await knowledge.queue.receive(limit=1, wait=0)
        await knowledge.queue.bury(delivery, "Quillfeather cannot be read.")
        graph = (await knowledge.container.workspaces.open(THEIRS)).graph
        entities = [entity.name for entity in await graph.search("")]
        known = {
            "document": records[0].id,
            "memory": remembered.json()["id"],
            "entity": entities[0],
            "track": answer.json()["track_id"],
        }
        yield Tenants(knowledge, known)
    finally:
        await knowledge.close()


in_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tenants(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tenants]:
    """For tests that only read, or are refused."""
    async with opened(tmp_path_factory.mktemp("read")) as built:
        yield built


@pytest_asyncio.fixture(loop_scope="module")
async def own(tmp_path: Path) -> AsyncIterator[Tenants]:
    """For tests that write."""
    async with opened(tmp_path) as built:
        yield built


def leaks(answer: httpx.Response, known: dict[str, str]) -> list[str]:
    """Return the texts of the other workspace in an answer, without those that the request had itself."""
    said = (
        answer.request.url.path + unquote_plus(answer.request.url.query.decode()) + answer.request.content.decode()
    ).lower()
    text = answer.text.lower()
    words = (*SECRETS, *(value.lower() for value in known.values()))
    return [word for word in words if word in text and word not in said]


def bodies_that_name(route: str) -> Iterator[str]:
    for way in WAYS:
        if ATTEMPTS[route].body is not None or "body" not in way:
            yield way


@in_one_loop
async def test_no_way_of_naming_it_opens_another_workspace(own: Tenants) -> None:
    before = await own.state()
    for route in ATTEMPTS:
        for way in bodies_that_name(route):
            answer = await own.ask(route, "mine-key", THEIRS, way)
            assert leaks(answer, own.known) == [], (route, way, answer.text)
            assert answer.status_code < 500, (route, way, answer.text)
            # Whether the other workspace is there cannot be told from one that is not.
            other = await own.ask(route, "mine-key", NOBODYS, way)
            assert answer.status_code == other.status_code, (route, way)
            heard = [place in HEADERS | DESCRIBED[route] for place in way.split("+")]
            if any(heard) and not ATTEMPTS[route].open:
                # A field that the route does not know may be refused before anything else.
                assert answer.status_code in ((401,) if all(heard) else (400, 401)), (route, way, answer.text)
                assert refusal(answer) == refusal(other), (route, way)
    assert await own.state() == {**before, "workspaces": STORES}


def refusal(answer: httpx.Response) -> Any:
    """Return a refusal without its own id and time."""
    return {name: value for name, value in answer.json().items() if name not in ("id", "timestamp")}


def described() -> dict[str, set[str]]:
    document = openapi()
    found: dict[str, set[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            names = {f"query {parameter['name']}" for parameter in operation.get("parameters", ())}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = content["schema"]
                if "$ref" in schema:
                    schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
                names |= {f"body {name}" for name in schema.get("properties", {})}
            found[f"{method.upper()} {path}"] = names & set(WAYS)
    return found


# The places of a workspace's name that each route knows of; at others it is no name, and the token's own is used.
DESCRIBED = described()


@in_one_loop
async def test_a_token_sees_its_own_workspace_only_when_it_names_none(own: Tenants) -> None:
    before = await own.state()
    for route in ATTEMPTS:
        answer = await own.ask(route, "mine-key", None)
        nothing = {name: f"no-{name}" for name in own.known}
        without = await own.ask(route, "mine-key", None, known=nothing)
        assert leaks(answer, own.known) == [], (route, answer.text)
        assert answer.status_code == without.status_code, (route, answer.text, without.text)
    assert {**await own.state(), "workspaces": None} == {**before, "workspaces": None}


@in_one_loop
@pytest.mark.parametrize("route", [route for route, attempt in ATTEMPTS.items() if attempt.shows])
@in_one_loop
async def test_the_attempts_would_show_it_if_they_were_let_in(tenants: Tenants, route: str) -> None:
    for key, workspace in (("theirs-key", None), ("every-key", THEIRS)):
        answer = await tenants.ask(route, key, workspace, "X-RAG-Workspace")
        assert answer.status_code == 200, answer.text
        assert leaks(answer, tenants.known) != []


@in_one_loop
async def test_a_form_cannot_name_another_workspace(tenants: Tenants) -> None:
    http, key = tenants.knowledge.http, {"X-API-Key": "mine-key"}
    before = await tenants.state()
    file = {"files": ("otter.md", b"Otters hold hands.")}
    for kwargs in (
        {"data": {"workspace": THEIRS}},
        {"params": {"workspace": THEIRS}},
        {"headers": {**key, "X-RAG-Workspace": THEIRS}},
    ):
        answer = await http.post("/v1/documents", files=file, **{"headers": key, **kwargs})
        assert answer.status_code == 401, answer.text
    after = await tenants.state()
    assert after == before


@in_one_loop
async def test_an_upload_is_bound_to_its_workspace(own: Tenants, tmp_path: Path) -> None:
    http, key = own.knowledge.http, {"X-API-Key": "mine-key"}
    offered = (await http.post("/v1/documents/uploads", json={}, headers={"X-API-Key": "theirs-key"})).json()
    assert offered["fields"]["key"] == f"{THEIRS}/{offered['id']}"
    FolderUploadStore(tmp_path / "bucket").send(offered["fields"], TEXT.encode())
    before = await own.state()
    for upload in (offered["id"], "0" * 32):
        answer = await http.post("/v1/documents", json={"upload": upload, "name": "a.md"}, headers=key)
        assert (answer.status_code, answer.json()["error"]["message"].count(upload)) == (404, 1)
    assert await own.state() == before
    own = await http.post("/v1/documents/uploads", json={}, headers=key)
    assert own.json()["fields"]["key"].startswith(f"{MINE}/")
    theirs = {"upload": offered["id"], "name": "a.md"}
    assert (await http.post("/v1/documents", json=theirs, headers={"X-API-Key": "theirs-key"})).status_code == 202


@in_one_loop
async def test_the_workspace_in_the_body_precedes_the_header(tenants: Tenants) -> None:
    http = tenants.knowledge.http
    headers = {"X-API-Key": "mine-key", "X-RAG-Workspace": THEIRS}
    asked = {"prompt": f"/rag {QUESTION}", "workspace": MINE}
    found = answer_of(await http.post("/v1/enrich", json=asked, headers=headers))
    assert found["metadata"]["rag_context"]["documents"] == []


@in_one_loop
@pytest.mark.attack("poisoned memory")
@pytest.mark.parametrize("workspace", [memory_of(MINE), memory_of(THEIRS), "mine%7Ememory", "mine~MEMORY", "~memory"])
@in_one_loop
async def test_no_way_of_naming_it_opens_a_memory_as_a_workspace(tenants: Tenants, workspace: str) -> None:
    before = await tenants.state()
    for route in ATTEMPTS:
        for key, way in (("mine-key", way) for way in bodies_that_name(route) if "+" not in way):
            heard = way in HEADERS | DESCRIBED[route]
            for bearer in (key, "every-key") if heard and not ATTEMPTS[route].open else ():
                answer = await tenants.ask(route, bearer, workspace, way)
                assert answer.status_code in (400, 401), (route, way, answer.text)
                assert leaks(answer, tenants.known) == [], (route, way, answer.text)
    assert await tenants.state() == before
