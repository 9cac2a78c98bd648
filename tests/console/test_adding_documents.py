"""Adding documents to the console: files, folders and addresses, and what it says when they are refused."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.console.acts import drop, expects, first_held
from tests.console.documents_page import LAMP, SHEDS, TART, done, opened, row, rows, stored
from tests.console.watch import Watch
from tests.services.cragside_server import CragsideServer, Given

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

HOSTILE = "<img src=x onerror=alert(1)>.md"
MARKUP = "<svg onload=alert(2)></svg> <b>bold</b> <img src=x onerror=alert(3)> The keeper lights the lamp at dusk."


@pytest.fixture
def panel(service: CragsideServer, page: "Page") -> "Page":
    """The panel, once it knows whether the workspace has documents. The page closes before the service stops."""
    return opened(page, service)


def test_an_empty_workspace_says_what_to_do_first(panel: "Page") -> None:
    expects(panel.get_by_text("There is nothing here yet. Drop files or folders")).to_be_visible()


def test_dropped_files_and_folders_become_searchable(panel: "Page", service: CragsideServer, tmp_path: Path) -> None:
    (tmp_path / "shop/old").mkdir(parents=True)
    (tmp_path / "lamp.md").write_text(LAMP)
    (tmp_path / "shop/tart.md").write_text(TART)
    (tmp_path / "shop/old/tart.md").write_text(SHEDS)
    (tmp_path / "shop/.secret").write_text("hidden")
    drop(panel, [tmp_path / "lamp.md", tmp_path / "shop"])
    expects(panel.get_by_text("1 hidden file or folder was left out.")).to_be_visible()
    for name in ("lamp.md", "shop/tart.md", "shop/old/tart.md"):
        expects(row(panel, name)).to_contain_text("enriched")
    done(panel, 3)
    assert stored(service) == {"lamp.md", "shop/tart.md", "shop/old/tart.md"}


# Has the browser read dropped folders as `read(folder, found, failed)` says.
FOLDERS = """
const take = DataTransferItem.prototype.webkitGetAsEntry;
DataTransferItem.prototype.webkitGetAsEntry = function () {
  const folder = take.call(this);
  const reader = folder.createReader();
  const known = reader.readEntries.bind(reader);
  reader.readEntries = (found, failed) => read(folder, () => known(found, failed), failed);
  folder.createReader = () => reader;
  return folder;
};
"""
# It reads them once somebody says `goOn()`.
LATER = "const told = new Promise((said) => (window.goOn = said)); const read = (folder, go) => told.then(go);"
LOCKED = "const read = (folder, go, failed) => (folder.name === 'locked' ? failed(new Error('locked')) : go());"


def test_a_folder_goes_to_the_workspace_onto_which_it_was_dropped(
    service: CragsideServer, page: "Page", tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/tart.md").write_text(TART)
    with service.client() as client:
        other = {"name": "lamp.md", "text": LAMP, "workspace": "other"}
        client.post("/v1/documents", json=other).raise_for_status()
    page.add_init_script(LATER + FOLDERS)
    opened(page, service)
    drop(page, [tmp_path / "shop"])
    page.get_by_role("combobox", name="Workspace").select_option("other")
    expects(row(page, "lamp.md")).to_be_visible()
    page.evaluate("goOn()")
    done(page, 1)
    assert stored(service) == {"shop/tart.md"}


def test_a_folder_that_cannot_be_read_does_not_keep_the_others_out(
    service: CragsideServer, page: "Page", tmp_path: Path
) -> None:
    for name in ("locked", "shop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tart.md").write_text(TART)
    page.add_init_script(LOCKED + FOLDERS)
    opened(page, service)
    drop(page, [tmp_path / "locked", tmp_path / "shop"])
    expects(page.get_by_text("The browser cannot read one of the folders.")).to_be_visible()
    done(page, 1)
    assert stored(service) == {"shop/tart.md"}


def test_files_dropped_onto_another_panel_are_added_too(service: CragsideServer, page: "Page", tmp_path: Path) -> None:
    (tmp_path / "lamp.md").write_text(LAMP)
    page.goto(service.console("#/memory"))
    expects(page.get_by_text("Nothing was remembered yet.")).to_be_visible()
    drop(page, [tmp_path / "lamp.md"])
    expects(row(page, "lamp.md")).to_be_visible()
    done(page, 1)


def test_chosen_files_and_folders_are_added(panel: "Page", tmp_path: Path) -> None:
    (tmp_path / "shop/.git").mkdir(parents=True)
    (tmp_path / "shop/tart.md").write_text(TART)
    (tmp_path / "shop/.git/config.md").write_text("hidden")
    (tmp_path / "lamp.md").write_text(LAMP)
    with panel.expect_file_chooser() as files:
        panel.get_by_role("button", name="Choose files").click()
    files.value.set_files([tmp_path / "lamp.md"])
    with panel.expect_file_chooser() as folder:
        panel.get_by_role("button", name="Choose a folder").click()
    folder.value.set_files(tmp_path / "shop")
    expects(row(panel, "lamp.md")).to_be_visible()
    expects(row(panel, "shop/tart.md")).to_be_visible()
    expects(rows(panel)).to_have_count(2)
    done(panel, 2)


def test_many_files_are_summarised_and_refused_ones_named(panel: "Page", watch: Watch, tmp_path: Path) -> None:
    watch.allow("status of 400")
    for number in range(30):
        (tmp_path / f"note-{number}.md").write_text(f"Note {number} is about shed {number} of the harbour.")
    (tmp_path / "empty.md").touch()
    drop(panel, [tmp_path])
    section = panel.get_by_role("region", name="Being added")
    expects(section.get_by_text("30 of 31 added · 1 refused").first).to_be_visible()
    expects(section.locator("li")).to_have_count(1)
    expects(section.locator("li")).to_contain_text("empty.md is empty.")
    section.get_by_role("button", name="Clear this list").click()
    expects(section).to_have_count(0)
    expects(rows(panel)).to_have_count(30)


@pytest.mark.parametrize("given", [Given(environment={"RAG_MAX_FILE_BYTES": "2048"})])
def test_a_file_that_is_too_large_says_what_to_do(panel: "Page", watch: Watch, tmp_path: Path) -> None:
    watch.allow("status of 413")
    (tmp_path / "large.md").write_text(LAMP * 100)
    drop(panel, [tmp_path / "large.md"])
    expects(panel.locator(".addition.refused")).to_contain_text("Split it into smaller files")


@pytest.mark.parametrize("given", [Given(environment={"RAG_MAX_FILE_BYTES": "2048"})])
def test_other_files_take_the_place_of_one_that_would_be_refused_again(
    panel: "Page", service: CragsideServer, watch: Watch, tmp_path: Path
) -> None:
    watch.allow("status of 413")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/large.md").write_text(LAMP * 100)
    (tmp_path / "first.md").write_text(LAMP)
    (tmp_path / "second.md").write_text(TART)
    drop(panel, [tmp_path / "shop"])
    refused = panel.locator(".addition.refused")
    expects(refused.get_by_role("button", name="Choose files again")).to_be_visible()
    expects(refused.get_by_role("button", name="Try again")).to_have_count(0)
    with panel.expect_file_chooser() as chooser:
        refused.get_by_role("button", name="Choose files again").click()
    chooser.value.set_files([tmp_path / "first.md", tmp_path / "second.md"])
    done(panel, 2)
    expects(refused).to_have_count(0)
    assert stored(service) == {"shop/first.md", "shop/second.md"}


def test_a_hostile_name_and_mark_up_are_shown_as_text(panel: "Page", tmp_path: Path) -> None:
    (tmp_path / HOSTILE).write_text(MARKUP)
    drop(panel, [tmp_path / HOSTILE])
    expects(row(panel, HOSTILE)).to_contain_text("enriched")
    panel.get_by_role("button", name=HOSTILE, exact=True).click()
    expects(panel.get_by_role("dialog", name=HOSTILE)).to_contain_text(MARKUP)
    panel.keyboard.press("Escape")
    panel.get_by_role("button", name=f"Delete {HOSTILE}").click()
    expects(panel.get_by_text(f"{HOSTILE} was deleted.")).to_be_visible()
    assert panel.locator("img, main script, dialog script").count() == 0


def test_an_address_that_is_refused_says_why(panel: "Page", watch: Watch) -> None:
    watch.allow("status of 4")
    panel.get_by_label("Address of a page").fill("http://127.0.0.1:8000/secret")
    panel.get_by_role("button", name="Add", exact=True).click()
    expects(panel.locator(".addition.refused")).to_contain_text("127.0.0.1:8000/secret")
    expects(panel.locator(".addition.refused small")).not_to_be_empty()


def test_an_address_that_ends_in_git_is_a_repository(panel: "Page", watch: Watch) -> None:
    watch.allow("status of")
    address = panel.get_by_label("Address of a page")
    address.fill("https://127.0.0.1/x")
    expects(panel.get_by_label("Branch")).to_have_count(0)
    address.fill("https://127.0.0.1/x.git")
    expects(panel.get_by_role("checkbox", name="Git repository")).to_be_checked()
    panel.get_by_label("Branch").fill("main")
    with panel.expect_request("**/v1/repositories") as asked:
        panel.get_by_role("button", name="Add", exact=True).click()
    sent = {"workspace": "default", "url": "https://127.0.0.1/x.git", "branch": "main"}
    assert asked.value.post_data_json == sent
    expects(panel.locator(".addition.refused small")).not_to_be_empty()


@pytest.mark.parametrize("given", [Given(documents={"lamp.md": LAMP})])
def test_a_service_that_stops_while_files_are_sent_goes_on_when_it_is_back(
    panel: "Page", service: CragsideServer, watch: Watch, tmp_path: Path
) -> None:
    watch.allow("net::ERR_")
    (tmp_path / "tart.md").write_text(TART)
    service.kill()
    drop(panel, [tmp_path / "tart.md"])
    section = panel.get_by_role("region", name="Being added")
    expects(section.get_by_role("alert")).to_contain_text("Check that cragside serve runs, then try again.")
    service.start()
    section.get_by_role("button", name="Try again").click()
    expects(section.get_by_text("1 of 1 added").first).to_be_visible()
    expects(row(panel, "tart.md")).to_be_visible()


@pytest.mark.parametrize("given", [Given(documents={"lamp.md": LAMP, "tart.md": TART})])
def test_a_file_that_waits_for_a_deletion_can_be_stopped(
    panel: "Page", service: CragsideServer, tmp_path: Path
) -> None:
    (tmp_path / "sheds.txt").write_text(SHEDS)
    deletions: list[Route] = []
    panel.route(
        "**/v1/documents/*",
        lambda route: deletions.append(route) if route.request.method == "DELETE" else route.fallback(),
    )
    panel.get_by_role("button", name="Delete tart.md").click()
    expects(rows(panel)).to_have_count(1)
    with panel.expect_request(lambda request: request.method == "DELETE"):
        drop(panel, [tmp_path / "sheds.txt"])
    section = panel.get_by_role("region", name="Being added")
    section.get_by_role("button", name="Stop").click()
    with panel.expect_response(lambda answer: answer.request.method == "DELETE"):
        first_held(panel, deletions).continue_()
    expects(section.get_by_text("1 stopped").first).to_be_visible()
    assert stored(service) == {"lamp.md"}


def test_a_failure_is_told_however_many_others_failed(panel: "Page", service: CragsideServer, tmp_path: Path) -> None:
    others = [{"id": f"doc-{number}", "error": "another failure"} for number in range(1000)]

    def listed(route: "Route") -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        if query.get("status") == ["pending"]:
            route.fulfill(json={"documents": [], "total": 0})
        elif query.get("status") == ["failed"]:
            with service.client() as client:
                mine = [{"id": each["id"]} for each in client.get("/v1/documents").json()["documents"]]
            found = others if query["offset"] == ["0"] else [{**each, "error": "the lamp broke"} for each in mine]
            route.fulfill(json={"documents": found, "total": len(others) + len(mine)})
        else:
            route.fallback()

    for number in range(4):
        (tmp_path / f"note-{number}.md").write_text(f"Note {number} is about shed {number} of the harbour.")
    panel.route("**/v1/documents/*/events*", lambda _: None)  # two documents are followed by these
    panel.route("**/v1/documents?*", listed)
    drop(panel, [tmp_path])
    failed = panel.locator(".addition.failed")
    expects(failed).to_have_count(2)
    expects(failed.first).to_contain_text("the lamp broke")


def test_an_outage_while_a_document_is_indexed_is_no_failure_of_it(panel: "Page", tmp_path: Path) -> None:
    outage = 'event: failed\ndata: {"error": {"type": "service_unavailable", "message": "The store is away."}}\n\n'
    (tmp_path / "lamp.md").write_text(LAMP)
    panel.route("**/v1/documents/*/events*", lambda route: route.fulfill(content_type="text/event-stream", body=outage))
    drop(panel, [tmp_path / "lamp.md"])
    section = panel.get_by_role("region", name="Being added")
    expects(section.get_by_role("alert")).to_contain_text("The store is away.")
    expects(panel.locator(".addition.failed")).to_have_count(0)
    panel.unroute("**/v1/documents/*/events*")
    section.get_by_role("button", name="Try again").click()
    done(panel, 1)
