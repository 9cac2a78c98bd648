"""Open WebUI's whole server: it asks through cragside, and by the filter, whose citations open in a browser."""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.hosts import catalogue, open_webui
from tests.hosts.conftest import LAMP
from tests.hosts.open_webui import VARIABLE, OpenWebUi
from tests.hosts.seen import all_enriched, all_left
from tests.hosts.upstream import ANSWER, PIECES, Upstream
from tests.services.cragside_server import CragsideServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} is the folder with Open WebUI's environment"),
]

QUESTION = "What does the lamp burn?"
ASKED = f"/rag {QUESTION}"
DONE = "1 passage of evidence (local)"
_MILLISECONDS = 120_000


@pytest.fixture(scope="module")
def server(cragside: CragsideServer) -> Iterator[OpenWebUi]:
    with OpenWebUi(cragside.url) as running:
        yield running


@pytest.fixture(scope="module")
def user(server: OpenWebUi) -> Iterator[httpx.Client]:
    """Its only user, an administrator."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client:
        told = client.post("/api/v1/auths/signin", json={"email": "", "password": ""}).json()
        client.headers["Authorization"] = f"Bearer {told['token']}"
        (model,) = client.get("/api/models").json()["data"]
        assert model["id"] == "m"
        yield client


@pytest.fixture(scope="module")
def filtered(user: httpx.Client, cragside: CragsideServer) -> httpx.Client:
    """The user, for whom the filter was installed as an administrator does."""
    code = {"id": "cragside", "name": "cragside", "content": open_webui.FILTER.read_text(), "meta": {"description": ""}}
    assert user.post("/api/v1/functions/create", json=code).json()["type"] == "filter"
    for switch in ("toggle", "toggle/global"):
        user.post(f"/api/v1/functions/id/cragside/{switch}").raise_for_status()
    valves(user, endpoint=cragside.url)
    return user


@pytest.fixture
def page(chromium: str) -> Iterator["Page"]:
    from tests.services.chromium import launched

    with launched(chromium) as browser:
        opened = browser.new_page()
        opened.set_default_timeout(_MILLISECONDS)
        yield opened


@pytest.fixture(autouse=True)
def fresh(upstream: Upstream) -> None:
    upstream.asked.clear()


def valves(user: httpx.Client, **given: str) -> None:
    user.post("/api/v1/functions/id/cragside/valves/update", json=given).raise_for_status()


def request(text: str, *, stream: bool) -> dict[str, Any]:
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}


def pieces(user: httpx.Client, text: str) -> Iterator[str]:
    """The texts of a streamed answer."""
    with user.stream("POST", "/api/chat/completions", json=request(text, stream=True)) as answer:
        for line in answer.iter_lines():
            with suppress(ValueError):
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    yield choice["delta"].get("content") or ""


def saved(user: httpx.Client, text: str) -> dict[str, Any]:
    """The answer's message as a chat keeps it that a browser begins with a text."""
    asks, answers = str(uuid.uuid4()), str(uuid.uuid4())
    asking = {"id": asks, "parentId": None, "role": "user", "content": text, "timestamp": 1}
    chat = {"parent_id": None, "id": answers, "session_id": "a-browser", "user_message": asking}
    begun = user.post("/api/chat/completions", json={**request(text, stream=True), **chat}).json()

    def message() -> Any:
        told = user.get(f"/api/v1/chats/{begun['chat_id']}").json()["chat"]["history"]["messages"][answers]
        return told if told.get("done") else None

    return dict(until(message))


def until(found: Callable[[], Any]) -> Any:
    """Return the passages as soon as any are found."""
    deadline = time.monotonic() + _MILLISECONDS / 1000
    while not (told := found()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return told


def test_open_webui_asks_through_cragside(
    user: httpx.Client, upstream: Upstream, record_property: Callable[[str, Any], None]
) -> None:
    whole = user.post("/api/chat/completions", json=request(ASKED, stream=False)).json()
    assert whole["choices"][0]["message"]["content"] == ANSWER
    assert [each for each in pieces(user, ASKED) if each] == list(PIECES)
    leaving = pieces(user, f"{ASKED} hang")
    assert any(leaving)
    leaving.close()  # type: ignore[attr-defined]
    told = {"whole": ANSWER, "stream": list(PIECES), "abort": 2}
    all_left(upstream, told)
    row = catalogue.row(catalogue.OPEN_WEBUI, open_webui.VERSION, all_enriched(upstream), list(told))
    record_property(catalogue.PROPERTY, row)


def test_a_chat_keeps_the_filters_status_and_its_sources(
    filtered: httpx.Client, upstream: Upstream, cragside: CragsideServer
) -> None:
    told = saved(filtered, ASKED)
    assert told["content"] == ANSWER
    assert [each["description"] for each in told["statusHistory"]] == ["Looking for evidence", DONE]
    (source,) = told["sources"]
    assert (source["document"], source["source"]["name"]) == ([LAMP], "Lamp")
    assert all_enriched(upstream) == ["/api/chat"]

    upstream.asked.clear()
    told = saved(filtered, QUESTION)
    assert not told.get("statusHistory")
    assert not told.get("sources")
    [(_, body)] = upstream.asked
    assert body["messages"] == [{"role": "user", "content": QUESTION}]

    valves(filtered, endpoint="http://127.0.0.1:9")
    told = saved(filtered, ASKED)
    valves(filtered, endpoint=cragside.url)
    assert told["content"] == ANSWER
    assert told["statusHistory"][-1]["description"] == "No evidence (service_unavailable)"


def test_a_citation_shows_and_opens_in_a_browser(
    filtered: httpx.Client, server: OpenWebUi, upstream: Upstream, page: "Page"
) -> None:
    page.goto(server.url)
    page.get_by_role("button", name="Okay, Let's Go!").click()  # its news
    page.locator("#chat-input").click()
    page.keyboard.insert_text(ASKED)
    page.keyboard.press("Enter")
    page.get_by_text(DONE).wait_for()
    page.get_by_role("button", name="View source: Lamp").click()
    page.get_by_role("dialog").get_by_text(LAMP).wait_for()
    # Its own requests, such as that for a title, have the command in them too.
    others = until(lambda: [body["messages"] for _, body in upstream.asked if not body["stream"]])
    assert "### Task:" in others[0][0]["content"]
    assert LAMP not in str(others)
