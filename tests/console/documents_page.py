"""The panel Documents as tests see it: its rows, and what the service has."""

from typing import TYPE_CHECKING

from tests.console.acts import expects
from tests.services.cragside_server import CragsideServer, Given

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

LAMP = "The keeper of the lighthouse lights the lamp at dusk."
TART = "Bake the lemon tart for forty minutes."
SHEDS = "The rowing club rents shed four from the harbour office."
THREE = Given(documents={"lamp.md": LAMP, "tart.md": TART, "sheds.txt": SHEDS})


def opened(page: "Page", service: CragsideServer) -> "Page":
    """The panel, once it knows whether the workspace has documents."""
    page.goto(service.console("#/documents"))
    expects(page.get_by_role("heading", name="In this workspace")).to_be_visible()
    expects(page.get_by_text("Loading the list")).to_have_count(0)
    return page


def rows(page: "Page") -> "Locator":
    """The documents of the shown page."""
    return page.locator("table.documents tbody tr")


def names(page: "Page") -> list[str]:
    """Their names, in their order."""
    return page.locator("table.documents .open").all_inner_texts()


def row(page: "Page", name: str) -> "Locator":
    """The document of a name."""
    return rows(page).filter(has=page.get_by_role("button", name=name, exact=True))


def done(page: "Page", count: int) -> None:
    """Wait until all that was added is searchable: the service must not stop before."""
    expects(page.get_by_text(f"{count} of {count} added").first).to_be_visible()


def stored(service: CragsideServer) -> set[str]:
    """The names of the documents that the service has."""
    with service.client() as client:
        return {each["name"] for each in client.get("/v1/documents").json()["documents"]}
