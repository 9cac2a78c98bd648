"""LightRAG's own server reads what cragside indexed, in one database."""

import asyncio
import json
import re
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import asyncpg
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from cragside.settings import Settings
from tests.indexing import work
from tests.services.backends import migrated
from tests.services.lightrag_server import LightRagServer

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j

pytestmark = pytest.mark.services

KEEPER = "Grace Darling kept the Longstone Lighthouse together with William Darling. She rowed out to the Forfarshire."
SWAN = "Joseph Swan lit the first house by electric light. Lord Armstrong invited Joseph Swan to Cragside."
GONE = "Zebedee Quill hid the silver spoon below the Clock Tower of Otterburn."


class Embeddings(BaseHTTPRequestHandler):
    """The vectors of cragside's embedded model, in OpenAI's form."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        vectors = WordLlamaEmbedder().encode(texts)
        data = [{"index": number, "embedding": each.tolist()} for number, each in enumerate(vectors)]
        body = json.dumps({"object": "list", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def models() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    with migrated(request.getfixturevalue("postgres")) as uri:
        yield uri


@pytest.fixture
async def container(tmp_path: Path, database: str) -> AsyncIterator[Container]:
    container = Container(Settings(home=tmp_path, postgres_uri=SecretStr(database)))
    yield container
    await container.close()


@pytest.fixture(params=[None, pytest.param("neo4j", marks=pytest.mark.services("postgres", "neo4j"))])
def graphs(request: pytest.FixtureRequest) -> "Neo4j | None":
    """Neo4j, where it has the graph."""
    return request.getfixturevalue(request.param) if request.param else None


@pytest.fixture
async def indexing(tmp_path: Path, database: str, graphs: "Neo4j | None") -> AsyncIterator[Container]:
    """A process whose graph is where LightRAG's server reads it."""
    uri = SecretStr(graphs.uri) if graphs else None
    container = Container(Settings(home=tmp_path, postgres_uri=SecretStr(database), neo4j_uri=uri))
    yield container
    await container.close()


async def asked(server: LightRagServer, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"Content-Type": "application/json"})

    def ask() -> Any:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    return await asyncio.to_thread(ask)


async def rows(database: str, sql: str, *values: Any) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(database, timeout=5)
    try:
        return [dict(row) for row in await connection.fetch(sql, *values)]
    finally:
        await connection.close()


async def listed(database: str) -> dict[str, dict[str, Any]]:
    found = await rows(database, "SELECT * FROM lightrag_doc_status")
    return {row["file_path"]: row for row in found}


async def tables_with(database: str, text: str) -> list[str]:
    """The tables of which a row contains a text."""
    tables = await rows(
        database,
        "SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname IN ('public', 'crag')",
    )
    inside = "SELECT 1 FROM {} AS row WHERE strpos(lower(row::text), $1) > 0"
    return [each["name"] for each in tables if await rows(database, inside.format(each["name"]), text)]


async def test_lightrags_server_shows_what_cragside_has_indexed_and_nothing_that_was_deleted(
    indexing: Container, database: str, graphs: "Neo4j | None", models: str, started: Any
) -> None:
    workspace = await indexing.workspaces.open("a-b.C_9")
    texts = {"keeper.md": KEEPER, "swan.md": SWAN, "gone.md": GONE}
    await workspace.passages.save_documents([SourceText(name, text) for name, text in texts.items()])
    (gone,) = await workspace.documents.named("gone.md")
    assert await tables_with(database, "otterburn")
    await workspace.documents.delete(gone.id)
    assert await tables_with(database, "otterburn") == []

    embedder = WordLlamaEmbedder()
    model = embedder.name, embedder.dimensions
    key = (await workspace.passages.status()).lightrag_workspace
    server = started("lightrag-server", lambda: LightRagServer(database, key, models, model, graphs))

    async def documents() -> set[tuple[str, str, int]]:
        page = await asked(server, "/documents/paginated", {"page": 1, "page_size": 10})
        return {(each["file_path"], each["status"], each["chunks_count"]) for each in page["documents"]}

    async def found(low: str, high: str) -> dict[str, Any]:
        question = {"query": f"{low} {high}", "mode": "mix", "ll_keywords": [low], "hl_keywords": [high]}
        answer: dict[str, Any] = (await asked(server, "/query/data", question))["data"]
        return answer

    assert await documents() == {("keeper.md", "processed", 1), ("swan.md", "processed", 1)}
    labels = "Cragside|Forfarshire|Grace Darling|Joseph Swan|Longstone Lighthouse|Lord Armstrong|William Darling"
    assert await asked(server, "/graph/label/list") == labels.split("|")
    graph = await asked(server, f"/graphs?label={quote('Grace Darling')}")
    assert {node["id"] for node in graph["nodes"]} >= {"Grace Darling", "Longstone Lighthouse", "William Darling"}
    assert ("Grace Darling", "Longstone Lighthouse") in {(edge["source"], edge["target"]) for edge in graph["edges"]}

    answer = await found("Grace Darling", "lighthouse")
    assert "Grace Darling" in {each["entity_name"] for each in answer["entities"]}
    assert ("Grace Darling", "Longstone Lighthouse") in {(e["src_id"], e["tgt_id"]) for e in answer["relationships"]}
    assert [(each["content"], each["file_path"]) for each in answer["chunks"]] == [(KEEPER, "keeper.md")]

    await workspace.passages.save_documents([SourceText("gone.md", GONE)])
    assert ("gone.md", "processed", 1) in await documents()
    assert GONE in {each["content"] for each in (await found("Zebedee Quill", "spoon"))["chunks"]}
    assert "Zebedee Quill" in await asked(server, "/graph/label/list")
    assert [line for line in server.log.splitlines() if line.startswith("ERROR")] == []


