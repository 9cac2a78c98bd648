"""The harness of the console's tests fails a page with a fault, and starts a service as asked."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.console.looks import EVERY_LOOK, Look
from tests.console.watch import Watch
from tests.services.axe import Violation
from tests.services.cragside_server import CragsideServer, Given
from tests.services.stub_ollama import StubOllama

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_ROOT = Path(__file__).parents[2]
# As strict as the console's own.
_POLICY = "default-src 'self'; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
_FRAME = '<!doctype html><html lang="en"><head><title>Lamps</title>{head}</head><body><main>{body}</main></body></html>'
_SOUND = "<h1>Lamps</h1><button>Light</button>"
_PAGES = {
    "/sound": _FRAME.format(head="", body=_SOUND),
    "/inline-script": _FRAME.format(head="<script>document.title = 'run'</script>", body=_SOUND),
    "/inline-style": _FRAME.format(head="", body='<h1 style="color: red">Lamps</h1>'),
    "/handler": _FRAME.format(head="", body='<h1>Lamps</h1><img src="/gone.png" alt="" onerror="document.title = 1">'),
    "/failing-script": _FRAME.format(head='<script src="/throws.js"></script>', body=_SOUND),
    "/failing-promise": _FRAME.format(head='<script src="/rejects.js"></script>', body=_SOUND),
    "/logging-script": _FRAME.format(head='<script src="/logs.js"></script>', body=_SOUND),
    "/missing-script": _FRAME.format(head='<script src="/gone.js"></script>', body=_SOUND),
    "/elsewhere": _FRAME.format(head='<script src="/asks.js"></script>', body=_SOUND),
    "/barrier": _FRAME.format(head="", body="<h1>Lamps</h1><button></button>"),
    "/favicon.ico": "",
    "/throws.js": "throw new Error('the lamp broke')",
    "/rejects.js": "Promise.reject(new Error('the lamp broke'))",
    "/logs.js": "console.error('the lamp broke')",
    "/asks.js": "fetch('https://lamps.example/', {mode: 'no-cors'}).catch(() => {})",
}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = _PAGES.get(self.path)
        body = (text or "not here").encode()
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.path != "/elsewhere":
            self.send_header("Content-Security-Policy", _POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def fresh(browser: "Browser") -> "Iterator[BrowserContext]":
    """A context whose faults the test judges itself."""
    with browser.new_context() as context:
        yield context


def seen(fresh: "BrowserContext", address: str) -> list[str]:
    watch = Watch(fresh)
    page = fresh.new_page()
    page.goto(address, wait_until="networkidle")
    page.wait_for_timeout(100)
    return watch.wrong


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("inline-script", "Content Security Policy"),
        ("inline-style", "Content Security Policy"),
        ("handler", "Content Security Policy"),
        ("failing-script", "the lamp broke"),
        ("failing-promise", "the lamp broke"),
        ("logging-script", "the lamp broke"),
        ("missing-script", "404"),
        ("elsewhere", "request: GET https://lamps.example/"),
    ],
)
def test_a_fault_of_a_page_is_seen(fresh: "BrowserContext", address: str, path: str, told: str) -> None:
    assert any(told in entry for entry in seen(fresh, f"{address}/{path}"))


def test_a_sound_page_has_no_fault(page: "Page", address: str, axe: Callable[["Page"], list[Violation]]) -> None:
    page.goto(f"{address}/sound")
    assert page.title() == "Lamps"
    assert axe(page) == []


def test_an_expected_fault_is_none(page: "Page", watch: Watch, address: str) -> None:
    watch.allow("status of 404")
    page.goto(f"{address}/missing-script")
    assert page.title() == "Lamps"


_TESTS = """
import pytest

@pytest.mark.parametrize("path", ["sound", "inline-script", "failing-script", "elsewhere"])
def test_page(page, path):
    page.goto(f"{address}/{path}")
