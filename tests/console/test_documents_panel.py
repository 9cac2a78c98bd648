"""The panel Documents: finding, opening, deleting and reprocessing, and what it says when something goes wrong."""

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cragside.bootstrap import Container
from cragside.settings import load_settings
from tests.console.acts import PATIENCE, drop, expects, first_held, focused, stop_clock
from tests.console.documents_page import LAMP, TART, THREE, done, names, opened, row, rows, stored
from tests.console.looks import EVERY_LOOK, GERMAN, NARROW, Look
from tests.console.watch import Watch
from tests.services.axe import Violation
from tests.services.cragside_server import CragsideServer, Given
from tests.services.tools import run

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


@pytest.fixture
def panel(service: CragsideServer, page: "Page") -> "Page":
    """The panel, once it knows whether the workspace has documents. The page closes before the service stops."""
    return opened(page, service)


@pytest.mark.parametrize("given", [THREE])
def test_documents_are_searched_filtered_and_sorted(panel: "Page") -> None:
    expects(rows(panel)).to_have_count(3)
    panel.get_by_role("searchbox", name="Search").press_sequentially("TART")
    expects(panel.get_by_text("1 document", exact=True)).to_be_visible()
    assert names(panel) == ["tart.md"]
    panel.get_by_role("searchbox", name="Search").fill("nothing like it")
    panel.get_by_role("button", name="Show all documents").click()
    panel.get_by_label("Type").select_option("txt")
    expects(panel.get_by_text("1 document", exact=True)).to_be_visible()
    assert names(panel) == ["sheds.txt"]
    panel.get_by_label("Type").select_option("")
    panel.get_by_label("Status").select_option("failed")
    expects(panel.get_by_text("No document fits.")).to_be_visible()
    panel.get_by_role("button", name="Show all documents").click()
    panel.get_by_role("combobox", name="Files").select_option("read in part")
    expects(panel.get_by_text("No document fits.")).to_be_visible()
    panel.get_by_role("button", name="Show all documents").click()
    for order, wanted in (
        ("ascending", ["lamp.md", "sheds.txt", "tart.md"]),
        ("descending", ["tart.md", "sheds.txt", "lamp.md"]),
    ):
        panel.get_by_role("button", name="Name", exact=True).click()
        expects(panel.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", order)
        expects(rows(panel).first).to_contain_text(wanted[0])
        assert names(panel) == wanted


@pytest.mark.parametrize("given", [Given(documents={f"note-{n:02}.md": f"Note {n}." for n in range(53)})])
def test_a_long_list_has_pages(panel: "Page") -> None:
    expects(rows(panel)).to_have_count(50)
    expects(panel.get_by_text("53 documents")).to_be_visible()
    panel.get_by_role("button", name="Next").press("Enter")
    expects(rows(panel)).to_have_count(3)
    assert focused(panel) == "Next"
    field = panel.get_by_role("spinbutton", name="Page")
    expects(field).to_have_value("2")
    field.fill("1")
    field.press("Enter")
    expects(rows(panel)).to_have_count(50)
    expects(field).to_be_focused()


@pytest.mark.parametrize("given", [THREE])
def test_a_slow_list_is_not_asked_for_again_before_it_answers(
    service: CragsideServer, page: "Page", tmp_path: Path
) -> None:
    (tmp_path / "new.md").write_text("The list is refreshed while this is indexed.")
    indexing: list[Route] = []
    lists: list[Route] = []
    page.clock.install()
    opened(page, service)
    page.route("**/v1/documents/*/events*", lambda route: indexing.append(route))
    with page.expect_request("**/v1/documents/*/events*"):
        drop(page, [tmp_path / "new.md"])
    page.route("**/v1/documents?*", lambda route: lists.append(route))
    with page.expect_request("**/v1/documents?*search=tart*"):
        page.get_by_role("searchbox", name="Search").fill("tart")
    page.clock.run_for(10_000)
    expects(page.get_by_role("region", name="Documents", exact=True)).to_have_attribute("aria-busy", "true")
    searches = [route for route in lists if "search=tart" in route.request.url]
    assert len(searches) == 1
    searches[0].continue_()
    expects(page.get_by_text("1 document", exact=True)).to_be_visible()
    assert names(page) == ["tart.md"]
    first_held(page, indexing).continue_()
    done(page, 1)


@pytest.mark.parametrize("given", [THREE])
def test_an_answer_that_breaks_off_is_told_with_a_way_out(panel: "Page") -> None:
    panel.route("**/v1/documents?*", lambda route: route.fulfill(content_type="application/json", body='{"total": 3'))
    panel.get_by_role("searchbox", name="Search").fill("tart")
    expects(panel.get_by_role("alert")).to_contain_text("The service does not answer.")
    panel.unroute("**/v1/documents?*")
    panel.get_by_role("alert").get_by_role("button", name="Try again").click()
    expects(panel.get_by_text("1 document", exact=True)).to_be_visible()


@pytest.mark.parametrize("given", [THREE])
def test_a_deletion_can_be_undone(panel: "Page", service: CragsideServer) -> None:
    expects(rows(panel)).to_have_count(3)
    stop_clock(panel)
    panel.get_by_role("button", name="Delete tart.md").press("Enter")
    expects(rows(panel)).to_have_count(2)
    expects(panel.get_by_text("2 documents", exact=True)).to_be_visible()
    # At once: the focus has not moved to the next document yet.
    panel.get_by_role("button", name="Undo").press("Enter")
    expects(rows(panel)).to_have_count(3)
    panel.clock.run_for(1_000)
    expects(panel.get_by_role("button", name="tart.md", exact=True)).to_be_focused()
    assert "tart.md" in stored(service)


@pytest.mark.parametrize("given", [THREE])
def test_keys_undo_a_deletion_unless_they_undo_what_was_typed(panel: "Page", service: CragsideServer) -> None:
    stop_clock(panel)
    panel.get_by_role("button", name="Delete tart.md").press("Enter")
    expects(rows(panel)).to_have_count(2)
    panel.clock.run_for(1_000)
    expects(panel.locator(".acts button:focus")).to_have_count(1)
    panel.get_by_role("searchbox", name="Search").press("Control+z")
    expects(rows(panel)).to_have_count(2)
    panel.get_by_role("button", name="Delete lamp.md").focus()
    panel.keyboard.press("Control+z")
    expects(rows(panel)).to_have_count(3)
    assert "tart.md" in stored(service)


@pytest.mark.parametrize("given", [THREE])
def test_a_document_that_changed_meanwhile_is_not_deleted(panel: "Page", service: CragsideServer, watch: Watch) -> None:
    watch.allow("status of 400")
    stop_clock(panel)
    panel.get_by_role("button", name="Delete tart.md").click()
    expects(rows(panel)).to_have_count(2)
    with service.client() as client:
        files = {"files": ("tart.md", "Bake it for an hour instead.")}
        client.post("/v1/documents", files=files).raise_for_status()
    panel.clock.run_for(6_000)
    expects(panel.get_by_text("This was not deleted: tart.md has changed since you saw it.")).to_be_visible()
    expects(rows(panel)).to_have_count(3)
    assert "tart.md" in stored(service)


@pytest.mark.parametrize("given", [THREE])
def test_a_page_that_the_browser_kept_offers_no_undo_of_what_was_deleted(
    panel: "Page", service: CragsideServer
) -> None:
    stop_clock(panel)
    panel.get_by_role("button", name="Delete tart.md").click()
    expects(rows(panel)).to_have_count(2)
    with panel.expect_response(lambda answer: answer.request.method == "DELETE", timeout=PATIENCE):
        panel.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    panel.clock.resume()
    with panel.expect_event("load"):
        panel.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expects(rows(panel)).to_have_count(2)
    expects(panel.get_by_role("button", name="Undo")).to_have_count(0)
    assert stored(service) == {"lamp.md", "sheds.txt"}


@pytest.mark.parametrize("given", [THREE])
def test_the_way_back_closes_a_document(panel: "Page", service: CragsideServer) -> None:
    panel.get_by_role("link", name="Memory").click()
    panel.get_by_role("link", name="Documents").click()
    panel.get_by_role("button", name="lamp.md", exact=True).click()
    expects(panel.get_by_role("dialog", name="lamp.md")).to_be_visible()
    panel.go_back()
    expects(panel.get_by_role("heading", name="Memory")).to_be_visible()
    expects(panel.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("given", [THREE])
def test_a_deletion_keeps_the_focus_in_the_list(panel: "Page") -> None:
    panel.get_by_role("button", name="Name", exact=True).click()
    expects(panel.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    for name, after in (("sheds.txt", "Delete tart.md"), ("tart.md", "Delete lamp.md")):
        panel.get_by_role("button", name=f"Delete {name}").press("Enter")
        expects(panel.get_by_role("button", name=after)).to_be_focused()
    panel.get_by_role("button", name="Delete lamp.md").press("Enter")
    expects(panel.get_by_role("heading", name="In this workspace")).to_be_focused()


@pytest.mark.parametrize("given", [THREE])
def test_several_documents_are_deleted_once_they_cannot_be_undone(panel: "Page", service: CragsideServer) -> None:
    panel.get_by_role("checkbox", name="Select tart.md").check()
    panel.get_by_role("checkbox", name="Select lamp.md").check()
    group = panel.get_by_role("region", name="2 selected")
    stop_clock(panel)
    group.get_by_role("button", name="Delete").click()
    expects(panel.get_by_text("2 documents were deleted.")).to_be_visible()
    panel.clock.run_for(5_000)
    assert len(stored(service)) == 3
    with panel.expect_response(lambda answer: answer.request.method == "DELETE", timeout=PATIENCE):
        panel.clock.run_for(1_000)
    expects(panel.get_by_text("2 documents were deleted.")).to_have_count(0)
    expects(panel.get_by_text("1 document", exact=True)).to_be_visible()
    assert stored(service) == {"sheds.txt"}


@pytest.mark.parametrize("given", [THREE])
def test_who_leaves_the_page_deletes_at_once(panel: "Page", service: CragsideServer) -> None:
    panel.get_by_role("button", name="Delete tart.md").click()
    expects(rows(panel)).to_have_count(2)
    panel.goto("about:blank")
    panel.goto(service.console("#/documents"))
    expects(panel.get_by_text("2 documents", exact=True)).to_be_visible()
    assert stored(service) == {"lamp.md", "sheds.txt"}


@pytest.mark.parametrize("given", [THREE])
def test_a_deleted_document_can_be_added_again_at_once_and_later(
    panel: "Page", service: CragsideServer, tmp_path: Path
) -> None:
    (tmp_path / "tart.md").write_text(TART)
    for added in (1, 2):
        panel.get_by_role("button", name="Delete tart.md").click()
        expects(rows(panel)).to_have_count(2)
        if added == 2:
            expects(panel.get_by_text("tart.md was deleted.")).to_have_count(0)
        drop(panel, [tmp_path / "tart.md"])
        done(panel, added)
        expects(row(panel, "tart.md")).to_be_visible()
        expects(panel.get_by_text("tart.md was deleted.")).to_have_count(0)
        assert "tart.md" in stored(service)


@pytest.mark.parametrize("given", [THREE])
def test_who_leaves_during_a_deletion_loses_no_part_of_it(panel: "Page", service: CragsideServer) -> None:
    asked: list[str] = []

    def answer(route: "Route") -> None:
        # The first one is under way until somebody leaves.
        asked.append(route.request.url)
        if len(asked) > 1:
            route.continue_()

    expects(rows(panel)).to_have_count(3)
    panel.route(
        "**/v1/documents/*", lambda route: answer(route) if route.request.method == "DELETE" else route.fallback()
    )
    panel.get_by_role("button", name="Delete tart.md").click()
    panel.get_by_role("button", name="Close").click()
    expects(panel.get_by_text("2 documents", exact=True)).to_be_visible()
    panel.goto("about:blank")
    panel.goto(service.console("#/documents"))
    expects(panel.get_by_text("2 documents", exact=True)).to_be_visible()
    assert stored(service) == {"lamp.md", "sheds.txt"}


@pytest.mark.parametrize("given", [THREE])
def test_a_document_is_reprocessed(panel: "Page") -> None:
    with panel.expect_response("**/reprocess*") as answered:
        panel.get_by_role("button", name="Reprocess tart.md").click()
    assert answered.value.json()["tasks"] > 0
    expects(panel.get_by_text("It is being indexed again; tasks:")).to_be_visible()
    expects(row(panel, "tart.md")).to_contain_text("enriched")


@pytest.mark.parametrize("given", [THREE])
def test_a_link_opens_a_document_at_a_passage(service: CragsideServer, page: "Page") -> None:
    with service.client() as client:
        found = client.post("/v1/explain", json={"prompt": "Who lights the lamp?"}).json()["candidates"][0]
    page.goto(service.console(f"#/documents?open={found['document']}&passage={found['id']}"))
    expects(page.get_by_role("dialog", name="lamp.md").locator("mark")).to_have_text(LAMP)
    page.keyboard.press("Escape")
    expects(page.get_by_role("dialog")).to_have_count(0)
    page.wait_for_url("**/console/#/documents")


def _give_up(service: CragsideServer, reason: str) -> None:
    """Have all documents fail, as if a worker had given them up."""

    async def bury() -> None:
        container = Container(load_settings({"RAG_HOME": str(service.store)}))
        opened = await container.workspaces.open("default")
        for record in (await opened.documents.documents())[0]:
            await container.intake.restart(record.id, workspace="default", force=True)
        # All of it: what is left would be done by the worker, and the document be indexed again.
        while deliveries := await container.queue.receive(limit=10, wait=0):
            for delivery in deliveries:
                await container.queue.bury(delivery, reason)
                await opened.work.failed(delivery.task, reason)
        await container.close()

    service.stop()
    # Playwright's loop runs in this thread.
    working = threading.Thread(target=asyncio.run, args=(bury(),))
    working.start()
    working.join()
    service.start()


@pytest.mark.parametrize("given", [Given(documents={"lamp.md": LAMP})])
def test_failed_work_is_told_with_its_reason_and_revived(service: CragsideServer, page: "Page") -> None:
    _give_up(service, "the model is gone")
    page.goto(service.console("#/documents"))
    expects(row(page, "lamp.md")).to_contain_text("failed")
    expects(row(page, "lamp.md")).to_contain_text(
        "the model is gone Remove the cause and reprocess the document, or delete the document."
    )
    page.get_by_text("given up").click()
    letters = page.locator(".dead li")
    expects(letters.first).to_contain_text("the model is gone")
    expects(letters.first.get_by_role("button", name="lamp.md", exact=True)).to_be_visible()
    page.get_by_role("button", name="Revive all").click()
    expects(letters).to_have_count(0)
    expects(row(page, "lamp.md")).to_contain_text("enriched")


# Chromium itself refuses a drop where the page says `none`, so this is one by a script.
DROPPED = """() => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(["A tart."], "tart.md"));
  dispatchEvent(new DragEvent("drop", { dataTransfer, cancelable: true }));
}"""


@pytest.mark.parametrize("given", [Given(documents={"lamp.md": LAMP}, baked=True)])
def test_a_read_only_store_offers_nothing_that_it_would_refuse(panel: "Page") -> None:
    expects(row(panel, "lamp.md")).to_be_visible()
    expects(panel.get_by_text("This store is read-only")).to_be_visible()
    for name in ("Delete", "Reprocess", "Choose files", "Add"):
        assert panel.get_by_role("button", name=name, exact=name == "Add").count() == 0
    assert panel.get_by_role("checkbox").count() == 0
    panel.evaluate(DROPPED)
    expects(panel.locator(".notices")).to_contain_text("This store is read-only")
    assert panel.get_by_role("region", name="Being added").count() == 0


def test_a_token_that_may_only_read_is_told_so(
    page: "Page", watch: Watch, tmp_path: Path, start_service: Callable[[Given], CragsideServer]
) -> None:
    watch.allow("status of 401")
    tokens = {"RAG_TOKENS_FILE": str(tmp_path / "tokens.json"), "RAG_HOME": str(tmp_path)}
    program = "from cragside.entrypoints.cli.main import main; main()"
    token = run([sys.executable, "-c", program, "token", "new", "reader", "--scope", "read"], env=tokens).split()[-1]
    given = Given(environment={"RAG_TOKENS_FILE": tokens["RAG_TOKENS_FILE"]}, token="writer")
    service = start_service(given)
    service.add({"lamp.md": LAMP})
    page.goto(service.console("#/documents"))
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Continue").click()
    expects(row(page, "lamp.md")).to_be_visible()
    expects(page.get_by_text("Your token may read but not write")).to_be_visible()
    assert page.get_by_role("button", name="Delete").count() == 0


@pytest.mark.parametrize("given", [Given(documents={"lamp.md": LAMP, "tart.md": TART})])
def test_a_deletion_that_fails_shows_the_document_again(panel: "Page", service: CragsideServer, watch: Watch) -> None:
    watch.allow("net::ERR_")
    stop_clock(panel)
    panel.get_by_role("button", name="Delete tart.md").click()
    expects(rows(panel)).to_have_count(1)
    service.kill()
    panel.clock.run_for(6_000)
    expects(panel.get_by_text("This was not deleted: The service does not answer.")).to_be_visible()
    expects(rows(panel)).to_have_count(2)
    service.start()
    panel.locator(".notice", has_text="This was not deleted").get_by_role("button", name="Try again").click()
    expects(rows(panel)).to_have_count(1)
    expects(panel.get_by_text("1 document", exact=True)).to_be_visible()
    panel.clock.resume()
    panel.reload()
    expects(rows(panel)).to_have_count(1)


def test_a_service_that_is_away_says_so_with_a_way_out(panel: "Page", service: CragsideServer, watch: Watch) -> None:
    watch.allow("net::ERR_")
    service.kill()
    panel.get_by_role("searchbox", name="Search").fill("lamp")
    failure = panel.get_by_role("region", name="In this workspace").get_by_role("alert")
    expects(failure).to_contain_text("The service does not answer.")
    expects(failure).to_contain_text("Check that cragside serve runs")
    service.start()
    failure.get_by_role("button", name="Try again").click()
    expects(panel.get_by_text("No document fits.")).to_be_visible()


@pytest.mark.parametrize("look", [GERMAN], ids=str)
@pytest.mark.parametrize("given", [Given(documents={"lamp.md": LAMP})])
def test_it_speaks_german(service: CragsideServer, page: "Page") -> None:
    page.goto(service.console("#/documents"))
    expects(page.get_by_role("heading", name="Dokumente hinzufügen")).to_be_visible()
    expects(page.get_by_role("button", name="lamp.md löschen")).to_be_visible()


@pytest.mark.parametrize("look", EVERY_LOOK, ids=str)
@pytest.mark.parametrize("given", [THREE])
def test_it_has_no_barriers(
    service: CragsideServer, page: "Page", axe: Callable[["Page"], list[Violation]], watch: Watch, tmp_path: Path
) -> None:
    watch.allow("status of 400")
    page.goto(service.console("#/documents"))
    expects(rows(page)).to_have_count(3)
    (tmp_path / "empty.md").touch()
    drop(page, [tmp_path / "empty.md"])
    expects(page.locator(".addition.refused")).to_be_visible()
    page.locator("table.documents input").nth(1).check()
    assert axe(page) == []
    page.locator("table.documents .open").first.click()
    expects(page.locator("dialog .text")).to_be_visible()
    assert axe(page) == []


@pytest.mark.parametrize("look", [NARROW], ids=str)
@pytest.mark.parametrize("given", [Given(documents={"a-very-long-name-" * 6 + ".md": LAMP})])
def test_it_fits_a_narrow_screen(panel: "Page", look: Look) -> None:
    expects(rows(panel)).to_have_count(1)
    assert panel.evaluate("document.documentElement.scrollWidth") <= look.width
    assert panel.evaluate(
        "document.querySelector('.table').scrollWidth <= document.querySelector('.table').clientWidth"
    )
