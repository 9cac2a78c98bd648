"""LightRAG's own server reads what cragside indexed, in one database."""

import asyncio
import json
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import Settings
from tests.services.backends import migrated
from tests.services.lightrag_server import LightRagServer

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


async def asked(server: LightRagServer, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"Content-Type": "application/json"})

    def ask() -> Any:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    return await asyncio.to_thread(ask)


async def test_lightrags_server_answers_from_what_was_indexed_and_from_nothing_that_was_deleted(
    container: Container, database: str, models: str, started: Any
) -> None:
    workspace = await container.workspaces.open("a-b.C_9")
    texts = {"keeper.md": KEEPER, "swan.md": SWAN, "gone.md": GONE}
    await workspace.passages.save_documents([SourceText(name, text) for name, text in texts.items()])
    (gone,) = await workspace.documents.named("gone.md")
    await workspace.documents.delete(gone.id)
    key = (await workspace.passages.status()).lightrag_workspace
    embedder = WordLlamaEmbedder()
    server = started(
        "lightrag-server", lambda: LightRagServer(database, key, models, (embedder.name, embedder.dimensions))
    )

    listed = await asked(server, "/documents/paginated", {"page": 1, "page_size": 10})
    print(json.dumps(listed, indent=1))
    question = {"query": "Who kept the lighthouse?", "mode": "mix", "hl_keywords": ["lighthouse"]}
    answer = await asked(server, "/query/data", {**question, "ll_keywords": ["Grace Darling"]})
    print(json.dumps(answer, indent=1)[:6000])
    labels = await asked(server, "/graph/label/list")
    graph = await asked(server, f"/graphs?label={quote('Grace Darling')}")
    print(labels, json.dumps(graph)[:3000])
    raise AssertionError
