"""The panel Graph: finding entities, their surroundings, and the passages that say so."""

from typing import TYPE_CHECKING

import pytest

from tests.console.acts import PATIENCE, expects, first_held
from tests.services.cragside_server import CragsideServer, Given

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

TEXTS = {
    "swan.md": "Joseph Swan met Thomas Edison in London. Joseph Swan lit Cragside for William Armstrong.",
    "edison.md": "Thomas Edison worked in Menlo Park. Thomas Edison founded General Electric in New York.",
}
KNOWN = Given(documents=TEXTS)


@pytest.fixture
def panel(page: "Page", shared_service: CragsideServer) -> "Page":
    with shared_service.client() as client:
        for _ in range(PATIENCE // 100):
            if client.get("/v1/graph/search", params={"text": "Swan"}).json()["entities"]:
                break
            page.wait_for_timeout(100)
    page.goto(shared_service.console("#/graph"))
    expects(page.get_by_role("heading", name="Best connected")).to_be_visible()
    return page


@pytest.mark.parametrize("given", [KNOWN])
def test_an_entity_is_found_while_one_types(panel: "Page") -> None:
    finder = panel.get_by_role("combobox", name="Find an entity")
    finder.fill("swa")
    expects(panel.locator(".finder").get_by_role("option").first).to_contain_text("Joseph Swan")
    finder.press("ArrowDown")
    finder.press("Enter")
    expects(panel.get_by_role("heading", name="Joseph Swan", exact=True)).to_be_visible()
    assert "entity=Joseph+Swan" in panel.url


@pytest.mark.parametrize("given", [KNOWN])
def test_a_relationship_leads_to_the_passages_that_say_so(panel: "Page", shared_service: CragsideServer) -> None:
    panel.goto(shared_service.console("#/graph?entity=Joseph+Swan"))
    panel.get_by_role("button", name="Why? Show what says that").first.click()
    expects(panel.get_by_role("heading", name="Passages about")).to_contain_text("Joseph Swan")
    passages = panel.locator("section blockquote")
    expects(passages.first).to_contain_text("Joseph Swan")
    expects(passages.first.locator("mark").first).to_have_text("Joseph Swan")
    panel.locator("section li button").first.click()
    expects(panel.get_by_role("dialog", name="swan.md").locator("mark")).to_contain_text("Joseph Swan")


@pytest.mark.parametrize("given", [KNOWN])
def test_a_neighbour_begins_without_the_relationship_that_was_looked_at(
    panel: "Page", shared_service: CragsideServer
) -> None:
    panel.goto(shared_service.console("#/graph?entity=Joseph+Swan&depth=2"))
    panel.get_by_role("button", name="Show what says that").first.click()
    expects(panel.get_by_role("heading", name="Passages about")).to_be_visible()
    panel.get_by_role("link", name="Thomas Edison").first.click()
    expects(panel.get_by_role("heading", name="Thomas Edison", exact=True)).to_be_focused()
    expects(panel.get_by_role("heading", name="Passages that name it")).to_be_visible()
    expects(panel.get_by_role("heading", name="Passages about")).to_have_count(0)
    assert "depth=2" in panel.url


@pytest.mark.parametrize("given", [KNOWN])
def test_an_entity_does_not_stand_on_the_graph_of_another_one(panel: "Page", shared_service: CragsideServer) -> None:
    panel.goto(shared_service.console("#/graph?entity=Joseph+Swan"))
    expects(panel.get_by_role("heading", name="Joseph Swan", exact=True)).to_be_visible()
    held: list[Route] = []
    panel.route("**/v1/graph/neighbourhood*", lambda route: held.append(route))
    panel.get_by_role("link", name="Thomas Edison").first.click()
    expects(panel.get_by_text("Loading the graph")).to_be_visible()
    expects(panel.get_by_role("heading", level=2)).to_have_count(0)
    first_held(panel, held).continue_()
    expects(panel.get_by_role("heading", name="Thomas Edison", exact=True)).to_be_visible()


@pytest.mark.parametrize("given", [KNOWN])
def test_the_list_leads_to_entities_that_are_two_steps_away(panel: "Page", shared_service: CragsideServer) -> None:
    panel.goto(shared_service.console("#/graph?entity=Joseph+Swan&depth=2"))
    panel.get_by_text("All around it").click()
    around = panel.get_by_role("list", name="Entities around it")
    around.get_by_role("link", name="General Electric").click()
    expects(panel.get_by_role("heading", name="General Electric", exact=True)).to_be_visible()


@pytest.mark.parametrize("given", [KNOWN])
def test_the_names_are_marked_in_the_passages_as_text(panel: "Page", shared_service: CragsideServer) -> None:
    text = "The C++\n(Core) <b>group</b> met c++ (core), libc++ (core) and Joseph Swan."
    passage = {"id": "p", "document": "d", "title": "", "name": "n.md", "text": text, "page": None, "section": None}
    panel.route("**/v1/graph/passages*", lambda route: route.fulfill(json={"passages": [passage], "total": 1}))
    answer = {"entities": [{"name": "C++ (Core)", "type": "", "description": "", "mentions": 1}], "relationships": []}
    answered = {**answer, "capped": False, "total": None}
    panel.route("**/v1/graph/neighbourhood*", lambda route: route.fulfill(json=answered))
    panel.goto(shared_service.console("#/graph?entity=C%2B%2B+(Core)"))
    quoted = panel.locator("section blockquote")
    expects(quoted.locator("mark")).to_have_text(["C++ (Core)", "c++ (core)"])
    expects(quoted).to_contain_text("<b>group</b>")


@pytest.mark.parametrize("given", [KNOWN])
def test_one_entity_and_one_relationship_are_told_in_the_singular(
    panel: "Page", shared_service: CragsideServer
) -> None:
    entity = {"name": "Lamp", "type": "", "description": "", "mentions": 1}
    relationship = {"source": "Lamp", "target": "Lamp", "type": "", "description": "", "weight": 1}
    answer = {"entities": [entity], "relationships": [relationship], "capped": False, "total": None}
    panel.route("**/v1/graph/neighbourhood*", lambda route: route.fulfill(json=answer))
    panel.route("**/v1/graph/passages*", lambda route: route.fulfill(json={"passages": [], "total": 0}))
    panel.goto(shared_service.console("#/graph?entity=Lamp"))
    expects(panel.locator(".where[role=status]")).to_have_text("1 entity, 1 relationship.")


@pytest.mark.parametrize("given", [KNOWN])
def test_two_steps_reach_further_than_one(panel: "Page", shared_service: CragsideServer) -> None:
    panel.goto(shared_service.console("#/graph?entity=Joseph+Swan"))
    told = panel.locator(".where[role=status]")
    expects(told).to_contain_text("entities")
    near = int(told.inner_text().split()[0])
    panel.get_by_label("2 steps").check()
    panel.wait_for_url("**depth=2")
    expects(told).not_to_contain_text(f"{near} entities")
    assert int(told.inner_text().split()[0]) > near


@pytest.mark.parametrize("given", [KNOWN])
def test_the_graph_is_filtered_by_type(panel: "Page") -> None:
    choice = panel.get_by_role("combobox", name="Type", exact=True)
    chosen = str(choice.locator("option").nth(1).get_attribute("value"))
    choice.select_option(chosen)
    shown = panel.locator(".plain.scroll li small")
    expects(shown.first).to_have_text(chosen)
    assert set(shown.all_inner_texts()) == {chosen}


def test_an_empty_graph_says_what_to_do(page: "Page", service: CragsideServer) -> None:
    page.goto(service.console("#/graph"))
    expects(page.get_by_text("The graph is empty.")).to_be_visible()


@pytest.mark.parametrize("given", [Given(documents={"note.md": "nothing of note is told here."}, baked=True)])
def test_an_empty_graph_of_a_read_only_store_asks_for_no_documents(page: "Page", service: CragsideServer) -> None:
    page.goto(service.console("#/graph"))
    expects(page.get_by_text("This store is read-only")).to_be_visible()
    expects(page.get_by_text("There is nothing here.")).to_be_visible()
    expects(page.get_by_text("The graph is empty.")).to_have_count(0)