async def test_the_list_of_lightrags_server_follows_each_step_of_a_document(
    container: Container, database: str
) -> None:
    workspace = await container.workspaces.open("w")
    library, indexer = workspace.documents, workspace.work
    long = SourceText("keeper.md", f"\n{KEEPER * 4}", source="/notes/keeper.md")
    task = next(each for each in (await library.accept(long, track="morning")).tasks if each.stage == "embed")
    row = (await listed(database))["keeper.md"]
    assert (row["status"], row["track_id"], row["error_msg"]) == ("pending", "morning", None)
    assert (row["content_summary"], row["content_length"]) == (f"{(KEEPER * 4)[:250]}...", len(long.text))
    passages = await library.passages(row["id"])
    assert json.loads(row["chunks_list"]) == [each.id for each in passages]
    assert row["chunks_count"] == len(passages)
    assert row["created_at"] == row["updated_at"]

    await indexer.embed(task)
    assert (await listed(database))["keeper.md"]["status"] == "processing"
    enrich = replace(task, stage="enrich")
    assert await indexer.begin_enrichment(enrich)
    await indexer.extend_graph(enrich)
    assert (await listed(database))["keeper.md"]["status"] == "processed"
    await indexer.failed(enrich, "The model is away.")
    row = (await listed(database))["keeper.md"]
    assert (row["status"], row["error_msg"]) == ("failed", "The model is away.")
    await library.restart(row["id"])
    assert (await listed(database))["keeper.md"]["status"] == "processing"

    await library.move(row["id"], source="/notes/darling.md", name="darling.md")
    assert list(await listed(database)) == ["darling.md"]
    changed = await library.accept(SourceText("darling.md", SWAN, source="/notes/darling.md"))
    row = (await listed(database))["darling.md"]
    assert (row["status"], row["content_summary"]) == ("pending", SWAN)
    await work(indexer, changed.tasks)
    assert await tables_with(database, "forfarshire") == []
    await container.workspaces.reindex("w", lambda _: None)
    key = (await workspace.passages.status()).lightrag_workspace
    assert [(each["workspace"], each["id"]) for each in (await listed(database)).values()] == [(key, row["id"])]
    await library.delete(row["id"])
    assert await listed(database) == {}


def test_status_tells_lightrags_name_of_a_workspace_where_its_server_can_read_it(database: str, tmp_path: Path) -> None:
    def told(*arguments: str, **environment: str) -> str:
        session = Session(environment={"RAG_HOME": str(tmp_path / "home"), **environment}, folder=tmp_path)
        return CliRunner().invoke(app, list(arguments), obj=session).stdout

    (tmp_path / "keeper.md").write_text(KEEPER)
    for uri in ({}, {"POSTGRES_URI": database}):
        assert "lightrag_workspace" not in told("status", "--json", **uri)
        told("ingest", str(tmp_path / "keeper.md"), **uri)
        name = json.loads(told("status", "--json", **uri)).get("lightrag_workspace", "")
        assert re.fullmatch("w[0-9a-f]{16}" if uri else "", name)
        assert ("in LightRAG" in told("status", **uri)) == bool(uri)


def test_a_copied_workspace_is_listed(database: str, tmp_path: Path) -> None:
    def run(*arguments: str, **environment: str) -> None:
        session = Session(environment={"RAG_HOME": str(tmp_path / "home"), **environment}, folder=tmp_path)
        assert CliRunner().invoke(app, list(arguments), obj=session).exit_code == 0

    (tmp_path / "keeper.md").write_text(KEEPER)
    run("ingest", str(tmp_path / "keeper.md"))
    run("copy", "--from", str(tmp_path / "home"), "--to", database)
    (row,) = asyncio.run(listed(database)).values()
    assert (row["file_path"], row["content_summary"], row["chunks_count"]) == ("keeper.md", KEEPER, 1)
