"""Real documents on the embedded default: taken in by the routes, indexed, and found by /rag where they say it."""

import os
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.git import RepositoryFile, cloned, files_of
from tests.knowledge import Knowledge

DATA = Path(__file__).parents[1] / "data"
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@weir.example",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@weir.example",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
FILES = {
    "README.md": "# Sluice\n\nSluice opens and closes the gates of a weir.\n\n"
    "## Calibration\n\nThe float gauge is calibrated every March against the brass datum on the pier.\n",
    "src/gauge.py": '"""Reading the float gauge."""\n\n\ndef debounce_ripples(readings: list[float]) -> float:\n'
    '    """The median of the last seven readings, so that ripples do not move the gates."""\n'
    "    return sorted(readings[-7:])[3]\n",
}
MAIL = b"""From: Ines Mill <ines@weir.example>
To: Ada <ada@weir.example>
Subject: Spare shear pins
Date: Tue, 03 Feb 2026 10:15:00 +0100
Message-ID: <2@weir.example>
Content-Type: text/plain; charset=utf-8

The spare shear pins for the north gate are in the green cupboard behind the boiler.
"""
PAGE = """<html><head><title>The eel ladder</title></head><body><nav>Home</nav><article><h1>The eel ladder</h1>
<p>Eels climb past the weir on a ladder of nylon bristles that Thomas Bewick's grandson installed in 1998.</p>
<h2>Counting</h2><p>A camera counted 4,212 elvers on the ladder during the spring of 2025, most of them at night.</p>
</article></body></html>"""
SCRIPT = """export function siltPerHour(flow) {
  // Silt settles below a flow of two cubic metres.
  return flow < 2 ? 14 : 0
}
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A web server on loopback with one page."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "eels.html").write_text(PAGE)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/eels.html"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "sluice"
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    commands = (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "-m", "Begin"])
    for command in commands:
        subprocess.run(["git", *command], cwd=folder, check=True, env=os.environ | IDENTITY)
    return folder


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    made = Knowledge(tmp_path / "home", fetch_allow="127.0.0.1")
    yield made
    await made.close()


async def taken(knowledge: Knowledge, repository: Path, site: str) -> None:
    """Bring everything, each by a route that is meant for it."""
    async with cloned(str(repository), repo_id="sluice") as checkout:
        files = [file async for file in files_of(checkout) if isinstance(file, RepositoryFile)]
    items = [
        {"id": file.name, "text": file.content.decode(), "source": file.name, "metadata": file.metadata}
        for file in files
    ]
    answer = (await knowledge.http.post("/ingest", json={"items": [*items, {"url": site}]})).json()
    assert (answer["ok"], answer["fetched"], answer.get("errors")) == (True, 1, None)
    brought = [
        ("files", ("survey.pdf", (DATA / "survey.pdf").read_bytes(), "application/pdf")),
        ("files", ("weir.docx", (DATA / "weir.docx").read_bytes())),
        ("files", ("pins.eml", MAIL, "message/rfc822")),
        ("files", ("silt.js", SCRIPT.encode())),
    ]
    body = (await knowledge.http.post("/v1/documents", files=brought)).json()
    assert [document["outcome"] for document in body["documents"]] == ["new"] * 4
    assert body["errors"] == []
    await knowledge.index()


async def asked(knowledge: Knowledge, question: str) -> tuple[dict[str, Any], str]:
    """The best citation of an enriched prompt, and its heading in the prompt."""
    answer = await knowledge.http.post("/v1/enrich", json={"prompt": f"/rag {question}"})
    assert answer.status_code == 200
    body = answer.json()
    assert body["metadata"]["rag_context"]["verdict"] == "local", question
    heading = next(line for line in body["prompt"].splitlines() if line.startswith("[1] "))
    return body["metadata"]["rag_context"]["documents"][0], heading


async def test_rag_cites_documents_with_page_and_section(knowledge: Knowledge, repository: Path, site: str) -> None:
    await taken(knowledge, repository, site)
    listed = (await knowledge.http.get("/v1/documents")).json()
    assert {document["status"] for document in listed["documents"]} == {"enriched"}

    for number in (42, 101, 137, 200):
        question = f"At which station did the keeper sign log {number * 7919 % 100_003:05}?"
        cited, heading = await asked(knowledge, question)
        shown = cited["metadata"]
        assert (shown["filename"], shown["fileType"], shown["page"]) == ("survey.pdf", "pdf", number)
        assert f"Station {number} recorded {number * 37 + 11} " in cited["content"]
        assert f"Station {number + 1} recorded" not in cited["content"]
        assert cited["title"] == "The Station Survey"
        assert f"p. {number}, section Part {(number - 1) // 20 + 1}" in heading

    expected = [
        (
            "How much water does the weir hold back for the turbine house?",
            "weir.docx",
            "The weir – The turbine",
            "four metres",
        ),
        ("When is the float gauge calibrated?", "sluice#README.md", "Sluice – Calibration", "every March"),
        ("What does debounce_ripples take the median of?", "sluice#src/gauge.py", None, "last seven readings"),
        ("Where are the spare shear pins for the north gate?", "pins.eml", None, "green cupboard"),
        ("What does siltPerHour return below a flow of two?", "silt.js", "siltPerHour", "Silt settles"),
        ("How do eels climb past the weir?", site, "The eel ladder – Counting", "nylon bristles"),
    ]
    for question, filename, section, words in expected:
        cited, heading = await asked(knowledge, question)
        shown = cited["metadata"]
        assert (shown["filename"], shown.get("section"), words in cited["content"]) == (filename, section, True)
        assert filename in heading
        assert section is None or f"section {section}" in heading
        assert {"fileType", "chunkIndex", "totalChunks", "documentId", "uploadTimestamp"} <= set(shown)
    assert cited["url"] == site
