"""The panel Settings: what is changed is saved for the workspace; the store and the components say how they do."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.acts import expects, first_held
from tests.console.watch import Watch
from tests.services.cragside_server import CragsideServer, Given
from tests.services.tools import run

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

KNOWN = Given(documents={"lamp.md": "The keeper of the lighthouse lights the lamp at dusk."})


@pytest.fixture
def panel(page: "Page", service: CragsideServer) -> "Page":
    page.goto(service.console("#/settings"))
    expects(page.get_by_role("heading", name="Evidence", exact=True)).to_be_visible()
    return page


def settings(service: CragsideServer) -> dict[str, object]:
    with service.client() as client:
        return dict(client.get("/v1/settings").json())


def test_changes_are_saved_and_defaults_restored(panel: "Page", service: CragsideServer) -> None:
    expects(panel.get_by_role("button", name="Save")).to_be_disabled()
    panel.get_by_label("Plain similarity: the most similar").check()
    panel.get_by_label("Length in tokens").fill("700")
    panel.get_by_label("Persona").select_option("strict-de")
    panel.get_by_role("button", name="Save").click()
    expects(panel.get_by_text("Saved.")).to_be_visible()
    saved = settings(service)
    assert (saved["mode"], saved["chunk_tokens"], saved["persona"]) == ("similarity", 700, "strict-de")
    panel.get_by_role("button", name="Restore the defaults").click()
    expects(panel.get_by_label("Corrective")).to_be_checked()
    restored = settings(service)
    assert (restored["mode"], restored["chunk_tokens"], restored["persona"]) == ("corrective", 1000, None)


@pytest.mark.parametrize("given", [Given(environment={"RAG_PERSONA": "strict-de"})])
def test_the_plain_instruction_can_be_chosen_though_the_default_is_another(
    panel: "Page", service: CragsideServer
) -> None:
    expects(panel.get_by_label("Persona")).to_have_value("strict-de")
    panel.get_by_label("Persona").select_option("plain")
    panel.get_by_role("button", name="Save").click()
    expects(panel.get_by_text("Saved.")).to_be_visible()
    expects(panel.get_by_label("Persona")).to_have_value("plain")
    assert settings(service)["persona"] == "plain"


def test_a_pair_that_does_not_fit_is_refused_in_words(panel: "Page", watch: Watch) -> None:
    watch.allow("status of 400")
    panel.get_by_label("Length in tokens").fill("500")
    panel.get_by_label("Overlap in tokens").fill("900")
    panel.get_by_role("button", name="Save").click()
    expects(panel.get_by_role("alert")).to_contain_text("chunk_overlap_tokens has to be smaller than chunk_tokens")


def test_a_refusal_is_in_sight_and_takes_the_place_of_what_was_told(panel: "Page", watch: Watch) -> None:
    watch.allow("status of 400")
    panel.set_viewport_size({"width": 1024, "height": 740})
    panel.get_by_label("Length in tokens").fill("500")
    panel.get_by_role("button", name="Save").click()
    expects(panel.get_by_text("Saved.")).to_be_visible()
    panel.get_by_label("Overlap in tokens").fill("1000")
    panel.get_by_role("button", name="Save").click()
    expects(panel.locator("form").get_by_role("alert")).to_be_in_viewport(ratio=1)
    expects(panel.get_by_text("Saved.")).to_have_count(0)


@pytest.mark.parametrize("given", [KNOWN])
def test_a_rebuild_shows_its_progress_and_keeps_what_was_not_saved(panel: "Page", service: CragsideServer) -> None:
    held: list[Route] = []
    panel.route("**/v1/reindex", lambda route: held.append(route))
    panel.get_by_label("Length in tokens").fill("700")
    _rebuild(panel)
    expects(panel.get_by_text("Rebuilding: 0 of 1 documents")).to_be_visible()
    expects(panel.get_by_role("button", name="Rebuild")).to_have_count(0)
    with panel.expect_response("**/v1/settings*"):
        first_held(panel, held).continue_()
    expects(panel.get_by_text("The store was rebuilt from 1 document.")).to_be_visible()
    expects(panel.get_by_text("Rebuilding:")).to_have_count(0)
    expects(panel.get_by_label("Length in tokens")).to_have_value("700")
    panel.get_by_role("button", name="Save").press("Enter")
    expects(panel.get_by_text("Saved.")).to_be_visible()
    expects(panel.get_by_role("button", name="Save")).to_be_focused()
    assert settings(service)["chunk_tokens"] == 700


@pytest.mark.parametrize("given", [KNOWN])
def test_a_rebuild_goes_on_while_one_looks_at_another_panel(panel: "Page") -> None:
    held: list[Route] = []
    panel.route("**/v1/reindex", lambda route: held.append(route))
    _rebuild(panel)
    panel.get_by_role("link", name="Memory").click()
    expects(panel.get_by_role("heading", name="Memory")).to_be_visible()
    panel.get_by_role("link", name="Settings").click()
    expects(panel.get_by_text("Rebuilding: 0 of 1 documents")).to_be_visible()
    with panel.expect_response("**/v1/settings*"):
        first_held(panel, held).fulfill(content_type="text/event-stream", body="")
    expects(panel.get_by_role("alert")).to_contain_text("The service does not answer.")
    expects(panel.get_by_role("button", name="Rebuild the store")).to_be_visible()


def _rebuild(panel: "Page") -> None:
    panel.get_by_role("button", name="Rebuild the store").click()
    panel.get_by_role("dialog").get_by_role("button", name="Rebuild", exact=True).click()


def test_a_token_of_one_workspace_is_told_why_it_sees_no_components(
    page: "Page", watch: Watch, tmp_path: Path, start_service: Callable[[Given], CragsideServer]
) -> None:
    watch.allow("status of 40[13]")
    tokens = {"RAG_TOKENS_FILE": str(tmp_path / "tokens.json"), "RAG_HOME": str(tmp_path)}
    program = "from cragside.entrypoints.cli.main import main; main()"
    command = [sys.executable, "-c", program, "token", "new", "reader", "--workspace", "default"]
    token = run(command, env=tokens).split()[-1]
    given = Given(environment={"RAG_TOKENS_FILE": tokens["RAG_TOKENS_FILE"]}, token="all")
    service = start_service(given)
    page.goto(service.console("#/settings"))
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Continue").click()
    expects(page.get_by_text("The components serve all workspaces.")).to_be_visible()
    expects(page.get_by_role("heading", name="Evidence", exact=True)).to_be_visible()
    expects(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("given", [KNOWN])
def test_the_store_and_the_components_tell_how_they_do(panel: "Page") -> None:
    expects(panel.locator("dl").first).to_contain_text("wordllama-256")
    table = panel.get_by_role("region", name="Components")
    expects(table.get_by_role("row").filter(has_text="store")).to_contain_text("ok")


def test_a_narrow_screen_shows_the_components_and_their_remedies_whole(panel: "Page") -> None:
    panel.set_viewport_size({"width": 360, "height": 740})
    table = panel.get_by_role("region", name="Components")
    expects(table.get_by_role("row").filter(has_text="store")).to_be_visible()
    hidden = "box => [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]"
    assert table.evaluate(hidden) == [0, 0]


@pytest.mark.parametrize("given", [Given(documents=KNOWN.documents, baked=True)])
def test_a_read_only_store_offers_no_change(panel: "Page") -> None:
    expects(panel.get_by_text("These settings cannot be changed here")).to_be_visible()
    expects(panel.get_by_label("Corrective")).to_be_disabled()
    expects(panel.get_by_role("button", name="Rebuild the store")).to_have_count(0)