"""


def test_a_test_fails_whose_page_has_a_fault(address: str, chromium: str, tmp_path: Path) -> None:
    (tmp_path / "test_pages.py").write_text(_TESTS.replace("{address}", address))
    plugins = ["-p", "tests.services.fixtures", "-p", "tests.console.conftest", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-c", str(_ROOT / "pyproject.toml"), *plugins, str(tmp_path)]
    environment = {**os.environ, "TEST_CHROMIUM": chromium, "SERVERS": "required"}
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert "4 passed, 3 errors" in done.stdout, done.stdout
    for told in ("Content Security Policy", "the lamp broke", "request: GET https://lamps.example/"):
        assert told in done.stdout


def test_a_barrier_is_found(page: "Page", address: str, axe: Callable[["Page"], list[Violation]]) -> None:
    page.goto(f"{address}/barrier")
    (violation,) = axe(page)
    assert violation.id == "button-name"
    assert violation.impact == "critical"
    assert "<button></button>" in violation.places[0]


@pytest.mark.parametrize("look", EVERY_LOOK, ids=str)
def test_a_page_has_the_look_that_was_asked_for(page: "Page", address: str, look: Look) -> None:
    page.goto(f"{address}/sound")
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (look.scheme == "dark")
    assert page.evaluate("innerWidth") == look.width
    assert page.evaluate("navigator.language") == look.locale


def test_the_browser_reaches_no_other_machine(fresh: "BrowserContext", address: str) -> None:
    page = fresh.new_page()
    page.goto(f"{address}/elsewhere")
    outcome = page.evaluate("fetch('http://lamps.example/', {mode: 'no-cors'}).then(() => 'reached', String)")
    assert outcome == "TypeError: Failed to fetch"


TEXT = "Joseph Swan lit Cragside with his lamps in 1880."


@pytest.mark.parametrize("given", [Given(token="secret", documents={"cragside.md": TEXT})])
def test_a_service_has_its_texts_and_its_token(service: CragsideServer) -> None:
    assert httpx.get(f"{service.url}/v1/documents", trust_env=False).status_code == 401
    with service.client() as client:
        assert [each["name"] for each in client.get("/v1/documents").json()["documents"]] == ["cragside.md"]


@pytest.mark.parametrize("given", [Given(documents={"cragside.md": TEXT}, baked=True)])
def test_a_service_of_a_baked_store_takes_no_text(service: CragsideServer) -> None:
    with service.client() as client:
        answer = client.post("/v1/enrich", json={"prompt": "/rag Who lit Cragside?"}).json()
        assert answer["metadata"]["rag_context"]["documents"][0]["metadata"]["filename"] == "cragside.md"
        assert client.post("/v1/documents", json={"name": "new.md", "text": TEXT}).is_client_error


@pytest.mark.parametrize("given", [Given(ollama="stub")])
def test_a_service_passes_requests_on_to_the_scripted_ollama(service: CragsideServer, stub: StubOllama) -> None:
    with service.client() as client:
        asked = {"model": "judge", "messages": [{"role": "user", "content": "Who?"}], "stream": False}
        assert "1880" in client.post("/api/chat", json=asked).json()["message"]["content"]
    assert len(stub.asked("/api/chat")) == 1


@pytest.mark.parametrize("given", [pytest.param(Given(ollama="real"), marks=pytest.mark.real_ollama)], ids=["real"])
def test_a_service_passes_requests_on_to_a_real_ollama(service: CragsideServer) -> None:
    with service.client() as client:
        assert client.get("/api/tags").json()["models"]


@pytest.mark.parametrize("given", [Given(token="secret")])
@pytest.mark.parametrize("again", [False, True])
def test_a_shared_service_goes_on_for_the_next_test(
    shared_service: CragsideServer, services: Callable[[Given], CragsideServer], given: Given, again: bool
) -> None:
    assert services(given) is shared_service
    with shared_service.client() as client:
        assert client.get("/v1/documents").json()["total"] == again
        client.post("/v1/documents", json={"name": "left.md", "text": TEXT}).raise_for_status()


@pytest.mark.parametrize("given", [Given(documents={"cragside.md": TEXT})])
def test_a_service_that_was_killed_starts_again_with_its_store(service: CragsideServer) -> None:
    service.kill()
    with service.client() as client, pytest.raises(httpx.ConnectError):
        client.get("/healthz")
    service.start()
    with service.client() as client:
        assert client.get("/v1/documents").json()["total"] == 1
