"""The panel Memory: what was remembered, search in it, and forgetting."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.console.acts import PATIENCE, expects, first_held, focused, stop_clock
from tests.console.looks import EVERY_LOOK, GERMAN
from tests.console.watch import Watch
from tests.services.axe import Violation
from tests.services.cragside_server import CragsideServer, Given

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

MARKUP = "<script>alert(1)</script> <b>bold</b> <img src=x onerror=alert(2)>"
EXCHANGES = (
    ("Who lights the lamp of the lighthouse?", f"The keeper lights it at dusk. {MARKUP}"),
    ("How long does the lemon tart bake?", "The tart bakes for forty minutes in a hot oven."),
    ("Which shed does the rowing club rent?", "The rowing club rents shed four of the harbour."),
)


def remember(service: CragsideServer, exchanges: tuple[tuple[str, str], ...] = EXCHANGES) -> None:
    """Have exchanges remembered, the last one latest, and wait until they can be recalled."""
    with service.client() as client:
        for day, (user, assistant) in enumerate(exchanges, start=1):
            body = {"user": user, "assistant": assistant, "date": f"2026-01-{day:02}T10:00:00Z"}
            assert client.post("/v1/memories", json=body).json()["indexed"]
        while not all(each["searchable"] for each in client.get("/v1/memories").json()["memories"]):
            time.sleep(0.05)


@pytest.fixture
def panel(service: CragsideServer, page: "Page") -> "Page":
    """The panel of a service that remembers three exchanges."""
    remember(service)
    page.goto(service.console("#/memory"))
    expects(exchanges(page)).to_have_count(3)
    return page


def exchanges(page: "Page") -> "Locator":
    return page.locator(".exchange")


def remembered(service: CragsideServer) -> int:
    with service.client() as client:
        return int(client.get("/v1/memories").json()["total"])


def test_an_empty_memory_says_how_exchanges_get_there(service: CragsideServer, page: "Page") -> None:
    page.goto(service.console("#/memory"))
    expects(page.get_by_text("Nothing was remembered yet.")).to_be_visible()
    expects(page.get_by_text("RAG_STORE_EXCHANGES=true")).to_be_visible()
    expects(page.get_by_text("POST /v1/memories")).to_be_visible()


def test_exchanges_are_listed_latest_first_and_mark_up_is_text(panel: "Page") -> None:
    expects(panel.get_by_text("3 exchanges")).to_be_visible()
    expects(exchanges(panel).first).to_contain_text("rowing club")
    expects(exchanges(panel).first.locator("time")).to_have_attribute("datetime", "2026-01-03T10:00:00+00:00")
    expects(exchanges(panel).last).to_contain_text(MARKUP)
    assert panel.locator("img, main script").count() == 0


def test_a_long_memory_has_pages(service: CragsideServer, page: "Page") -> None:
    asked = "What did the keeper of the harbour write into the book on day"
    remember(service, tuple((f"{asked} {day}?", f"On day {day} the keeper wrote {day} lines.") for day in range(1, 23)))
    page.goto(service.console("#/memory"))
    expects(exchanges(page)).to_have_count(20)
    page.get_by_role("button", name="Last").press("Enter")
    expects(exchanges(page)).to_have_count(2)


def test_memory_is_searched(panel: "Page") -> None:
    panel.get_by_role("searchbox", name="Search").fill("How long does the tart bake?")
    panel.keyboard.press("Enter")
    expects(panel.get_by_role("heading", name="Found")).to_be_visible()
    expects(exchanges(panel).first).to_contain_text("forty minutes")
    expects(exchanges(panel).first).to_contain_text("relevance")
    expects(exchanges(panel).first.locator("time")).to_have_attribute("datetime", "2026-01-02T10:00:00Z")
    panel.get_by_role("button", name="Show all").click()
    expects(exchanges(panel)).to_have_count(3)


def test_a_search_goes_on_while_something_is_forgotten(panel: "Page") -> None:
    held: list[Route] = []
    panel.route("**/v1/memories/search*", lambda route: held.append(route))
    with panel.expect_response(lambda answer: answer.request.method == "DELETE", timeout=PATIENCE):
        exchanges(panel).first.get_by_role("button", name="Forget").click()
        panel.get_by_role("searchbox", name="Search").fill("How long does the tart bake?")
        panel.keyboard.press("Enter")
    expects(panel.get_by_text("2 exchanges")).to_be_visible()
    first_held(panel, held).continue_()
    expects(panel.get_by_role("heading", name="Found")).to_be_visible()
    expects(exchanges(panel).first).to_contain_text("forty minutes")


def test_forgetting_can_be_undone(panel: "Page", service: CragsideServer) -> None:
    stop_clock(panel)
    exchanges(panel).first.get_by_role("button", name="Forget").press("Enter")
    expects(exchanges(panel)).to_have_count(2)
    expects(panel.get_by_text("2 exchanges")).to_be_visible()
    panel.clock.run_for(1_000)
    expects(exchanges(panel).first.get_by_role("button", name="Forget")).to_be_focused()
    panel.get_by_role("button", name="Undo").press("Enter")
    expects(exchanges(panel)).to_have_count(3)
    panel.clock.run_for(1_000)
    expects(exchanges(panel).first.get_by_role("button", name="Forget")).to_be_focused()
    assert focused(panel).startswith("Forget the exchange of")
    assert remembered(service) == 3


def test_an_exchange_is_forgotten_once_the_time_for_undoing_is_over(panel: "Page", service: CragsideServer) -> None:
    stop_clock(panel)
    exchanges(panel).first.get_by_role("button", name="Forget").click()
    panel.clock.run_for(5_000)
    assert remembered(service) == 3
    with panel.expect_response(lambda answer: answer.request.method == "DELETE", timeout=PATIENCE):
        panel.clock.run_for(1_000)
    expects(panel.get_by_text("The exchange was forgotten.")).to_have_count(0)
    expects(panel.get_by_text("2 exchanges")).to_be_visible()
    assert remembered(service) == 2


@pytest.mark.parametrize("given", [Given(documents={"lamp.md": "The keeper lights the lamp."}, baked=True)])
def test_a_read_only_store_forgets_nothing_and_says_why(service: CragsideServer, page: "Page") -> None:
    page.goto(service.console("#/memory"))
    expects(page.get_by_text("This store is read-only")).to_be_visible()
    expects(page.get_by_text("There is nothing here.")).to_be_visible()
    expects(page.get_by_text("POST /v1/memories")).to_have_count(0)
    assert page.get_by_role("button", name="Forget").count() == 0


def test_a_service_that_stops_says_so_with_a_way_out(panel: "Page", service: CragsideServer, watch: Watch) -> None:
    watch.allow("net::ERR_")
    service.kill()
    panel.get_by_role("searchbox", name="Search").fill("tart")
    panel.keyboard.press("Enter")
    failure = panel.get_by_role("alert").filter(has_text="The service does not answer.")
    expects(failure).to_contain_text("Check that cragside serve runs")
    service.start()
    failure.get_by_role("button", name="Try again").click()
    expects(failure).to_have_count(0)
    expects(panel.get_by_role("heading", name="Found")).to_be_visible()
    expects(exchanges(panel).first).to_contain_text("forty minutes")


@pytest.mark.parametrize("look", [GERMAN], ids=str)
def test_it_speaks_german(service: CragsideServer, page: "Page") -> None:
    page.goto(service.console("#/memory"))
    expects(page.get_by_text("Noch ist nichts gespeichert.")).to_be_visible()


@pytest.mark.parametrize("look", EVERY_LOOK, ids=str)
def test_it_has_no_barriers(panel: "Page", axe: Callable[["Page"], list[Violation]]) -> None:
    assert axe(panel) == []
    assert panel.evaluate("document.documentElement.scrollWidth <= innerWidth")
