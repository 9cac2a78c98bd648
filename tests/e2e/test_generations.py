"""From an empty bucket to a cited answer about an upload, without a database. The tests build on each other."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flight import CORPUS, say
from generations_flight import BUCKET, TOKEN, GenerationsFlight
from typer.testing import CliRunner
from writable_flight import until

from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.services.ministack import Ministack, credentials

pytestmark = pytest.mark.e2e

QUESTION = "/rag Why did Mercury's orbit puzzle astronomers?"
OTTERS = "/rag What do sea otters eat off Monterey?"


@pytest.fixture(scope="module")
def flight(emulator: Ministack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenerationsFlight]:
    flight = GenerationsFlight(emulator, tmp_path_factory.mktemp("generations"))
    flight.build_layers()
    flight.deploy()
    yield flight
    flight.destroy()


def status(flight: GenerationsFlight, document: str) -> str:
    code, body = flight.request("GET", f"/v1/documents/{document}")
    assert code == 200, body
    return str(body["status"])


def titles(flight: GenerationsFlight, question: str) -> list[str]:
    code, body = flight.request("POST", "/v1/enrich", {"prompt": question})
    assert code == 200, body
    found = body["metadata"]["rag_context"]
    assert "knowledge_base" not in {each["component"] for each in found["degraded"]}, found["degraded"]
    return [each["title"] for each in found["documents"]]


def settled(flight: GenerationsFlight, document: str) -> None:
    until(lambda: status(flight, document) == "enriched", "it is published")


def test_an_empty_bucket_answers_that_it_knows_nothing(flight: GenerationsFlight) -> None:
    assert titles(flight, QUESTION) == []
    assert flight.objects() == []


def test_an_uploaded_document_is_cited(flight: GenerationsFlight) -> None:
    document = flight.upload((CORPUS / "mercury-planet.md").read_bytes(), "mercury-planet.md")
    say(f"POST /v1/documents of an upload: 202, {status(flight, document)}")
    settled(flight, document)
    code, body = flight.request("POST", "/v1/enrich", {"prompt": QUESTION})
    assert code == 200
    assert body["metadata"]["rag_context"]["verdict"] == "local"
    (cited,) = re.findall(r"^\[1\] .+$", body["prompt"], re.MULTILINE)
    say(f"POST /v1/enrich {QUESTION!r}: {cited}")
    assert cited.startswith("[1] Mercury, the innermost planet")
    assert "ws/default/store.sqlite3.gz" in "".join(flight.objects())


def test_memory_and_deletion_work(flight: GenerationsFlight) -> None:
    said = {"user": "Which berth does the ferry use at night?", "assistant": "The night ferry uses berth seven."}
    code, remembered = flight.request("POST", "/v1/memories", said)
    assert (code, remembered["indexed"]) == (200, True)
    search = {"query": "Which berth does the night ferry use?"}
    until(lambda: "berth seven" in flight.request("POST", "/v1/memories/search", search)[1]["text"], "it is recalled")
    text = "Sea otters eat urchins in the kelp forest off Monterey."
    code, added = flight.request("POST", "/v1/documents", {"name": "otters.md", "text": text})
    document = added["documents"][0]["id"]
    settled(flight, document)
    assert titles(flight, OTTERS) == ["Otters"]
    assert flight.request("DELETE", f"/v1/documents/{document}")[0] == 204
    until(lambda: titles(flight, OTTERS) == [], "it is gone")


def test_an_operator_goes_back_and_forgets(flight: GenerationsFlight, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = credentials(flight.folder, flight.emulator.url)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    session = Session(environment={**os.environ, "RAG_GENERATIONS": f"s3://{BUCKET}/kb"}, folder=flight.folder)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["generations", *arguments], obj=session)
        assert result.exit_code == 0, result.output
        say(f"cragside generations {' '.join(arguments)}: {result.stdout.strip()}")
        return result.stdout

    run("rollback")
    assert titles(flight, OTTERS) == ["Otters"]
    run("rollback")
    assert titles(flight, OTTERS) == []
    run("forget", "--yes")
    assert len(run("list").splitlines()) == 1
    assert titles(flight, QUESTION) == ["Mercury, the innermost planet"]


def test_writers_at_once_and_killed_ones_lose_and_double_nothing(flight: GenerationsFlight) -> None:
    script = [sys.executable, str(Path(__file__).with_name("killed_writer.py"))]
    variables = {**os.environ, **credentials(flight.folder, flight.emulator.url), **flight.variables}
    flight.have_messages_call(False)
    for moment in ("before", "after"):
        for number in range(2):
            bring(flight, f"{moment}-{number}.md")
        killed = subprocess.run([*script, moment, "herd"], env=variables, capture_output=True, timeout=120, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-2000:]
        say(f"a writer killed {moment} S3 had the generation: {counted(flight)} documents, {len(waiting(flight))} wait")
        assert len(waiting(flight)) in (2, 4)
        assert counted(flight) in (0, 4)
    bring(flight, "last.md")
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(flight.call_writer, ["herd"] * 3))
    say(f"three writers at once: {counted(flight)} documents")
    assert answers == [{"batchItemFailures": []}] * 3
    flight.have_messages_call(True)
    code, body = flight.request("GET", "/v1/documents", query="workspace=herd")
    assert code == 200
    names = sorted(each["name"] for each in body["documents"])
    assert names == ["after-0.md", "after-1.md", "before-0.md", "before-1.md", "last.md"]
    assert waiting(flight) == []


def bring(flight: GenerationsFlight, name: str) -> None:
    text = f"The herd called {name} grazes on the northern pasture until the first snow."
    code, body = flight.request("POST", "/v1/documents", {"name": name, "text": text, "workspace": "herd"})
    assert (code, body["documents"][0]["status"]) == (202, "pending")


def counted(flight: GenerationsFlight) -> int:
    code, body = flight.request("GET", "/v1/documents", query="workspace=herd")
    assert code == 200
    return int(body["total"])


def waiting(flight: GenerationsFlight) -> list[str]:
    return [name for name in flight.objects() if name.startswith("kb/in/herd/")]


def test_nothing_is_logged_of_documents_and_prompts(flight: GenerationsFlight) -> None:
    lines = "\n".join(flight.logged()).lower()
    assert "published" in lines
    for private in ("otter", "mercury", "berth", TOKEN):
        assert private not in lines


def test_nothing_waits_in_the_end(flight: GenerationsFlight) -> None:
    assert sorted(flight.objects()) == [
        "kb/ws/default/store.sqlite3.gz",
        "kb/ws/default~memory/store.sqlite3.gz",
        "kb/ws/herd/store.sqlite3.gz",
    ]
