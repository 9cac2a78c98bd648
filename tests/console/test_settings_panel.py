"""The panel Settings: what is changed is saved for the workspace; the store and the components say how they do."""

from typing import TYPE_CHECKING

import pytest

from tests.console.acts import expects
from tests.console.watch import Watch
from tests.services.cragside_server import CragsideServer, Given

if TYPE_CHECKING:
    from playwright.sync_api import Page

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


def test_a_pair_that_does_not_fit_is_refused_in_words(panel: "Page", watch: Watch) -> None:
    watch.allow("status of 400")
    panel.get_by_label("Length in tokens").fill("500")
    panel.get_by_label("Overlap in tokens").fill("900")
    panel.get_by_role("button", name="Save").click()
    expects(panel.get_by_role("alert")).to_contain_text("chunk_overlap_tokens has to be smaller than chunk_tokens")


@pytest.mark.parametrize("given", [KNOWN])
def test_the_store_and_the_components_tell_how_they_do(panel: "Page") -> None:
    expects(panel.locator("dl").first).to_contain_text("wordllama-256")
    table = panel.get_by_role("region", name="Components")
    expects(table.get_by_role("row").filter(has_text="store")).to_contain_text("ok")


@pytest.mark.parametrize("given", [Given(documents=KNOWN.documents, baked=True)])
def test_a_read_only_store_offers_no_change(panel: "Page") -> None:
    expects(panel.get_by_text("These settings cannot be changed here")).to_be_visible()
    expects(panel.get_by_label("Corrective")).to_be_disabled()
    expects(panel.get_by_role("button", name="Rebuild the store")).to_have_count(0)
